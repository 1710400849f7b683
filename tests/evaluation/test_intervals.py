"""Intervals: known values, honest at the edges, and games as clusters."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.evaluation.intervals import Clusters, mcnemar, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0)],
)
def test_wilson_equals_published_values(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("lost", "won", "p"), [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (10, 2, 0.03857), (6, 6, 1.0)]
)
def test_mcnemar_equals_the_exact_binomial_test(lost: int, won: int, p: float) -> None:
    before = [True] * lost + [False] * won + [True] * 7
    after = [False] * lost + [True] * won + [True] * 7
    assert mcnemar(before, after) == pytest.approx(p, abs=1e-5)


def test_one_sample_a_game_has_wilsons_interval() -> None:
    interval = Clusters(range(10)).rate([True] * 8 + [False] * 2)
    assert interval
    assert interval.method == "wilson"
    assert (interval.low, interval.high) == wilson(8, 10)


def test_samples_of_one_game_do_not_count_as_independent() -> None:
    """Ten games of fifty alike samples each are worth ten samples, not five hundred."""
    games = [game for game in range(10) for _ in range(50)]
    hits = [game < 5 for game in games]
    clustered, naive = Clusters(games).rate(hits), Clusters(range(500)).rate(hits)
    assert clustered and naive
    assert clustered.high - clustered.low > 5 * (naive.high - naive.low)


def test_pairing_makes_the_difference_sharper() -> None:
    """The same samples keep the habit under both rule sets, but for five."""
    before = [True] * 50 + [False] * 50
    after = [True] * 45 + [False] * 55
    interval = Clusters(range(100)).difference(before, after)
    assert interval
    assert interval.low == pytest.approx(-0.10, abs=0.015)
    assert interval.high == pytest.approx(-0.01, abs=0.015)


@pytest.mark.parametrize(
    ("p", "stays", "comes"),
    [(0.8, 0.5, 0.0), (0.9, 0.98, 0.1), (0.95, 0.995, 0.05), (0.95, 0.02, 0.01)],
)
def test_intervals_cover_the_truth_as_often_as_they_say(
    p: float, stays: float, comes: float
) -> None:
    """Two hundred experiments each, most of them with few answers that change."""
    random, covered = Random(7), 0
    truth = (p * stays + (1 - p) * comes) / p - 1
    for _ in range(200):
        before = [random.random() < p for _ in range(100)]
        after = [random.random() < (stays if habit else comes) for habit in before]
        interval = Clusters(range(100)).relative_change(before, after)
        assert interval
        covered += interval.low <= truth <= interval.high
    assert covered >= 180


def test_no_spread_is_lack_of_evidence_not_certainty() -> None:
    few, many = Clusters(range(5)), Clusters(range(1000))
    for clusters, n, width in ((few, 5, 0.25), (many, 1000, 0.002)):
        interval = clusters.relative_change([True] * n, [False] * n)
        assert interval
        assert interval.low == pytest.approx(-1)
        assert interval.high - interval.low > width


def test_nothing_to_go_by_gives_no_interval() -> None:
    nothing = Clusters([])
    assert nothing.rate([]) is None
    assert nothing.difference([], []) is None
    assert nothing.relative_change([], []) is None
    assert Clusters(range(3)).relative_change([False] * 3, [True] * 3) is None


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=12)
)
def test_an_interval_holds_the_value_it_is_of(rows: list[tuple[int, bool, bool]]) -> None:
    games = [game for game, _, _ in rows]
    before, after = [b for _, b, _ in rows], [a for _, _, a in rows]
    p, v = sum(before) / len(rows), sum(after) / len(rows)
    clusters = Clusters(games)
    for value, interval in (
        (p, clusters.rate(before)),
        (v - p, clusters.difference(before, after)),
        ((v - p) / p if p else math.nan, clusters.relative_change(before, after)),
    ):
        if interval:
            assert interval.low - 1e-9 <= interval.high
            assert interval.low - 0.2 <= value <= interval.high + 0.2
