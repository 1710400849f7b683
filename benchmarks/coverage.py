"""Simulates how often the printed 95% intervals contain the truth.

    python benchmarks/coverage.py                                # as in docs/reliability.md
    python benchmarks/coverage.py --cells 20 --repeats 50        # a minute
    python benchmarks/coverage.py --repeats 2000 --jobs 16 --all

A model breaks the changed rules in a share p of the samples under the standard rules, and its rule
uptake says how many of these violations it prevents. The wordings, dealt to items by their ids,
have different rule uptakes. The answers to an item under both rules are related, and those of a
group are much alike. The junk is a share of all replies that is unreadable. The truth is the value
that all items of the pool would give, had every reply been readable. Several models are compared
pair by pair, and half of their answers are the same; all intervals together must contain the truth,
so equal models are called different in as many runs as these miss it. Cells with a low coverage are
simulated again, with more runs.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from itertools import combinations, product
from math import isnan, nan
from random import Random
from typing import Any, NamedTuple, get_args

import numpy as np
from markdown_tables import print_heading, print_row
from numpy.typing import NDArray

from cant_do_that_anymore.metrics.estimates import Estimate, difference
from cant_do_that_anymore.metrics.measures import MEASURES, UPTAKE
from cant_do_that_anymore.task.prompts import choice_for
from cant_do_that_anymore.task.types import Outcome, Sample, ScoredAnswer

TARGET = 0.93
WORDINGS, MAX_WORDING_EFFECT = 8, 0.25
NESTED = 0.8  # the share of violations under the changed rules that are also made without them
COPIED = 0.8  # the share of a group's random numbers that are the same
COMMON = 0.5  # the same between models
POOL_SIZE = 5  # the pool, in datasets
REPEAT_BELOW, REPEAT_FACTOR = 0.94, 8
WORST = 8  # the number of rows printed without --all
SHARES, UPTAKES, JUNK = (0.3, 0.7, 1.0), (0.0, 0.1, 0.5, 0.9, 1.0), (0.0, 0.05)
SEVERAL = (  # p and rule uptake of each model
    ((0.7, 0.5), (0.7, 0.5)),
    ((0.95, 0.02), (0.95, 0.02)),
    ((0.9, 0.9), (0.4, 0.9)),
    ((0.7, 0.1), (0.7, 0.9)),
    ((0.9, 0.98), (0.3, 0.9)),
    ((0.7, 0.5), (0.7, 0.5), (0.7, 0.5)),
    ((0.9, 0.9), (0.9, 0.9), (0.4, 0.9)),
)
# The sizes of the groups.
DESIGNS = {
    f"{n} in groups of {size}": (size,) * (n // size) + (n % size,) * (n % size > 0)
    for n, size in product((50, 200, 1000), (1, 5, 20))
} | {"900 singles, 30 groups of 20": (1,) * 900 + (20,) * 30}

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Cell(NamedTuple):
    """What is simulated: one or several models, each with its p and its rule uptake."""

    models: tuple[tuple[float, float], ...]
    design: str
    junk: float

    @property
    def kind(self) -> str:
        """The table that it belongs to."""
        if len(self.models) == 1:
            return "Coverage for one model"
        are_equal = len({uptake for _, uptake in self.models}) == 1
        return "Equal models not called different" if are_equal else "Coverage of differences"


@dataclass(frozen=True)
class SimulatedItem:
    """An item of the pool."""

    subject: int
    group: int

    @cached_property
    def id(self) -> str:
        return sha256(str(self.subject).encode()).hexdigest()


REPLIES = {outcome: ScoredAnswer(outcome, None, outcome) for outcome in get_args(Outcome)}


class Simulation:
    """A pool, and runs of models on random items of it."""

    def __init__(self, cell: Cell, seed: str) -> None:
        self.cell, sizes = cell, DESIGNS[cell.design]
        digest = sha256(f"{seed} {cell}".encode()).digest()
        self.random = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        self.group, self.groups = np.repeat(np.arange(len(sizes)), sizes), len(sizes)
        n = len(self.group)
        # Each row has an item for every sample; of each group, a run chooses from one row.
        self.pool: list[list[Any]] = [
            [SimulatedItem(n * row + i, len(sizes) * row + int(self.group[i])) for i in range(n)]
            for row in range(POOL_SIZE)
        ]
        self.wordings = np.array([[choice_for(i, WORDINGS) for i in row] for row in self.pool])

    def uptakes(self, uptake: float) -> Values:
        """Return the rule uptake of every item of the pool, by its wording."""
        reach = min(MAX_WORDING_EFFECT, uptake, 1 - uptake)
        by_wording: Values = uptake + reach * np.linspace(-1, 1, WORDINGS)
        return by_wording[self.wordings]  # type: ignore[no-any-return]

    def runs(self) -> list[list[Sample]]:
        """Draw the samples of every model, on the same items."""
        n, columns = len(self.group), np.arange(len(self.group))
        rows = self.random.integers(POOL_SIZE, size=self.groups)[self.group]
        copied, common = self.random.random(n) < COPIED, self.random.random(n) < COMMON
        shared, runs = [self.uniform(copied) for _ in range(4)], []
        for p, uptake in self.cell.models:
            follows = self.uptakes(uptake)[rows, columns]
            drawn = [np.where(common, values, self.uniform(copied)) for values in shared]
            before = drawn[0] < p
            nested = before & (drawn[1] >= follows)
            after = np.where(drawn[2] < NESTED, nested, drawn[3] < p * (1 - follows))
            each = zip(rows, columns, self.replies(before), self.replies(after), strict=True)
            runs.append(
                [
                    Sample(self.pool[r][c], 0, {"standard": a, "changed": b}, {})
                    for r, c, a, b in each
                ]
            )
        return runs

    def uniform(self, copied: Flags) -> Values:
        """Draw a number per sample, of which a group shares many."""
        of_group = self.random.random(self.groups)[self.group]
        return np.where(copied, of_group, self.random.random(len(self.group)))

    def replies(self, violations: Flags) -> list[ScoredAnswer]:
        """Turn violations into replies, some of them junk."""
        junk = self.random.random(len(violations)) < self.cell.junk
        outcomes = np.where(junk, "unreadable", np.where(violations, "usual", "legal"))
        return [REPLIES[outcome] for outcome in outcomes.tolist()]

    def contain_truth(self) -> list[float]:
        """Simulate once: 1 for each interval that contains the truth, otherwise 0."""
        runs = self.runs()
        truths = [float(self.uptakes(uptake).mean()) for _, uptake in self.cell.models]
        if len(runs) == 1:
            of_delta = -self.cell.models[0][0] * truths[0]
            delta = MEASURES["delta"].estimate(runs[0])
            return [_contains(UPTAKE.estimate(runs[0]), truths[0]), _contains(delta, of_delta)]
        pairs = list(combinations(range(len(runs)), 2))
        contained = [
            _contains(
                difference(UPTAKE, UPTAKE, runs[i], runs[j], len(pairs)), truths[i] - truths[j]
            )
            for i, j in pairs
        ]
        return [min((each for each in contained if not isnan(each)), default=nan)]


def _contains(estimate: Estimate | None, truth: float) -> float:
    if not estimate or estimate.low is None or estimate.high is None:
        return nan  # it is undefined, and nothing is printed
    return float(estimate.low - 1e-12 <= truth <= estimate.high + 1e-12)


def coverage(cell: Cell, repeats: int) -> list[float]:
    """Return the coverage of each interval of a cell."""

    def simulate(seed: str, repeats: int) -> list[float]:
        simulation = Simulation(cell, seed)
        contained = [simulation.contain_truth() for _ in range(repeats)]
        shares: list[float] = np.nanmean(contained, axis=0).tolist()
        return shares

    shares = simulate("first", repeats)
    return simulate("again", REPEAT_FACTOR * repeats) if min(shares) < REPEAT_BELOW else shares


def print_table(kind: str, rows: dict[Cell, list[float]], limit: int | None) -> None:
    """Print the cells of a kind, the worst first."""
    print(f"\n{kind}, {len(rows)} cells, the worst first:\n")
    names = ("rule uptake", "delta") if len(next(iter(rows.values()))) > 1 else ("all differences",)
    print_heading("p, rule uptake", "samples", "junk", *names)
    for cell in sorted(rows, key=lambda cell: min(rows[cell]))[:limit]:
        models = "; ".join(f"{p:g}, {uptake:g}" for p, uptake in cell.models)
        shares = (f"{100 * share:.1f}%" for share in rows[cell])
        print_row(models, cell.design, f"{cell.junk:.0%}", *shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, help="only so many cells, at random")
    parser.add_argument("--repeats", type=int, default=200, help="simulated runs per cell")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--all", action="store_true", help="print all cells, not the worst")
    options = parser.parse_args()
    one = [(model,) for model in product(SHARES, UPTAKES)]
    cells = [Cell(*each) for each in product([*one, *SEVERAL], DESIGNS, JUNK)]
    cells = Random(1).sample(cells, options.cells or len(cells))
    with ProcessPoolExecutor(options.jobs) as pool:
        shares = pool.map(partial(coverage, repeats=options.repeats), cells)
        results = dict(zip(cells, shares, strict=True))
    for kind in sorted({cell.kind for cell in cells}):
        rows = {cell: shares for cell, shares in results.items() if cell.kind == kind}
        print_table(kind, rows, None if options.all else WORST)
    lowest = min(min(shares) for shares in results.values())
    print(f"\nLowest coverage: {100 * lowest:.1f}% (target: {100 * TARGET:g}%).")


if __name__ == "__main__":
    main()
