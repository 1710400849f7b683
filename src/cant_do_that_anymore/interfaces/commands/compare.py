"""The command that puts runs side by side: ``cdta compare``."""

from pathlib import Path

import click

from ...errors import Problem
from ...evaluation.comparison import compare
from ...evaluation.folder import load_run
from ...files import replacing_text
from ...report.comparison_page import comparison_page
from ...report.comparison_table import comparison_table
from ..printing import console

_PATH = click.Path(path_type=Path)


@click.command("compare")
@click.argument("folders", metavar="RUN RUN...", nargs=-1, required=True, type=_PATH)
@click.option("-o", "--output", type=_PATH, help="Write a page (HTML) there as well.")
def compare_command(folders: tuple[Path, ...], output: Path | None) -> None:
    """Put runs side by side.

    Models are compared each on its own dataset, and on the positions they share. Differences on
    shared positions are paired; p is corrected for the number of comparisons.
    """
    runs = [load_run(folder) for folder in folders]
    comparisons = compare(runs)
    console().print(comparison_table(runs, comparisons))
    if output:
        try:
            replacing_text(output, comparison_page(runs, comparisons))
        except OSError as problem:
            raise Problem(f"cannot write {str(output)!r} ({problem.strerror})") from None
        click.echo(f"page: {output}")
