"""The command that lists runs: ``cdta runs``."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...errors import InvalidInput, visible
from ...files import home
from ...report.columns import RUN_COLUMNS
from ...runs.lookup import RunSummary, folders_in, known_folders, listed
from ..options import Command, shared
from ..printing import console

WIDE, ENDLESS = 200, 10_000


@click.command("runs", cls=Command, params=shared("as_json"))
@click.argument("places", metavar="[DIR...]", nargs=-1, type=click.Path(path_type=Path))
def list_runs(places: tuple[Path, ...], as_json: bool) -> None:
    """List runs, the newest first.

    Those in each DIR, or else those under CDTA_HOME and in the current folder. Their numbers are
    taken from run.json as they stand there; impact is the impact factor with its 95 % interval, and
    cost that of all answers. Whatever is listed can be named in other commands by a part of its
    folder's name.
    """
    folders = [folder for place in places for folder in _runs_in(place)] or known_folders()
    runs, damaged = listed(folders)
    if as_json:
        click.echo(json.dumps([asdict(run) | {"folder": str(run.folder)} for run in runs]))
    elif runs:
        # A file or a pipe has no width of its own.
        _print(runs, console(None if sys.stdout.isatty() else WIDE))
    else:
        click.echo("no runs yet; `cdta run` makes one")
    for problem in damaged:
        click.echo(visible(f"cdta: {problem}"), err=True)


def _runs_in(place: Path) -> list[Path]:
    found = folders_in(place)
    if not found:
        raise InvalidInput(f"{str(place)!r} holds no run")
    return found


def _print(runs: Sequence[RunSummary], screen: Console) -> None:
    """A line a run; two where a line is too short."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading, column in RUN_COLUMNS.items():
        table.add_column(heading, justify="right" if column.is_number else "left")
    table.add_column("run")
    for run in runs:
        table.add_row(*(Text(column.shown(run)) for column in RUN_COLUMNS.values()), _name(run))
    if console(ENDLESS).measure(table).maximum <= screen.width:
        screen.print(table)
        return
    for run in runs:
        told = (column.in_words(run) for column in RUN_COLUMNS.values())
        screen.print(_name(run), style="bold", soft_wrap=True)
        screen.print(Padding(Text("  ".join(told)), (0, 0, 0, 2)))


def _name(run: RunSummary) -> Text:
    at_home = run.folder.parent == home() / "runs"
    return Text(run.folder.name if at_home else str(run.folder))
