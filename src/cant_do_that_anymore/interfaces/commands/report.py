"""Commands that show a run as a page: ``cdta report`` and ``cdta view``."""

import webbrowser
from pathlib import Path

import click

from ...errors import BadInput, Problem
from ...evaluation.folder import load_run
from ...report.page import PAGE_NAME, write_page

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("folders", metavar="RUN...", nargs=-1, required=True, type=_PATH)
@click.option("-o", "--output", type=_PATH, help="Where to.  [default: report.html in each RUN]")
def report(folders: tuple[Path, ...], output: Path | None) -> None:
    """Write the page of each run again.

    A page is one HTML file that opens from disk, without a network.
    """
    if output and len(folders) > 1:
        raise BadInput(
            f"-o takes one run, not {len(folders)}; without it every run gets its own {PAGE_NAME}, "
            "and `cdta compare` puts runs side by side"
        )
    for folder in folders:
        path = output or folder / PAGE_NAME
        write_page(load_run(folder), path)
        click.echo(path)


@click.command()
@click.argument("folder", metavar="RUN", type=_PATH)
def view(folder: Path) -> None:
    """Open the page of a run in the browser.

    It is written if there is none.
    """
    path = folder / PAGE_NAME
    if not path.exists():
        write_page(load_run(folder), path)
    if not webbrowser.open(path.resolve().as_uri()):
        raise Problem(f"no browser could be started here; open {str(path)!r} in one")
