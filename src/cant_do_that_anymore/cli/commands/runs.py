"""The commands ``cdta view`` and ``cdta runs``."""

import json
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...api.functions import load
from ...errors import UserError
from ...files import home
from ...formatting import visible
from ...report.html import PAGE_NAME
from ...report.pages import INDEX
from ...report.rows import RUN_COLUMNS
from ...runs.lookup import (
    LATEST_RUN,
    find_run,
    find_runs,
    known_folders,
    readable_runs,
)
from ...runs.storage import RUN_JSON, RunFile
from ..console import console
from ..help import JSON, PATH, Command


@click.command("view", cls=Command)
@click.argument("name", metavar="[RUN]", default=LATEST_RUN)
def view_command(name: str) -> None:
    """Open the report of a run in the browser.

    RUN is a folder, part of its name, a model's name, a tag, latest (the default), the folder of an
    experiment, or an HTML report. The report of a run is written if there is none.
    """
    path = _page_of(name)
    if not webbrowser.open(path.resolve().as_uri()):
        raise UserError(f"no browser could be started; open {str(path)!r} in one")


def _page_of(name: str) -> Path:
    """Return the report that a name means: a file, the index of a folder, or that of a run."""
    location = Path(name)
    with suppress(OSError):  # too long for a path, or locked
        if location.suffix == ".html" and location.is_file():
            return location
        if (location / INDEX).is_file() and not (location / RUN_JSON).exists():
            return location / INDEX
    path = find_run(name) / PAGE_NAME
    return path if path.exists() else load(path.parent).report(path)


WIDE, UNLIMITED = 200, 10_000
# The values of ``run.json`` that ``--json`` prints.
IN_JSON = (
    *("started_at", "model", "version", "endpoint", "rules", "options", "rule_uptake"),
    *("after_change", "notes", "cost", "seconds"),
)


@click.command("runs", cls=Command, params=[JSON])
@click.argument("places", metavar="[DIR...]", nargs=-1, type=PATH)
def runs_command(places: tuple[Path, ...], as_json: bool) -> None:
    """List runs, newest first.

    It lists the runs in each DIR, by default those under CDTA_HOME and in the current folder. The
    numbers are those of run.json. "rule uptake" has its 95% interval, and "cost" includes all
    answers. Other commands accept any part of a folder's name.
    """
    runs, damaged = readable_runs(find_runs(places) if places else known_folders())
    if as_json:
        click.echo(json.dumps(list(map(_json, runs))))
    elif runs:
        # A file or a pipe has no width.
        _print(runs, console(None if sys.stdout.isatty() else WIDE))
    else:
        click.echo("no runs yet; start one with `cdta run`")
    for problem in damaged:
        click.echo(visible(f"cdta: {problem}"), err=True)


def _print(runs: Sequence[RunFile], screen: Console) -> None:
    """Print a line per run, or two if the screen is too narrow."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    columns = {name: text for name, text in RUN_COLUMNS.items() if any(map(text, runs))}
    for name in columns:
        table.add_column(name, justify="right" if name == "n" else "left")
    table.add_column("run")
    for run in runs:
        table.add_row(*(Text(text(run)) for text in columns.values()), _name(run))
    if console(UNLIMITED).measure(table).maximum <= screen.width:
        screen.print(table)
        return
    for run in runs:
        screen.print(_name(run), style="bold", soft_wrap=True)
        line = "  ".join(filter(None, (text(run) for text in columns.values())))
        screen.print(Padding(Text(line), (0, 0, 0, 2)))


def _json(run: RunFile) -> dict[str, Any]:
    """Return what ``--json`` prints of a run."""
    facts = {name: asdict(run)[name] for name in IN_JSON}
    return {"folder": str(run.folder), "tag": run.tag, "n": run.n_samples, **facts}


def _name(run: RunFile) -> Text:
    at_home = run.folder.parent == home() / "runs"
    return Text(run.folder.name if at_home else str(run.folder))
