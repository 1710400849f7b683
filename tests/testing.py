"""Helpers that several test files import from here; fixtures are in conftest.py.

``measure(habit, n=30)`` evaluates a responder (a function from a request to a reply, see
planted_models.py) without HTTP and returns a `Run`; ``measure("cdta/pocket", ...)`` a model by its
name; ``measure(server, ...)`` a server, whose requests can be seen: over HTTP in ``with
serving(perfect, model="m-1") as server`` and by the fixtures ``serve`` and ``server``, else in
``with serving_in_process(...)``. Keywords are those of `Spec`, with the wording plain by default;
``dataset=positions(30)`` is a file with the first positions of ``POOL``. Runs without requests:
``run_with_outcomes("m", keeps_habit_in(40))`` from outcomes, ``run_from_answers`` from answers.

``cdta("run", ..., code=0)`` runs a command in this process, checks its exit code, and returns its
stdout and stderr. ``snapshot("name", text)`` compares output with a file; ``SNAPSHOTS=write pytest
...`` rewrites it, to be reviewed as a diff. Helpers for few tests stay in the other modules.
"""

import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from html import unescape
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from rich.console import Console

from cant_do_that_anymore import Answer, Position, Run, Spec, evaluate
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.habits.chess.rules import STANDARD
from cant_do_that_anymore.providers.base import Model, Question, Settings
from cant_do_that_anymore.report import pages
from cant_do_that_anymore.task import conditions
from cant_do_that_anymore.task.types import Sample
from loopback import (
    Body,
    Loopback,
    Reasoning,
    Responder,
    checksum,
    error,
    error_when,
    is_changed,
    moves_in,
    serving,
    serving_in_process,
)
from planted_models import (
    USUAL,
    adapting,
    habit,
    legal_under_both,
    mixed,
    perfect,
    wavering,
)
from processes import CompletedCommand, cdta, oaieval, results_in, samples_in, start_cdta
from run_builders import (
    POOL,
    Outcomes,
    PositionAnswers,
    keeps_habit_in,
    plan_of,
    run_from_answers,
    run_with_outcomes,
)

Serve = Callable[..., Loopback]
"""The type of the fixture ``serve``, which serves until the test ends."""


def measure(source: Loopback | Responder | str, **spec: Any) -> Run:
    """Evaluate a server or a responder, whose model is "m" by default, or a model by its name."""
    spec = {"wording": "plain"} | spec
    if isinstance(source, str):
        return evaluate(Spec(model=source, **spec), quiet=True)
    if not isinstance(source, Loopback):
        with serving_in_process(source) as server:
            return measure(server, **spec)
    # A search sends requests ahead for every connection, so few connections save time.
    defaults = dict[str, Any](model="m", base_url=source.url, max_connections=4)
    return evaluate(Spec(**defaults | spec), quiet=True)


@cache
def positions(n: int, first: int = 0) -> Path:
    """A file with this many positions of the pool, written once; do not change it."""
    path = Path(_FILES.name) / f"{first}-{n}" / "positions.jsonl"
    path.parent.mkdir()
    write_positions(path, POOL[first : first + n])
    return path


_FILES = TemporaryDirectory()


def positions_of(samples: Iterable[Sample]) -> list[Position]:
    """The items of samples that are all positions."""
    items = [sample.item for sample in samples]
    return [item for item in items if isinstance(item, Position)]


@contextmanager
def openai_server(source: Any, **fields: Any) -> Iterator[Loopback]:
    """Serve in place of OpenAI, by the environment variables of its users."""
    with (
        serving(source, **fields) as server,
        patch.dict(os.environ, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="a-key-for-tests"),
    ):
        yield server


@contextmanager
def without_plots() -> Iterator[None]:
    """Experiments write their tables and reports, but the plots in them are empty."""
    with patch.object(pages, "_write_plots", lambda *_: []):
        yield


def question(moves: tuple[str, ...]) -> Question:
    """The prompt after these moves under the standard rules, in the default wording."""
    return conditions.question(Position(0, moves, ()), STANDARD, "standard")


def ask(model: Model, *moves: str, settings: Settings | None = None) -> Answer:
    """The answer of a model to one prompt, by default at temperature 0; closes the model."""

    async def answer() -> Answer:
        try:
            return await model.answer(question(moves), settings or Settings(0.0))
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
    expected = file.read_text(encoding="utf-8").splitlines()
    assert lines == expected, f"to update {file.name}: SNAPSHOTS=write pytest ..."


def printed(renderable: object, width: int = 80) -> str:
    """The output in a terminal of this width."""
    screen = Console(width=width, file=StringIO(), legacy_windows=False)
    with screen.capture() as captured:
        screen.print(renderable)
    return captured.get()


def text_of(page: str) -> str:
    """The text of an HTML page, one line per block, without its head, scripts and plots."""
    body = " ".join(
        re.sub(r"^.*?<body>|<(script|style|svg)\b.*?</\1>", "", page, flags=re.S).split()
    )
    blocks = re.sub(r"</?(?:p|div|h\d|li|tr|d[ltd]|summary|table|pre)\b[^>]*>", "\n", body)
    lines = unescape(re.sub(r"<[^>]+>", " ", blocks)).splitlines()
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


# Tests that need something not every machine has are skipped there, with the reason.
needs_posix = pytest.mark.skipif(
    os.name != "posix",
    reason="needs signals, permissions, named pipes and terminals, which only POSIX has",
)
needs_linux = pytest.mark.skipif(
    sys.platform != "linux",
    reason="needs /proc and /dev/full, which only Linux has",
)
