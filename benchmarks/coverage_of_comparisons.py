"""How often comparisons of two models hold the truth, and verdicts err, for `coverage.py`."""

from functools import cache
from itertools import product

import numpy as np
from known_models import (
    ALL_ALIKE,
    ALONE,
    BIG,
    FEW_LARGE,
    TENS,
    TWOS,
    Design,
    design,
    experiments,
    random,
)
from measuring import print_heading, print_row
from numpy.typing import NDArray
from simulating import Simulator

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
"""The p and impact of two models that are compared."""
EQUAL_SIZES = (29, 40, 72, 73, 100, 150, 200, 500, 1000)
DISCORDANT = ((0.05, 0.0), (0.06, 0.01), (0.1, 0.05), (0.3, 0.25))
"""In which shares of the samples the one model hits alone, and the other."""
MATTERS = 0.05


def differences(
    of: Design, one: tuple[float, float], other: tuple[float, float], times: int
) -> tuple[float, float]:
    """How often the interval holds the true difference, and how often p is below 5%."""
    held, different = [], []
    mine, yours = experiments((*one, True), of, times), experiments((*other, True), of, times)
    for (before1, after1, games), (before2, after2, _) in zip(mine, yours, strict=True):
        if one == other:
            shared = (random.random(of.n) < 0.5).tolist()
            before2 = [a if s else b for a, b, s in zip(before1, before2, shared, strict=True)]
            after2 = [a if s else b for a, b, s in zip(after1, after2, shared, strict=True)]
        first, second = _relative(before1, after1), _relative(before2, after2)
        tally = difference_tally(first, second, games, 1.0)
        if tally:
            held.append(tally.contains(other[1] - one[1]))
            different.append(tally.p(0.0) < 0.05)
    return float(np.mean(held)), float(np.mean(different))


def _relative(before: list[int], after: list[int]) -> Ratio:
    return Ratio([b - a for a, b in zip(before, after, strict=True)], before, RELATIVE_CHANGE)


def print_differences(simulator: Simulator, sizes: tuple[int, ...], times: int) -> None:
    places = [design(*each) for each in product((ALONE, TWOS, BIG), sizes) if each != (BIG, 20)]
    places += [FEW_LARGE, ALL_ALIKE]
    cells = [(of, *pair, times // 4) for pair, of in product(PAIRS, places)]
    found = simulator.each(differences, cells)
    print(
        "Impact factors of two models on shared positions; equal ones share half their answers:\n"
    )
    print_heading("p and impact of one", "of the other", "design", "n", "coverage", "p < .05")
    for (of, one, other, _), shares in found.items():
        models = (f"{model[0]:g}, {model[1]:g}" for model in (one, other))
        print_row(*models, of.name, of.n, *(f"{100 * share:.1f}%" for share in shares))


def falsely_equal(of: Design, won: float, lost: float, times: int) -> float:
    """How often two models that differ by 5 points are called equal to within as much."""
    games, wrong = of.of_sample, []
    for _ in range(times):
        own, common = _signs(won, lost, of.n), _signs(won, lost, len(of.games))
        copied = random.random(of.n) < (0.0 if of.is_alone else of.copying)
        signs = np.where(copied, common[games], own).tolist()
        if of.is_alone:
            wrong.append(_is_equal_alone(signs.count(1), signs.count(-1), of.n))
        else:
            wrong.append(_is_equal(signs, games.tolist()))
    return float(np.mean(wrong))


def _signs(won: float, lost: float, n: int) -> NDArray[np.int64]:
    drawn = random.random(n)
    return np.where(drawn < won, 1, np.where(drawn > 1 - lost, -1, 0))


@cache
def _is_equal_alone(won: int, lost: int, n: int) -> bool:
    return _is_equal([1] * won + [-1] * lost + [0] * (n - won - lost), list(range(n)))


def _is_equal(signs: list[int], games: list[int]) -> bool:
    interval = Ratio(signs, [1] * len(signs), DIFFERENCE).interval(games)
    return interval is not None and interval.low >= -MATTERS and interval.high <= MATTERS


def print_false_equality(simulator: Simulator, _: tuple[int, ...], times: int) -> None:
    alone = [design(ALONE, n) for n in EQUAL_SIZES]
    together = [design(TWOS, 1000), design(TENS, 1000), design(BIG, 1000), FEW_LARGE, ALL_ALIKE]
    counts = {of: 10 * times if of.is_alone else times for of in (*alone, *together)}
    cells = [(of, *pair, n) for (of, n), pair in product(counts.items(), DISCORDANT)]
    found = simulator.each(falsely_equal, cells)
    print("False “equivalent to within 5 points” at a true difference of 5 points:\n")
    names = [f"{100 * won:.0f}%, {100 * lost:.0f}%" for won, lost in DISCORDANT]
    print_heading("design", "n", *(f"differ by {name}" for name in names))
    for of, n in counts.items():
        shares = (found[of, won, lost, n] for won, lost in DISCORDANT)
        print_row(of.name, of.n, *(f"{100 * share:.1f}%" for share in shares))
