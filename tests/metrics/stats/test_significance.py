"""Exact tests: p counts every sign flip of the games once."""

from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.metrics.stats.significance import holm, p_value

Samples = list[tuple[int, int]]
samples = st.lists(st.tuples(st.integers(0, 8), st.integers(-2, 2)), max_size=25)
"""The game and the difference of each sample."""


def columns(rows: Samples) -> tuple[list[int], list[int]]:
    return [difference for _, difference in rows], [game for game, _ in rows]


@given(samples)
def test_p_is_the_share_of_sign_flips_with_as_large_a_difference(rows: Samples) -> None:
    differences, games = columns(rows)
    sums = [sum(d for g, d in rows if g == game) for game in sorted(set(games))]
    as_large = [
        abs(sum(sign * value for sign, value in zip(signs, sums, strict=True))) >= abs(sum(sums))
        for signs in product((-1, 1), repeat=len(sums))
    ]
    assert p_value(differences, games) == pytest.approx(sum(as_large) / len(as_large), rel=1e-12)


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (1, 0), (5, 0), (10, 2), (6, 6), (300, 100)])
def test_with_one_sample_per_game_it_is_the_exact_mcnemar_test(lost: int, won: int) -> None:
    tail = sum(comb(lost + won, k) for k in range(min(lost, won) + 1))
    expected = min(1.0, 2 * tail / 2 ** (lost + won))
    differences = [-1] * lost + [1] * won + [0] * 7
    assert p_value(differences, range(lost + won + 7)) == pytest.approx(expected, rel=1e-12)


def test_p_has_no_floor() -> None:
    assert p_value([1] * 1000, range(1000)) == pytest.approx(2.0**-999)


def test_holm_multiplies_the_smallest_most_and_keeps_the_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []
