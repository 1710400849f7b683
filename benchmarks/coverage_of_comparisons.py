"""Simulates comparisons of two models: coverage and wrong verdicts, for `coverage.py`."""

from functools import cache
from itertools import product

import numpy as np
from markdown_tables import print_heading, print_row
from numpy.typing import NDArray
from simulated_models import (
    FEW_LARGE,
    FEW_LARGE_COPIED,
    GAMES_24,
    ONE_PER_GAME,
    ONES_AND_TENS,
    TWO_PER_GAME,
    Design,
    draw_experiments,
    make_design,
    make_designs,
    random,
)
from simulator import Simulator

from cant_do_that_anymore.metrics.stats.intervals import (
    DIFFERENCE,
    RELATIVE_CHANGE,
    Ratio,
    difference_tally,
)

PAIRS = (
    ((0.67, -0.5), (0.67, -0.5)),
    ((0.95, -0.02), (0.95, -0.02)),
    ((0.9, -0.9), (0.9, -0.9)),
    ((0.9, -0.1), (0.3, -0.1)),
    ((0.9, -0.98), (0.3, -0.98)),
    ((0.67, -0.1), (0.67, -0.9)),
)
"""The p and impact of the two models of a comparison."""
EQUIVALENCE_SIZES = (29, 40, 72, 73, 100, 150, 200, 500, 1000)
DISCORDANT = ((0.05, 0.0), (0.06, 0.01), (0.1, 0.05), (0.3, 0.25))
"""Shares of the samples where only the first model plays the habit, and only the second."""
MARGIN = 0.05
"""Models that differ by less are equivalent."""


def simulate_differences(
    design: Design, first: tuple[float, float], second: tuple[float, float], count: int
) -> tuple[float, float]:
    """Return the coverage of the true difference, and the share of tests with p < 0.05."""
    contains_truth, is_significant = [], []
    experiments = zip(
        draw_experiments((*first, True), design, count),
        draw_experiments((*second, True), design, count),
        strict=True,
    )
    for (before1, after1, games), (before2, after2, _) in experiments:
        if first == second:
            is_shared = (random.random(design.n) < 0.5).tolist()
            before2 = [a if s else b for a, b, s in zip(before1, before2, is_shared, strict=True)]
            after2 = [a if s else b for a, b, s in zip(after1, after2, is_shared, strict=True)]
        ratios = _impact_factor(before1, after1), _impact_factor(before2, after2)
        tally = difference_tally(*ratios, games)
        if tally:
            contains_truth.append(tally.p(second[1] - first[1]) >= 0.05)
            is_significant.append(tally.p(0.0) < 0.05)
    return float(np.mean(contains_truth)), float(np.mean(is_significant))


def _impact_factor(before: list[int], after: list[int]) -> Ratio:
    return Ratio([b - a for a, b in zip(before, after, strict=True)], before, RELATIVE_CHANGE)


def print_differences(simulator: Simulator, sizes: tuple[int, ...], count: int) -> None:
    designs = make_designs((ONE_PER_GAME, TWO_PER_GAME, GAMES_24), sizes)
    cells = [(design, *pair, count // 4) for pair, design in product(PAIRS, designs)]
    results = simulator.run("differences", simulate_differences, cells)
    print(
        "Impact factors of two models on shared positions; equal ones share half their answers:\n"
    )
    print_heading("p and impact of model A", "of model B", "design", "n", "coverage", "p < .05")
    for (design, first, second, _), shares in results.items():
        models = (f"{model[0]:g}, {model[1]:g}" for model in (first, second))
        print_row(*models, design.name, design.n, *(f"{100 * share:.1f}%" for share in shares))


def simulate_false_equivalence(
    design: Design, only_first: float, only_second: float, count: int
) -> float:
    """Return how often two models that differ by the margin are called equivalent."""
    games, is_equivalent = design.games, []
    for _ in range(count):
        own = _draw_signs(only_first, only_second, design.n)
        common = _draw_signs(only_first, only_second, len(design.game_sizes))
        copying = 0.0 if design.has_one_per_game else design.copying
        is_copy = random.random(design.n) < copying
        signs = np.where(is_copy, common[games], own).tolist()
        if design.has_one_per_game:
            counts = signs.count(1), signs.count(-1)
            is_equivalent.append(_is_equivalent_by_counts(*counts, design.n))
        else:
            is_equivalent.append(_is_equivalent(signs, games.tolist()))
    return float(np.mean(is_equivalent))


def _draw_signs(only_first: float, only_second: float, n: int) -> NDArray[np.int64]:
    drawn = random.random(n)
    return np.where(drawn < only_first, 1, np.where(drawn > 1 - only_second, -1, 0))


@cache
def _is_equivalent_by_counts(only_first: int, only_second: int, n: int) -> bool:
    signs = [1] * only_first + [-1] * only_second + [0] * (n - only_first - only_second)
    return _is_equivalent(signs, list(range(n)))


def _is_equivalent(signs: list[int], games: list[int]) -> bool:
    interval = Ratio(signs, [1] * len(signs), DIFFERENCE).interval(games)
    return interval is not None and interval.low >= -MARGIN and interval.high <= MARGIN


def print_false_equivalence(simulator: Simulator, _: tuple[int, ...], count: int) -> None:
    counts = {make_design(ONE_PER_GAME, n): 10 * count for n in EQUIVALENCE_SIZES}
    clustered = (make_design(name, 1000) for name in (TWO_PER_GAME, ONES_AND_TENS, GAMES_24))
    counts |= dict.fromkeys((*clustered, FEW_LARGE, FEW_LARGE_COPIED), count)
    cells = [
        (design, *pair, of_design)
        for (design, of_design), pair in product(counts.items(), DISCORDANT)
    ]
    results = simulator.run("falsely_equal", simulate_false_equivalence, cells)
    print("False “equivalent to within 5 points” at a true difference of 5 points:\n")
    pairs = [f"{100 * first:.0f}%, {100 * second:.0f}%" for first, second in DISCORDANT]
    print_heading("design", "n", *(f"differ by {pair}" for pair in pairs))
    for design, of_design in counts.items():
        shares = (results[design, *pair, of_design] for pair in DISCORDANT)
        print_row(design.name, design.n, *(f"{100 * share:.1f}%" for share in shares))
