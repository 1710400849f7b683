"""Events in the history of a CDTA_HOME, and the checks after each of them."""

import json
import os
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from aiohttp import web

from cant_do_that_anymore import Rules, Spec
from cant_do_that_anymore.comparison.experiment import run_all
from cant_do_that_anymore.errors import Stopped, UserError
from cant_do_that_anymore.report.run_page import write_page
from cant_do_that_anymore.runs.evaluate import evaluate
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import (
    CONTROLS_FILE,
    SAMPLES_FILE,
    load_run,
    run_json,
    sample_line,
    save_run,
)
from crashes import start, was_killed
from loopback import Body
from random_servers import CUSTOM_RULES, FILES, RandomServer, write_edition

Options = dict[str, Any]
"""Options of a run as plain values; ``server`` is an index, ``positions`` the name of a file."""

MAX_EXTRA = 4
"""Requests per connection that may be sent before it is known that they are needed."""
Numbers = dict[str, Any]

VOLATILE = ("started_at", "seconds", "notes", "cost", "dataset", "temperature")


@dataclass(frozen=True)
class RunResult:
    """How a run ended: its numbers or an error message, and its requests and cache keys."""

    numbers: Numbers | None
    message: str
    requests: int = 0
    keys: frozenset[str] = frozenset()


def numbers_of(run: Run) -> Numbers:
    """Everything that does not depend on the time: metrics, samples, scored replies."""
    return _numbers(run_json(run), map(sample_line, (*run.samples, *run.controls)))


def numbers_in(folder: Path) -> Numbers:
    """The same for a saved run."""
    files = [folder / name for name in (SAMPLES_FILE, CONTROLS_FILE) if (folder / name).exists()]
    lines = chain(*(file.read_text().splitlines() for file in files))
    return _numbers(json.loads((folder / "run.json").read_text()), lines)


def _numbers(facts: dict[str, Any], lines: Iterable[str]) -> Numbers:
    samples = [json.loads(line) for line in lines]
    for sample in samples:
        for reply in sample["replies"].values():
            for name in ("adjustments", "limit"):  # may already be known
                reply.pop(name, None)
    dataset = {key: facts["dataset"][key] for key in ("version", "origin", "pool_name")}
    stable = {key: value for key, value in facts.items() if key not in VOLATILE}
    stable["options"].pop("max_connections", None)
    return json.loads(json.dumps(stable | {"samples": samples, "dataset": dataset}))  # type: ignore[no-any-return]


def bytes_in(folder: Path) -> str:
    """A digest of the files of a run."""
    files = (path.read_bytes() for path in sorted(folder.glob("*.json*")))
    return sha256(b"".join(files)).hexdigest()


def keys_in(cache: Path) -> frozenset[str]:
    """The keys of the answers in a cache, with their namespaces."""
    if not cache.exists():
        return frozenset()
    with closing(sqlite3.connect(cache)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = (database.execute(f"SELECT key || namespace FROM {table}") for (table,) in tables)
        return frozenset(key for (key,) in chain(*rows))


def difference(actual: Any, expected: Any, at: str = "") -> str:
    """The first place where two values differ."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        for key in actual.keys() | expected.keys():
            if actual.get(key) != expected.get(key):
                return difference(actual.get(key), expected.get(key), f"{at}.{key}")
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
            if one != other:
                return difference(one, other, f"{at}[{index}]")
    return f"{at} is {actual!r:.300} and not {expected!r:.300}"


class CheckFailed(AssertionError):
    """A home is not as it should be."""


class Home:
    """A home, the events that may happen to it, and their checks.

    Attributes:
        editions: the current edition of each file and of the custom rules.
        editions_seen: the editions of each server that have answered under each tag.
        saved_runs: the custom rules and the digest of each saved run.
    """

    def __init__(self, folder: Path, servers: Sequence[RandomServer], fresh: "FreshHomes") -> None:
        self.folder = folder
        self.path = folder / "home"
        self.servers = servers
        self.fresh = fresh
        self.editions = dict.fromkeys((*FILES, "custom"), 0)
        self.editions_seen: dict[tuple[int, str], set[int]] = {}
        self.saved_runs: dict[Path, tuple[Rules | None, str]] = {}
        for server in servers:
            server.replace_model(0)
        for name in FILES:
            write_edition(fresh.inputs, name, 0)

    def apply(self, name: str, arguments: Sequence[Any]) -> None:
        """Perform an event and check that no run saved earlier has changed."""
        with patch.dict(os.environ, CDTA_HOME=str(self.path)):
            getattr(self, name)(*arguments)
        for folder, (_, digest) in self.saved_runs.items():
            if bytes_in(folder) != digest:
                raise CheckFailed(f"{folder.name} was changed")

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
        out = self._new_folder()
        with self._request_check(options, max_lost=2 * options["max_connections"]):
            was_killed(start(partial(self._run_and_save, options, out), self.error_file, at))
            self._raise_child_error()
        self._check_saved(options, out)

    def kill_experiment(self, options: Options, seeds: int, at: int) -> None:
        """The same during an experiment of several runs."""
        was_killed(start(partial(self._run_seeds, options, seeds), self.error_file, at))
        with suppress(UserError):
            self._raise_child_error()
        self._record_edition(options)

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

    def experiment(self, options: Options, seeds: int) -> None:
        """Run several seeds into one folder, which may already have some of the runs."""
        runs, failures = self._run_seeds(options, seeds)
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

    def damage_dataset(self, share: float, how: str) -> None:
        """Delete a dataset of the home, remove its lines, or replace them with garbage."""
        folders = sorted(self.path.glob("datasets/[!.]*"))
        if not folders:
            return
        folder = folders[int(share * len(folders))]
        items = folder / "items.jsonl"
        if how == "delete":
            shutil.rmtree(folder)
        elif how == "cut":
            items.write_bytes(items.read_bytes().partition(b"\n")[0])
        else:
            items.write_bytes(b"\xff" * 99)

    def reread(self, share: float) -> None:
        """Load a saved run and rewrite its report."""
        if not self.saved_runs:
            return
        folder = sorted(self.saved_runs)[int(share * len(self.saved_runs))]
        run = load_run(folder, self.saved_runs[folder][0])
        write_page(run, folder / "report.html")

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
        return self.editions_seen.get(_model_key(options), set()) - {current}

    def keys(self) -> frozenset[str]:
        """The keys of the answers in the cache."""
        return keys_in(self.path / "answers.sqlite")

    @property
    def error_file(self) -> Path:
        """The error of another process, if it had one."""
        return self.folder / "error"

    def _new_folder(self) -> Path:
        return self.folder / "runs" / f"{len(self.saved_runs):02}-{time.time_ns()}"

    def _run_and_save(self, options: Options, out: Path) -> None:
        save_run(evaluate(self.spec(options), quiet=True), out)

    def _run_seeds(self, options: Options, seeds: int) -> tuple[list[Run], dict[str, UserError]]:
        specs = [self.spec(options | {"seed": 1 + seed}) for seed in range(seeds)]
        return run_all({"m": specs}, self.folder / "experiment", save_run, quiet=True)

    def _record_edition(self, options: Options) -> None:
        edition = self.servers[options["server"]].edition
        self.editions_seen.setdefault(_model_key(options), set()).add(edition)

    # Checks

    @contextmanager
    def _request_check(self, options: Options, max_lost: int = 0) -> Iterator[None]:
        """Check that no cached request is sent again, except in identity checks."""
        server = self.servers[options["server"]]
        first, before = len(server.requests), self.keys()
        with self._error_check(options):
            try:
                yield
            finally:
                sent = len(server.requests) - first
        new = self.keys() - before
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

    def _raise_child_error(self) -> None:
        """Raise the error of the other process here."""
        if self.error_file.exists():
            _, _, message = self.error_file.read_text().partition(": ")
            self.error_file.unlink()
            raise UserError(message)

    def _check_message(self, options: Options, message: str) -> None:
        """The message must be that of a fresh home."""
        expected = {_without_numbers(fresh.message) for fresh in self._fresh_results(options)}
        if _without_numbers(message) not in expected - {""}:
            raise CheckFailed(f"message {message!r}; in a fresh home: {expected}")

    def _fresh_results(self, options: Options) -> list[RunResult]:
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

    def _check_saved(self, options: Options, folder: Path) -> None:
        """If a run was saved, it is complete and equal to that of a fresh home."""
        if not folder.exists():
            return
        rules = CUSTOM_RULES[self.editions["custom"]] if options["rules"] == "custom" else None
        actual = numbers_in(folder)
        expected = [fresh.numbers for fresh in self._fresh_results(options)]
        if actual not in expected:
            raise CheckFailed(
                f"other numbers than in a fresh home: {difference(actual, expected[0])}"
            )
        self.saved_runs[folder] = rules, bytes_in(folder)


class FreshHomes:
    """The results of the same commands in new homes; each command is run once.

    Attributes:
        inputs: the folder of the edited files.
    """

    def __init__(self, folder: Path) -> None:
        self.inputs = folder
        self._results: dict[str, RunResult] = {}

    def result(self, home: Home, options: Options) -> RunResult:
        """The result of a run in a new home."""
        key = home.key(options)
        if key not in self._results:
            server = home.servers[options["server"]]
            first, numbers, message = len(server.requests), None, ""
            with TemporaryDirectory() as new, patch.dict(os.environ, CDTA_HOME=new):
                try:
                    numbers = numbers_of(evaluate(home.spec(options), quiet=True))
                except UserError as problem:
                    message = str(problem)
                keys = keys_in(Path(new) / "answers.sqlite")
            self._results[key] = RunResult(numbers, message, len(server.requests) - first, keys)
        return self._results[key]


def _model_key(options: Options) -> tuple[int, str]:
    return options["server"], options["tag"]


def _without_numbers(message: str) -> str:
    return re.sub(r"[\d,.]+", "", message)
