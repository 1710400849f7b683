"""The command that puts runs side by side: ``cdta compare``."""

from pathlib import Path

import click

from ...errors import Problem


@click.command("compare")
@click.argument(
    "folders",
    metavar="RUN RUN...",
    nargs=-1,
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page (HTML) there as well.",
)
def compare_command(folders: tuple[Path, ...], output: Path | None) -> None:
    """Compare models: each on its own dataset, and on the positions they share.

    Differences on shared positions are paired; p is corrected for the number of comparisons.
    """
    from rich.console import Console

    from ...evaluation.folder import load_run
    from ...report.compare import compare
    from ...report.comparison_page import comparison_page
    from ...report.comparison_table import comparison_table

    runs = [load_run(folder) for folder in folders]
    comparisons = compare(runs)
    Console().print(comparison_table(runs, comparisons))
    if output:
        try:
            output.write_text(comparison_page(runs, comparisons), encoding="utf-8")
        except OSError as problem:
            raise Problem(f"cannot write {str(output)!r} ({problem.strerror})") from None
        click.echo(f"page: {output}")
