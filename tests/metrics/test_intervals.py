"""Score intervals equal the published ones that they generalize, and contain the truth.

test_protocol.py has a second implementation of all intervals, also of clustered ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from math import comb, inf, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.metrics.intervals import (
    DIFFERENCE,
    DROP,
    SHARE,
    Ratio,
    Support,
    mean_interval,
)
from cant_do_that_anymore.metrics.score_interval import Cell, score, score_limits, t_quantile
from cant_do_that_anymore.task.types import Outcome
from testing import POOL, run_with_outcomes

Table = tuple[int, int, int, int]
"""Counts of pairs of answers: yes-yes, yes-no, no-yes, no-no."""
Rows = list[tuple[int, tuple[int, int]]]
"""The group, the part and the whole of each sample."""

NINETY = 1.6448536269514722
NINETY_FIVE = 1.959963984540054


def difference(table: Table) -> list[Cell]:
    """The share of the first answer minus that of the second."""
    both, first, second, none = table
    return [Cell(1, 1, first), Cell(-1, 1, second), Cell(0, 1, both + none)]


def ratio(table: Table) -> list[Cell]:
    """The share of the first answer over that of the second."""
    both, first, second, none = table
    return [Cell(1, 1, both), Cell(1, 0, first), Cell(0, 1, second), Cell(0, 0, none)]


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


def wilsons_score(hits: int, n: int, share: float) -> float:
    return abs(hits - n * share) / sqrt(n * share * (1 - share))


def tangos_score(table: Table, delta: float) -> float:
    """Tango (1998), with the closed form of the constrained estimate."""
    (_, b, c, _), n = table, sum(table)
    half = -b - c + (2 * n - b + c) * delta
    q = (sqrt(half**2 + 8 * n * c * delta * (1 - delta)) - half) / (4 * n)
    return abs(b - c - n * delta) / sqrt(n * (2 * q + delta * (1 - delta)))


def nam_and_blackwelders_score(table: Table, theta: float) -> float:
    """Nam and Blackwelder (2002), with the closed form of Tang, Tang and Chan (2003)."""
    (x, b, c, _), n = table, sum(table)
    square, linear = n * (1 + theta), (x + c) * theta**2 - (x + b + 2 * c)
    constant = c * (1 - theta) * (x + b + c) / n
    q = (sqrt(max(0, linear**2 - 4 * square * constant)) - linear) / (2 * square)
    variance = n * (1 + theta) * q + (x + b + c) * (theta - 1)
    return abs(x + b - (x + c) * theta) / sqrt(variance)


@pytest.mark.parametrize("table", [(12, 30, 6, 2), (0, 40, 0, 10), (25, 0, 0, 25)])
def test_estimates_of_a_run_end_where_these_scores_are_critical(table: Table) -> None:
    kinds: tuple[Outcome, ...] = ("usual", "legal")
    outcomes = [
        pair for pair, n in zip(product(kinds, repeat=2), table, strict=True) for _ in range(n)
    ]
    before, after = ([pair[side] for pair in outcomes] for side in (0, 1))
    one_per_game = [replace(position, game=n) for n, position in enumerate(POOL[:50])]
    results = run_with_outcomes("m", after, before, one_per_game).results
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
    ("degrees", "t"),
    [(1, 12.70620474), (2, 4.30265273), (10, 2.22813885), (1e7, 1.95996422)],
)
def test_quantiles_of_students_t_match_the_tables(degrees: float, t: float) -> None:
    assert t_quantile(degrees) == pytest.approx(t, abs=1e-8)


RANGES: list[tuple[Support, float, float]] = [
    (SHARE, 0, 1),
    (DIFFERENCE, -1, 1),
    (DROP, -inf, 1),
]


def rows_of(support: Support) -> st.SearchStrategy[Rows]:
    pairs = st.sampled_from(sorted(support))
    return st.lists(st.tuples(st.integers(0, 12), pairs), min_size=1, max_size=30)


supports_and_rows = st.sampled_from(RANGES).flatmap(
    lambda case: st.tuples(st.just(case), rows_of(case[0]))
)


def ratio_of(rows: Rows, support: Support) -> Ratio:
    return Ratio([part for _, (part, _) in rows], [whole for _, (_, whole) in rows], support)


def interval_of(rows: Rows, support: Support) -> tuple[float, float]:
    return ratio_of(rows, support).tally([group for group, _ in rows]).interval()


@given(supports_and_rows, st.randoms())
def test_an_interval_contains_its_value_and_ignores_the_order(
    case: tuple[tuple[Support, float, float], Rows], random: Random
) -> None:
    (support, lowest, highest), rows = case
    if not any(whole for _, (_, whole) in rows):
        return
    low, high = interval_of(rows, support)
    assert lowest <= low <= ratio_of(rows, support).value <= high <= highest and low < high
    renamed = [(group + 100, row) for group, row in rows]
    random.shuffle(renamed)
    assert interval_of(renamed, support) == pytest.approx((low, high), abs=1e-9)


@given(rows_of(SHARE), st.integers(2, 5))
def test_copies_within_a_group_do_not_narrow_the_interval(rows: Rows, times: int) -> None:
    separate = [(index, row) for index, (_, row) in enumerate(rows)]
    low, high = interval_of(separate, SHARE)
    copied_low, copied_high = interval_of(separate * times, SHARE)
    assert copied_low <= low + 1e-9 and copied_high >= high - 1e-9


@pytest.mark.parametrize(("p", "uptake"), [(0.67, 0.5), (0.95, 0.02), (0.95, 1), (1, 0.98)])
def test_intervals_of_20_samples_cover_the_truth_in_92_percent(p: float, uptake: float) -> None:
    """Exact coverage: all tables of 20 independent samples, weighted by their probability."""
    p_changed, n = p * (1 - uptake), 20
    chances = ((1 - p) * (1 - p_changed), (1 - p) * p_changed, p * (1 - p_changed), p * p_changed)
    parts, wholes = (0, -1, 1, 0), (0, 0, 1, 1)
    delta_coverage = uptake_coverage = defined = 0.0
    for a, b, c in product(range(n + 1), repeat=3):
        if a + b + c > n:
            continue
        weight, remaining, table = 1.0, n, (a, b, c, n - a - b - c)
        for count, chance in zip(table, chances, strict=True):
            weight *= comb(remaining, count) * chance**count
            remaining -= count
        if weight < 1e-9:
            continue
        delta = [Cell(part, 1, count) for part, count in zip(parts, table, strict=True)]
        delta_coverage += weight * (score(delta, p * uptake) <= 1.96)
        if table[2] + table[3]:
            change = [Cell(*cell) for cell in zip(parts, wholes, table, strict=True)]
            uptake_coverage += weight * (score(change, uptake) <= 1.96)
            defined += weight
    assert delta_coverage > 0.92
    assert uptake_coverage / defined > 0.92


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ([], []),
        ([5], [1]),
        ([1, 2, 3], [7, 7, 7]),
        ([0, 0, 0], [1, 2, 3]),
        ([1] * 9 + [2], [0] * 9 + [1]),
    ],
    ids=["no samples", "one sample", "one group", "no variation", "about one group"],
)
def test_too_little_data_gives_no_interval_of_a_mean(
    values: Sequence[int], groups: Sequence[int]
) -> None:
    assert mean_interval(values, groups) is None


def test_coverage_of_the_mean_of_a_skewed_amount() -> None:
    random, covered = Random(1), 0
    for _ in range(400):
        drawn = [round(1000 * random.lognormvariate(-0.125, 0.5)) for _ in range(50)]
        interval = mean_interval(drawn, range(50))
        assert interval
        covered += interval[0] <= 1000 <= interval[1]
    assert 0.91 < covered / 400 < 0.98
