"""The command ``cdta compare``: compare runs."""

import json
from pathlib import Path

import click

from ...comparison.leaderboard import ranking_of
from ...report.document import comparison_facts
from ...report.markdown import comparison_in_markdown
from ...report.pages import write_comparison
from ...report.tables import comparison_table
from ...runs.lookup import find_runs
from ...runs.storage import load_run
from ..console import console
from ..help import JSON, MARKDOWN, Command, output_option


@click.command(
    "compare",
    cls=Command,
    params=[output_option("Write a page (HTML) there as well."), MARKDOWN, JSON],
)
@click.argument("names", metavar="RUN RUN...", nargs=-1, required=True)
def compare_command(
    names: tuple[str, ...], output: Path | None, as_markdown: bool, as_json: bool
) -> None:
    """Compare models and test whether differences are significant.

    Models are compared pair by pair on the positions they share, and shown each on its own dataset.
    Runs of one model that differ in the seed alone are taken together. Differences are paired, and
    p is corrected for all pairs and measures. RUN is a folder, a part of its name, a model's
    name, latest, or a folder of runs.
    """
    ranking = ranking_of([load_run(folder) for folder in find_runs(names)])
    if as_json:
        click.echo(json.dumps(comparison_facts(ranking)))
    elif as_markdown:
        click.echo(comparison_in_markdown(ranking))
    else:
        console().print(comparison_table(ranking))
    if output:
        click.echo(f"page: {write_comparison(ranking, output)}", err=as_markdown or as_json)
