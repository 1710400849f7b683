"""Intervals: what holds for all of them, and how far they can be trusted."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
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
"""The game of each sample, its part and its whole."""

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


measured = st.sampled_from(sorted(MEASURES)).flatmap(
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


@given(measured)
def test_an_interval_holds_its_own_value_and_nothing_impossible(case: tuple[Support, Rows]) -> None:
    support, rows = case
    whole = sum(whole for _, (_, whole) in rows)
    interval = interval_of(rows, support)
    assert (interval is None) == (whole == 0)
    if interval:
        assert interval.low <= sum(part for _, (part, _) in rows) / whole <= interval.high
        lowest, highest = RANGES.get(tuple(support), (-2, 2))
        assert lowest <= interval.low < interval.high <= highest


@given(measured, st.randoms())
def test_order_and_names_of_games_do_not_matter(case: tuple[Support, Rows], random: Random) -> None:
    support, rows = case
    renamed: list[tuple[object, tuple[int, int]]] = [(f"game {game}", row) for game, row in rows]
    random.shuffle(renamed)
    expected, found = interval_of(rows, support), interval_of(renamed, support)
    assert (found is None) == (expected is None)
    if expected:
        assert ends(found) == pytest.approx(ends(expected), abs=1e-9)


@given(rows_of(DIFFERENCE))
def test_the_other_way_round_is_the_mirror_image(rows: Rows) -> None:
    low, high = ends(interval_of(rows, DIFFERENCE))
    mirrored = interval_of([(game, (-part, 1)) for game, (part, _) in rows], DIFFERENCE)
    assert ends(mirrored) == pytest.approx((-high, -low), abs=1e-9)


@given(rows_of(((-1, 1), (0, 1))))
def test_where_the_habit_was_always_there_both_changes_are_one(rows: Rows) -> None:
    assert interval_of(rows, DIFFERENCE) == interval_of(rows, RELATIVE_CHANGE)


@given(rows_of(RELATIVE_CHANGE))
def test_samples_without_a_whole_and_a_part_change_nothing(rows: Rows) -> None:
    if {whole for _, (_, whole) in rows} != {1}:
        more = [*rows, *((game, (0, 0)) for game in range(40))]
        assert interval_of(more, RELATIVE_CHANGE) == interval_of(rows, RELATIVE_CHANGE)


@given(rows_of(RATE), st.integers(2, 5))
def test_copies_of_samples_of_one_game_are_no_evidence(rows: Rows, times: int) -> None:
    apart = [(index, row) for index, (_, row) in enumerate(rows)]
    low, high = ends(interval_of(apart, RATE))
    copied_low, copied_high = ends(interval_of(apart * times, RATE))
    assert copied_low <= low + 1e-9
    assert copied_high >= high - 1e-9


def test_one_game_says_next_to_nothing_about_others() -> None:
    low, high = ends(Ratio([1] * 50, [1] * 50, RATE).interval([0] * 50))
    assert low < 0.05
    assert high == 1


def test_no_change_seen_is_no_proof_of_none() -> None:
    for n, width in ((1, 0.79), (20, 0.16), (1000, 0.0038)):
        low, high = ends(Ratio([0] * n, [1] * n, DIFFERENCE).interval(range(n)))
        assert -low == pytest.approx(high)
        assert high == pytest.approx(width, rel=0.05)


def test_equal_to_within_five_points_takes_73_samples_without_a_difference() -> None:
    def widest(n: int) -> float:
        return ends(Ratio([0] * n, [1] * n, DIFFERENCE).interval(range(n)))[1]

    assert widest(73) <= 0.05 < widest(72)


@pytest.mark.parametrize("critical_factor", [1.0, 1.1, 2.0])
def test_a_stretched_interval_reaches_as_many_times_further(critical_factor: float) -> None:
    cells = [Cell(1, 1, 8), Cell(0, 1, 2)]
    found = Ratio([1] * 8 + [0] * 2, [1] * 10, RATE).interval(range(10), critical_factor)
    assert [score(cells, end) for end in ends(found)] == pytest.approx(
        [critical_factor * 1.959964] * 2
    )
    rows = [(1, 1, 1, 0)] * 12 + [(1, 0, 1, 1)] * 5 + [(0, 0, 1, 0)] * 3
    first, second, games = two_models(list(enumerate(rows)))
    plain, wider = (ratio_difference(first, second, games, each) for each in (1.0, critical_factor))
    assert plain and wider and wider.value == plain.value
    assert errors_away(wider.p) == pytest.approx(errors_away(plain.p) / critical_factor)
    assert (wider.interval.high > plain.interval.high) == (critical_factor > 1)


def test_p_is_the_normal_tail_of_the_score_or_students_by_the_design_effect() -> None:
    alone = Ratio([1] * 8 + [0] * 2, [1] * 10, RATE).tally(range(10))
    assert alone
    away = 0.3 / sqrt(0.25 / 10)
    assert errors_away(alone.p(0.5)) == pytest.approx(away)
    together = replace(alone, design_effect=4.0, degrees_of_freedom=9.0)
    assert together.p(0.5) == pytest.approx(t_two_sided(away / 2, 9))


def test_the_design_effect_is_the_one_worked_out_by_hand() -> None:
    """Games of 3, 2 and 1 samples, whose deviations from 1/2 sum to 1/2, 0 and -1/2."""
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


def test_many_singles_do_not_hide_that_large_games_are_few() -> None:
    """900 games of one sample and 30 of twenty that are all alike; the habit drops by 94 %."""
    random, held = Random(1), 0
    games = [*range(900), *(900 + sample // 20 for sample in range(600))]
    for _ in range(150):
        had = [random.random() < 0.9 for _ in range(930)]
        kept = [random.random() < 0.9 * 0.06 for _ in range(930)]
        first = [(int(had[game]), int(kept[game])) for game in games]
        parts, wholes, support = relative(first)
        tally = Ratio(parts, wholes, support).tally(games)
        held += tally is not None and tally.contains(-0.94)
    assert held / 150 > 0.93


def errors_away(p: float) -> float:
    return NormalDist().inv_cdf(1 - p / 2)


def test_a_sample_that_cannot_be_is_an_error() -> None:
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
    """All ways in which n samples can fall into four cells."""
    return [
        (a, b, c, n - a - b - c)
        for a in range(n + 1)
        for b in range(n + 1 - a)
        for c in range(n + 1 - a - b)
    ]


@pytest.mark.parametrize(("p", "impact"), [(0.67, -0.5), (0.95, -0.02), (0.95, -1), (1, -0.98)])
def test_of_20_samples_92_of_100_intervals_hold_the_truth(p: float, impact: float) -> None:
    """Exactly: all tables of twenty samples with independent answers, by their probability."""
    kept = p * (1 + impact)
    chances = ((1 - p) * (1 - kept), (1 - p) * kept, p * (1 - kept), p * kept)
    parts, wholes = (0, 1, -1, 0), (0, 0, 1, 1)
    delta_holds = impact_holds = some = 0.0
    for table in tables(20):
        weight, left = 1.0, 20
        for count, chance in zip(table, chances, strict=True):
            weight *= comb(left, count) * chance**count
            left -= count
        if weight < 1e-9:
            continue
        delta = [Cell(part, 1, count) for part, count in zip(parts, table, strict=True)]
        delta_holds += weight * (score(delta, p * impact) <= 1.96)
        if table[2] + table[3]:
            change = [Cell(*cell) for cell in zip(parts, wholes, table, strict=True)]
            impact_holds += weight * (score(change, impact) <= 1.96)
            some += weight
    assert delta_holds > 0.92
    assert impact_holds / some > 0.92


def relative(rows: list[tuple[int, int]]) -> Ratio:
    """The relative change from the first of two answers to the second."""
    return Ratio([b - a for a, b in rows], [a for a, _ in rows], RELATIVE_CHANGE)


answers = st.tuples(*[st.integers(0, 1)] * 4)
games_and_answers = st.lists(st.tuples(st.integers(0, 12), answers), min_size=1, max_size=30)
Quads = list[tuple[int, tuple[int, int, int, int]]]


def two_models(rows: Quads) -> tuple[Ratio, Ratio, list[int]]:
    first = relative([(a, b) for _, (a, b, _, _) in rows])
    second = relative([(a, b) for _, (_, _, a, b) in rows])
    return first, second, [game for game, _ in rows]


@given(games_and_answers)
def test_a_difference_of_ratios_holds_its_value_and_agrees_with_its_p(rows: Quads) -> None:
    first, second, games = two_models(rows)
    found = ratio_difference(first, second, games)
    if not sum(first.wholes) or not sum(second.wholes):
        assert found is None
        return
    assert found
    assert found.interval.low <= found.value <= found.interval.high
    assert 0 <= found.p <= 1
    if abs(found.p - 0.05) > 1e-6:
        assert (found.p < 0.05) == (not found.interval.low <= 0 <= found.interval.high)


@given(games_and_answers)
def test_exchanging_two_models_mirrors_their_difference(rows: Quads) -> None:
    first, second, games = two_models(rows)
    one, other = ratio_difference(first, second, games), ratio_difference(second, first, games)
    if one and other:
        low, high = ends(other.interval)
        assert ends(one.interval) == pytest.approx((-high, -low), abs=1e-9)
        assert one.p == pytest.approx(other.p)


@given(st.lists(st.tuples(st.integers(0, 12), st.tuples(*[st.integers(0, 1)] * 2)), min_size=1))
def test_a_habit_always_there_cannot_be_gained(rows: list[tuple[int, tuple[int, int]]]) -> None:
    first, second, games = two_models([(game, (1, b, 1, d)) for game, (b, d) in rows])
    one, other = (ratio._replace(support=((-1, 1), (0, 1))) for ratio in (first, second))
    assert ratio_difference(first, second, games) == ratio_difference(one, other, games)


def test_models_that_always_agreed_are_not_proven_equal_by_a_few_samples() -> None:
    rows = [(a, b, a, b) for a, b in product((0, 1), repeat=2)] * 5
    first, second, games = two_models(list(enumerate(rows)))
    found = ratio_difference(first, second, games)
    assert found
    assert found.p == 1
    assert found.interval.low == pytest.approx(-found.interval.high)
    assert found.interval.high > 0.3


def test_models_that_differ_clearly_are_told_apart_also_where_their_wholes_differ() -> None:
    rows = [(1, 1, 1, 0)] * 40 + [(0, 0, 1, 0)] * 40 + [(1, 0, 0, 0)] * 20
    first, second, games = two_models(list(enumerate(rows)))
    found = ratio_difference(first, second, games)
    assert found
    assert found.value == pytest.approx(-1 + 20 / 60)
    assert found.p < 1e-6
