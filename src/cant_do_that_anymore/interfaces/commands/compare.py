"""The command that puts runs side by side: ``cdta compare``."""

import sys
from pathlib import Path

import click

from ...errors import Problem
from ...evaluation.comparison import compare
from ...evaluation.finding import runs_at
from ...evaluation.folder import load_run
from ...files import replacing_text
from ...report.comparison_page import comparison_page
from ...report.comparison_table import WIDE, comparison_table
from ..options import OUTPUT, Command, Option
from ..printing import console


@click.command(
    "compare",
    cls=Command,
    params=[
        Option(
            ["-o", "--output"],
            heading=OUTPUT,
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write a page (HTML) there as well.",
        )
    ],
)
@click.argument("names", metavar="RUN RUN...", nargs=-1, required=True)
def compare_command(names: tuple[str, ...], output: Path | None) -> None:
    """Say which model drops the habit better, and whether it is sure.

    Models are compared pair by pair on the positions they share, and shown each on its own dataset.
    Runs of one model that differ in the seed alone are taken together. Differences are paired, and
    p is corrected for the number of comparisons. RUN is a folder, a part of its name, a model's
    name, latest, or a folder of runs.
    """
    comparisons = compare([load_run(folder) for folder in runs_at(names)])
    # A file or a pipe has no width of its own.
    screen = console(None if sys.stdout.isatty() else WIDE)
    screen.print(comparison_table(comparisons, screen.width))
    if output:
        try:
            replacing_text(output, comparison_page(comparisons))
        except OSError as problem:
            raise Problem(f"cannot write {str(output)!r} ({problem.strerror})") from None
        click.echo(f"page: {output}")
