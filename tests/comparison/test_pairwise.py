"""Pairs of models with known differences, on the items that they share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cant_do_that_anymore import Estimate, rules_named
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.comparison.pairwise import Pair, Verdict
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.task.types import Outcome
from custom_rules import NoEnPassant
from run_builders import comparisons_of as compare
from testing import POOL, Outcomes, keeps_habit_in, run_with_outcomes


def runs_of(n: int, **plays: Outcomes) -> list[Run]:
    """Models by name on the first n positions, by their outcomes under the changed rules."""
    return [run_with_outcomes(name, play, positions=POOL[:n]) for name, play in plays.items()]


def pair_of(n: int, **plays: Outcomes) -> Pair:
    [pair] = compare(runs_of(n, **plays))
    return pair


def cut_off(percent: int) -> Callable[[int], Outcome]:
    """Ignores the rule, and this percentage of replies is truncated."""
    return lambda number: "truncated" if number % 100 < percent else "usual"


def test_a_planted_difference_is_found_in_both_orders() -> None:
    runs = runs_of(400, a=keeps_habit_in(60, first=20), b=keeps_habit_in(40))
    [forward], [backward] = compare(runs), compare(runs[::-1])
    assert forward.difference and backward.difference
    assert forward.difference == -backward.difference
    assert forward.difference.value == pytest.approx(-0.2) and forward.difference.n == 400
    assert forward.verdict == backward.verdict == "different"
    assert backward.sentence.startswith("b over a on 400 shared positions: +20 points [+")
    assert backward.sentence.endswith("], different.")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.05, 0.05, "equivalent"),
        (-0.051, 0.05, "inconclusive"),
        (0.0, 0.3, "inconclusive"),
        (0.01, 0.3, "different"),
        (-0.3, -0.01, "different"),
        (0.01, 0.04, "different"),
    ],
)
def test_the_verdict_follows_from_the_interval(low: float, high: float, verdict: Verdict) -> None:
    pair = pair_of(10, a=keeps_habit_in(50), b="adapted")
    pair = replace(pair, difference=Estimate((low + high) / 2, low, high, 10))
    assert (pair.verdict, pair.result) == (verdict, verdict)


def test_only_items_that_both_answered_count() -> None:
    first = run_with_outcomes("a", positions=POOL[:300])
    outcomes: list[Outcome] = ["adapted"] * 300
    outcomes[0] = "error"
    [pair] = compare([first, run_with_outcomes("b", outcomes, positions=POOL[200:500])])
    assert pair.difference
    assert (pair.shared, pair.difference.n, pair.difference.value) == (99, 99, -1)


def test_replies_without_a_move_never_win_and_hide_no_clear_difference() -> None:
    for percent in (3, 15, 59, 100):
        pair = pair_of(300, stubborn="usual", junk=cut_off(percent))
        assert pair.verdict != "different"
        assert pair.difference and pair.difference.sign == 0
    assert pair_of(300, deaf=cut_off(10), good=keeps_habit_in(10)).verdict == "different"


class Rephrased(NoEnPassant):
    statement = "En passant is over: such a move is now illegal."


@pytest.mark.parametrize(
    ("part", "change", "sentence"),
    [
        ("plan", {"change": rules_named("rooks-as-knights")}, "different rules .*rooks-as-knights"),
        ("plan", {"change": Rephrased()}, "different rules .*no-en-passant-.*, no-en-passant-"),
        ("plan", {"eval": "all_diagonal"}, "different evals .*all, all_diagonal"),
        ("dataset", {"pool_name": "mine"}, "different pools .*the default pool, the pool mine"),
    ],
    ids=["rules", "rules under one key", "evals", "pools"],
)
def test_runs_that_differ_in_the_task_are_refused(
    part: str, change: dict[str, Any], sentence: str
) -> None:
    run = run_with_outcomes(positions=POOL[:2], plan={"change": NoEnPassant()})
    other = replace(run, **{part: replace(getattr(run, part), **change)})
    with pytest.raises(InvalidInput, match=sentence):
        compare([run, other])
    assert len(rankings([run, other])) == 2
