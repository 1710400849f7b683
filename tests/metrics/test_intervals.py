"""Intervals of ratios, differences and means: what all share, clusters, coverage."""

from collections.abc import Callable, Sequence
from itertools import product
from math import comb, inf, sqrt
from random import Random
from statistics import NormalDist, mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.metrics.clusters import Tally
from cant_do_that_anymore.metrics.intervals import (
    DIFFERENCE,
    DROP,
    SHARE,
    Ratio,
    Support,
    difference_tally,
    mean_interval,
    value_of,
)
from cant_do_that_anymore.metrics.score_interval import Cell, score, score_limits, t_quantile

Rows = list[tuple[int, tuple[int, int]]]
"""The group, the part and the whole of each sample."""

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


def ratio_of(rows: Sequence[tuple[object, tuple[int, int]]], support: Support) -> Ratio:
    return Ratio([part for _, (part, _) in rows], [whole for _, (_, whole) in rows], support)


def interval_of(
    rows: Sequence[tuple[object, tuple[int, int]]], support: Support
) -> tuple[float, float]:
    return ratio_of(rows, support).tally([str(group) for group, _ in rows]).interval()


@given(supports_and_rows, st.randoms())
def test_an_interval_contains_its_value_and_ignores_the_order(
    case: tuple[tuple[Support, float, float], Rows], random: Random
) -> None:
    (support, lowest, highest), rows = case
    if not any(whole for _, (_, whole) in rows):
        return
    low, high = interval_of(rows, support)
    assert lowest <= low <= ratio_of(rows, support).value <= high <= highest and low < high
    renamed: list[tuple[object, tuple[int, int]]] = [(f"group {g}", row) for g, row in rows]
    random.shuffle(renamed)
    assert interval_of(renamed, support) == pytest.approx((low, high), abs=1e-9)


@given(rows_of(DIFFERENCE))
def test_negated_parts_mirror_the_interval(rows: Rows) -> None:
    low, high = interval_of(rows, DIFFERENCE)
    mirrored = interval_of([(group, (-part, 1)) for group, (part, _) in rows], DIFFERENCE)
    assert mirrored == pytest.approx((-high, -low), abs=1e-9)


@given(rows_of(DROP))
def test_samples_with_part_and_whole_0_change_nothing(rows: Rows) -> None:
    if {whole for _, (_, whole) in rows} == {0, 1}:
        more = [*rows, *((group, (0, 0)) for group in range(40))]
        assert interval_of(more, DROP) == interval_of(rows, DROP)


@given(rows_of(SHARE), st.integers(2, 5))
def test_copies_within_a_group_do_not_narrow_the_interval(rows: Rows, times: int) -> None:
    separate = [(index, row) for index, (_, row) in enumerate(rows)]
    low, high = interval_of(separate, SHARE)
    copied_low, copied_high = interval_of(separate * times, SHARE)
    assert copied_low <= low + 1e-9 and copied_high >= high - 1e-9


def test_a_single_group_has_a_wide_interval() -> None:
    low, high = Ratio([1] * 50, [1] * 50, SHARE).tally([0] * 50).interval()
    assert low < 0.05 and high == 1


def test_equivalence_within_5_points_takes_73_equal_samples() -> None:
    def ends(n: int) -> tuple[float, float]:
        return Ratio([0] * n, [1] * n, DIFFERENCE).tally(range(n)).interval()

    assert ends(73)[1] <= 0.05 < ends(72)[1]
    for n in (1, 20, 1000):
        low, high = ends(n)
        assert -low == pytest.approx(high)


def test_the_design_effect_matches_a_hand_calculation() -> None:
    """Groups have 3, 2 and 1 samples. Their deviations from 1/2 sum to 1/2, 0 and -1/2."""
    tally = Ratio([1, 1, 0, 1, 0, 0], [1] * 6, SHARE).tally("aaabbc")
    added, n_groups = (27 + 8 + 1) / (9 + 4 + 1), 36 / 14
    between = (1 / 4 + 1 / 4) * n_groups / (n_groups - 1)
    assert tally.degrees_of_freedom == pytest.approx(n_groups)
    assert tally.design_effect == pytest.approx((between + added**2 / 4) / (6 / 4 + added / 4))
    two_groups = Ratio([1, 0, 1], [1] * 3, SHARE).tally("aab")
    assert two_groups.degrees_of_freedom == pytest.approx(9 / 5)
    between, added = 2 / 9 * 9 / 4, 9 / 5
    assert two_groups.design_effect == pytest.approx(
        (between + added**2 * 4 / 9) / (6 / 9 + added * 4 / 9)
    )


def test_an_interval_is_that_of_the_score_or_of_students_t_with_a_design_effect() -> None:
    cells = (Cell(0, 1, 2), Cell(1, 1, 8))
    for tally, critical in (
        (Tally(cells), NormalDist().inv_cdf(0.975)),
        (Tally(cells, 4.0, 9.0), 2 * t_quantile(9.0)),
    ):
        assert tally.interval() == score_limits(cells, critical)
    assert Tally(cells).interval(0.01) == score_limits(cells, NormalDist().inv_cdf(0.995))


def test_an_impossible_sample_is_an_error() -> None:
    with pytest.raises(ValueError, match="not one of"):
        Ratio([2, 0], [1, 1], SHARE).tally([0, 1])


@pytest.mark.parametrize(
    "compute",
    [
        lambda: Ratio([1], [1, 1], SHARE).tally("a"),
        lambda: Ratio([1], [1], SHARE).tally("ab"),
        lambda: difference_tally(Ratio([1], [1], SHARE), Ratio([1, 0], [1, 1], SHARE), "a"),
        lambda: mean_interval([1, 2, 3], "ab", signed=True),
    ],
    ids=["parts", "groups of a ratio", "two ratios", "groups of a mean"],
)
def test_lists_of_unequal_lengths_are_an_error(compute: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"argument \d is"):
        compute()


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


def drop(rows: Sequence[tuple[int, int]]) -> Ratio:
    """The relative drop from the first of two answers to the second."""
    return Ratio([a - b for a, b in rows], [a for a, _ in rows], DROP)


PairedRows = list[tuple[int, tuple[int, int, int, int]]]
answers = st.tuples(*[st.integers(0, 1)] * 4)
groups_and_answers = st.lists(st.tuples(st.integers(0, 12), answers), min_size=1, max_size=30)


@given(groups_and_answers)
def test_swapping_two_models_mirrors_their_difference(rows: PairedRows) -> None:
    first, second = (drop([(r[i], r[i + 1]) for _, r in rows]) for i in (0, 2))
    if not sum(first.wholes) or not sum(second.wholes):
        return
    groups = [group for group, _ in rows]
    tally, swapped = (
        difference_tally(first, second, groups),
        difference_tally(second, first, groups),
    )
    low, high = tally.interval()
    assert low - 1e-12 <= value_of(tally) <= high + 1e-12
    assert value_of(tally) == pytest.approx(first.value - second.value)
    if low > -1 and high < 1:  # a wider one says nothing and may end at the edge of the possible
        assert swapped.interval() == pytest.approx((-high, -low), abs=1e-9)


def test_a_few_equal_samples_do_not_prove_equivalence() -> None:
    ratio = drop([(a, b) for a, b in product((0, 1), repeat=2)] * 5)
    low, high = difference_tally(ratio, ratio, range(20)).interval()
    assert low == pytest.approx(-high) and high > 0.3


def test_a_mean_of_single_samples_has_the_usual_t_interval() -> None:
    values = [3, 8, 1, 9, 4]
    margin = 2.776445 * stdev(values) / 5**0.5
    interval = mean_interval(values, range(5), signed=True)
    assert interval == pytest.approx((5 - margin, 5 + margin), rel=1e-6)
    assert mean_interval([1, 3], [1, 2])  # two groups are enough


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 6)), min_size=3, max_size=30))
def test_mean_intervals_are_the_jackknife_over_groups(drawn: list[tuple[int, int]]) -> None:
    values, groups = [value for value, _ in drawn], [group for _, group in drawn]
    interval = mean_interval(values, groups, signed=True)
    sizes = [groups.count(group) for group in set(groups)]
    n_groups = len(groups) ** 2 / sum(size**2 for size in sizes)
    means = [mean(v for v, g in drawn if g != out) for out in set(groups)] if n_groups > 1 else []
    error = sum((m - mean(values)) ** 2 for m in means) * (len(sizes) - 1) / len(sizes)
    if n_groups < 2 or error < 1e-12:
        assert interval is None or interval[1] - interval[0] < 1e-3
        return
    assert interval
    assert interval[1] - mean(values) == pytest.approx(t_quantile(n_groups - 1) * sqrt(error))
    amounts = mean_interval(values, groups)
    assert amounts and 0 < amounts[0] < mean(values) < amounts[1]
    assert amounts[0] * amounts[1] == pytest.approx(mean(values) ** 2)


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
def test_too_little_data_gives_no_interval_of_a_mean(values: list[int], groups: list[int]) -> None:
    assert mean_interval(values, groups) is None


def test_coverage_of_the_mean_of_a_skewed_amount() -> None:
    random, covered = Random(1), 0
    for _ in range(400):
        drawn = [round(1000 * random.lognormvariate(-0.125, 0.5)) for _ in range(50)]
        interval = mean_interval(drawn, range(50))
        assert interval
        covered += interval[0] <= 1000 <= interval[1]
    assert 0.91 < covered / 400 < 0.98
