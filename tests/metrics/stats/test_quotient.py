"""What is left of one thing over what is left of another: two groups of samples."""

from dataclasses import replace
from itertools import product
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore.metrics.stats.clusters import Tally
from cant_do_that_anymore.metrics.stats.intervals import (
    RATE,
    RELATIVE_CHANGE,
    Difference,
    Quotient,
    Ratio,
)
from cant_do_that_anymore.metrics.stats.score_interval import score

Counts = tuple[int, int, int]
"""Samples whose habit was dropped, kept and gained."""
counts = st.tuples(st.integers(0, 8), st.integers(1, 8), st.integers(0, 3))


def tally_of(dropped: int, kept: int, gained: int) -> Tally:
    rows = [(-1, 1)] * dropped + [(0, 1)] * kept + [(1, 0)] * gained
    parts, wholes = [part for part, _ in rows], [whole for _, whole in rows]
    tally = Ratio(parts, wholes, RELATIVE_CHANGE).tally(range(len(rows)))
    assert tally
    return tally


def ends(first: Tally, second: Tally) -> tuple[float, float]:
    interval = Quotient(first, second).interval
    assert interval
    return interval.low, interval.high


@settings(max_examples=8)
@given(counts, counts)
def test_the_interval_ends_where_the_quotient_is_rejected(one: Counts, other: Counts) -> None:
    quotient = Quotient(tally_of(*one), tally_of(*other))
    value, (low, high) = quotient.value, ends(quotient.first, quotient.second)
    kept, gained = one[1] + one[2], other[1] + other[2]
    assert value == pytest.approx(kept / (one[0] + one[1]) / (gained / (other[0] + other[1])))
    assert value is not None and low <= value <= high
    assert quotient.holds(low) and quotient.holds(high)
    assert low < 1e-3 or not quotient.holds(low * 0.999)
    assert not quotient.holds(high * 1.001)


@settings(max_examples=8)
@given(counts, counts)
def test_a_quotient_turned_over_has_the_interval_turned_over(one: Counts, other: Counts) -> None:
    low, high = ends(tally_of(*one), tally_of(*other))
    low_over, high_over = ends(tally_of(*other), tally_of(*one))
    assert (1 / high_over, 1 / low_over) == pytest.approx((low, high), rel=1e-3)


def share_of(hits: int, n: int) -> Tally:
    tally = Ratio([1] * hits + [0] * (n - hits), [1] * n, RATE).tally(range(n))
    assert tally
    return tally


@settings(max_examples=8)
@given(st.integers(0, 9), st.integers(0, 14))
def test_a_difference_turned_over_has_the_interval_turned_over(one: int, other: int) -> None:
    difference = Difference(share_of(one, 9), share_of(other, 14))
    interval, over = difference.interval, Difference(share_of(other, 14), share_of(one, 9)).interval
    assert interval and over
    assert interval.low <= difference.value <= interval.high
    assert difference.value == pytest.approx(one / 9 - other / 14)
    assert (-over.high, -over.low) == pytest.approx((interval.low, interval.high), abs=1e-6)
    assert interval.low >= -1 and interval.high <= 1
    assert interval.high == 1 or not difference.holds(interval.high + 1e-3)


def test_a_difference_from_a_share_that_is_all_but_certain_has_the_interval_of_the_other() -> None:
    alone = Ratio([1] * 20 + [0] * 30, [1] * 50, RATE).interval(range(50))
    found = Difference(share_of(20, 50), share_of(10**5, 2 * 10**5)).interval
    assert alone and found
    assert (found.low, found.high) == pytest.approx((alone.low - 0.5, alone.high - 0.5), abs=1e-3)


def test_beside_a_group_that_is_all_but_certain_it_is_the_interval_of_the_other() -> None:
    parts, wholes = [-1] * 20 + [0] * 30 + [1] * 5, [1] * 50 + [0] * 5
    alone = Ratio(parts, wholes, RELATIVE_CHANGE).interval(range(55))
    assert alone
    certain = Tally(tuple(replace(cell, count=10**6) for cell in tally_of(1, 1, 1).cells), 1.0)
    found = ends(tally_of(20, 30, 5), certain)
    assert found == pytest.approx((1 + alone.low, 1 + alone.high), rel=5e-3)


@pytest.mark.parametrize(("one", "other"), [((1, 19, 0), (1, 18, 1)), ((9, 11, 2), (3, 17, 0))])
def test_at_its_ends_the_best_second_value_is_just_plausible(one: Counts, other: Counts) -> None:
    first, second = tally_of(*one), tally_of(*other)

    def strange(quotient: float, left: float) -> float:
        of_first = score(first.cells, quotient * left - 1) / first.critical
        return of_first**2 + (score(second.cells, left - 1) / second.critical) ** 2

    for end in ends(first, second):
        best, reach = 1.0, 0.9
        for _ in range(8):  # ever closer about the best
            places = [best + reach * step / 50 for step in range(-50, 51)]
            best = min((p for p in places if p > 0), key=lambda left: strange(end, left))
            reach /= 10
        assert strange(end, best) == pytest.approx(1, abs=1e-6)


def test_nothing_left_of_the_second_leaves_no_quotient() -> None:
    nothing = tally_of(5, 0, 0)
    assert Quotient(tally_of(1, 4, 0), nothing).value is None
    assert Quotient(tally_of(1, 4, 0), nothing).interval is None
    low, high = ends(nothing, tally_of(1, 4, 0))
    assert low == 0 < high


def test_games_of_several_samples_widen_it() -> None:
    rows = [(-1, 1)] * 10 + [(0, 1)] * 10
    parts, wholes = [part for part, _ in rows], [whole for _, whole in rows]
    together = Ratio(parts, wholes, RELATIVE_CHANGE).tally([n // 5 for n in range(20)])
    alone, beside = tally_of(10, 10, 0), tally_of(0, 20, 0)
    assert together
    (low, high), (wide_low, wide_high) = ends(alone, beside), ends(together, beside)
    assert wide_low < low < high < wide_high
    interval = Quotient(together, beside).interval
    assert interval and interval.method == "score by games"


@pytest.mark.parametrize(("left", "left_beside"), [(0.5, 0.9), (0.9, 0.9), (0.2, 0.5)])
def test_it_holds_the_truth_as_often_as_it_says(left: float, left_beside: float) -> None:
    """Exactly, over all results of 15 habits in each group of which some are kept."""
    n, covered, seen = 15, 0.0, 0.0
    for one, other in product(range(n + 1), range(1, n + 1)):
        weight = _chance(n, one, left) * _chance(n, other, left_beside)
        if weight < 1e-6:
            continue
        quotient = Quotient(tally_of(n - one, one, 0), tally_of(n - other, other, 0))
        seen += weight
        covered += weight * quotient.holds(left / left_beside)
    assert 0.93 < covered / seen < 0.99


def _chance(n: int, hits: int, share: float) -> float:
    return comb(n, hits) * share**hits * (1 - share) ** (n - hits)
