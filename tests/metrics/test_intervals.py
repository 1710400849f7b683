"""Score intervals equal the published ones that they generalize, and contain the truth.

test_protocol.py has a second implementation of all intervals, also of clustered ones.
"""

from collections.abc import Collection
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.metrics.intervals import (
    DIFFERENCE,
    DROP,
    SHARE,
    Pair,
    Ratio,
    mean_interval,
)
from cant_do_that_anymore.metrics.score_interval import Cell, score_limits

Table = tuple[int, int, int, int]
"""Counts of pairs of answers: yes-yes, yes-no, no-yes, no-no."""
Support = Collection[Pair]
Rows = list[tuple[int, Pair]]
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
    return Ratio([pair for _, pair in rows], support)


def interval_of(rows: Rows, support: Support) -> tuple[float, float]:
    return ratio_of(rows, support).interval([group for group, _ in rows])


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


def test_too_little_data_gives_no_interval_of_a_mean() -> None:
    assert mean_interval([1, 2, 3], [7, 7, 7]) is None  # one group
    assert mean_interval([0, 0, 0], [1, 2, 3]) is None  # no variation
    assert mean_interval([1] * 9 + [2], [0] * 9 + [1]) is None  # about one group
