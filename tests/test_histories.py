"""Random histories of a CDTA_HOME: after every step, all numbers equal those of a fresh home.

A history is a list of steps chosen by a seed: runs, interrupts, kills, two processes at once, model
changes behind an address, edited files. Whatever happened before, a run must end like
the same command in a new, empty home, and must not repeat requests whose answers are on disk.

    HISTORIES=1000 STEPS=3 pytest tests/test_histories.py       longer histories
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from cant_do_that_anymore.client import cache, client
from cant_do_that_anymore.files import atomic_write_text
from crashes import start, was_killed
from home_events import FreshHomes, Home, Options
from loopback import serving
from random_servers import EDITIONS, FILES, RandomServer
from testing import needs_posix

pytestmark = needs_posix
HISTORIES, PER_TEST = int(os.environ.get("HISTORIES", "60")), 20
STEPS = int(os.environ.get("STEPS", "2"))
"""The number of steps in a history before every run is repeated."""
Step = tuple[str, tuple[Any, ...]]
"""The name of a method of `Home`, and its arguments."""
DEFAULT_OPTIONS: Options = {
    "server": 0,
    "positions": "pool",
    "rules": "bishops-as-knights",
    "wording": "plain",
    "n": 3,
    "seed": 1,
    "temperature": 1.0,
    "max_tokens": None,
    "reading": "lenient",
    "conditions": ("standard", "changed"),
    "diagnose": False,
    "tag": "",
    "extra_body": "",
    "max_connections": 2,
    "form": "moves",
    "interventions": (),
}
OTHER_VALUES: dict[str, list[Any]] = {
    "server": [1, 2],
    "positions": ["dataset", "diagonal"],
    "rules": ["bishops-as-rooks", "custom"],
    "wording": ["file", "terse,user-turn"],
    "n": [5, 40],
    "seed": [2],
    "temperature": [0.0],
    "max_tokens": [8, 64],
    "reading": ["exact"],
    "conditions": [("standard", "changed", "placebo")],
    "diagnose": [True],
    "tag": ["b"],
    "extra_body": ['{"top_k": 2}'],
    "max_connections": [1, 4],
    "form": ["moves+fen"],
    "interventions": [("legal-moves", "reason-first")],
}


def history(seed: int) -> list[Step]:
    """Return steps chosen by the seed, and then a repeat of all runs."""
    random = Random(seed)
    choice = random.choice
    first = changed(DEFAULT_OPTIONS, random, random.randint(0, 1))
    option_sets = [first, changed(first, random, 1)]

    def options() -> Options:
        if random.random() < 0.1:
            option_sets.append(changed(choice(option_sets), random, 1))
        return choice(option_sets)

    def catalog_options() -> Options:
        return options() | {"rules": DEFAULT_OPTIONS["rules"]}  # custom rules need a program

    events: dict[str, tuple[int, Callable[[], tuple[Any, ...]]]] = {
        "run": (6, lambda: (options(),)),
        "interrupt": (2, lambda: (options(), random.randint(1, 15))),
        "kill": (4, lambda: (options(), random.randint(1, 80))),
        "run_two": (1, lambda: (options(), options())),
        "run_with_failures": (2, lambda: (options(), random.randrange(5))),
        "experiment": (3, lambda: (catalog_options(), random.randint(1, 2))),
        "replace_model": (3, lambda: (first["server"], random.randrange(EDITIONS))),
        "edit": (3, lambda: (choice([*FILES, "custom"]), random.randrange(EDITIONS))),
    }
    names = random.choices(list(events), [weight for weight, _ in events.values()], k=STEPS)
    chosen = [(name, events[name][1]()) for name in names]
    last_experiment = [step for step in chosen if step[0] == "experiment"][-1:]
    return [*chosen, *last_experiment, *(("run", (options,)) for options in option_sets)]


def changed(options: Options, random: Random, times: int) -> Options:
    for name in random.sample(list(OTHER_VALUES), times):
        values = DEFAULT_OPTIONS[name], *OTHER_VALUES[name]
        other_values = [value for value in values if value != options[name]]
        options = options | {name: random.choice(other_values)}
    return options


@pytest.fixture(scope="module")
def servers() -> Iterator[list[RandomServer]]:
    """Two models of one name, and a reasoning model; failed requests are retried once, at once.

    The first answer of a command shows whether the version has changed.
    """
    servers = [RandomServer(0), RandomServer(1), RandomServer(2, is_reasoning=True)]
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(client, FIRST_WAIT=0.001, MAX_FAILED_ATTEMPTS=2))
        stack.enter_context(patch.multiple(client, ANSWERS_TO_COMPARE=1))
        stack.enter_context(patch.object(cache, "MIN_ANSWERS_OF_VERSION", 1))
        yield [stack.enter_context(serving(server)) for server in servers]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> FreshHomes:
    return FreshHomes(tmp_path_factory.mktemp("inputs"))


def perform(steps: list[Step], home: Home, history: object = "") -> None:
    for number, (name, arguments) in enumerate(steps):
        with patch.dict(os.environ, CDTA_HOME=str(home.path)):
            try:
                getattr(home, name)(*arguments)
            except Exception as error:
                error.add_note(f"history {history}, in the last of {steps[: number + 1]}")
                raise


@pytest.mark.parametrize("first", range(0, HISTORIES, PER_TEST))
def test_any_history_gives_the_numbers_of_a_fresh_home(
    first: int, servers: list[RandomServer], fresh: FreshHomes, tmp_path: Path
) -> None:
    for seed in range(first, first + PER_TEST):
        perform(history(seed), Home(tmp_path / str(seed), servers, fresh), seed)


def test_answers_of_an_earlier_model_do_not_count_for_the_current_one(
    servers: list[RandomServer], fresh: FreshHomes, tmp_path: Path
) -> None:
    diagonal: Step = ("run", (DEFAULT_OPTIONS | {"positions": "diagonal"},))
    steps = [diagonal, ("replace_model", (0, 1)), ("run", (DEFAULT_OPTIONS,)), diagonal]
    perform(steps, Home(tmp_path, servers, fresh))


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
