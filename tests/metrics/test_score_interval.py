"""The general score equals the published scores that it generalizes; Student's t."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import atan, pi, sqrt

import pytest

from cant_do_that_anymore.metrics.score_interval import (
    Cell,
    score,
    score_limits,
    t_quantile,
    t_two_sided,
)
from cant_do_that_anymore.task.types import Outcome
from testing import POOL, run_with_outcomes

ONE_PER_GAME = [replace(position, game=n) for n, position in enumerate(POOL[:50])]
HYPOTHESES = [step / 20 for step in range(1, 20)]
TABLES = [(1, 1, 7, 12), (43, 0, 1, 0), (4, 9, 3, 16), (53, 16, 8, 9), (5, 0, 0, 3), (0, 0, 6, 2)]
"""Counts of pairs of answers: yes-yes, yes-no, no-yes, no-no."""
NINETY = 1.6448536269514722
NINETY_FIVE = 1.959963984540054


def difference(table: tuple[int, int, int, int]) -> list[Cell]:
    """The share of the first answer minus that of the second."""
    both, first, second, none = table
    return [Cell(1, 1, first), Cell(-1, 1, second), Cell(0, 1, both + none)]


def ratio(table: tuple[int, int, int, int]) -> list[Cell]:
    """The share of the first answer over that of the second."""
    both, first, second, none = table
    return [Cell(1, 1, both), Cell(1, 0, first), Cell(0, 1, second), Cell(0, 0, none)]


def wilsons_score(hits: int, n: int, share: float) -> float:
    return abs(hits - n * share) / sqrt(n * share * (1 - share))


def tangos_score(table: tuple[int, int, int, int], delta: float) -> float:
    """Tango (1998), with the closed form of the constrained estimate."""
    (_, b, c, _), n = table, sum(table)
    half = -b - c + (2 * n - b + c) * delta
    q = (sqrt(half**2 + 8 * n * c * delta * (1 - delta)) - half) / (4 * n)
    return abs(b - c - n * delta) / sqrt(n * (2 * q + delta * (1 - delta)))


def nam_and_blackwelders_score(table: tuple[int, int, int, int], theta: float) -> float:
    """Nam and Blackwelder (2002), with the closed form of Tang, Tang and Chan (2003)."""
    (x, b, c, _), n = table, sum(table)
    square, linear = n * (1 + theta), (x + c) * theta**2 - (x + b + 2 * c)
    constant = c * (1 - theta) * (x + b + c) / n
    q = (sqrt(max(0, linear**2 - 4 * square * constant)) - linear) / (2 * square)
    variance = n * (1 + theta) * q + (x + b + c) * (theta - 1)
    return abs(x + b - (x + c) * theta) / sqrt(variance)


@pytest.mark.parametrize(("hits", "n"), [(8, 10), (0, 10), (10, 10), (1, 1), (3, 1000)])
def test_score_of_a_share_is_wilsons(hits: int, n: int) -> None:
    cells = [Cell(1, 1, hits), Cell(0, 1, n - hits)]
    for share in HYPOTHESES:
        assert score(cells, share) == pytest.approx(wilsons_score(hits, n, share), abs=1e-9)


@pytest.mark.parametrize("table", TABLES)
def test_score_of_a_paired_difference_is_tangos(table: tuple[int, int, int, int]) -> None:
    for delta in [*HYPOTHESES, *(-delta for delta in HYPOTHESES)]:
        expected = tangos_score(table, delta)
        assert score(difference(table), delta) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("table", TABLES)
def test_score_of_a_paired_ratio_is_nam_and_blackwelders(table: tuple[int, int, int, int]) -> None:
    for theta in [*HYPOTHESES, *(1 / theta for theta in HYPOTHESES)]:
        expected = nam_and_blackwelders_score(table, theta)
        assert score(ratio(table), theta) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("table", [(12, 30, 6, 2), (0, 40, 0, 10), (25, 0, 0, 25)])
def test_estimates_of_a_run_end_where_these_scores_are_critical(
    table: tuple[int, int, int, int],
) -> None:
    kinds: tuple[Outcome, ...] = ("usual", "legal")
    outcomes = [
        pair for pair, n in zip(product(kinds, repeat=2), table, strict=True) for _ in range(n)
    ]
    before, after = ([pair[side] for pair in outcomes] for side in (0, 1))
    results = run_with_outcomes("m", after, before, ONE_PER_GAME).results
    (both, first, second, none), n = table, sum(table)
    swapped = both, second, first, none
    scores: tuple[tuple[str, Callable[[float], float]], ...] = (
        ("predicted_move_proportion", lambda end: wilsons_score(both + first, n, end)),
        ("delta", lambda end: tangos_score(table, -end)),
        ("rule_uptake", lambda end: nam_and_blackwelders_score(swapped, 1 - end)),
        ("variant_impact_factor", lambda end: nam_and_blackwelders_score(swapped, 1 + end)),
    )
    for name, score_of in scores:
        estimate = results[name]
        assert estimate.low is not None and estimate.high is not None
        for end in (estimate.low, estimate.high):
            at_the_limit = abs(end) == 1 and estimate.value == end
            assert at_the_limit or score_of(end) == pytest.approx(NINETY_FIVE, abs=1e-6), name


@pytest.mark.parametrize(
    ("cells", "critical", "ends", "digits"),
    [
        (difference((4, 9, 3, 16)), NINETY_FIVE, [-0.027, 0.390], 3),  # Tango (1998)
        (difference((43, 0, 1, 0)), NINETY, [-0.096, 0.037], 3),  # Tango (1998)
        (difference((53, 16, 8, 9)), NINETY_FIVE, [-0.020, 0.207], 3),  # Agresti and Min (2005)
        (difference((8, 3, 1, 2)), NINETY_FIVE, [-0.1670, 0.4327], 4),  # Tang et al. (2010)
        (difference((1, 1, 7, 12)), NINETY_FIVE, [-0.517, -0.026], 3),  # Fagerland et al. (2014)
        (ratio((446, 5, 16, 690)), NINETY, [0.958, 0.992], 3),  # Tang, Tang and Chan (2003)
        (ratio((43, 0, 1, 0)), NINETY, [0.904, 1.039], 3),  # Tang, Tang and Chan (2003)
        (ratio((1, 1, 7, 12)), NINETY_FIVE, [0.0653, 0.9069], 4),  # DelRocco et al. (2022)
    ],
)
def test_limits_match_published_intervals(
    cells: list[Cell], critical: float, ends: list[float], digits: int
) -> None:
    assert [round(end, digits) for end in score_limits(cells, critical)] == ends


def test_an_impossible_ratio_has_an_infinite_score() -> None:
    assert score([Cell(1, 1, 3), Cell(0, 1, 2)], 0.0) == float("inf")


@pytest.mark.parametrize("table", TABLES[:4])
def test_negated_parts_mirror_the_limits(table: tuple[int, int, int, int]) -> None:
    """Also if parts without a whole leave the ratio without an upper limit."""
    mirrored = [Cell(-cell.part, cell.whole, cell.count) for cell in ratio(table)]
    low, high = score_limits(ratio(table), NINETY_FIVE)
    assert score_limits(mirrored, NINETY_FIVE) == pytest.approx((-high, -low))


@pytest.mark.parametrize(
    ("degrees", "t"),
    [
        *((1, 12.70620474), (2, 4.30265273), (10, 2.22813885), (24, 2.06389856)),
        *((1000, 1.96233908), (1e7, 1.95996422)),  # nearly the normal distribution
    ],
)
def test_quantiles_of_students_t_match_the_tables(degrees: float, t: float) -> None:
    assert t_quantile(degrees) == pytest.approx(t, abs=1e-8)
    assert t_quantile(degrees) < t_quantile(degrees - 0.5)


@pytest.mark.parametrize("t", [0, 0.01, 0.7, 3, 50, 1e6])
def test_students_t_of_one_and_two_degrees_has_closed_forms(t: float) -> None:
    assert t_two_sided(t, 1) == pytest.approx(1 - 2 / pi * atan(t), abs=1e-12)
    assert t_two_sided(t, 2) == pytest.approx(1 - t / sqrt(2 + t * t), abs=1e-12)
