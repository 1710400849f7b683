"""Simulates the coverage of the intervals of runs with a precision, for `coverage.py`.

Samples come in random order, whatever their games. A run stops at the first look at which the
interval of the impact factor is narrow enough, or when it has all samples. The tables show whether
the intervals at that look contain the true value.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from math import inf, sqrt

import numpy as np
from markdown_tables import print_heading, print_row
from simulated_models import (
    FEW_LARGE,
    ONE_PER_GAME,
    ONES_AND_TENS,
    TWO_PER_GAME,
    Design,
    Experiment,
    draw_experiments,
    make_design,
    random,
)
from simulator import REPEAT_FACTOR, Simulator, print_cells_below

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
"""Those of `coverage.py`, and one more near 0, where the width depends most on the estimate."""
DESIGNS = {
    make_design(ONE_PER_GAME, 1000): 1,
    make_design(ONE_PER_GAME, 4000): 2,
    make_design(TWO_PER_GAME, 1000): 4,
    make_design(ONES_AND_TENS, 1000): 4,
    FEW_LARGE: 4,
}
"""Designs, whose n is the upper limit, and the divisors of the number of runs: some are slow."""
PAIRS = (
    *(((0.67, -0.5), (0.67, -0.5)), ((0.95, -0.02), (0.95, -0.02)), ((0.95, -0.9), (0.95, -0.9))),
    *(((0.9, -0.1), (0.3, -0.1)), ((0.9, -0.98), (0.3, -0.98)), ((0.67, -0.1), (0.67, -0.9))),
    ((1.0, -0.5), (1.0, -0.6)),
)
"""The p and impact of the two models of a comparison."""
MIN_COVERAGE = 0.94
IMPACT, DELTA, BEFORE, AFTER = MEASURES = "impact factor", "delta", "share before", "share after"


TallyAt = Callable[[str, int], Tally | None]
"""Returns the tally of a measure after a number of samples, with critical values for many looks."""


@dataclass
class StoppedRuns:
    """All runs of one model in one design.

    Attributes:
        sizes: the number of samples of each run when it stopped, by precision.
        contains_truth: whether the interval of each run contained the true value, by precision and
            measure. Runs without an interval are left out.
    """

    sizes: dict[float, list[int]] = field(default_factory=lambda: {p: [] for p in PRECISIONS})
    contains_truth: dict[tuple[float, str], list[bool]] = field(
        default_factory=lambda: {key: [] for key in product(PRECISIONS, MEASURES)}
    )

    def coverage(self, precision: float, measure: str) -> float:
        return float(np.mean(self.contains_truth[precision, measure]))

    def mean_size(self, precision: float) -> float:
        return float(np.mean(self.sizes[precision]))


def simulate_runs(
    design: Design, p: float, impact: float, correlated: bool, count: int
) -> StoppedRuns:
    """Simulate runs, and again more of them if the coverage is low, which may be bad luck."""
    _tally_of_counts.cache_clear()
    runs = _simulate_runs(design, p, impact, correlated, count)
    lowest = min(float(np.mean(hits)) for hits in runs.contains_truth.values() if hits)
    if lowest < MIN_COVERAGE + 0.005:
        runs = _simulate_runs(design, p, impact, correlated, REPEAT_FACTOR * count)
    return runs


def _simulate_runs(
    design: Design, p: float, impact: float, correlated: bool, count: int
) -> StoppedRuns:
    truths = {IMPACT: impact, DELTA: p * impact, BEFORE: p, AFTER: p * (1 + impact)}
    runs = StoppedRuns()
    for experiment in draw_experiments((p, impact, correlated), design, count):
        if design.has_one_per_game:
            tally_at = _tallies_one_per_game(experiment)
        else:
            tally_at = _tallies(_shuffle(experiment))
        for precision, size in find_stops(tally_at, design.n):
            runs.sizes[precision].append(size)
            for measure in MEASURES if design.has_one_per_game else [IMPACT]:
                if tally := tally_at(measure, size):
                    truth = truths[measure]
                    hit = _with_normal_quantiles(tally).contains(truth) or tally.contains(truth)
                    runs.contains_truth[precision, measure].append(hit)
    return runs


def _shuffle(experiment: Experiment) -> Experiment:
    order = random.permutation(len(experiment[0])).tolist()
    before, after, games = ([values[place] for place in order] for values in experiment)
    return before, after, games


def find_stops(tally_at: TallyAt, max_size: int) -> Iterator[tuple[float, int]]:
    """Yield each precision with the number of samples at which a run stops."""
    remaining = list(PRECISIONS)
    for size in looks(max_size):
        tally = tally_at(IMPACT, size)
        while remaining and (size == max_size or (tally and _is_within(tally, remaining[0]))):
            yield remaining.pop(0), size
        if not remaining:
            return


def _is_within(tally: Tally, precision: float) -> bool:
    normal = _with_normal_quantiles(tally)
    return normal.is_narrower_than(precision) and tally.is_narrower_than(precision)


def _with_normal_quantiles(tally: Tally) -> Tally:
    """Replace Student's t by the normal distribution: a smaller critical value, and faster."""
    return replace(
        tally,
        degrees_of_freedom=inf,
        critical_factor=tally.critical_factor * sqrt(tally.design_effect),
    )


def _tallies(experiment: Experiment) -> TallyAt:
    def tally_at(measure: str, size: int) -> Tally | None:
        before, after, games = (values[:size] for values in experiment)
        changes, ones = [b - a for a, b in zip(before, after, strict=True)], [1] * size
        parts, wholes, support = {
            IMPACT: (changes, before, RELATIVE_CHANGE),
            DELTA: (changes, ones, DIFFERENCE),
            BEFORE: (before, ones, RATE),
            AFTER: (after, ones, RATE),
        }[measure]
        tally = Ratio(parts, wholes, support).tally(games)
        return replace(tally, critical_factor=CRITICAL_FACTOR) if tally else None

    return tally_at


def _tallies_one_per_game(experiment: Experiment) -> TallyAt:
    """Do the same for one sample per game, where only the counts of the four kinds matter."""
    before, after = np.array(experiment[0]), np.array(experiment[1])
    sums = [np.cumsum(values).tolist() for values in (before, after, before & after)]

    def tally_at(measure: str, size: int) -> Tally | None:
        return _tally_of_counts(measure, size, *(values[size - 1] for values in sums))

    return tally_at


@cache
def _tally_of_counts(measure: str, n: int, before: int, after: int, both: int) -> Tally | None:
    """Return the tally of `Ratio.tally`, without a list of samples."""
    lost, gained = before - both, after - both
    counts = {
        IMPACT: {(-1, 1): lost, (0, 0): 0, (0, 1): both, (1, 0): gained},
        DELTA: {(-1, 1): lost, (0, 1): n - lost - gained, (1, 1): gained},
        BEFORE: {(0, 1): n - before, (1, 1): before},
        AFTER: {(0, 1): n - after, (1, 1): after},
    }[measure]
    if measure == IMPACT and before in (0, n):
        counts = {(-1, 1): lost, (0, 1): both, (1, 1): 0}
    cells = tuple(Cell(*pair, count) for pair, count in counts.items())
    return Tally(cells, CRITICAL_FACTOR) if before or measure != IMPACT else None


RunsByModel = dict[tuple[float, float, bool], StoppedRuns]


def print_precision(simulator: Simulator, _: tuple[int, ...], count: int) -> None:
    cells = [
        (design, p, impact, correlated, count // divisor)
        for (design, divisor), p, impact, correlated in product(
            DESIGNS.items(), SHARES, IMPACTS, (False, True)
        )
    ]
    results = simulator.run("stopped", simulate_runs, cells)
    by_design: dict[Design, RunsByModel] = {design: {} for design in DESIGNS}
    for (design, p, impact, correlated, _), runs in results.items():
        by_design[design][p, impact, correlated] = runs
    print("Runs with a precision: lowest coverage over p and both kinds of answers, in %:\n")
    columns = (f"impact {impact:g}" for impact in IMPACTS)
    print_heading("design", "max n", "precision", "measure", *columns, "mean")
    all_shares: dict[str, float] = {}
    for design, by_model in by_design.items():
        measures = MEASURES if design.has_one_per_game else [IMPACT]
        for precision, measure in product(PRECISIONS, measures):
            shares = {model: runs.coverage(precision, measure) for model, runs in by_model.items()}
            lowest = [min(shares[model] for model in shares if model[1] == i) for i in IMPACTS]
            mean = float(np.mean(list(shares.values())))
            percentages = (f"{100 * share:.1f}" for share in (*lowest, mean))
            print_row(design.name, design.n, f"{precision:g}", measure, *percentages)
            all_shares |= {
                f"{design.name}, at most {design.n}, precision {precision:g}, {measure}, "
                f"p = {p:g}, impact {impact:g}, "
                f"{'correlated' if correlated else 'independent'}": share
                for (p, impact, correlated), share in shares.items()
            }
    print_cells_below(MIN_COVERAGE, all_shares)
    _print_sizes(by_design)


def _print_sizes(by_design: dict[Design, RunsByModel]) -> None:
    print("\nMean number of samples until such a run stops, if answers are independent:\n")
    heading = (f"impact {impact:g}" for impact in IMPACTS)
    print_heading("design", "max n", "precision", "p", *heading)
    for (design, by_model), precision, p in product(by_design.items(), PRECISIONS, SHARES):
        sizes = (by_model[p, impact, False].mean_size(precision) for impact in IMPACTS)
        row = (f"{size:.0f}" for size in sizes)
        print_row(design.name, design.n, f"{precision:g}", f"{p:g}", *row)


def print_differences_after_stopping(simulator: Simulator, _: tuple[int, ...], count: int) -> None:
    cells = [(*pair, count) for pair in PAIRS]
    results = simulator.run("differences_of_stopped", simulate_differences_after_stopping, cells)
    print(
        "Impact factors of two such models on the positions both were asked about; coverage, %:\n"
    )
    columns = (f"precision {precision:g}" for precision in PRECISIONS)
    print_heading("p and impact of model A", "of model B", *columns)
    for (first, second, _), shares in results.items():
        models = (f"{model[0]:g}, {model[1]:g}" for model in (first, second))
        print_row(*models, *(f"{100 * share:.1f}" for share in shares))


def simulate_differences_after_stopping(
    first: tuple[float, float], second: tuple[float, float], count: int
) -> list[float]:
    """Return the coverage of the true difference, by precision."""
    contains_truth: dict[float, list[bool]] = {precision: [] for precision in PRECISIONS}
    design = make_design(ONE_PER_GAME, 1000)
    experiments = zip(
        draw_experiments((*first, True), design, count),
        draw_experiments((*second, True), design, count),
        strict=True,
    )
    for pair in experiments:
        stops = (find_stops(_tallies_one_per_game(run), len(run[0])) for run in pair)
        for (precision, size1), (_, size2) in zip(*stops, strict=True):
            n = min(size1, size2)
            ratio1, ratio2 = (_impact_factor(run, n) for run in pair)
            if tally := difference_tally(ratio1, ratio2, range(n), CRITICAL_FACTOR):
                contains_truth[precision].append(tally.contains(second[1] - first[1]))
    _tally_of_counts.cache_clear()
    return [float(np.mean(hits)) for hits in contains_truth.values()]


def _impact_factor(experiment: Experiment, n: int) -> Ratio:
    before, after = experiment[0][:n], experiment[1][:n]
    return Ratio([b - a for a, b in zip(before, after, strict=True)], before, RELATIVE_CHANGE)
