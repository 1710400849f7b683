"""What a comparison says in one line, who is who in it, and what it warns of."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from cant_do_that_anymore.evaluation.comparison import compare
from cant_do_that_anymore.evaluation.contenders import (
    common_dataset,
    contenders,
    differences_in_plan,
)
from cant_do_that_anymore.evaluation.results import Dataset, Run
from cant_do_that_anymore.evaluation.verdicts import UNION, advice, heading, verdict
from cant_do_that_anymore.evaluation.vocabulary import AFTER, BEFORE, Outcome
from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.models.concessions import NO_TEMPERATURE
from cant_do_that_anymore.models.model import Answer, Settings
from runs import plan_of
from runs import run_of as run_that_said

POOL = shipped_pool("pool")[:400]


def run_of(
    model: str,
    play: Callable[[int], Outcome] = lambda _: "special",
    positions: Sequence[Position] = POOL,
    settings: Settings | None = None,
    **fields: Any,
) -> Run:
    asked = [(p, {BEFORE: "special", AFTER: play(n)}) for n, p in enumerate(positions)]
    plan = plan_of(len(positions), settings=settings or Settings())
    usual = {"model": model, "version": model, "identity": {"name": model}}
    return run_that_said(asked, plan, **usual | fields)


def keeps(percent: int, otherwise: Outcome = "adapted") -> Callable[[int], Outcome]:
    return lambda number: "special" if number % 100 < percent else otherwise


def said(*runs: Run) -> str:
    return verdict(compare(runs))


def test_two_models_that_differ_for_sure() -> None:
    assert said(run_of("a", keeps(60)), run_of("b", keeps(40))) == (
        "b drops more of its habit than a, and that is sure: by 20.0 points (95 % interval 16.4 to "
        "24.2, p < 0.001); it also gains more legal answers, by 20.0 points."
    )


def test_who_drops_the_habit_without_legal_moves_is_not_called_better_without_a_word() -> None:
    legal, illegal = run_of("legal", keeps(40)), run_of("illegal", keeps(10, "illegal"))
    assert said(legal, illegal).endswith("; but legal gains more legal answers.")
    level = said(run_of("a", keeps(60, "illegal")), run_of("b", keeps(40, "illegal")))
    assert level.endswith("; but it does not gain more legal answers than a for sure.")
    alike = said(run_of("a", keeps(40)), run_of("b", keeps(40, "illegal")))
    assert alike.startswith("a and b are equal in the impact factor to within 5 points on 400")
    assert "; but a gains more legal answers than b, by 60.0 points" in alike


def test_two_models_that_are_equal_or_too_little_known() -> None:
    assert said(run_of("a", keeps(40)), run_of("b", keeps(40))) == (
        "a and b are equal in the impact factor to within 5 points on 400 shared samples."
    )
    few = said(run_of("a", keeps(1), POOL[:9]), run_of("b", keeps(2), POOL[:9]))
    assert few.startswith("9 shared samples are too few to tell whether a and b differ")
    apart = said(run_of("a", keeps(1), POOL[:9]), run_of("b", keeps(2), POOL[9:18]))
    assert apart.startswith("a and b share no position")


def test_three_models_of_which_one_is_best() -> None:
    runs = [run_of(name, keeps(kept)) for name, kept in (("a", 60), ("b", 20), ("c", 40))]
    assert said(*runs) == (
        "b drops more of its habit than every other, and that is sure: its smallest lead is 20.0 "
        "points (95 % interval 16.4 to 24.2, p < 0.001), over c; it also gains more legal answers, "
        "by 20.0 points or more."
    )


def test_three_models_of_which_two_lead() -> None:
    runs = [run_of(name, keeps(kept)) for name, kept in (("a", 60), ("b", 40), ("c", 41))]
    assert said(*runs) == (
        "No model drops more of its habit than all others for sure; b is ahead of a, and c is "
        "ahead of a."
    )


def test_three_models_of_which_none_leads() -> None:
    assert said(*(run_of(name, keeps(40)) for name in "abc")) == (
        "All are equal in the impact factor to within 5 points."
    )
    assert said(*(run_of(name, keeps(40), POOL[:20]) for name in "abc")) == (
        "No model drops more of its habit than another for sure."
    )


def test_a_model_is_not_ahead_of_one_that_it_shares_no_position_with() -> None:
    runs = [run_of("a", keeps(60)), run_of("b", keeps(20)), run_of("c", keeps(1), POOL[:0])]
    assert "every other" not in said(*runs)


def test_a_model_that_chats_is_not_ranked() -> None:
    chatter = run_of("c", lambda n: "unreadable" if n % 100 < 59 else "special")
    ranked = said(run_of("a", keeps(60)), run_of("b", keeps(40)), chatter)
    assert ranked.startswith("b drops more of its habit than a, and that is sure")
    why = "c cannot be ranked: 59.0 % of its answers under the changed rules name no move."
    assert ranked.endswith(why)
    assert said(run_of("a", keeps(60)), chatter) == why


# Labels


def test_runs_of_one_name_are_told_apart_by_what_differs() -> None:
    def labels(*runs: Run) -> list[str]:
        return [model.label for model in contenders(runs)]

    one = run_of("a")
    cold, own = Settings(temperature=0.0), Settings(temperature=None)
    assert labels(one, run_of("b")) == ["a", "b"]
    assert labels(one, run_of("a", settings=cold), run_of("b")) == [
        *("a temperature 1", "a temperature 0", "b")
    ]
    assert labels(one, run_of("a", settings=own))[1] == "a temperature its own"
    longer = run_of("a", settings=Settings(max_tokens=99))
    assert labels(one, longer) == ["a max tokens 16", "a max tokens 99"]
    elsewhere = run_of("a", endpoint="http://127.0.0.1:9/v1", identity={"name": "x"})
    assert labels(one, elsewhere) == ["a", "a http://127.0.0.1:9/v1"]
    assert labels(one, run_of("a", identity={"name": "x"})) == ["a #1", "a #2"]


# What was not the same


def test_whatever_was_not_the_same_is_named_with_who_had_what() -> None:
    one = run_of("a")
    plan = replace(one.plan, reading="exact", wording="other", settings=Settings(0.0, 32))
    [*notes] = differences_in_plan(contenders([one, run_of("b"), replace(run_of("c"), plan=plan)]))
    assert len(notes) == 4
    assert notes[0] == (
        "the runs differ in max tokens, which may be why they score apart (a: 16; b: 16; c: 32)"
    )
    for what in ("reading", "wording", "the temperature that was used"):
        assert any(f"differ in {what}, " in note for note in notes)
    assert differences_in_plan(contenders([one, run_of("b")])) == []


def test_a_temperature_that_was_not_taken_is_a_difference() -> None:
    answer = Answer("e2e4", conceded=(NO_TEMPERATURE,))
    asked = [(POOL[0], {BEFORE: answer, AFTER: answer})]
    own = run_that_said(asked, version="b", identity={"name": "b"})
    [note] = differences_in_plan(contenders([run_of("a"), own]))
    assert "(a: 1; b: the provider's own)" in note


@pytest.mark.parametrize(
    ("dataset", "told"),
    [
        (
            Dataset("b", "built", asked=90),
            "(a: shipped at temperature 0; b: built at temperature 0)",
        ),
        (
            Dataset("b", "built", asked=90, own_temperature=True),
            "(a: shipped at temperature 0; b: built by 2 of 3 draws at the provider's own "
            "temperature)",
        ),
        (Dataset("", "x.jsonl"), "(a: shipped at temperature 0; b: x.jsonl)"),
    ],
)
def test_datasets_that_were_selected_in_other_ways_are_a_difference(
    dataset: Dataset, told: str
) -> None:
    runs = [run_of("a"), run_of("b", dataset=dataset)]
    [note] = differences_in_plan(contenders(runs))
    assert note.startswith("the runs differ in how their datasets were selected")
    assert told in note


def test_another_protocol_is_a_difference() -> None:
    [note] = differences_in_plan(contenders([run_of("a"), run_of("b", protocol="1")]))
    assert "protocol" in note


# The positions


def test_one_given_dataset_is_said_to_be_the_same_for_all() -> None:
    given = Dataset("", "both.jsonl")
    models = contenders([run_of(name, dataset=given) for name in "ab"])
    assert common_dataset(models) == given
    assert heading(models) == "All on one dataset: both.jsonl"
    assert advice(models) == ""


def test_one_models_own_dataset_is_not_fair_to_others() -> None:
    models = contenders([run_of(name, dataset=Dataset("a", "shipped")) for name in "ab"])
    assert heading(models) == "All on one dataset: shipped, the dataset of a"
    assert advice(models) == f"The positions were chosen for the habit of a; {UNION}."
    twice = [run_of("a", dataset=Dataset("a", "shipped"), settings=Settings(t)) for t in (0.0, 1.0)]
    assert advice(contenders(twice)) == ""


def test_datasets_of_their_own_are_said_to_be_so_with_advice() -> None:
    own = [run_of(name, dataset=Dataset(name, "built", asked=900)) for name in "ab"]
    models = contenders(own)
    assert common_dataset(models) is None
    assert heading(models) == "On the positions that each pair shares of its own datasets"
    assert UNION in advice(models)
    given = Dataset("", "both.jsonl")
    apart = [run_of(n, positions=p, dataset=given) for n, p in (("a", POOL[:9]), ("b", POOL[9:]))]
    assert common_dataset(contenders(apart)) is None


# Notes


def test_notes_of_several_seeds_are_one_note_on_all_of_them() -> None:
    def cut(number: int) -> Outcome:
        return "truncated" if number % 3 else "special"

    runs = [run_of("a", cut, POOL[:99], Settings(seed=seed)) for seed in range(3)]
    kept = replace(runs[0], notes=[*runs[0].notes, "every answer was kept"])
    [model] = contenders([kept, *runs[1:]])
    assert len([note for note in model.notes if note.startswith("answers that name no move")]) == 1
    assert any("198 truncated" in note for note in model.notes)
    assert "every answer was kept" in model.notes
    [alone] = contenders([kept])
    assert alone.notes == kept.notes
