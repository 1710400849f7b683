"""Helpers that several test files import from here; fixtures are in conftest.py.

Measure a model with ``measure(habit, n=30)``: a player (a function from a request to a reply, see
planted_models.py) is asked without HTTP, and the result is a `Run`. To see the requests, call
``measure(server, ...)`` in ``with answering(perfect, model="m-1") as server``. With ``serving``,
and with the fixtures ``serve`` and ``server``, they come by HTTP on the loopback interface. Measure
a model by its name with ``measure("cdta/pocket", ...)``; keywords are those of `Spec`, and
``dataset=positions(30)`` is a file with the first positions of ``POOL``. ``ask(model, "e2e4")``
puts one question to a model. Runs that need no asking: ``played("m", keeps(40))`` by outcomes,
``run_of`` by answers.

Call commands with ``cdta("run", ..., code=0)``, in this process and with stdout, stderr and the
exit code checked; ``process_of`` starts a real process, for signals and kills. Fixtures: ``home``
(always: a fresh CDTA_HOME and no keys), ``serve`` and ``server``, ``impatient`` (no waiting between
attempts), ``priced`` (a price list), ``small_pools``, ``no_plots``, ``pocket_run`` (made once),
``open_page`` (a browser). ``snapshot("name", text)`` compares output with a file that
``SNAPSHOTS=write pytest ...`` writes again, to be reviewed as a diff. What few tests need stays in
its module: faults.py, reasoning_servers.py, priced_servers.py, batch_server.py, inspect_evals.py,
browser.py, pgn_styles.py, crashes.py.
"""

import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from html import unescape
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, overload
from unittest.mock import patch

import pytest
from rich.console import Console

from cant_do_that_anymore import Answer, Position, Rules, Run, Spec, evaluate
from cant_do_that_anymore.game.position import write_positions
from cant_do_that_anymore.game.rules import STANDARD
from cant_do_that_anymore.providers.base import Model, Question, Settings
from cant_do_that_anymore.report import pages
from cant_do_that_anymore.task import conditions
from faults import fails
from loopback import (
    Body,
    Loopback,
    Responder,
    Served,
    answering,
    asked_about,
    is_changed,
    is_placebo,
    moves_in,
    serving,
)
from planted_models import (
    SPECIAL,
    Planted,
    adapting,
    habit,
    legal_under_both,
    mixed,
    number_of,
    perfect,
    wavering,
)
from processes import Done, cdta, oaieval, process_of, results_in, samples_in
from run_builders import POOL, Asked, Play, keeps, plan_of, played, run_of, samples_of


class Serve(Protocol):
    """What the fixture ``serve`` gives: serve until the test ends."""

    @overload
    def __call__(self, answering: Served) -> Served: ...

    @overload
    def __call__(self, answering: Responder, **fields: Any) -> Loopback: ...


FEW_CONNECTIONS = 4
"""A search asks ahead as many questions as there are connections, and more: few save time."""


def measure(whom: Loopback | Responder | str, **spec: Any) -> Run:
    """Evaluate a server, a player or the model of that name; the model is called "m" by default."""
    if isinstance(whom, str):
        return evaluate(Spec(model=whom, **spec), quiet=True)
    if not isinstance(whom, Loopback):
        with answering(whom) as server:
            return measure(server, **spec)
    usual: dict[str, Any] = {"model": "m", "base_url": whom.url, "max_connections": FEW_CONNECTIONS}
    return evaluate(Spec(**usual | spec), quiet=True)


@cache
def positions(n: int, first: int = 0) -> Path:
    """A file with so many positions of the pool, made once; nobody may change it."""
    path = Path(_FILES.name) / f"{first}-{n}" / "positions.jsonl"
    path.parent.mkdir()
    write_positions(path, POOL[first : first + n])
    return path


_FILES = TemporaryDirectory()


@contextmanager
def openai_server(answering: Any, **fields: Any) -> Iterator[Loopback]:
    """Serve in the place of OpenAI, as the variables say that its users set."""
    with (
        serving(answering, **fields) as server,
        patch.dict(os.environ, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="a-key-for-tests"),
    ):
        yield server


@contextmanager
def without_plots() -> Iterator[None]:
    """Experiments write their tables and reports, with empty plots in the latter."""
    with (
        patch.object(pages, "save_chart", lambda *_: []),
        patch.object(pages, "svg_of", lambda *_, **__: "<svg/>"),
    ):
        yield


def question(moves: tuple[str, ...], rules: Rules = STANDARD) -> Question:
    """The prompt after these moves under these rules, in the default wording."""
    condition = "standard" if rules == STANDARD else "changed"
    return conditions.question(Position(0, moves, ()), rules, condition)


def ask(
    model: Model, *moves: str, rules: Rules = STANDARD, settings: Settings | None = None
) -> Answer:
    """Answer of a model to one question, by default at temperature 0; closes the model."""

    async def answer() -> Answer:
        try:
            return await model.answer(question(moves, rules), settings or Settings(0.0))
        finally:
            await model.close()

    return asyncio.run(answer())


def snapshot(name: str, text: str) -> None:
    """Compare a text with ``snapshots/NAME.txt``; with SNAPSHOTS=write set, write that file."""
    file = Path(__file__).parent / "snapshots" / f"{name}.txt"
    lines = [line.rstrip() for line in text.strip().splitlines()]
    if os.environ.get("SNAPSHOTS") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    known = file.read_text(encoding="utf-8").splitlines()
    assert lines == known, f"if {file.name} is to change: SNAPSHOTS=write pytest ..."


def printed(shown: object, width: int = 80) -> str:
    """What a terminal of that width shows."""
    screen = Console(width=width, file=StringIO(), legacy_windows=False)
    with screen.capture() as captured:
        screen.print(shown)
    return captured.get()


def text_of(page: str) -> str:
    """What a page says, a block a line, without its head, scripts and pictures."""
    body = " ".join(
        re.sub(r"^.*?<body>|<(script|style|svg)\b.*?</\1>", "", page, flags=re.S).split()
    )
    blocks = re.sub(r"</?(?:p|div|h\d|li|tr|d[ltd]|summary|table|pre)\b[^>]*>", "\n", body)
    lines = unescape(re.sub(r"<[^>]+>", " ", blocks)).splitlines()
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


@contextmanager
def open_pipe(path: Path) -> Iterator[Callable[[], bytes]]:
    """Make a pipe at ``path`` that somebody reads; it gives what was sent and must still be one."""
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield lambda: os.read(end, 2**16)
    finally:
        os.close(end)
    assert path.is_fifo()
    assert [other for other in path.parent.iterdir() if other.name.startswith(".part-")] == []


# Tests that need what not every machine has are skipped there, with the reason.
needs_posix = pytest.mark.skipif(
    os.name != "posix",
    reason="needs signals, permissions, named pipes and terminals, which only POSIX has",
)
needs_linux = pytest.mark.skipif(
    sys.platform != "linux",
    reason="needs /proc and /dev/full, which only Linux has",
)
