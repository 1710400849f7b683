"""Commands that show runs as pages: ``cdta report`` and ``cdta view``."""

import webbrowser
from contextlib import suppress
from pathlib import Path

import click

from ...errors import InvalidInput, UserError
from ...report.html import PAGE_NAME
from ...report.pages import INDEX
from ...report.run_page import write_page
from ...runs.lookup import FACTS, LATEST, find_run, find_runs
from ...runs.storage import load_run
from ..options import Command
from ..outputs import output_option


@click.command(
    cls=Command,
    params=[output_option("FILE", f"Where to.  [default: {PAGE_NAME} in each RUN]")],
)
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
def report(names: tuple[str, ...], output: Path | None) -> None:
    """Write the page of each run again.

    A page is one HTML file that opens from disk, without a network. RUN is a folder, a part of its
    name, a model's name, latest, or a folder of runs.
    """
    folders = find_runs(names)
    if output and len(folders) > 1:
        raise InvalidInput(
            f"-o takes one run, not {len(folders)}; without it every run gets its own {PAGE_NAME}, "
            "and `cdta compare` puts runs side by side"
        )
    for folder in folders:
        path = output or folder / PAGE_NAME
        write_page(load_run(folder), path)
        click.echo(path)


@click.command(cls=Command)
@click.argument("name", metavar="[RUN]", default=LATEST)
def view(name: str) -> None:
    """Open the page of a run in the browser.

    RUN is a folder, a part of its name, a model's name, latest (the default), the folder of an
    experiment, or a page. The page of a run is written if there is none.
    """
    path = _page_of(name)
    if not webbrowser.open(path.resolve().as_uri()):
        raise UserError(f"no browser could be started here; open {str(path)!r} in one")


def _page_of(name: str) -> Path:
    """The page that a name stands for: itself, that of a folder with an index, or that of a run."""
    given = Path(name)
    with suppress(OSError):  # too long for a path, or locked
        if given.suffix == ".html" and given.is_file():
            return given
        if (given / INDEX).is_file() and not (given / FACTS).exists():
            return given / INDEX
    path = find_run(name) / PAGE_NAME
    if not path.exists():
        write_page(load_run(path.parent), path)
    return path
