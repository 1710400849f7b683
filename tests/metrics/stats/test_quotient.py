"""The quotient of what remains of a habit in two groups, and the difference of two shares."""

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
"""How many samples dropped, kept and gained the habit."""
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
def test_the_interval_ends_where_the_quotient_is_rejected(first: Counts, second: Counts) -> None:
    quotient = Quotient(tally_of(*first), tally_of(*second))
    value, (low, high) = quotient.value, ends(quotient.first, quotient.second)
    shares = [(kept + gained) / (dropped + kept) for dropped, kept, gained in (first, second)]
    assert value == pytest.approx(shares[0] / shares[1])
    assert value is not None and low <= value <= high
    assert quotient.holds(low) and quotient.holds(high)
    assert low < 1e-3 or not quotient.holds(low * 0.999)
    assert not quotient.holds(high * 1.001)


def share_of(hits: int, n: int) -> Tally:
    tally = Ratio([1] * hits + [0] * (n - hits), [1] * n, RATE).tally(range(n))
    assert tally
    return tally


@settings(max_examples=8)
@given(st.integers(0, 9), st.integers(0, 14))
def test_swapping_two_shares_mirrors_the_interval(of_9: int, of_14: int) -> None:
    first, second = share_of(of_9, 9), share_of(of_14, 14)
    difference = Difference(first, second)
    interval, swapped = difference.interval, Difference(second, first).interval
    assert interval and swapped
    assert interval.low <= difference.value <= interval.high
    assert difference.value == pytest.approx(of_9 / 9 - of_14 / 14)
    assert (-swapped.high, -swapped.low) == pytest.approx((interval.low, interval.high), abs=1e-6)
    assert interval.low >= -1 and interval.high <= 1
    assert interval.high == 1 or not difference.holds(interval.high + 1e-3)


def test_a_difference_from_a_nearly_exact_share_has_the_interval_of_the_other() -> None:
    alone = Ratio([1] * 20 + [0] * 30, [1] * 50, RATE).interval(range(50))
    result = Difference(share_of(20, 50), share_of(10**5, 2 * 10**5)).interval
    assert alone and result
    assert (result.low, result.high) == pytest.approx((alone.low - 0.5, alone.high - 0.5), abs=1e-3)


def test_a_quotient_by_a_nearly_exact_group_has_the_interval_of_the_other() -> None:
    parts, wholes = [-1] * 20 + [0] * 30 + [1] * 5, [1] * 50 + [0] * 5
    alone = Ratio(parts, wholes, RELATIVE_CHANGE).interval(range(55))
    assert alone
    exact = Tally(tuple(replace(cell, count=10**6) for cell in tally_of(1, 1, 1).cells), 1.0)
    result = ends(tally_of(20, 30, 5), exact)
    assert result == pytest.approx((1 + alone.low, 1 + alone.high), rel=5e-3)


@pytest.mark.parametrize(("first", "second"), [((1, 19, 0), (1, 18, 1)), ((9, 11, 2), (3, 17, 0))])
def test_the_least_joint_score_is_critical_at_both_ends(first: Counts, second: Counts) -> None:
    numerator, denominator = tally_of(*first), tally_of(*second)

    def joint_score(quotient: float, value: float) -> float:
        of_first = score(numerator.cells, quotient * value - 1) / numerator.critical
        return of_first**2 + (score(denominator.cells, value - 1) / denominator.critical) ** 2

    for end in ends(numerator, denominator):
        best, reach = 1.0, 0.9
        for _ in range(8):  # narrow the grid around the minimum
            grid = [best + reach * step / 50 for step in range(-50, 51)]
            best = min((v for v in grid if v > 0), key=lambda value: joint_score(end, value))
            reach /= 10
        assert joint_score(end, best) == pytest.approx(1, abs=1e-6)


def test_no_quotient_if_nothing_remains_in_the_second_group() -> None:
    nothing = tally_of(5, 0, 0)
    assert Quotient(tally_of(1, 4, 0), nothing).value is None
    assert Quotient(tally_of(1, 4, 0), nothing).interval is None
    low, high = ends(nothing, tally_of(1, 4, 0))
    assert low == 0 < high


def test_games_of_several_samples_widen_the_interval() -> None:
    rows = [(-1, 1)] * 10 + [(0, 1)] * 10
    parts, wholes = [part for part, _ in rows], [whole for _, whole in rows]
    clustered = Ratio(parts, wholes, RELATIVE_CHANGE).tally([n // 5 for n in range(20)])
    independent, second = tally_of(10, 10, 0), tally_of(0, 20, 0)
    assert clustered
    (low, high), (wide_low, wide_high) = ends(independent, second), ends(clustered, second)
    assert wide_low < low < high < wide_high
    interval = Quotient(clustered, second).interval
    assert interval and interval.method == "score by games"


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.9), (0.9, 0.9), (0.2, 0.5)])
def test_the_quotient_interval_covers_the_truth(first: float, second: float) -> None:
    """Exact coverage over all results of 15 habits per group, if the second keeps any."""
    n, covered, total = 15, 0.0, 0.0
    for kept, second_kept in product(range(n + 1), range(1, n + 1)):
        weight = _binomial(n, kept, first) * _binomial(n, second_kept, second)
        if weight < 1e-6:
            continue
        quotient = Quotient(tally_of(n - kept, kept, 0), tally_of(n - second_kept, second_kept, 0))
        total += weight
        covered += weight * quotient.holds(first / second)
    assert 0.93 < covered / total < 0.99


def _binomial(n: int, hits: int, share: float) -> float:
    return comb(n, hits) * share**hits * (1 - share) ** (n - hits)
