"""Random histories of a CDTA_HOME: after every step, all numbers equal those of a fresh home.

A history is a list of steps chosen by a seed: runs that end, are interrupted or killed, lack
answers, or share the home with another process. Between them, another model may answer at the
address, and files may be edited. Whatever happened before, a run must end like the same command in
a new, empty home, and must not repeat requests whose answers are on disk.

    HISTORIES=1000 STEPS=3 pytest tests/test_histories.py       longer histories
"""

import json
import os
import re
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from aiohttp import web

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.client import cache, client
from cant_do_that_anymore.errors import Stopped, UserError
from cant_do_that_anymore.files import atomic_write_text
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.storage import CONTROLS_FILE, SAMPLES_FILE, save_run
from crashes import start, was_killed
from loopback import Body, serving
from random_servers import CUSTOM_RULES, RandomServer, write_files
from testing import needs_posix

pytestmark = needs_posix
HISTORIES, PER_TEST = int(os.environ.get("HISTORIES", "40")), 20
STEPS = int(os.environ.get("STEPS", "2"))
"""The number of steps in a history before every run is repeated."""
Options = dict[str, Any]
"""The options of a run, its server, the version of the model there, and the edition of its files
and custom rules."""
Outcome = dict[str, Any] | str
"""The numbers and samples of a run, or its error message without numbers."""
Step = tuple[str, Options, int]
"""What happens in a run, its options, and a number, for example that of a request."""
VALUES: dict[str, list[Any]] = {
    "server": [0, 1, 2],
    "version": [0, 1, 2],
    "edition": [0, 1],
    "positions": ["pool", "dataset", "diagonal"],
    "rules": ["bishops-as-knights", "bishops-as-rooks", "custom"],
    "wording": ["plain", "file", "terse,user-turn"],
    "n": [3, 5, 40],
    "seed": [1, 2],
    "temperature": [1.0, 0.0],
    "max_tokens": [None, 8, 64],
    "reading": ["lenient", "exact"],
    "conditions": [("standard", "changed"), ("standard", "changed", "placebo")],
    "diagnose": [False, True],
    "tag": ["", "b"],
    "extra_body": ["", '{"top_k": 2}'],
    "max_connections": [2, 1, 4],
    "form": ["moves", "moves+fen"],
    "interventions": [(), ("legal-moves", "reason-first")],
}
"""The values of each option, the default first."""
DEFAULT_OPTIONS: Options = {name: values[0] for name, values in VALUES.items()}
MAX_EXTRA = 4
"""Requests per connection that may be sent before it is known that they are needed."""
VOLATILE = ("started_at", "seconds", "notes", "cost", "dataset", "temperature")
MAY_BE_KNOWN = ("adjustments", "limit")
"""What a request does not need to learn again."""


def history(seed: int) -> list[Step]:
    """Return steps chosen by the seed, and then a repeat of all runs."""
    random = Random(seed)
    first = changed(DEFAULT_OPTIONS, random) if random.random() < 0.5 else DEFAULT_OPTIONS
    in_turn = list(VALUES)[seed % len(VALUES)]
    others = [changed(first, random, [in_turn]), changed(first, random, ["version", "edition"])]
    option_sets = [first, *others]
    events = {"run": 3, "interrupt": 2, "kill": 7, "run_two": 1, "run_with_failures": 2}
    names = random.choices(list(events), list(events.values()), k=STEPS)
    steps = [(name, random.choice(option_sets), random.randint(1, 70)) for name in names]
    return [*steps, *(("run", options, 0) for options in option_sets)]


def changed(options: Options, random: Random, names: list[str] | None = None) -> Options:
    """The options with another value of one of these, or of any."""
    name = random.choice(names or list(VALUES))
    others = [value for value in VALUES[name] if value != options[name]]
    return options | {name: random.choice(others)}


def outcome_in(folder: Path) -> Outcome:
    """Everything of a saved run that does not depend on the time: metrics and samples."""
    facts = json.loads((folder / "run.json").read_text())
    files = [folder / name for name in (SAMPLES_FILE, CONTROLS_FILE) if (folder / name).exists()]
    samples = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    for reply in chain(*(sample["replies"].values() for sample in samples)):
        for name in MAY_BE_KNOWN:
            reply.pop(name, None)
    dataset = {key: facts["dataset"][key] for key in ("version", "origin", "pool_name")}
    facts["options"].pop("max_connections", None)
    stable = {key: value for key, value in facts.items() if key not in VOLATILE}
    return stable | {"samples": samples, "dataset": dataset}


def run_and_save(spec: Spec, out: Path) -> None:
    save_run(evaluate(spec, quiet=True), out)


def outcome_of(spec: Spec, out: Path) -> Outcome:
    """Run, save the run, and return how it ended."""
    try:
        run_and_save(spec, out)
    except Stopped:
        raise
    except UserError as problem:
        return without_numbers(str(problem))
    return outcome_in(out)


def without_numbers(message: str) -> str:
    return re.sub(r"[\d,.]+", "", message)


def keys_in(home: Path) -> frozenset[str]:
    """The keys of the cached answers, with their namespaces."""
    if not (home / "answers.sqlite").exists():
        return frozenset()
    with closing(sqlite3.connect(home / "answers.sqlite")) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = (database.execute(f"SELECT key || namespace FROM {table}") for (table,) in tables)
        return frozenset(key for (key,) in chain(*rows))


@dataclass(frozen=True)
class FreshResult:
    """How a run ended in a new home, with its requests and the keys of its answers."""

    outcome: Outcome
    n_requests: int
    keys: frozenset[str]


class World:
    """The servers, the files, and the results of all runs so far in new homes."""

    def __init__(self, folder: Path, servers: list[RandomServer]) -> None:
        self.folder = folder
        self.servers = servers
        self._fresh: dict[str, FreshResult] = {}

    def spec(self, options: Options) -> Spec:
        """The spec for these options, whose model now answers, and whose files are written."""
        values = dict(options)
        server, edition = self.servers[values.pop("server")], values.pop("edition")
        server.version = values.pop("version")
        write_files(self.folder, edition)
        pool = {"pool": self.folder / "pool.jsonl"}
        sources: dict[str, Options] = {
            "pool": pool,
            "diagonal": pool | {"eval": "all_diagonal"},
            "dataset": {"dataset": self.folder / "dataset.jsonl"},
        }
        if values["rules"] == "custom":
            values["rules"] = CUSTOM_RULES[edition]
        if values["wording"] == "file":
            values["wording"] = str(self.folder / "wording.toml")
        return Spec(model="m", base_url=server.url, **sources[values.pop("positions")], **values)

    def fresh(self, options: Options) -> FreshResult:
        """The result of a run in a new home."""
        key = json.dumps(options | {"max_connections": 0})
        if key not in self._fresh:
            home = self.folder / f"home-{len(self._fresh)}"
            requests = self.servers[options["server"]].requests
            n_before = len(requests)
            with patch.dict(os.environ, CDTA_HOME=str(home)):
                outcome = outcome_of(self.spec(options), home / "run")
            n_sent = len(requests) - n_before
            self._fresh[key] = FreshResult(outcome, n_sent, keys_in(home))
        return self._fresh[key]


class Home:
    """A home, the steps that may happen to it, and their checks.

    Attributes:
        versions_seen: the versions of each server that have answered under each tag.
    """

    def __init__(self, folder: Path, world: World) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.error_file = folder / "error"  # of another process
        self.world = world
        self.versions_seen: dict[tuple[int, str], set[int]] = {}

    def perform(self, steps: list[Step], seed: object = "") -> None:
        for number, (name, options, argument) in enumerate(steps):
            try:
                self.step(name, options, argument)
            except Exception as error:
                error.add_note(f"history {seed}, in the last of {steps[: number + 1]}")
                raise

    def step(self, name: str, options: Options, argument: int) -> None:
        """Do one step, and check its outcome and its requests."""
        seen = self.versions_seen.setdefault((options["server"], options["tag"]), set())
        others = seen - {options["version"]}
        if name == "kill" and others:
            return  # it may leave a few answers of another version, which prove nothing
        home, requests = self.folder / "home", self.world.servers[options["server"]].requests
        n_before, keys_before = len(requests), keys_in(home)
        with patch.dict(os.environ, CDTA_HOME=str(home)):
            outcome = getattr(self, name)(options, argument)
        n_sent, new_keys = len(requests) - n_before, keys_in(home) - keys_before
        self._check_outcome(options, outcome)
        seen.add(options["version"])
        if name in ("run", "interrupt", "kill"):
            n_lost = 2 * options["max_connections"] if name == "kill" else 0
            self._check_requests(options, n_sent - n_lost, new_keys)

    # Steps

    def run(self, options: Options, _: int) -> Outcome:
        """Finish a run."""
        return outcome_of(self.world.spec(options), self._new_folder())

    def interrupt(self, options: Options, at: int) -> Outcome | None:
        """Press Ctrl-C at the request of this number."""
        server = self.world.servers[options["server"]]
        last = len(server.requests) + at

        async def stop(_: Body, number: int) -> None:
            if number == last:
                os.kill(os.getpid(), signal.SIGINT)

        with patch.object(server, "fault", stop), suppress(Stopped):
            return self.run(options, 0)
        return None

    def kill(self, options: Options, at: int) -> Outcome | None:
        """Kill the process at a write step; if the run was saved anyway, it must be complete."""
        out = self._new_folder()
        return self._outcome_of_process(self._start(options, out, at), out)

    def run_two(self, options: Options, number: int) -> Outcome:
        """Run two processes at once."""
        names = ["n", "seed", "temperature", "diagnose", "positions"]
        others, out = changed(options, Random(number), names), self._new_folder()
        process = self._start(others, out)
        try:
            return self.run(options, 0)
        finally:
            self._check_outcome(others, self._outcome_of_process(process, out))

    def run_with_failures(self, options: Options, number: int) -> None:
        """Run with a server that fails for every fifth request, however often it is retried."""
        server = self.world.servers[options["server"]]

        async def fail(request: Body, _: int) -> web.Response | None:
            is_lost = server.number_for(request) % 5 == number % 5
            return web.Response(status=500) if is_lost else None

        may_fail = patch("cant_do_that_anymore.runs.evaluate.MAX_MISSING", 0.6)
        with patch.object(server, "fault", fail), may_fail:
            self.run(options, 0)

    def _new_folder(self) -> Path:
        return self.folder / "runs" / str(time.time_ns())

    def _start(self, options: Options, out: Path, die_at: int | None = None) -> int:
        work = partial(run_and_save, self.world.spec(options), out)
        return start(work, self.error_file, die_at)

    def _outcome_of_process(self, process: int, out: Path) -> Outcome | None:
        """How a run in another process ended, or None if it was killed."""
        was_killed(process)
        if out.exists():
            return outcome_in(out)
        if not self.error_file.exists():
            return None
        _, _, message = self.error_file.read_text().partition(": ")
        self.error_file.unlink()
        return without_numbers(message)

    # Checks

    def _check_outcome(self, options: Options, outcome: Outcome | None) -> None:
        """It is that of a fresh home.

        A run whose answers are all cached does not notice that the model has changed.
        """
        seen = self.versions_seen.get((options["server"], options["tag"]), set())
        versions = sorted(seen | {options["version"]})
        expected = [self.world.fresh(options | {"version": v}).outcome for v in versions]
        assert outcome is None or outcome in expected

    def _check_requests(self, options: Options, n_sent: int, new_keys: frozenset[str]) -> None:
        """No cached request was sent again, except in identity checks."""
        fresh, n_connections = self.world.fresh(options), options["max_connections"]
        has_one_version = len(self.versions_seen[options["server"], options["tag"]]) == 1
        n_unanswered = max(0, fresh.n_requests - len(fresh.keys))
        if self.world.servers[options["server"]].is_reasoning or not has_one_version:
            n_unanswered += 2 * n_connections  # in flight while its limit rises or it changes
        assert n_sent <= len(new_keys) + PROBES + n_unanswered
        if has_one_version:  # otherwise versions are a part of the keys
            assert len(new_keys - fresh.keys) <= MAX_EXTRA * n_connections


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two models of one name, and a reasoning model; failed requests are retried once, at once.

    The first answer of a command shows whether the version has changed.
    """
    servers = [RandomServer(0), RandomServer(1), RandomServer(2, is_reasoning=True)]
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(client, FIRST_WAIT=0.001, MAX_FAILED_ATTEMPTS=2))
        stack.enter_context(patch.multiple(client, ANSWERS_TO_COMPARE=1))
        stack.enter_context(patch.object(cache, "MIN_ANSWERS_OF_VERSION", 1))
        for server in servers:
            stack.enter_context(serving(server))
        yield World(tmp_path_factory.mktemp("world"), servers)


@pytest.mark.parametrize("first", range(0, HISTORIES, PER_TEST))
def test_any_history_gives_the_numbers_of_a_fresh_home(
    first: int, world: World, tmp_path: Path
) -> None:
    for seed in range(first, first + PER_TEST):
        Home(tmp_path / str(seed), world).perform(history(seed), seed)


def test_a_killed_process_leaves_a_half_written_file(tmp_path: Path) -> None:
    """Otherwise the kills in histories would test nothing."""

    def work() -> None:
        atomic_write_text(tmp_path / "file", "x" * 100)

    outcomes = set()
    for step in range(1, 7):
        died = was_killed(start(work, tmp_path / "error", step))
        outcomes.add((died, *(path.stat().st_size for path in tmp_path.iterdir())))
        for path in tmp_path.iterdir():
            path.unlink()
    assert outcomes == {(True,), (True, 50), (True, 100), (False, 100)}
