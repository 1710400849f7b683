"""Intervals: properties that all of them share, and their coverage."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import comb, inf, sqrt
from random import Random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.metrics.stats.intervals import (
    DIFFERENCE,
    RATE,
    RELATIVE_CHANGE,
    SHARE_OF_SOME,
    Interval,
    Ratio,
    Support,
    mean_interval,
    ratio_difference,
)
from cant_do_that_anymore.metrics.stats.score_interval import Cell, score, t_two_sided
from cant_do_that_anymore.metrics.stats.significance import p_value

Rows = list[tuple[int, tuple[int, int]]]
"""The game, the part and the whole of each sample."""

MEASURES = {
    "rate": RATE,
    "share of some": SHARE_OF_SOME,
    "difference": DIFFERENCE,
    "relative change": RELATIVE_CHANGE,
    "difference of differences": tuple((part, 1) for part in range(-2, 3)),
}
RANGES = {RATE: (0, 1), SHARE_OF_SOME: (0, 1), DIFFERENCE: (-1, 1), RELATIVE_CHANGE: (-1, inf)}


def rows_of(support: Support, max_size: int = 30) -> st.SearchStrategy[Rows]:
    pairs = st.sampled_from(sorted(support))
    return st.lists(st.tuples(st.integers(0, 12), pairs), min_size=1, max_size=max_size)


supports_and_rows = st.sampled_from(sorted(MEASURES)).flatmap(
    lambda name: st.tuples(st.just(MEASURES[name]), rows_of(MEASURES[name]))
)


def interval_of(
    rows: Sequence[tuple[object, tuple[int, int]]], support: Support
) -> Interval | None:
    parts, wholes = [part for _, (part, _) in rows], [whole for _, (_, whole) in rows]
    return Ratio(parts, wholes, support).interval([str(game) for game, _ in rows])


def ends(interval: Interval | None) -> tuple[float, float]:
    assert interval
    return interval.low, interval.high


@given(supports_and_rows)
def test_an_interval_contains_its_value_within_the_range(case: tuple[Support, Rows]) -> None:
    support, rows = case
    whole = sum(whole for _, (_, whole) in rows)
    interval = interval_of(rows, support)
    assert (interval is None) == (whole == 0)
    if interval:
        assert interval.low <= sum(part for _, (part, _) in rows) / whole <= interval.high
        lowest, highest = RANGES.get(tuple(support), (-2, 2))
        assert lowest <= interval.low < interval.high <= highest


@given(supports_and_rows, st.randoms())
def test_order_and_names_of_games_do_not_matter(case: tuple[Support, Rows], random: Random) -> None:
    support, rows = case
    renamed: list[tuple[object, tuple[int, int]]] = [(f"game {game}", row) for game, row in rows]
    random.shuffle(renamed)
    expected, result = interval_of(rows, support), interval_of(renamed, support)
    assert (result is None) == (expected is None)
    if expected:
        assert ends(result) == pytest.approx(ends(expected), abs=1e-9)


@given(rows_of(((-1, 1), (0, 1))))
def test_absolute_and_relative_change_agree_for_a_constant_habit(rows: Rows) -> None:
    assert interval_of(rows, DIFFERENCE) == interval_of(rows, RELATIVE_CHANGE)


@given(rows_of(RELATIVE_CHANGE))
def test_samples_with_part_and_whole_0_change_nothing(rows: Rows) -> None:
    if {whole for _, (_, whole) in rows} != {1}:
        more = [*rows, *((game, (0, 0)) for game in range(40))]
        assert interval_of(more, RELATIVE_CHANGE) == interval_of(rows, RELATIVE_CHANGE)


@given(rows_of(RATE), st.integers(2, 5))
def test_copies_within_a_game_do_not_narrow_the_interval(rows: Rows, times: int) -> None:
    separate = [(index, row) for index, (_, row) in enumerate(rows)]
    low, high = ends(interval_of(separate, RATE))
    copied_low, copied_high = ends(interval_of(separate * times, RATE))
    assert copied_low <= low + 1e-9
    assert copied_high >= high - 1e-9


def test_a_single_game_has_a_wide_interval() -> None:
    low, high = ends(Ratio([1] * 50, [1] * 50, RATE).interval([0] * 50))
    assert low < 0.05
    assert high == 1


def test_equivalence_within_5_points_takes_73_equal_samples() -> None:
    def upper_end(n: int) -> float:
        return ends(Ratio([0] * n, [1] * n, DIFFERENCE).interval(range(n)))[1]

    assert upper_end(73) <= 0.05 < upper_end(72)


def test_p_is_the_normal_tail_or_students_with_a_design_effect() -> None:
    independent = Ratio([1] * 8 + [0] * 2, [1] * 10, RATE).tally(range(10))
    assert independent
    z = 0.3 / sqrt(0.25 / 10)
    assert z_score(independent.p(0.5)) == pytest.approx(z)
    clustered = replace(independent, design_effect=4.0, degrees_of_freedom=9.0)
    assert clustered.p(0.5) == pytest.approx(t_two_sided(z / 2, 9))


def test_the_design_effect_matches_a_hand_calculation() -> None:
    """Games have 3, 2 and 1 samples. Their deviations from 1/2 sum to 1/2, 0 and -1/2."""
    tally = Ratio([1, 1, 0, 1, 0, 0], [1] * 6, RATE).tally("aaabbc")
    assert tally
    added, n_games = (27 + 8 + 1) / (9 + 4 + 1), 36 / 14
    between = (1 / 4 + 1 / 4) * n_games / (n_games - 1)
    assert tally.degrees_of_freedom == pytest.approx(n_games)
    assert tally.design_effect == pytest.approx((between + added**2 / 4) / (6 / 4 + added / 4))
    two_games = Ratio([1, 0, 1], [1] * 3, RATE).tally("aab")
    assert two_games and two_games.degrees_of_freedom == pytest.approx(9 / 5)
    between, added = 2 / 9 * 9 / 4, 9 / 5
    assert two_games.design_effect == pytest.approx(
        (between + added**2 * 4 / 9) / (6 / 9 + added * 4 / 9)
    )


def test_coverage_with_a_few_large_games_among_many_small_ones() -> None:
    """900 games have one sample each, and 30 have 20 equal samples. The habit drops by 94%."""
    random, covered = Random(1), 0
    games = [*range(900), *(900 + sample // 20 for sample in range(600))]
    for _ in range(150):
        before = [random.random() < 0.9 for _ in range(930)]
        after = [random.random() < 0.9 * 0.06 for _ in range(930)]
        rows = [(int(before[game]), int(after[game])) for game in games]
        parts, wholes, support = relative_change(rows)
        tally = Ratio(parts, wholes, support).tally(games)
        covered += tally is not None and tally.p(-0.94) >= 0.05
    assert covered / 150 > 0.93


def z_score(p: float) -> float:
    return NormalDist().inv_cdf(1 - p / 2)


def test_an_impossible_sample_is_an_error() -> None:
    with pytest.raises(ValueError, match="not one of"):
        Ratio([2, 0], [1, 1], RATE).interval([0, 1])


@pytest.mark.parametrize(
    "compute",
    [
        lambda: Ratio([1], [1, 1], RATE).tally("a"),
        lambda: Ratio([1], [1], RATE).tally("ab"),
        lambda: ratio_difference(Ratio([1], [1], RATE), Ratio([1, 0], [1, 1], RATE), "a"),
        lambda: mean_interval([1, 2, 3], "ab", signed=True),
        lambda: p_value([1], "ab"),
    ],
    ids=["parts", "games of a ratio", "two ratios", "games of a mean", "games of a test"],
)
def test_lists_of_unequal_lengths_are_an_error(compute: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"argument \d is"):
        compute()


def tables(n: int) -> list[tuple[int, ...]]:
    """All ways to distribute n samples over four cells."""
    return [
        (a, b, c, n - a - b - c)
        for a in range(n + 1)
        for b in range(n + 1 - a)
        for c in range(n + 1 - a - b)
    ]


@pytest.mark.parametrize(("p", "impact"), [(0.67, -0.5), (0.95, -0.02), (0.95, -1), (1, -0.98)])
def test_intervals_of_20_samples_cover_the_truth_in_92_percent(p: float, impact: float) -> None:
    """Exact coverage: all tables of 20 independent samples, weighted by their probability."""
    p_changed = p * (1 + impact)
    chances = ((1 - p) * (1 - p_changed), (1 - p) * p_changed, p * (1 - p_changed), p * p_changed)
    parts, wholes = (0, 1, -1, 0), (0, 0, 1, 1)
    delta_coverage = impact_coverage = defined = 0.0
    for table in tables(20):
        weight, remaining = 1.0, 20
        for count, chance in zip(table, chances, strict=True):
            weight *= comb(remaining, count) * chance**count
            remaining -= count
        if weight < 1e-9:
            continue
        delta = [Cell(part, 1, count) for part, count in zip(parts, table, strict=True)]
        delta_coverage += weight * (score(delta, p * impact) <= 1.96)
        if table[2] + table[3]:
            change = [Cell(*cell) for cell in zip(parts, wholes, table, strict=True)]
            impact_coverage += weight * (score(change, impact) <= 1.96)
            defined += weight
    assert delta_coverage > 0.92
    assert impact_coverage / defined > 0.92


def relative_change(rows: list[tuple[int, int]]) -> Ratio:
    """The relative change from the first of two answers to the second."""
    return Ratio([b - a for a, b in rows], [a for a, _ in rows], RELATIVE_CHANGE)


answers = st.tuples(*[st.integers(0, 1)] * 4)
games_and_answers = st.lists(st.tuples(st.integers(0, 12), answers), min_size=1, max_size=30)
PairedRows = list[tuple[int, tuple[int, int, int, int]]]


def two_ratios(rows: PairedRows) -> tuple[Ratio, Ratio, list[int]]:
    first = relative_change([(a, b) for _, (a, b, _, _) in rows])
    second = relative_change([(a, b) for _, (_, _, a, b) in rows])
    return first, second, [game for game, _ in rows]


@given(games_and_answers)
def test_a_difference_interval_contains_its_value_and_agrees_with_p(rows: PairedRows) -> None:
    first, second, games = two_ratios(rows)
    difference = ratio_difference(first, second, games)
    if not sum(first.wholes) or not sum(second.wholes):
        assert difference is None
        return
    assert difference
    low, high = ends(difference.interval)
    assert low <= difference.value <= high
    assert 0 <= difference.p <= 1
    if abs(difference.p - 0.05) > 1e-6:
        assert (difference.p < 0.05) == (not low <= 0 <= high)


@given(games_and_answers)
def test_swapping_two_models_mirrors_their_difference(rows: PairedRows) -> None:
    first, second, games = two_ratios(rows)
    result, swapped = ratio_difference(first, second, games), ratio_difference(second, first, games)
    if result and swapped:
        low, high = ends(swapped.interval)
        assert ends(result.interval) == pytest.approx((-high, -low), abs=1e-9)
        assert result.p == pytest.approx(swapped.p)


@given(st.lists(st.tuples(st.integers(0, 12), st.tuples(*[st.integers(0, 1)] * 2)), min_size=1))
def test_a_constant_habit_cannot_be_gained(rows: list[tuple[int, tuple[int, int]]]) -> None:
    first, second, games = two_ratios([(game, (1, b, 1, d)) for game, (b, d) in rows])
    restricted = [ratio._replace(support=((-1, 1), (0, 1))) for ratio in (first, second)]
    expected = ratio_difference(restricted[0], restricted[1], games)
    assert ratio_difference(first, second, games) == expected


def test_a_clear_difference_is_significant_with_different_wholes() -> None:
    rows = [(1, 1, 1, 0)] * 40 + [(0, 0, 1, 0)] * 40 + [(1, 0, 0, 0)] * 20
    first, second, games = two_ratios(list(enumerate(rows)))
    difference = ratio_difference(first, second, games)
    assert difference
    assert difference.value == pytest.approx(-1 + 20 / 60)
    assert difference.p < 1e-6
