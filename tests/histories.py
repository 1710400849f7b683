"""Random histories of one CDTA_HOME: after every step, all numbers equal those of a fresh one.

A history is a list of steps that a seed decides: runs, stops, kills, two processes at once, other
models behind an address, edited files, damage. Whatever has happened before, a run must end as the
same command does in a new and empty home, and ask for nothing that is on disk.

    python tests/histories.py 1000             a thousand of them
    python tests/histories.py 1 --first 42     that of seed 42
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

from cant_do_that_anymore.client import client
from cant_do_that_anymore.providers import http
from home_events import Fault, Fresh, Home, Options
from loopback import serving
from random_servers import EDITIONS, FILES, Coins

STEPS = 3
"""Of a history, before all that was run in it is run once more."""
USUAL: Options = {
    "server": 0,
    "positions": "pool",
    "rules": "bishops-as-knights",
    "wording": "default",
    "n": 3,
    "seed": 1,
    "temperature": 1.0,
    "max_tokens": None,
    "reading": "lenient",
    "conditions": ("standard", "changed"),
    "diagnose": False,
    "tag": "",
    "extra_body": "",
    "precision": None,
    "max_connections": 2,
    "form": "moves",
    "draws": 1,
    "interventions": (),
}
OTHERS: dict[str, list[Any]] = {
    "server": [1, 2],
    "positions": ["dataset", "diagonal"],
    "rules": ["bishops-as-rooks", "own"],
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
    "precision": [0.4],
    "max_connections": [1, 4],
    "form": ["moves+fen"],
    "draws": [2],
    "interventions": [("legal-moves", "reason-first")],
}


@dataclass(frozen=True)
class Step:
    """Something that happens: the name of a method of `Home`, and what it takes."""

    name: str
    taken: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(_told, self.taken))})"


def _told(taken: object) -> str:
    """Of options, those that are not as usual."""
    if isinstance(taken, dict):
        return str({key: value for key, value in taken.items() if value != USUAL[key]})
    return repr(taken)


def history(seed: int, steps: int = STEPS) -> list[Step]:
    """The steps that a seed decides, so many of them, and then all that was run once more."""
    random = Random(seed)
    usual = _changed(USUAL, random, random.randint(0, 1))
    known = [usual, _changed(usual, random, 1)]

    def options() -> Options:
        if random.random() < 0.1:
            known.append(_changed(random.choice(known), random, 1))
        return random.choice(known)

    def usually() -> Options:
        return options() | {"rules": USUAL["rules"]}  # those of one's own need a program

    makers: dict[str, tuple[int, Callable[[], tuple[Any, ...]]]] = {
        "run": (6, lambda: (options(),)),
        "stop": (2, lambda: (options(), random.randint(1, 15))),
        "kill": (3, lambda: (options(), random.randint(1, 80))),
        "kill_experiment": (1, lambda: (usually(), 2, random.randint(1, 120))),
        "both": (1, lambda: (options(), options())),
        "fail": (2, lambda: (options(), random.randrange(5))),
        "experiment": (3, lambda: (usually(), random.randint(1, 2))),
        "become": (3, lambda: (usual["server"], random.randrange(EDITIONS))),
        "edit": (3, lambda: (random.choice([*FILES, "own"]), random.randrange(EDITIONS))),
        "damage": (2, lambda: (random.random(), random.choice([1, 30, 3000]))),
        "spoil": (1, lambda: (random.random(), random.choice(["delete", "cut", "garbage"]))),
        "look": (1, lambda: (random.random(), random.choice(["report", "rescore"]))),
    }
    often = [weight for weight, _ in makers.values()]
    names = random.choices(list(makers), often, k=steps)
    happened = [Step(name, makers[name][1]()) for name in names]
    again = [step for step in happened if step.name == "experiment"][-1:]
    return [*happened, *again, *(Step("run", (each,)) for each in known)]


def _changed(options: Options, random: Random, times: int) -> Options:
    for name in random.sample(list(OTHERS), times):
        others = [value for value in (USUAL[name], *OTHERS[name]) if value != options[name]]
        options = options | {name: random.choice(others)}
    return options


def passed(seed: int, servers: Sequence[Coins], fresh: Fresh, steps: Sequence[Step]) -> str:
    """Go through the steps in a new home: what broke, or "" if nothing did."""
    with TemporaryDirectory() as folder:
        home = Home(Path(folder), servers, fresh)
        for number, step in enumerate(steps, 1):
            if any(isinstance(each, dict) and not home.is_told_apart(each) for each in step.taken):
                continue
            try:
                home.let(step.name, step.taken)
            except Exception as fault:
                before = "\n".join(map(str, steps[:number]))
                told = traceback.format_exc() if not isinstance(fault, Fault) else str(fault)
                return f"history {seed}, step {number}:\n{before}\n{told}"
    return ""


def shortest(seed: int, servers: Sequence[Coins], fresh: Fresh, steps: Sequence[Step]) -> str:
    """What broke, with no step that it does not take."""
    told, place = passed(seed, servers, fresh, steps), 0
    while told and place < len(steps):
        fewer = [*steps[:place], *steps[place + 1 :]]
        if again := passed(seed, servers, fresh, fewer):
            steps, told = fewer, again
        else:
            place += 1
    return told


@contextmanager
def three_servers() -> Iterator[list[Coins]]:
    """Two models of one name, and one that thinks; what fails is tried once more, at once.

    Connections are reused from the first request on: to open them takes a good part of the time.
    """
    servers = [Coins(0), Coins(1), Coins(2, thinks=True)]
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(client, FIRST_WAIT=0.001, MAX_FAILED_ATTEMPTS=2))
        stack.enter_context(patch.object(http, "REUSE_AFTER_REQUESTS", 0))
        yield [stack.enter_context(serving(server)) for server in servers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("histories", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each history")
    given = parser.parse_args()
    logging.disable(logging.ERROR)
    broken = 0
    with three_servers() as servers, TemporaryDirectory() as inputs:
        fresh = Fresh(Path(inputs))
        for seed in range(given.first, given.first + given.histories):
            if told := shortest(seed, servers, fresh, history(seed, given.steps)):
                print(told, flush=True)
                broken += 1
    print(f"{given.histories} histories, {broken} broken, {time.process_time():.0f} s of processor")
    sys.exit(broken > 0)


if __name__ == "__main__":
    main()
