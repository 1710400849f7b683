"""How often the intervals of runs hold the truth that stop by themselves: tables for `coverage.py`.

Samples come in random order, whatever their games. The run stops at the first look at which the
interval of the impact factor is as narrow as is asked for, or with all samples. What is counted is
whether the intervals hold the truth at that look.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
from known_models import DESIGNS, Experiment, Model, experiments, random
from measuring import print_heading, print_row

from cant_do_that_anymore.evaluation.precision import STRETCH, looks
from cant_do_that_anymore.evaluation.statistics.intervals import (
    DIFFERENCE,
    RATE,
    RELATIVE_CHANGE,
    ratio_tally,
)
from cant_do_that_anymore.evaluation.statistics.tally import Tally

PRECISIONS = (0.1, 0.05, 0.02)
SHARES = (0.1, 0.3, 0.67, 0.95, 1.0)
IMPACTS = (0.0, -0.02, -0.1, -0.5, -0.9, -0.98, -1.0)
"""Those of `coverage.py`, and two at which a narrow interval says most about the estimate."""
MOST, ALONE = (1000, 4000), "1 sample a game"
"""Samples at most: by default, and where -n allows more."""
LOWEST = 0.94
IMPACT, DELTA, BEFORE, AFTER = "impact factor", "delta", "share, standard", "share, changed"
MEASURES = (IMPACT, DELTA, BEFORE, AFTER)

Stop = tuple[int, dict[str, bool]]
"""How many samples there were, and whether the interval of each measure holds the truth."""


class Cell:
    """What became of all runs of one model in one design, by the precision asked for."""

    def __init__(self, model: Model, sizes: list[int], times: int) -> None:
        self._stops: dict[float, list[Stop]] = {precision: [] for precision in PRECISIONS}
        for experiment in shuffled(experiments(model, sizes, times)):
            for precision, stop in stops(experiment, model, alone=max(sizes) == 1):
                self._stops[precision].append(stop)

    def coverage(self, precision: float, measure: str) -> float:
        return float(
            np.mean([held[measure] for _, held in self._stops[precision] if measure in held])
        )

    def samples(self, precision: float) -> float:
        return float(np.mean([size for size, _ in self._stops[precision]]))

    @property
    def is_low(self) -> bool:
        every = product(PRECISIONS, MEASURES)
        return any(self.coverage(*each) < LOWEST + 0.01 for each in every)


def settled(model: Model, sizes: list[int], times: int) -> Cell:
    """Measured anew and longer where it is low: the lowest of many is unlucky too."""
    cell = Cell(model, sizes, times)
    return Cell(model, sizes, 5 * times) if cell.is_low else cell


def shuffled(of_games: Iterator[Experiment]) -> Iterator[Experiment]:
    """The samples of each experiment in random order."""
    for before, after, games in of_games:
        if games[-1] == len(games) - 1:  # each its own game, so they are in random order
            yield before, after, games
        else:
            order = random.permutation(len(games)).tolist()
            yield [before[i] for i in order], [after[i] for i in order], [games[i] for i in order]


def stops(experiment: Experiment, model: Model, *, alone: bool) -> Iterator[tuple[float, Stop]]:
    """Where a run of each precision stops, and what holds the truth there."""
    p, impact, _ = model
    truth = {IMPACT: impact, DELTA: p * impact, BEFORE: p, AFTER: p * (1 + impact)}
    before, after, games = experiment
    wanted = list(PRECISIONS)
    for size in looks(len(games)):
        seen = before[:size], after[:size], games[:size]
        tallies = _tallies_alone(_counts(seen)) if alone else _tallies(seen)
        impacts, done = tallies.get(IMPACT), size == len(games)
        while wanted and (done or (impacts and impacts.within(wanted[0]))):
            held = {name: tally.holds(truth[name]) for name, tally in tallies.items()}
            yield wanted.pop(0), (size, held)


def _tallies(experiment: Experiment) -> dict[str, Tally]:
    """What is counted for each measure; critical values are those of a run that looks often."""
    before, after, games = experiment
    changes, ones = [b - a for a, b in zip(before, after, strict=True)], [1] * len(games)
    found = {
        IMPACT: ratio_tally(changes, before, games, RELATIVE_CHANGE),
        DELTA: ratio_tally(changes, ones, games, DIFFERENCE),
        BEFORE: ratio_tally(before, ones, games, RATE),
        AFTER: ratio_tally(after, ones, games, RATE),
    }
    return {name: replace(each, stretch=STRETCH) for name, each in found.items() if each}


def _counts(experiment: Experiment) -> tuple[int, int, int, int]:
    """How many samples were what: where each game gives one, nothing else matters."""
    kinds = [2 * one + other for one, other in zip(*experiment[:2], strict=True)]
    return (kinds.count(0), kinds.count(1), kinds.count(2), kinds.count(3))


@cache
def _tallies_alone(counts: tuple[int, int, int, int]) -> dict[str, Tally]:
    kinds = [kind for kind, count in enumerate(counts) for _ in range(count)]
    games = list(range(len(kinds)))
    return _tallies(([kind // 2 for kind in kinds], [kind % 2 for kind in kinds], games))


def print_precision(times: int) -> None:
    cells = dict(_cells(times))
    _print_coverage(cells)
    _print_samples(cells)


Key = tuple[str, int, float, float, bool]


def _cells(times: int) -> Iterator[tuple[Key, Cell]]:
    for name, most in _designs():
        few = times if name == ALONE else times // 4
        for impact, p, tied in product(IMPACTS, SHARES, (False, True)):
            cell = settled((p, impact, tied), DESIGNS[name](most), few)
            yield (name, most, impact, p, tied), cell


def _designs() -> list[tuple[str, int]]:
    return [(ALONE, most) for most in MOST] + [(name, MOST[0]) for name in DESIGNS if name != ALONE]


def _print_coverage(cells: dict[Key, Cell]) -> None:
    print(
        "\nRuns that stop by themselves: lowest coverage over p and both kinds of answers, in %:\n"
    )
    columns = (f"impact {impact:g}" for impact in IMPACTS)
    print_heading("design", "at most", "precision", "of", *columns, "mean", "mean samples")
    below: list[str] = []
    for (name, most), precision, measure in product(_designs(), PRECISIONS, MEASURES):
        here = {key: cell for key, cell in cells.items() if key[:2] == (name, most)}
        found = {key: cell.coverage(precision, measure) for key, cell in here.items()}
        lowest = [min(found[key] for key in here if key[2] == impact) for impact in IMPACTS]
        shown = (f"{100 * share:.1f}" for share in (*lowest, float(np.mean(list(found.values())))))
        samples = np.mean([cell.samples(precision) for cell in here.values()])
        print_row(name, most, f"{precision:g}", measure, *shown, f"{samples:.0f}")
        below += [
            f"{name}, at most {most}, precision {precision:g}, {measure}, p = {p:g}, impact "
            f"{impact:g}, {'correlated' if tied else 'independent'}: {100 * share:.1f} %"
            for (_, _, impact, p, tied), share in found.items()
            if share < LOWEST
        ]
    print(f"\nBelow {100 * LOWEST:.0f} %:\n")
    print("\n".join(f"- {line}" for line in below) if below else "- none")


def _print_samples(cells: dict[Key, Cell]) -> None:
    print("\nMean samples until such a run stops, one a game, answers independent:\n")
    print_heading("at most", "precision", "p", *(f"impact {impact:g}" for impact in IMPACTS))
    for most, precision, p in product(MOST, PRECISIONS, SHARES):
        row = (cells[ALONE, most, impact, p, False].samples(precision) for impact in IMPACTS)
        print_row(most, f"{precision:g}", f"{p:g}", *(f"{samples:,.0f}" for samples in row))
