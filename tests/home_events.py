"""Events in the history of a CDTA_HOME, and the checks after each of them."""

import json
import os
import re
import signal
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from aiohttp import web

from cant_do_that_anymore import Spec
from cant_do_that_anymore.comparison.experiment import run_all
from cant_do_that_anymore.errors import Stopped, UserError
from cant_do_that_anymore.runs.evaluate import evaluate
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.storage import CONTROLS_FILE, SAMPLES_FILE, save_run
from crashes import start, was_killed
from loopback import Body
from random_servers import CUSTOM_RULES, FILES, RandomServer, write_edition

Options = dict[str, Any]
"""Options of a run as plain values; ``server`` is an index, ``positions`` the name of a file."""
Numbers = dict[str, Any]

MAX_EXTRA = 4
"""Requests per connection that may be sent before it is known that they are needed."""
VOLATILE = ("started_at", "seconds", "notes", "cost", "dataset", "temperature")
MAY_BE_KNOWN = ("adjustments", "limit")
"""What a request does not need to learn again."""


@dataclass(frozen=True)
class FreshResult:
    """How a run ended in a new home, with its requests and the keys of its answers."""

    numbers: Numbers | None
    message: str
    requests: int
    keys: frozenset[str]


def numbers_in(folder: Path) -> Numbers:
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


def keys_in(home: Path) -> frozenset[str]:
    """The keys of the cached answers, with their namespaces."""
    file = home / "answers.sqlite"
    if not file.exists():
        return frozenset()
    with closing(sqlite3.connect(file)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = (database.execute(f"SELECT key || namespace FROM {table}") for (table,) in tables)
        return frozenset(key for (key,) in chain(*rows))


class CheckFailed(AssertionError):
    """A home is not as it should be."""


class Home:
    """A home, the events that may happen to it, and their checks.

    Attributes:
        editions: the current edition of each file and of the custom rules.
        editions_seen: the editions of each server that have answered under each tag.
    """

    def __init__(self, folder: Path, servers: Sequence[RandomServer], fresh: "FreshHomes") -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.path = folder / "home"
        self.servers = servers
        self.fresh = fresh
        self.editions = dict.fromkeys((*FILES, "custom"), 0)
        self.editions_seen: dict[tuple[int, str], set[int]] = {}
        self.error_file = folder / "error"  # of another process
        for server in servers:
            server.replace_model(0)
        for name in FILES:
            write_edition(fresh.inputs, name, 0)

    # Events

    def run(self, options: Options) -> None:
        """Finish a run."""
        with self._request_check(options):
            self._run_and_save(options, out := self._new_folder())
        self._check_saved(options, out)

    def interrupt(self, options: Options, at: int) -> None:
        """Press Ctrl-C at the request of this number."""
        server = self.servers[options["server"]]
        first = len(server.requests)

        async def stop(_: Body, number: int) -> None:
            if number == first + at:
                os.kill(os.getpid(), signal.SIGINT)

        with self._request_check(options), patch.object(server, "fault", stop), suppress(Stopped):
            evaluate(self.spec(options), quiet=True)

    def kill(self, options: Options, at: int) -> None:
        """Kill the process at a write step; if the run was saved anyway, it must be complete."""
        if self.other_editions(options):
            return  # it may leave a few answers of another version, which prove nothing
        out = self._new_folder()
        with self._request_check(options, max_lost=2 * options["max_connections"]):
            was_killed(start(partial(self._run_and_save, options, out), self.error_file, at))
            self._raise_child_error()
        self._check_saved(options, out)

    def run_two(self, options: Options, others: Options) -> None:
        """Run two processes at once."""
        outs = self._new_folder(), self._new_folder()
        process = start(partial(self._run_and_save, others, outs[1]), self.error_file)
        try:
            with self._error_check(options):
                self._run_and_save(options, outs[0])
        finally:
            was_killed(process)
        with self._error_check(others):
            self._raise_child_error()
        self._check_saved(options, outs[0])
        self._check_saved(others, outs[1])

    def run_with_failures(self, options: Options, remainder: int) -> None:
        """Run with a server that fails for every fifth request, however often it is retried."""
        server = self.servers[options["server"]]

        async def fail(request: Body, _: int) -> web.Response | None:
            return web.Response(status=500) if server.number_for(request) % 5 == remainder else None

        may_fail = patch("cant_do_that_anymore.runs.evaluate.MAX_MISSING", 0.6)
        with patch.object(server, "fault", fail), may_fail, suppress(UserError):
            evaluate(self.spec(options), quiet=True)
        self._record_edition(options)

    def experiment(self, options: Options, n_seeds: int) -> None:
        """Run several seeds into one folder, which may already have some of the runs."""
        specs = [self.spec(options | {"seed": 1 + seed}) for seed in range(n_seeds)]
        runs, failures = run_all({"m": specs}, self.folder / "experiment", save_run, quiet=True)
        for run in runs:
            assert run.folder
            self._check_saved(options | {"seed": run.plan.settings.seed}, run.folder)
        for problem in failures.values():
            if "contains a run that differs in" not in str(problem):
                self._check_message(options, str(problem))
        self._record_edition(options)

    def replace_model(self, server: int, edition: int) -> None:
        """Put another model behind the address."""
        self.servers[server].replace_model(edition)

    def edit(self, name: str, edition: int) -> None:
        """Switch to another edition of a file or of the custom rules."""
        self.editions[name] = edition
        if name in FILES:
            write_edition(self.fresh.inputs, name, edition)

    # State

    def spec(self, options: Options) -> Spec:
        """The spec for these options."""
        values = dict(options)
        server, positions = self.servers[values.pop("server")], values.pop("positions")
        pool = {"pool": self.fresh.inputs / "pool.jsonl"}
        sources: dict[str, Options] = {
            "pool": pool,
            "diagonal": pool | {"eval": "all_diagonal"},
            "dataset": {"dataset": self.fresh.inputs / "dataset.jsonl"},
        }
        if values["rules"] == "custom":
            values["rules"] = CUSTOM_RULES[self.editions["custom"]]
        if values["wording"] == "file":
            values["wording"] = str(self.fresh.inputs / "wording.toml")
        return Spec(model="m", base_url=server.url, **values, **sources[positions])

    def key(self, options: Options) -> str:
        """Everything that the numbers of a run depend on."""
        values = {name: value for name, value in options.items() if name != "max_connections"}
        files = {
            "dataset" if options["positions"] == "dataset" else "pool",
            *(["wording"] if options["wording"] == "file" else []),
            *(["custom"] if options["rules"] == "custom" else []),
        }
        editions = {name: self.editions[name] for name in files}
        model = self.servers[options["server"]].edition
        return json.dumps([values, editions, model], sort_keys=True)

    def other_editions(self, options: Options) -> set[int]:
        """The editions of the model that answered earlier, but the current one."""
        current = self.servers[options["server"]].edition
        return self.editions_seen.get((options["server"], options["tag"]), set()) - {current}

    def _record_edition(self, options: Options) -> None:
        edition = self.servers[options["server"]].edition
        self.editions_seen.setdefault((options["server"], options["tag"]), set()).add(edition)

    def _new_folder(self) -> Path:
        return self.folder / "runs" / str(time.time_ns())

    def _run_and_save(self, options: Options, out: Path) -> None:
        save_run(evaluate(self.spec(options), quiet=True), out)

    def _raise_child_error(self) -> None:
        """Raise the error of the other process here."""
        if self.error_file.exists():
            _, _, message = self.error_file.read_text().partition(": ")
            self.error_file.unlink()
            raise UserError(message)

    # Checks

    @contextmanager
    def _request_check(self, options: Options, max_lost: int = 0) -> Iterator[None]:
        """Check that no cached request is sent again, except in identity checks."""
        server = self.servers[options["server"]]
        first, before = len(server.requests), keys_in(self.path)
        with self._error_check(options):
            try:
                yield
            finally:
                sent = len(server.requests) - first
        new = keys_in(self.path) - before
        fresh = self.fresh.result(self, options)
        unanswered = max(0, fresh.requests - len(fresh.keys))
        if server.is_reasoning:  # requests in flight while its token limit rises
            unanswered += 2 * options["max_connections"]
        if sent > len(new) + PROBES + max_lost + unanswered:
            raise CheckFailed(f"{sent} requests were sent, and {len(new)} answers cached")
        extra = len(new - fresh.keys)
        has_namespaces = self.other_editions(options)  # which are a part of the keys
        if not has_namespaces and extra > MAX_EXTRA * options["max_connections"]:
            raise CheckFailed(f"{extra} requests were sent that a fresh run does not send")

    @contextmanager
    def _error_check(self, options: Options) -> Iterator[None]:
        """Check the message of an error, if one is raised."""
        try:
            yield
        except UserError as problem:
            self._check_message(options, str(problem))
        self._record_edition(options)

    def _check_message(self, options: Options, message: str) -> None:
        """The message must be that of a fresh home."""
        expected = {_without_numbers(fresh.message) for fresh in self._fresh_results(options)}
        if _without_numbers(message) not in expected - {""}:
            raise CheckFailed(f"message {message!r}; in a fresh home: {expected}")

    def _check_saved(self, options: Options, folder: Path) -> None:
        """If a run was saved, it is complete and equal to that of a fresh home."""
        if not folder.exists():
            return
        actual = numbers_in(folder)
        expected = [fresh.numbers for fresh in self._fresh_results(options)]
        if actual not in expected:
            first = expected[0] or {}
            names = [name for name in actual if actual[name] != first.get(name)]
            raise CheckFailed(f"other {', '.join(names)} than in a fresh home: {folder}")

    def _fresh_results(self, options: Options) -> list[FreshResult]:
        """The results in fresh homes: of the current model, and of those whose answers are cached.

        A run whose answers are all cached does not notice that the model has changed.
        """
        server = self.servers[options["server"]]
        current, results = server.edition, [self.fresh.result(self, options)]
        for edition in sorted(self.other_editions(options)):
            server.replace_model(edition)
            results.append(self.fresh.result(self, options))
            server.replace_model(current)
        return results


class FreshHomes:
    """The results of the same commands in new homes; each command is run once.

    Attributes:
        inputs: the folder of the edited files.
    """

    def __init__(self, folder: Path) -> None:
        self.inputs = folder
        self._results: dict[str, FreshResult] = {}

    def result(self, home: Home, options: Options) -> FreshResult:
        """The result of a run in a new home."""
        key = home.key(options)
        if key not in self._results:
            server = home.servers[options["server"]]
            first, numbers, message = len(server.requests), None, ""
            with TemporaryDirectory() as new, patch.dict(os.environ, CDTA_HOME=new):
                out = Path(new) / "run"
                try:
                    save_run(evaluate(home.spec(options), quiet=True), out)
                    numbers = numbers_in(out)
                except UserError as problem:
                    message = str(problem)
                keys = keys_in(Path(new))
            self._results[key] = FreshResult(numbers, message, len(server.requests) - first, keys)
        return self._results[key]


def _without_numbers(message: str) -> str:
    return re.sub(r"[\d,.]+", "", message)
