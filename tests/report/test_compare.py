"""Comparisons with known differences."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.errors import BadInput
from cant_do_that_anymore.evaluation.comparison import Comparison, compare, differences_in_plan
from cant_do_that_anymore.evaluation.intervals import holm
from cant_do_that_anymore.evaluation.measures import SHARES
from cant_do_that_anymore.evaluation.results import Run
from cant_do_that_anymore.evaluation.vocabulary import AFTER, BEFORE, Outcome
from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.game.rules import rules_named
from cant_do_that_anymore.models.model import Settings
from cant_do_that_anymore.report.comparison_page import comparison_page
from runs import plan_of
from runs import run_of as run_that_said

POOL = shipped_pool("pool")
PLAN = plan_of()

Play = Callable[[int], Outcome]
"""The outcome under the changed rules of the n-th position."""


def run_of(model: str, positions: list[Position], play: Play) -> Run:
    """A run in which the model has the habit everywhere under the standard rules."""
    asked = [
        (position, {BEFORE: "special", AFTER: play(number)})
        for number, position in enumerate(positions)
    ]
    return run_that_said(asked, PLAN, model=model, version=model)


def keeps(percent: int, *, from_: int = 0) -> Play:
    """Keep the habit in so many of a hundred positions, counted from the given one."""
    return lambda number: "special" if (number - from_) % 100 < percent else "adapted"


def when_changed(comparisons: list[Comparison]) -> Comparison:
    return next(c for c in comparisons if c.measure.name == SHARES[AFTER])


def test_a_planted_difference_is_found_with_its_size() -> None:
    runs = [run_of("a", POOL[:400], keeps(40)), run_of("b", POOL[:400], keeps(60, from_=20))]
    found = when_changed(compare(runs))
    assert found.shares == (0.4, 0.6)
    assert found.difference == pytest.approx(0.2)
    assert found.interval
    assert found.interval.low < 0.2 < found.interval.high
    assert found.interval.low > 0
    assert found.verdict == "different"
    assert found.sentence == (
        "b plays the special move under the changed rules more often than a, "
        "by 20.0 points on 400 shared samples."
    )


def test_the_paired_interval_is_narrower_than_chance_between_strangers() -> None:
    """40 of 400 positions differ, all in one direction: unpaired, that would be 0.1 +- 0.07."""
    runs = [run_of("a", POOL[:400], keeps(50)), run_of("b", POOL[:400], keeps(60))]
    interval = when_changed(compare(runs)).interval
    assert interval
    assert interval.high - interval.low < 0.07


def test_equal_models_are_alike_where_there_is_enough_to_tell() -> None:
    runs = [run_of("a", POOL[:400], keeps(50)), run_of("b", POOL[:400], keeps(50))]
    found = when_changed(compare(runs))
    assert found.difference == 0
    assert found.corrected_p == 1
    assert found.verdict == "alike"
    few = [run_of("a", POOL[:20], keeps(50)), run_of("b", POOL[:20], keeps(50))]
    # Never differing is no proof of being equal.
    assert when_changed(compare(few)).verdict == "open"


def test_disjoint_datasets_say_that_nothing_is_shared_and_what_would_be_enough() -> None:
    runs = [run_of("a", POOL[:50], keeps(50)), run_of("b", POOL[50:100], keeps(50))]
    for found in compare(runs):
        assert found.n_samples == 0
        assert found.difference is None
        assert found.interval is None
        assert found.verdict == "open"
        assert "share no position" in found.sentence
        assert f"{found.enough:,} shared samples would be enough" in found.sentence
        assert 1_000 < found.enough < 4_000
    assert "share no position" in comparison_page(runs, compare(runs))


def test_one_shared_sample_is_too_few_however_clear_it_looks() -> None:
    runs = [run_of("a", POOL[:1], keeps(100)), run_of("b", POOL[:1], keeps(0))]
    found = when_changed(compare(runs))
    assert found.shares == (1.0, 0.0)
    assert found.p == 1
    assert found.verdict == "open"
    assert found.enough > 100
    assert "1 shared sample is too few to tell" in found.sentence


def test_only_shared_positions_are_compared() -> None:
    runs = [run_of("a", POOL[:300], keeps(100)), run_of("b", POOL[200:500], keeps(0))]
    found = when_changed(compare(runs))
    assert (found.n_samples, found.shares) == (100, (1.0, 0.0))


def test_samples_of_one_game_do_not_count_as_independent() -> None:
    one_game = [replace(position, game=1) for position in POOL[:200]]
    runs = [run_of("a", one_game, keeps(100)), run_of("b", one_game, keeps(0))]
    found = when_changed(compare(runs))
    assert (found.n_samples, found.n_games) == (200, 1)
    assert found.verdict == "open"


def test_what_was_enough_is_enough() -> None:
    """As many samples as were asked for show a difference of five points."""
    few = [run_of("a", POOL[:100], keeps(50)), run_of("b", POOL[:100], keeps(50, from_=5))]
    enough = when_changed(compare(few)).enough
    many = [
        run_of("a", POOL[:enough], keeps(50)),
        run_of("b", POOL[:enough], lambda n: keeps(50, from_=5)(n) if n % 100 >= 5 else "special"),
    ]
    found = when_changed(compare(many))
    assert found.difference == pytest.approx(0.05, abs=0.005)
    assert found.verdict == "different"


def test_more_comparisons_ask_for_more_evidence() -> None:
    a, b = (run_of("a", POOL[:200], keeps(50)), run_of("b", POOL[:200], keeps(57)))
    alone = when_changed(compare([a, b]))
    among_many = when_changed(compare([a, b, *(run_of(x, POOL[:200], keeps(50)) for x in "cde")]))
    assert alone.p == among_many.p
    assert alone.p < alone.corrected_p < among_many.corrected_p


def test_samples_without_an_answer_are_left_out() -> None:
    runs = [
        run_of("a", POOL[:10], lambda n: "error" if n == 0 else "special"),
        run_of("b", POOL[:10], lambda n: "error" if n == 1 else "special"),
    ]
    assert when_changed(compare(runs)).n_samples == 8


def test_runs_that_cannot_be_compared_are_refused() -> None:
    one = run_of("a", POOL[:2], keeps(50))
    with pytest.raises(BadInput, match="two runs or more"):
        compare([one])
    other = replace(one, plan=replace(PLAN, change=rules_named("rooks-as-knights")))
    with pytest.raises(BadInput, match=r"different rules .*rooks-as-knights"):
        compare([one, other])


def test_other_differences_between_runs_are_named() -> None:
    one = run_of("a", POOL[:2], keeps(50))
    other = replace(one, plan=replace(PLAN, settings=Settings(0.0, 16)))
    assert differences_in_plan([one, one]) == []
    assert ["temperature" in note for note in differences_in_plan([one, other])] == [True]


def test_two_runs_of_one_model_are_told_apart() -> None:
    one = run_of("a", POOL[:2], keeps(50))
    found = compare([one, one])[0]
    assert (found.first, found.second) == ("a #1", "a #2")


def test_the_name_of_a_model_cannot_act_as_html() -> None:
    runs = [
        run_of("<script>alert(1)</script>", POOL[:5], keeps(50)),
        run_of("b", POOL[:5], keeps(9)),
    ]
    page = comparison_page(runs, compare(runs))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_only_raises_p_values_and_keeps_their_order(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(p <= c <= 1 for p, c in zip(p_values, corrected, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [corrected[i] for i in order] == sorted(corrected)
    assert corrected[order[0]] == min(1, len(p_values) * p_values[order[0]])
