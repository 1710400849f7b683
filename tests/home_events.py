"""Events in the life of a CDTA_HOME, the checks after each, and the numbers of its runs."""

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from aiohttp import web

from cant_do_that_anymore import Rules, Spec
from cant_do_that_anymore.client.store import intact_rows
from cant_do_that_anymore.comparison.experiment import run_all
from cant_do_that_anymore.errors import Stopped, UserError
from cant_do_that_anymore.report.run_page import write_page
from cant_do_that_anymore.runs.evaluate import evaluate
from cant_do_that_anymore.runs.identity_check import (
    DIFFERENCES_TO_REJECT,
    MAX_PROBES,
    REPEATS,
    ModelChanged,
)
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import (
    CONTROLS_FILE,
    SAMPLES_FILE,
    load_run,
    rescored,
    run_json,
    sample_line,
    save_run,
)
from cant_do_that_anymore.task.types import Reading
from crashes import has_died, started
from loopback import Body
from random_servers import FILES, OWN_RULES, Coins, write

Options = dict[str, Any]
"""Of a run, as plain values: ``server`` is the number of one, ``positions`` a file's name."""

AHEAD = 4
"""So many questions for each connection may be begun before it is known that they are needed."""
LOOKS = MAX_PROBES + DIFFERENCES_TO_REJECT * REPEATS
"""So often it may be looked whether it is the same model; once, if the first answer is the same."""


Numbers = dict[str, Any]

OF_THE_MOMENT = ("started_at", "seconds", "seconds_now", "notes", "cost", "dataset", "temperature")


@dataclass(frozen=True)
class Ended:
    """How a run ended: its numbers or a sentence, its requests, and the keys of cached answers."""

    numbers: Numbers | None
    sentence: str
    asked: int = 0
    keys: frozenset[str] = frozenset()


def numbers_of(run: Run) -> Numbers:
    """All that does not depend on the moment: metrics, samples, judged replies."""
    return _numbers(run_json(run), map(sample_line, (*run.samples, *run.controls)))


def numbers_in(folder: Path) -> Numbers:
    """The same of a run that was saved."""
    files = [folder / name for name in (SAMPLES_FILE, CONTROLS_FILE) if (folder / name).exists()]
    lines = chain(*(file.read_text().splitlines() for file in files))
    return _numbers(json.loads((folder / "run.json").read_text()), lines)


def _numbers(facts: dict[str, Any], lines: Iterable[str]) -> Numbers:
    samples = [json.loads(line) for line in lines]
    for sample in samples:
        for reply in sample["replies"].values():
            del reply["conceded"]  # a form that was learnt may be learnt before the first question
    chosen = {key: facts["dataset"][key] for key in ("version", "origin", "pool", "pool_name")}
    kept = {key: value for key, value in facts.items() if key not in OF_THE_MOMENT}
    return json.loads(json.dumps(kept | {"samples": samples, "dataset": chosen}))  # type: ignore[no-any-return]


def bytes_in(folder: Path) -> str:
    """A digest of the files of a run."""
    files = (path.read_bytes() for path in sorted(folder.glob("*.json*")))
    return sha256(b"".join(files)).hexdigest()


def keys_in(store: Path) -> frozenset[str]:
    """Of the whole answers in a store; looked up in a copy, so that nothing is mended by that."""
    if not store.exists():
        return frozenset()
    with TemporaryDirectory() as folder:
        copy = Path(folder) / store.name
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{store}{suffix}", f"{copy}{suffix}")
        return frozenset(key for kind, key, *_ in intact_rows(copy) if kind == "answer")


def difference(ours: Any, theirs: Any, at: str = "") -> str:
    """The first place where two values differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in ours.keys() | theirs.keys():
            if ours.get(key) != theirs.get(key):
                return difference(ours.get(key), theirs.get(key), f"{at}.{key}")
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if one != other:
                return difference(one, other, f"{at}[{place}]")
    return f"{at} is {ours!r:.300} and not {theirs!r:.300}"


class Fault(AssertionError):
    """A promise that was broken."""


class Home:
    """One home, what it should hold, and what may happen to it.

    Attributes:
        editions: which edition each file, and the rules of one's own, are in.
        answered: which editions of a server have answered under which tag.
        made: the runs that were saved: the rules of one's own they need, and a digest.
    """

    def __init__(self, folder: Path, servers: Sequence[Coins], fresh: "Fresh") -> None:
        self.folder = folder
        self.path = folder / "home"
        self.servers = servers
        self.fresh = fresh
        self.editions = dict.fromkeys((*FILES, "own"), 0)
        self.answered: dict[tuple[int, str], set[int]] = {}
        self.made: dict[Path, tuple[Rules | None, str]] = {}
        self.is_damaged = False
        for server in servers:
            server.become(0)
        for name in FILES:
            write(fresh.inputs, name, 0)

    def let(self, name: str, taken: Sequence[Any]) -> None:
        """Let something happen, and see that no run that was saved before has changed."""
        with patch.dict(os.environ, CDTA_HOME=str(self.path)):
            getattr(self, name)(*taken)
        for folder, (_, digest) in self.made.items():
            if bytes_in(folder) != digest:
                raise Fault(f"{folder.name} was changed")

    # What may happen

    def run(self, options: Options) -> None:
        """A run to its end."""
        with self._counted(options):
            self._saved(options, out := self._new_folder())
        self._check_saved(options, out)

    def stop(self, options: Options, at: int) -> None:
        """Ctrl-C when the server is asked for the time of that number."""
        server = self.servers[options["server"]]
        first = len(server.requests)

        async def interrupt(_: Body, number: int) -> None:
            if number == first + at:
                os.kill(os.getpid(), signal.SIGINT)

        with self._counted(options), patch.object(server, "fault", interrupt), suppress(Stopped):
            evaluate(self.spec(options), quiet=True)

    def kill(self, options: Options, at: int) -> None:
        """Death at the step of writing of that number; a run that is there afterwards is whole."""
        out = self._new_folder()
        with self._counted(options, lost=2 * options["max_connections"]):
            has_died(started(partial(self._saved, options, out), self.said, at))
            self._heed()
        self._check_saved(options, out)

    def kill_experiment(self, options: Options, seeds: int, at: int) -> None:
        """The same while there are several runs to be made."""
        has_died(started(partial(self._experimented, options, seeds), self.said, at))
        with suppress(UserError):
            self._heed()
        self._has_answered(options)

    def both(self, options: Options, others: Options) -> None:
        """Two processes at once."""
        outs = self._new_folder(), self._new_folder()
        process = started(partial(self._saved, others, outs[1]), self.said)
        try:
            with self._ending(options):
                self._saved(options, outs[0])
        finally:
            has_died(process)
        with self._ending(others):
            self._heed()
        self._check_saved(options, outs[0])
        self._check_saved(others, outs[1])

    def fail(self, options: Options, which: int) -> None:
        """A server that has no answer to every fifth question, however often it is asked."""
        server = self.servers[options["server"]]

        async def refuse(request: Body, _: int) -> web.Response | None:
            return web.Response(status=500) if server.coin(request) % 5 == which else None

        with patch.object(server, "fault", refuse), suppress(UserError):
            evaluate(replace(self.spec(options), max_error_rate=0.6), quiet=True)
        self._has_answered(options)

    def experiment(self, options: Options, seeds: int) -> None:
        """Runs with several seeds into one folder, where some may lie already."""
        runs, failures = self._experimented(options, seeds)
        for run in runs:
            assert run.folder
            self._check_saved(options | {"seed": run.plan.settings.seed}, run.folder)
        for problem in failures.values():
            if "contains a run that differs in" not in str(problem):
                self._check_sentence(options, type(problem).__name__, str(problem))
        self._has_answered(options)

    def become(self, server: int, edition: int) -> None:
        """Another model behind the address."""
        self.servers[server].become(edition)

    def edit(self, name: str, edition: int) -> None:
        """Another edition of a file, or of the rules of one's own."""
        self.editions[name] = edition
        if name in FILES:
            write(self.fresh.inputs, name, edition)

    def damage(self, where: float, size: int) -> None:
        """Garbage in the store."""
        store = self.path / "answers.sqlite"
        if store.exists():
            with store.open("r+b") as file:
                file.seek(int(where * store.stat().st_size))
                file.write(Random(where).randbytes(size))
            self.is_damaged = True

    def spoil(self, which: float, how: str) -> None:
        """A dataset in the home that is deleted, loses lines or is no text any more."""
        folders = sorted(self.path.glob("datasets/[!.]*"))
        if not folders:
            return
        folder = folders[int(which * len(folders))]
        positions = folder / "positions.jsonl"
        if how == "delete":
            shutil.rmtree(folder)
        elif how == "cut":
            positions.write_bytes(positions.read_bytes().partition(b"\n")[0])
        else:
            positions.write_bytes(b"\xff" * 99)

    def look(self, which: float, how: str) -> None:
        """A run that was saved: its page, or its answers read in another way and back."""
        if not self.made:
            return
        folder = sorted(self.made)[int(which * len(self.made))]
        run = load_run(folder, self.made[folder][0])
        if how == "report":
            write_page(run, folder / "report.html")
            return
        readings: tuple[Reading, Reading] = ("lenient", "exact")
        other = rescored(run, readings[run.plan.reading == "lenient"])
        save_run(other, out := self._new_folder())
        back = rescored(load_run(out, self.made[folder][0]), run.plan.reading)
        if numbers_of(back) != numbers_of(run):
            raise Fault(f"{folder.name} is another run when it is read to and fro")

    # What is known of it

    def spec(self, options: Options) -> Spec:
        """What the options stand for."""
        given = dict(options)
        server, positions = self.servers[given.pop("server")], given.pop("positions")
        pool = {"pool": self.fresh.inputs / "pool.jsonl"}
        where: dict[str, Options] = {
            "pool": pool,
            "diagonal": pool | {"eval": "all_diagonal"},
            "dataset": {"dataset": self.fresh.inputs / "dataset.jsonl"},
        }
        if given["rules"] == "own":
            given["rules"] = OWN_RULES[self.editions["own"]]
        if given["wording"] == "file":
            given["wording"] = str(self.fresh.inputs / "wording.toml")
        return Spec(model="m", base_url=server.url, **given, **where[positions])

    def key(self, options: Options) -> str:
        """All that the numbers of a run depend on."""
        given = {name: value for name, value in options.items() if name != "max_connections"}
        files = {
            "dataset" if options["positions"] == "dataset" else "pool",
            *(["wording"] if options["wording"] == "file" else []),
            *(["own"] if options["rules"] == "own" else []),
        }
        editions = {name: self.editions[name] for name in files}
        model = self.servers[options["server"]].edition
        return json.dumps([given, editions, model], sort_keys=True)

    def is_told_apart(self, options: Options) -> bool:
        """Whether another model is noticed: not by its moves where positions are given."""
        now = self.servers[options["server"]].edition
        before = self.answered.get(_who(options), set()) - {now}
        return options["positions"] == "pool" or not any(map(partial(_is_silent, now), before))

    def keys(self) -> frozenset[str]:
        """Of the answers in the store, as far as it is whole."""
        return frozenset() if self.is_damaged else keys_in(self.path / "answers.sqlite")

    @property
    def said(self) -> Path:
        """What another process ended with, if not with a run."""
        return self.folder / "said"

    def _new_folder(self) -> Path:
        return self.folder / "runs" / f"{len(self.made):02}-{time.time_ns()}"

    def _saved(self, options: Options, out: Path) -> None:
        save_run(evaluate(self.spec(options), quiet=True), out)

    def _experimented(self, options: Options, seeds: int) -> tuple[list[Run], dict[str, UserError]]:
        specs = [self.spec(options | {"seed": 1 + seed}) for seed in range(seeds)]
        return run_all({"m": specs}, self.folder / "experiment", save_run, quiet=True)

    def _has_answered(self, options: Options) -> None:
        edition = self.servers[options["server"]].edition
        self.answered.setdefault(_who(options), set()).add(edition)

    # What must hold

    @contextmanager
    def _counted(self, options: Options, lost: int = 0) -> Iterator[None]:
        """Nothing is asked that is on disk, but a look or two; so many answers may be lost."""
        server = self.servers[options["server"]]
        first, before, whole = len(server.requests), self.keys(), not self.is_damaged
        others = self.answered.get(_who(options), set()) - {server.edition}
        with self._ending(options):
            try:
                yield
            finally:
                asked, self.is_damaged = len(server.requests) - first, False
        new = self.keys() - before
        fresh = self.fresh.ended(self, options)
        in_vain = max(0, fresh.asked - len(fresh.keys))
        if server.thinks:  # whoever is under way when it is learnt how much room it needs
            in_vain += 2 * options["max_connections"]
        most = len(new) + (LOOKS if others else 1) + lost + in_vain
        if asked > most:
            raise Fault(f"{asked} questions were asked, and {len(new)} answers kept")
        if whole and len(new - fresh.keys) > AHEAD * options["max_connections"]:
            raise Fault(f"{len(new - fresh.keys)} questions were asked that a fresh run does not")

    @contextmanager
    def _ending(self, options: Options) -> Iterator[None]:
        """In a run, or with a sentence that is as good."""
        try:
            yield
        except UserError as problem:
            self._check_sentence(options, type(problem).__name__, str(problem))
        self._has_answered(options)

    def _heed(self) -> None:
        """What another process has said is said here."""
        if self.said.exists():
            kind, _, words = self.said.read_text().partition(": ")
            self.said.unlink()
            if kind == "ModelChanged":
                raise ModelChanged(words)
            raise UserError(words)

    def _check_sentence(self, options: Options, kind: str, words: str) -> None:
        """Refused because of another model that has answered, or as in a fresh home."""
        server = self.servers[options["server"]]
        if kind == "ModelChanged" and self.answered.get(_who(options), set()) - {server.edition}:
            return
        fresh = self.fresh.ended(self, options)
        if not fresh.sentence or _without_numbers(words) != _without_numbers(fresh.sentence):
            raise Fault(f"said {words!r}; a fresh home: {fresh.sentence or 'a run'!r}")

    def _check_saved(self, options: Options, folder: Path) -> None:
        """If a run was saved, it is whole and that of a fresh home."""
        if not folder.exists():
            return
        rules = OWN_RULES[self.editions["own"]] if options["rules"] == "own" else None
        ours, theirs = numbers_in(folder), self.fresh.ended(self, options).numbers
        if ours != theirs:
            raise Fault(f"other numbers than in a fresh home: {difference(ours, theirs)}")
        self.made[folder] = rules, bytes_in(folder)


class Fresh:
    """What the same commands come to in new homes; each is run once.

    Attributes:
        inputs: the folder of the files that are edited.
    """

    def __init__(self, folder: Path) -> None:
        self.inputs = folder
        self._ended: dict[str, Ended] = {}

    def ended(self, home: Home, options: Options) -> Ended:
        """How a run ends now in a new home."""
        key = home.key(options)
        if key not in self._ended:
            server = home.servers[options["server"]]
            first, numbers, sentence = len(server.requests), None, ""
            with TemporaryDirectory() as new, patch.dict(os.environ, CDTA_HOME=new):
                try:
                    numbers = numbers_of(evaluate(home.spec(options), quiet=True))
                except UserError as problem:
                    sentence = str(problem)
                keys = keys_in(Path(new) / "answers.sqlite")
            self._ended[key] = Ended(numbers, sentence, len(server.requests) - first, keys)
        return self._ended[key]


def _who(options: Options) -> tuple[int, str]:
    return options["server"], options["tag"]


def _is_silent(one: int, other: int) -> bool:
    return {one, other} == {1, 2}


def _without_numbers(words: str) -> str:
    return re.sub(r"[\d,.]+", "", words)
