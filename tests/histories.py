"""Random histories of a CDTA_HOME: after every step, all numbers equal those of a fresh home.

A history is a list of steps chosen by a seed: runs, interrupts, kills, two processes at once, model
changes behind an address, edited files and datasets. Whatever happened before, a run must end like
the same command in a new, empty home, and must not repeat requests whose answers are on disk.

    python tests/histories.py 1000             a thousand histories
    python tests/histories.py 1 --first 42     the history of seed 42
"""

import argparse
import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from cant_do_that_anymore.client import cache, client
from home_events import CheckFailed, FreshHomes, Home, Options
from loopback import serving
from random_servers import EDITIONS, FILES, RandomServer

Servers = Sequence[RandomServer]
STEPS = 3
"""The number of steps in a history before every run is repeated."""
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


@dataclass(frozen=True)
class Step:
    """An event: the name of a method of `Home` and its arguments."""

    name: str
    arguments: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(_described, self.arguments))})"


def _described(argument: object) -> str:
    """The representation of an argument; options are shown without their default values."""
    if isinstance(argument, dict):
        return str({key: value for key, value in argument.items() if value != DEFAULT_OPTIONS[key]})
    return repr(argument)


def history(seed: int, steps: int = STEPS) -> list[Step]:
    """Return this many steps, chosen by the seed, and then a repeat of all runs."""
    random = Random(seed)
    choice, share = random.choice, random.random
    first = _changed(DEFAULT_OPTIONS, random, random.randint(0, 1))
    option_sets = [first, _changed(first, random, 1)]

    def options() -> Options:
        if share() < 0.1:
            option_sets.append(_changed(choice(option_sets), random, 1))
        return choice(option_sets)

    def catalog_options() -> Options:
        return options() | {"rules": DEFAULT_OPTIONS["rules"]}  # custom rules need a program

    events: dict[str, tuple[int, Callable[[], tuple[Any, ...]]]] = {
        "run": (6, lambda: (options(),)),
        "interrupt": (2, lambda: (options(), random.randint(1, 15))),
        "kill": (3, lambda: (options(), random.randint(1, 80))),
        "kill_experiment": (1, lambda: (catalog_options(), 2, random.randint(1, 120))),
        "run_two": (1, lambda: (options(), options())),
        "run_with_failures": (2, lambda: (options(), random.randrange(5))),
        "experiment": (3, lambda: (catalog_options(), random.randint(1, 2))),
        "replace_model": (3, lambda: (first["server"], random.randrange(EDITIONS))),
        "edit": (3, lambda: (choice([*FILES, "custom"]), random.randrange(EDITIONS))),
        "damage_dataset": (1, lambda: (share(), choice(["delete", "cut", "garbage"]))),
        "reread": (1, lambda: (share(),)),
    }
    names = random.choices(list(events), [weight for weight, _ in events.values()], k=steps)
    chosen = [Step(name, events[name][1]()) for name in names]
    last_experiment = [step for step in chosen if step.name == "experiment"][-1:]
    return [*chosen, *last_experiment, *(Step("run", (options,)) for options in option_sets)]


def _changed(options: Options, random: Random, times: int) -> Options:
    for name in random.sample(list(OTHER_VALUES), times):
        values = DEFAULT_OPTIONS[name], *OTHER_VALUES[name]
        other_values = [value for value in values if value != options[name]]
        options = options | {name: random.choice(other_values)}
    return options


def failure_of(seed: int, servers: Servers, fresh: FreshHomes, steps: Sequence[Step]) -> str:
    """Perform the steps in a new home and return a description of the failure, or ""."""
    with TemporaryDirectory() as folder:
        home = Home(Path(folder), servers, fresh)
        for number, step in enumerate(steps, 1):
            options = [each for each in step.arguments if isinstance(each, dict)]
            if "kill" in step.name and any(map(home.other_editions, options)):
                continue  # it may leave a few answers of another version, which prove nothing
            try:
                home.apply(step.name, step.arguments)
            except Exception as error:
                performed = "\n".join(map(str, steps[:number]))
                message = str(error) if isinstance(error, CheckFailed) else traceback.format_exc()
                return f"history {seed}, step {number}:\n{performed}\n{message}"
    return ""


def shortest_failure(seed: int, servers: Servers, fresh: FreshHomes, steps: Sequence[Step]) -> str:
    """The failure, without the steps that it does not need."""
    failure, index = failure_of(seed, servers, fresh, steps), 0
    while failure and index < len(steps):
        fewer = [*steps[:index], *steps[index + 1 :]]
        if shorter := failure_of(seed, servers, fresh, fewer):
            steps, failure = fewer, shorter
        else:
            index += 1
    return failure


@contextmanager
def three_servers() -> Iterator[list[RandomServer]]:
    """Two models of one name, and a reasoning model; failed requests are retried once, at once.

    The first answer of a command shows whether the version has changed.
    """
    servers = [RandomServer(0), RandomServer(1), RandomServer(2, is_reasoning=True)]
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(client, FIRST_WAIT=0.001, MAX_FAILED_ATTEMPTS=2))
        stack.enter_context(patch.multiple(client, ANSWERS_TO_COMPARE=1))
        stack.enter_context(
            patch.multiple(cache, MIN_ANSWERS_OF_VERSION=1, MIN_ANSWERS_TO_COMPARE=1)
        )
        yield [stack.enter_context(serving(server)) for server in servers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("histories", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps per history")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    failures = 0
    with three_servers() as servers, TemporaryDirectory() as inputs:
        fresh = FreshHomes(Path(inputs))
        for seed in range(options.first, options.first + options.histories):
            if failure := shortest_failure(seed, servers, fresh, history(seed, options.steps)):
                print(failure, flush=True)
                failures += 1
    print(f"{options.histories} histories, {failures} failures, {time.process_time():.0f} s CPU")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
