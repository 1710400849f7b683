"""The command ``cdta compare``: compare runs."""

import json
from pathlib import Path

import click

from ...comparison.leaderboard import ranking_of
from ...report.document import comparison_facts
from ...report.pages import write_comparison
from ...report.tables import comparison_table
from ...runs.lookup import find_runs
from ...runs.storage import load_run
from ..console import console
from ..help import FORMATS, JSON, Command, chosen_format, output_option


@click.command(
    "compare",
    cls=Command,
    params=[output_option("Also write an HTML report."), *FORMATS.values(), JSON],
)
@click.argument("names", metavar="RUN RUN...", nargs=-1, required=True)
def compare_command(
    names: tuple[str, ...], output: Path | None, as_json: bool, **formats: bool
) -> None:
    """Compare models and test whether differences are significant.

    Each pair of models is compared on the positions they share; each model is also shown on its own
    dataset. Runs of one model that differ only in the seed are pooled. p is corrected for all pairs
    and measures. RUN is a folder, part of its name, a model's name, latest, or a folder of runs.
    """
    text_format = chosen_format(formats)
    ranking = ranking_of([load_run(folder) for folder in find_runs(names)])
    if as_json:
        click.echo(json.dumps(comparison_facts(ranking)))
    elif text_format:
        click.echo(text_format.comparison(ranking))
    else:
        console().print(comparison_table(ranking))
    if output:
        click.echo(f"page: {write_comparison(ranking, output)}", err=as_json or bool(text_format))
