"""The command ``cdta compare``: compare runs."""

import json
from pathlib import Path

import click

from ...api.functions import compare
from ...errors import InvalidInput
from ...report.rows import comparison_json
from ...report.tables import comparison_table
from ...task.option_info import TASK
from ..console import console
from ..help import FORMATS, JSON, PERCENTAGE, Command, Option, chosen_format, output_option


@click.command(
    "compare",
    cls=Command,
    params=[
        Option(
            "--baseline RUN",
            TASK,
            "Exit with 1 if RUN is significantly worse than this one in rule uptake.",
        ),
        Option(
            "--tolerance POINTS",
            TASK,
            "With --baseline: accept a drop of this many points.  [default: 0]",
            type=PERCENTAGE,
        ),
        output_option("Also write an HTML report."),
        *FORMATS.values(),
        JSON,
    ],
)
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
def compare_command(
    names: tuple[str, ...],
    baseline: str | None,
    tolerance: float | None,
    output: Path | None,
    as_json: bool,
    **formats: bool,
) -> None:
    """Compare models and test whether differences are significant.

    \b
    cdta compare gpt-4o gpt-4o-mini         two models
    cdta compare RUN RUN                    one model, then and now
    cdta compare --baseline RUN RUN         a check for CI: exit code 1 if worse
    cdta compare experiment -o page.html    all runs of a folder

    Each pair of runs is compared on the positions they share; each run is also shown on its own
    dataset. Runs of one model with the same settings are named by seed, or by date and time. The
    intervals of all pairs hold together. RUN is a folder, part of its name, a model's name, a tag,
    latest, or a folder of runs.
    """
    if baseline is None and tolerance is not None:
        raise InvalidInput("--tolerance needs --baseline RUN")
    text_format = chosen_format(formats)
    comparison = compare(*names, baseline=baseline, tolerance=tolerance or 0.0)
    check = comparison.check
    if as_json:
        facts = {"baseline": check.json} if check else {}
        click.echo(json.dumps(comparison_json(comparison) | facts))
    elif text_format:
        click.echo(text_format.comparison(comparison))
    else:
        console().print(comparison_table(comparison))
    is_data = as_json or bool(text_format)
    if output:
        click.echo(f"report: {comparison.report(output)}", err=is_data)
    if check:
        if not as_json:  # which has the sentence
            click.echo(check.sentence, err=bool(text_format))
        click.get_current_context().exit(1 if check.verdict == "worse" else 0)
