"""How often the intervals of runs hold the truth that stop by themselves: tables for `coverage.py`.

Samples come in random order, whatever their games. The run stops at the first look at which the
interval of the impact factor is as narrow as is asked for, or with all samples. What is counted is
whether the intervals hold the truth at that look.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from math import inf, sqrt

import numpy as np
from known_models import (
    ALONE,
    FEW_LARGE,
    TENS,
    TWOS,
    Design,
    Experiment,
    design,
    experiments,
    random,
)
from measuring import print_heading, print_row
from simulating import Simulator, print_below

from cant_do_that_anymore.metrics.stats.clusters import Tally
from cant_do_that_anymore.metrics.stats.intervals import (
    DIFFERENCE,
    RATE,
    RELATIVE_CHANGE,
    Ratio,
    difference_tally,
)
from cant_do_that_anymore.metrics.stats.score_interval import Cell
from cant_do_that_anymore.metrics.stopping import CRITICAL_FACTOR, looks

PRECISIONS = (0.1, 0.05, 0.02)
SHARES = (0.1, 0.3, 0.67, 0.95, 1.0)
IMPACTS = (0.0, -0.02, -0.1, -0.5, -0.7, -0.85, -0.9, -0.95, -0.98, -1.0)
"""Those of `coverage.py`, and one more near 0, where the width tells of the estimate."""
PLACES = {
    design(ALONE, 1000): 1,
    design(ALONE, 4000): 2,
    design(TWOS, 1000): 4,
    design(TENS, 1000): 4,
    FEW_LARGE: 4,
}
"""Designs with so many samples at most, and how many times fewer runs: others take longer."""
PAIRS = (
    *(((0.67, -0.5), (0.67, -0.5)), ((0.95, -0.02), (0.95, -0.02)), ((0.95, -0.9), (0.95, -0.9))),
    *(((0.9, -0.1), (0.3, -0.1)), ((0.9, -0.98), (0.3, -0.98)), ((0.67, -0.1), (0.67, -0.9))),
    ((1.0, -0.5), (1.0, -0.6)),
)
"""The p and impact of two models that are compared."""
LOWEST = 0.94
IMPACT, DELTA, BEFORE, AFTER = MEASURES = "impact factor", "delta", "share before", "share after"


Seen = Callable[[str, int], Tally | None]
"""By measure and number of samples, what is counted; critical values are those of many looks."""


@dataclass
class Outcome:
    """What became of all runs of one model in one design, by the precision asked for.

    Attributes:
        sizes: how many samples there were when a run stopped.
        held: whether the intervals of the measures held the truth, as far as they exist.
    """

    sizes: dict[float, list[int]] = field(default_factory=lambda: {p: [] for p in PRECISIONS})
    held: dict[tuple[float, str], list[bool]] = field(
        default_factory=lambda: {key: [] for key in product(PRECISIONS, MEASURES)}
    )

    def coverage(self, precision: float, measure: str) -> float:
        return float(np.mean(self.held[precision, measure]))

    def samples(self, precision: float) -> float:
        return float(np.mean(self.sizes[precision]))


def stopped(of: Design, p: float, impact: float, tied: bool, times: int) -> Outcome:
    """Measured again and longer where it is low: the lowest of many is unlucky too."""
    _of_counts.cache_clear()
    cell = _stopped(of, p, impact, tied, times)
    if min(float(np.mean(held)) for held in cell.held.values() if held) < LOWEST + 0.005:
        cell = _stopped(of, p, impact, tied, 5 * times)
    return cell


def _stopped(of: Design, p: float, impact: float, tied: bool, times: int) -> Outcome:
    truth = {IMPACT: impact, DELTA: p * impact, BEFORE: p, AFTER: p * (1 + impact)}
    cell = Outcome()
    for experiment in experiments((p, impact, tied), of, times):
        seen = _seen_alone(experiment) if of.is_alone else _seen(_shuffled(experiment))
        for precision, size in stops(seen, of.n):
            cell.sizes[precision].append(size)
            for measure in MEASURES if of.is_alone else [IMPACT]:
                if tally := seen(measure, size):
                    held = _by_normal(tally).contains(truth[measure]) or tally.contains(
                        truth[measure]
                    )
                    cell.held[precision, measure].append(held)
    return cell


def _shuffled(experiment: Experiment) -> Experiment:
    order = random.permutation(len(experiment[0])).tolist()
    before, after, games = ([each[place] for place in order] for each in experiment)
    return before, after, games


def stops(seen: Seen, most: int) -> Iterator[tuple[float, int]]:
    """With how many samples a run of each precision stops."""
    wanted = list(PRECISIONS)
    for size in looks(most):
        tally = seen(IMPACT, size)
        while wanted and (size == most or (tally and _within(tally, wanted[0]))):
            yield wanted.pop(0), size
        if not wanted:
            return


def _within(tally: Tally, precision: float) -> bool:
    return _by_normal(tally).is_narrower_than(precision) and tally.is_narrower_than(precision)


def _by_normal(tally: Tally) -> Tally:
    """With a smaller critical value, and a quicker one: quantiles of Student's t take long."""
    return replace(
        tally,
        degrees_of_freedom=inf,
        critical_factor=tally.critical_factor * sqrt(tally.design_effect),
    )


def _seen(experiment: Experiment) -> Seen:
    def seen(measure: str, size: int) -> Tally | None:
        before, after, games = (each[:size] for each in experiment)
        changes, ones = [b - a for a, b in zip(before, after, strict=True)], [1] * size
        parts, wholes, support = {
            IMPACT: (changes, before, RELATIVE_CHANGE),
            DELTA: (changes, ones, DIFFERENCE),
            BEFORE: (before, ones, RATE),
            AFTER: (after, ones, RATE),
        }[measure]
        tally = Ratio(parts, wholes, support).tally(games)
        return replace(tally, critical_factor=CRITICAL_FACTOR) if tally else None

    return seen


def _seen_alone(experiment: Experiment) -> Seen:
    """The same where each game gives one sample: only the counts of the four kinds matter."""
    before, after = np.array(experiment[0]), np.array(experiment[1])
    sums = [np.cumsum(each).tolist() for each in (before, after, before & after)]

    def seen(measure: str, size: int) -> Tally | None:
        return _of_counts(measure, size, *(each[size - 1] for each in sums))

    return seen


@cache
def _of_counts(measure: str, n: int, had: int, kept: int, both: int) -> Tally | None:
    """As `Ratio.tally` counts, which would take each sample."""
    lost, gained = had - both, kept - both
    counts = {
        IMPACT: {(-1, 1): lost, (0, 0): 0, (0, 1): both, (1, 0): gained},
        DELTA: {(-1, 1): lost, (0, 1): n - lost - gained, (1, 1): gained},
        BEFORE: {(0, 1): n - had, (1, 1): had},
        AFTER: {(0, 1): n - kept, (1, 1): kept},
    }[measure]
    if measure == IMPACT and had in (0, n):
        counts = {(-1, 1): lost, (0, 1): both, (1, 1): 0}
    cells = tuple(Cell(*pair, count) for pair, count in counts.items())
    return Tally(cells, CRITICAL_FACTOR) if had or measure != IMPACT else None


Cells = dict[tuple[float, float, bool], Outcome]


def print_precision(simulator: Simulator, _: tuple[int, ...], times: int) -> None:
    cells = [
        (of, p, impact, tied, times // fewer)
        for (of, fewer), p, impact, tied in product(PLACES.items(), SHARES, IMPACTS, (False, True))
    ]
    found = simulator.each(stopped, cells)
    places: dict[Design, Cells] = {of: {} for of in PLACES}
    for (of, p, impact, tied, _), outcome in found.items():
        places[of][p, impact, tied] = outcome
    print("Runs with a precision: lowest coverage over p and both kinds of answers, in %:\n")
    columns = (f"impact {impact:g}" for impact in IMPACTS)
    print_heading("design", "at most", "precision", "of", *columns, "mean")
    every: dict[str, float] = {}
    for of, outcomes in places.items():
        for precision, measure in product(PRECISIONS, MEASURES if of.is_alone else [IMPACT]):
            shares = {model: each.coverage(precision, measure) for model, each in outcomes.items()}
            lowest = [min(shares[model] for model in shares if model[1] == i) for i in IMPACTS]
            shown = (f"{100 * c:.1f}" for c in (*lowest, float(np.mean(list(shares.values())))))
            print_row(of.name, of.n, f"{precision:g}", measure, *shown)
            every |= {
                f"{of.name}, at most {of.n}, precision {precision:g}, {measure}, p = {p:g}, impact "
                f"{impact:g}, {'correlated' if tied else 'independent'}": share
                for (p, impact, tied), share in shares.items()
            }
    print_below(LOWEST, every)
    _print_samples(places)


def _print_samples(places: dict[Design, Cells]) -> None:
    print("\nMean number of samples until such a run stops, if answers are independent:\n")
    heading = (f"impact {impact:g}" for impact in IMPACTS)
    print_heading("design", "at most", "precision", "p", *heading)
    for (of, cells), precision, p in product(places.items(), PRECISIONS, SHARES):
        row = (cells[p, impact, False].samples(precision) for impact in IMPACTS)
        print_row(of.name, of.n, f"{precision:g}", f"{p:g}", *(f"{samples:.0f}" for samples in row))


def print_differences_of_stopped(simulator: Simulator, _: tuple[int, ...], times: int) -> None:
    found = simulator.each(differences_of_stopped, [(*pair, times) for pair in PAIRS])
    print(
        "Impact factors of two such models on the positions both were asked about; coverage, %:\n"
    )
    print_heading("p and impact of one", "of the other", *map("precision {:g}".format, PRECISIONS))
    for (one, other, _), shares in found.items():
        models = (f"{model[0]:g}, {model[1]:g}" for model in (one, other))
        print_row(*models, *(f"{100 * share:.1f}" for share in shares))


def differences_of_stopped(
    one: tuple[float, float], other: tuple[float, float], times: int
) -> list[float]:
    held: dict[float, list[bool]] = {precision: [] for precision in PRECISIONS}
    mine = experiments((*one, True), design(ALONE, 1000), times)
    yours = experiments((*other, True), design(ALONE, 1000), times)
    for first, second in zip(mine, yours, strict=True):
        both = (stops(_seen_alone(each), len(each[0])) for each in (first, second))
        for (precision, size1), (_, size2) in zip(*both, strict=True):
            n = min(size1, size2)
            ratios = _relative(first, n), _relative(second, n)
            if tally := difference_tally(*ratios, range(n), CRITICAL_FACTOR):
                held[precision].append(tally.contains(other[1] - one[1]))
    _of_counts.cache_clear()
    return [float(np.mean(each)) for each in held.values()]


def _relative(experiment: Experiment, n: int) -> Ratio:
    before, after = experiment[0][:n], experiment[1][:n]
    return Ratio([b - a for a, b in zip(before, after, strict=True)], before, RELATIVE_CHANGE)
