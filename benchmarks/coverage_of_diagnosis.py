"""Simulates the coverage of the intervals of a diagnosis, for `coverage.py`.

The impact factors of the placebo and of the reminder, the corrected impact factor and the
collateral change are ratios like the impact factor, so the tables of `coverage.py` cover them. The
tables here cover the rest: shares of a subset of the samples (such as the habits kept where the
model knows the rule), the effect of knowing, and the specific impact factor, which compares samples
with controls.
"""

from collections.abc import Iterator
from functools import cache, partial
from itertools import product

import numpy as np
from markdown_tables import print_heading, print_row
from simulated_models import (
    DESIGNS,
    GAMES_24,
    ONE_PER_GAME,
    TWO_PER_GAME,
    Design,
    Experiment,
    Model,
    draw_experiments,
    experiments_per_cell,
    make_designs,
    random,
)
from simulator import (
    MAX_COVERAGE,
    MIN_COVERAGE,
    Simulator,
    print_cells_below,
    repeat_if_low,
)

from cant_do_that_anymore.metrics.stats.clusters import Tally
from cant_do_that_anymore.metrics.stats.intervals import (
    RELATIVE_CHANGE,
    SHARE_OF_SOME,
    Difference,
    Quotient,
    Ratio,
)

SUBSET_SHARES = (0.1, 0.3, 0.67, 1.0)
"""Shares of the samples that are in the subset."""
HIT_RATES = (0.02, 0.25, 0.5, 0.92, 1.0)
SAMPLES = (
    *((0.3, -0.5), (0.67, 0.0), (0.67, -0.5), (0.95, -0.02), (0.95, -0.5)),
    *((0.9, -0.85), (0.9, -0.95), (0.95, -0.98)),
)
CONTROLS = ((0.67, 0.0), (0.95, -0.1), (0.67, -0.5))
"""The share of habits under the placebo, and the impact factor relative to it."""
KNOWN_SHARES = (0.1, 0.5, 0.9)
"""Shares of the samples where the model knows the rule."""
KEPT_SHARES = ((0.5, 0.5), (0.1, 0.9), (0.02, 0.02), (0.3, 0.98), (0.0, 1.0))
"""The share of habits kept where the model knows the rule, and elsewhere."""

KindCounts = tuple[int, int, int, int]
"""How many samples have each pair of answers."""


def print_shares_of_subset(simulator: Simulator, sizes: tuple[int, ...], count: int) -> None:
    designs = make_designs(DESIGNS, sizes)
    cells = [
        (design, subset, hit_rate, experiments_per_cell(design, count))
        for design, hit_rate, subset in product(designs, HIT_RATES, SUBSET_SHARES)
    ]
    results = simulator.run("share_of_some", simulate_share_of_subset, cells)
    coverage = {cell: share for cell, (share,) in results.items()}
    print(
        "Shares of a subset of the samples: lowest coverage over the sizes of the subset, in %:\n"
    )
    print_heading("design", "n", *(f"true {rate:g}" for rate in HIT_RATES), "mean", "above 99")
    for design in designs:
        shares = {cell: share for cell, share in coverage.items() if cell[0] == design}
        lowest = [min(s for cell, s in shares.items() if cell[2] == rate) for rate in HIT_RATES]
        mean = float(np.mean(list(shares.values())))
        above = sum(share > MAX_COVERAGE for share in shares.values())
        percentages = (f"{100 * share:.1f}" for share in (*lowest, mean))
        print_row(design.name, design.n, *percentages, f"{above} of {len(shares)}")
    print_cells_below(
        MIN_COVERAGE,
        {
            f"{design.name}, n = {design.n}, subset {subset:g}, true {hit_rate:g}": share
            for (design, subset, hit_rate, _), share in coverage.items()
        },
    )


def simulate_share_of_subset(
    design: Design, subset: float, hit_rate: float, count: int
) -> list[float]:
    """Return the coverage of a share of a subset."""
    simulate = partial(_simulate_share_of_subset, design, subset, hit_rate)
    return repeat_if_low(simulate, count, MIN_COVERAGE + 0.01)


def _simulate_share_of_subset(
    design: Design, subset: float, hit_rate: float, count: int
) -> list[float]:
    contains_truth = []
    for parts, wholes, games in _draw_subsets(design, subset, hit_rate, count):
        tally = Ratio(parts, wholes, SHARE_OF_SOME).tally(games)
        if tally:
            contains_truth.append(tally.p(hit_rate) >= 0.05)
    return [float(np.mean(contains_truth))]


def _draw_subsets(
    design: Design, subset: float, hit_rate: float, count: int
) -> Iterator[Experiment]:
    """Draw hits in the subset, the subset, and games; samples copy a common one of their game."""
    games = design.games
    for _ in range(count):
        in_subset = random.random(len(games)) < subset
        hits = random.random(len(games)) < hit_rate
        if not design.has_one_per_game:
            is_copy = random.random(len(games)) < design.copying
            common_in_subset = random.random(len(design.game_sizes)) < subset
            common_hits = random.random(len(design.game_sizes)) < hit_rate
            in_subset = np.where(is_copy, common_in_subset[games], in_subset)
            hits = np.where(is_copy, common_hits[games], hits)
        parts = (in_subset & hits).astype(int)
        yield parts.tolist(), in_subset.astype(int).tolist(), games.tolist()


def print_knowing(simulator: Simulator, sizes: tuple[int, ...], count: int) -> None:
    designs = make_designs((ONE_PER_GAME, TWO_PER_GAME, GAMES_24), sizes)
    cells = [
        (design, known, kept, count if design.has_one_per_game else count // 4)
        for design, known, kept in product(designs, KNOWN_SHARES, KEPT_SHARES)
    ]
    results = simulator.run("knowing", simulate_knowing, cells)
    coverage = {cell: share for cell, (share,) in results.items()}
    print("The effect of knowing, by the share of habits kept; coverage in %:\n")
    heading = (f"known {known:g}, elsewhere {other:g}" for known, other in KEPT_SHARES)
    print_heading("design", "n", "share known", *heading)
    shares = iter(coverage.values())
    for design, known in product(designs, KNOWN_SHARES):
        row = (f"{100 * next(shares):.1f}" for _ in KEPT_SHARES)
        print_row(design.name, design.n, f"{known:g}", *row)
    print_cells_below(
        MIN_COVERAGE,
        {
            f"{design.name}, n = {design.n}, known {known:g}, kept {kept[0]:g} and {kept[1]:g}": c
            for (design, known, kept, _), c in coverage.items()
        },
    )


def simulate_knowing(
    design: Design, known: float, kept: tuple[float, float], count: int
) -> list[float]:
    """Return the coverage of the effect of knowing."""
    simulate = partial(_simulate_knowing, design, known, kept)
    return repeat_if_low(simulate, count, MIN_COVERAGE + 0.01)


def _simulate_knowing(
    design: Design, known: float, kept: tuple[float, float], count: int
) -> list[float]:
    games = design.games
    contains_truth = []
    for _ in range(count):
        draws = random.random((2, len(games)))
        if not design.has_one_per_game:
            common = random.random((2, len(design.game_sizes)))[:, games]
            draws = np.where(random.random(len(games)) < design.copying, common, draws)
        knows = draws[0] < known
        keeps = draws[1] < np.where(knows, *kept)
        where_known, elsewhere = (
            Ratio((subset & keeps).tolist(), subset.tolist(), SHARE_OF_SOME).tally(games.tolist())
            for subset in (knows, ~knows)
        )
        if where_known and elsewhere:
            contains_truth.append(Difference(where_known, elsewhere).holds(kept[0] - kept[1]))
    return [float(np.mean(contains_truth))]


def print_specific(simulator: Simulator, sizes: tuple[int, ...], count: int) -> None:
    designs = make_designs((ONE_PER_GAME, TWO_PER_GAME, GAMES_24), sizes)
    cells = [
        (design, (*samples, True), (*controls, True), of_design)
        for design, samples, controls in product(designs, SAMPLES, CONTROLS)
        for of_design in [count if design.has_one_per_game else count // 4]
    ]
    results = simulator.run("specific", simulate_specific, cells)
    coverage = {cell: share for cell, (share,) in results.items()}
    shares = iter(coverage.values())
    print("The specific impact factor, n samples and n controls; coverage in %:\n")
    heading = (f"controls {share:g}, {impact:g}" for share, impact in CONTROLS)
    print_heading("design", "n", "placebo share, corrected impact", *heading)
    for design, (share, impact) in product(designs, SAMPLES):
        row = (f"{100 * next(shares):.1f}" for _ in CONTROLS)
        print_row(design.name, design.n, f"{share:g}, {impact:g}", *row)
    print_cells_below(
        MIN_COVERAGE,
        {
            f"{design.name}, n = {design.n}, samples {samples[0]:g}, {samples[1]:g}, controls "
            f"{controls[0]:g}, {controls[1]:g}": share
            for (design, samples, controls, _), share in coverage.items()
        },
    )


def simulate_specific(design: Design, samples: Model, controls: Model, count: int) -> list[float]:
    """Return the coverage of the specific impact factor."""
    _contains_by_counts.cache_clear()
    simulate = partial(_simulate_specific, design, samples, controls)
    return repeat_if_low(simulate, count, MIN_COVERAGE + 0.01)


def _simulate_specific(design: Design, samples: Model, controls: Model, count: int) -> list[float]:
    truth = (1 + samples[1]) / (1 + controls[1])
    contains_truth = []
    experiments = zip(
        draw_experiments(samples, design, count),
        draw_experiments(controls, design, count),
        strict=True,
    )
    for of_samples, of_controls in experiments:
        if design.has_one_per_game:
            counts = _count_kinds(of_samples), _count_kinds(of_controls)
            contains_truth.append(_contains_by_counts(*counts, truth))
        else:
            contains_truth.append(_contains(_tally(*of_samples), _tally(*of_controls), truth))
    return [float(np.mean([hit for hit in contains_truth if hit is not None]))]


def _count_kinds(experiment: Experiment) -> KindCounts:
    """Count the four kinds of samples; with one sample per game, nothing else matters."""
    before, after, _ = experiment
    kinds = [2 * b + a for b, a in zip(before, after, strict=True)]
    return (kinds.count(0), kinds.count(1), kinds.count(2), kinds.count(3))


@cache
def _contains_by_counts(samples: KindCounts, controls: KindCounts, truth: float) -> bool | None:
    return _contains(_tally(*_expand(samples)), _tally(*_expand(controls)), truth)


def _expand(counts: KindCounts) -> Experiment:
    kinds = [kind for kind, count in enumerate(counts) for _ in range(count)]
    return [kind // 2 for kind in kinds], [kind % 2 for kind in kinds], list(range(len(kinds)))


def _tally(before: list[int], after: list[int], games: list[int]) -> Tally | None:
    changes = [b - a for a, b in zip(before, after, strict=True)]
    return Ratio(changes, before, RELATIVE_CHANGE).tally(games)


def _contains(samples: Tally | None, controls: Tally | None, truth: float) -> bool | None:
    quotient = Quotient(samples, controls) if samples and controls else None
    return quotient.holds(truth) if quotient and quotient.value is not None else None
