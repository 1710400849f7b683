"""The commands ``cdta view`` and ``cdta runs``."""

import json
import sys
import webbrowser
from collections.abc import Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...api.functions import load
from ...comparison.naming import option_text
from ...errors import shortlist
from ...files import home
from ...formatting import last_part, pluralize, visible
from ...report.html import PAGE_NAME
from ...report.pages import INDEX
from ...runs.lookup import LATEST_RUN, find_run, find_runs, known_folders, name_of, readable_runs
from ...runs.storage import RUN_JSON, RunFile
from ..console import console
from ..help import JSON, PATH, Command


@click.command("view", cls=Command)
@click.argument("name", metavar="[RUN]", default=LATEST_RUN)
def view_command(name: str) -> None:
    """Open the report of a run in the browser.

    RUN is a folder, part of its name, a model's name, a tag, latest (the default), or the folder of
    an experiment. The report of a run is written if there is none.
    """
    path = _page_of(name)
    webbrowser.open(path.resolve().as_uri())  # there may be no browser
    click.echo(f"report: {visible(str(path))}")


def _page_of(name: str) -> Path:
    """Return the report that a name means: the index of a folder, or the report of a run."""
    index = Path(name) / INDEX
    if index.is_file():
        return index
    path = find_run(name) / PAGE_NAME
    return path if path.exists() else load(path.parent).report(path)


PIPE_WIDTH = 200  # columns; a file or a pipe has no width
DATE = slice(len("2026-"), len("2026-11-19T173059"))  # in the names of folders under CDTA_HOME


@click.command("runs", cls=Command, params=[JSON])
@click.argument("places", metavar="[DIR...]", nargs=-1, type=PATH)
def runs_command(places: tuple[Path, ...], as_json: bool) -> None:
    """List runs, newest first.

    It lists the runs in each DIR, by default those under CDTA_HOME and in the current folder. The
    rule uptake has its 95% interval. Other commands take the first column, or any part of a
    folder's name, for RUN.
    """
    runs, damaged = readable_runs(find_runs(places) if places else known_folders())
    if as_json:
        click.echo(json.dumps([_json(run.folder) for run in runs]))
    elif runs:
        _print(runs, console(None if sys.stdout.isatty() else PIPE_WIDTH))
    else:
        click.echo("no runs yet; start one with `cdta run`")
    if damaged:
        names = shortlist([name_of(folder) for folder in damaged])
        line = f"{pluralize(len(damaged), 'run')} left out, damaged or of another version: {names}"
        click.echo(visible(f"cdta: {line}; delete them or run their commands again"), err=True)


def _print(runs: Sequence[RunFile], screen: Console) -> None:
    """Print a line for each run; the terminal's width cuts off models and options."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("run", no_wrap=True)
    table.add_column("model")
    table.add_column("options and rules")
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("rule uptake", no_wrap=True)
    for run in runs:
        options = starmap(option_text, run.options.items())
        table.add_row(
            _short_name(run.folder),
            _cut(" ".join(filter(None, (last_part(run.model), run.tag)))),
            _cut(", ".join((*filter(None, options), run.rules))),
            f"{run.n_samples:,}",
            run.rule_uptake.as_share if run.rule_uptake else "–",
        )
    screen.print(table)


def _short_name(folder: Path) -> str:
    """Return a part of a folder's name that finds its run: when it started, or else its path."""
    name = name_of(folder)
    return name[DATE] if name[DATE] and folder.parent == home("runs") else name


def _cut(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _json(folder: Path) -> dict[str, Any]:
    """Return the content of ``run.json`` and the folder, as ``cdta run --json`` prints them."""
    return {**json.loads((folder / RUN_JSON).read_bytes()), "folder": str(folder)}
