"""The command ``cdta compare``: compare runs."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from ...api.functions import compare
from ...report.formats import markdown
from ...report.rows import comparison_json
from ...report.tables import comparison_table
from ...task.option_info import TASK
from ..console import console
from ..help import JSON, MARKDOWN, Command, Option, output_option


@click.command(
    "compare",
    cls=Command,
    params=[
        Option("--baseline RUN", TASK, "Exit with 1 if RUN's rule uptake is significantly below."),
        Option(
            "--tolerance POINTS",
            TASK,
            "With --baseline: accept a drop of this many points.",
            default=0.0,
        ),
        output_option("Also write an HTML report."),
        MARKDOWN,
        JSON,
    ],
)
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
def compare_command(
    names: tuple[str, ...],
    baseline: str | None,
    tolerance: float,
    output: Path | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Compare models and test whether differences are significant.

    \b
    cdta compare gpt-4o gpt-4o-mini         two models
    cdta compare RUN RUN                    one model, then and now
    cdta compare --baseline RUN RUN         a check for CI: exit code 1 if worse
    cdta compare experiment -o page.html    all runs of a folder

    Each pair of runs is compared on the items they share; each run is also shown on its own
    dataset. The intervals of all pairs hold together. RUN is a folder of one or more runs, part of
    a folder's name, a model's name, a tag, or latest. A name stands for the newest run that the
    others can be compared with; a single name for all its runs.
    """
    comparison = compare(*names, baseline=baseline, tolerance=tolerance)
    check = comparison.check
    if as_json:
        facts = {"baseline": asdict(check)} if check else {}
        click.echo(json.dumps(comparison_json(comparison) | facts))
    elif as_markdown:
        click.echo(markdown.comparison(comparison))
    else:
        terminal = console()
        terminal.print(comparison_table(comparison), "")
        for entry in comparison.entries:
            line = f"{entry.label} under {entry.change.key}: {entry.run.folder}"
            terminal.print(line, style="dim", soft_wrap=True)
    if output:
        click.echo(f"report: {comparison.report(output)}", err=as_json or as_markdown)
    if check:
        if not as_json:  # which has the sentence
            click.echo(check.sentence, err=as_markdown)
        click.get_current_context().exit(1 if check.verdict == "worse" else 0)
