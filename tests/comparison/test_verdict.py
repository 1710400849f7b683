"""What a comparison says in one line, who is who in it, and what it warns of."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from cant_do_that_anymore.comparison.entries import (
    entries_of,
    pool_runs,
)
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan, ranking_of, rankings
from cant_do_that_anymore.comparison.openai_records import Record
from cant_do_that_anymore.comparison.verdict import UNION, advice, common_dataset, heading, verdict
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.providers.base import Answer, Effort, Settings
from cant_do_that_anymore.providers.request_variants import NO_TEMPERATURE
from cant_do_that_anymore.report.columns import group_notes
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome
from runs import plan_of
from runs import run_of as run_that_said

POOL = shipped_pool("pool")[:200]


def run_of(
    model: str,
    play: Callable[[int], Outcome] = lambda _: "special",
    positions: Sequence[Position] = POOL,
    settings: Settings | None = None,
    **fields: Any,
) -> Run:
    asked = [
        (p, {STANDARD_CONDITION: "special", CHANGED_CONDITION: play(n)})
        for n, p in enumerate(positions)
    ]
    plan = plan_of(len(positions), settings=settings or Settings())
    usual = {"model": model, "version": model, "identity": {"name": model}}
    return run_that_said(asked, plan, **usual | fields)


@cache
def keeps(percent: int, otherwise: Outcome = "adapted") -> Callable[[int], Outcome]:
    return lambda number: "special" if number % 100 < percent else otherwise


def said(*runs: Run) -> str:
    [ranking] = rankings(entries_of(runs))
    return verdict(ranking)


@cache
def cut(outcome: Outcome, percent: int) -> Callable[[int], Outcome]:
    """So many of a hundred answers are this, the others the habit."""
    return lambda number: outcome if number % 100 < percent else "special"


def test_one_model_is_said_to_adapt_only_where_that_is_significant() -> None:
    assert said(run_of("a", keeps(40))) == (
        "a adapts: its rule uptake is 0.60 (95% interval 0.53 to 0.67)."
    )
    assert said(run_of("a", keeps(90), POOL[:40])).startswith("a does not adapt significantly: its")
    assert said(run_of("a")) == (
        "a does not adapt significantly: its rule uptake is 0.00 (95% interval -0.02 to 0.02)."
    )
    assert said(run_of("a", cut("unreadable", 59))) == (
        "a does not adapt significantly: its rule uptake is 0.00 (95% interval -0.02 to 0.66, "
        "allowing for answers that contain no move); a's drop is off-task replies: 59% of its "
        "answers contain no move."
    )


def test_who_gave_no_answer_is_not_ranked() -> None:
    assert said(run_of("a", keeps(40)), run_of("b", lambda _: "error")) == (
        "a adapts: its rule uptake is 0.60 (95% interval 0.53 to 0.67); b cannot be ranked: "
        "it has no answers."
    )


def test_who_has_nothing_to_adapt_is_not_ranked() -> None:
    """No answer under the standard rules is one that the change forbids."""
    said_always: dict[str, Outcome] = {STANDARD_CONDITION: "legal", CHANGED_CONDITION: "legal"}
    asked = [(position, said_always) for position in POOL[:50]]
    calm = run_that_said(asked, model="b", identity={"name": "b"})
    assert calm.results.metrics["rule_uptake"] is None
    assert said(run_of("a", keeps(40)), calm).endswith(
        "; b cannot be ranked: no answer under the standard rules is a move that is illegal now."
    )


def test_a_significant_lead_comes_with_its_size_and_p() -> None:
    assert said(run_of("a", keeps(60)), run_of("b", keeps(40))) == (
        "b adapts most; its lead over a is significant: 20.0 points, p < 0.001."
    )
    runs = [run_of(name, keeps(kept)) for name, kept in (("a", 60), ("b", 20), ("c", 40))]
    assert said(*runs) == "b adapts most; its lead over c is significant: 20.0 points, p < 0.001."


def test_the_verdict_goes_by_legal_moves_and_not_by_dropped_habits() -> None:
    legal, illegal = run_of("legal", keeps(40)), run_of("wrong", keeps(10, "illegal"))
    assert said(legal, illegal) == (
        "legal adapts most; its lead over wrong is significant: 60.0 points, p < 0.001; wrong's "
        "drop is no adaptation: 90% of its answers are other illegal moves or contain no move."
    )


def test_models_without_a_significant_difference_are_not_ranked() -> None:
    assert said(run_of("a", keeps(40)), run_of("b", keeps(40))) == (
        "a is equivalent to b in the rule uptake, to within 5 points."
    )
    near = [run_of("a", keeps(50), POOL[:100]), run_of("b", keeps(52), POOL[:100])]
    assert re.fullmatch(
        r"a has the highest rule uptake, but its lead over b is inconclusive \(\+2\.0 points, p = "
        r"[\d.]+\); only 100 samples shared, and detecting a difference of 5 points would take "
        r"about [\d,]+\.",
        said(*near),
    )
    apart = [run_of("a", keeps(1), POOL[:90]), run_of("b", keeps(2), POOL[90:180])]
    assert "over b is inconclusive (they share no position that both answered)" in said(*apart)


def test_a_tie_at_the_top_does_not_hide_who_is_behind() -> None:
    runs = [run_of(name, keeps(kept)) for name, kept in (("a", 60), ("b", 40), ("c", 40))]
    assert said(*runs) == (
        "b is equivalent to c in the rule uptake, to within 5 points; its lead over a is "
        "significant."
    )


def test_many_over_whom_a_lead_is_inconclusive_are_counted() -> None:
    runs = [run_of(name, keeps(40), POOL[:60]) for name in "abcdef"]
    told = said(*runs)
    assert told.startswith("a has the highest rule uptake, but its lead over b, c, d and 2 others ")
    assert "is inconclusive (0.0 points, p = 1.000 over b)" in told


def test_nobody_is_said_to_adapt_where_no_uptake_is_significant() -> None:
    assert said(run_of("a"), run_of("b")) == (
        "No model adapts significantly: the highest rule uptake, that of a, is 0.00 (95% interval "
        "-0.02 to 0.02)."
    )


def test_who_is_ahead_on_shared_positions_is_named_though_another_has_the_higher_uptake() -> None:
    """a has easy positions of its own, and keeps the habit where it is asked the same as b."""
    easy = run_of("a", lambda n: "special" if n < 50 else "adapted", POOL)
    hard = run_of("b", keeps(25), POOL[:50])
    assert said(easy, hard) == (
        "b adapts most; its lead over a is significant: 50.0 points, p < 0.001; on its own "
        "positions a has the highest rule uptake."
    )
    like_hard = run_of("c", keeps(25), POOL[:50])
    assert said(easy, hard, like_hard) == (
        "No model is significantly ahead of all others: a has the highest rule uptake, but on the "
        "positions that they share b and c are ahead of it."
    )


@pytest.mark.parametrize(
    ("outcome", "drop"),
    [
        ("unreadable", "off-task replies: 59% of its answers contain no move"),
        ("truncated", "cut-off replies: 59% of its answers contain no move"),
        ("refused", "refusals: 59% of its answers contain no move"),
        ("illegal", "no adaptation: 59% of its answers are other illegal moves or contain no move"),
    ],
)
def test_a_drop_that_is_no_adapting_is_called_by_its_name(outcome: Outcome, drop: str) -> None:
    told = said(run_of("a", keeps(60)), run_of("b", keeps(40)), run_of("c", cut(outcome, 59)))
    assert told == (
        "b adapts most; its lead over a is significant: 20.0 points, p < 0.001; c's drop is "
        f"{drop}."
    )


def test_a_drop_of_several_kinds_is_mostly_one_or_none_of_them() -> None:
    def of_kinds(chatter: int, legal: int) -> Callable[[int], Outcome]:
        def play(number: int) -> Outcome:
            if number % 100 < chatter:
                return "unreadable"
            return "adapted" if number % 100 < chatter + legal else "special"

        return play

    told = said(run_of("a", of_kinds(40, 20)))
    assert told.endswith("a's drop is mostly off-task replies: 40% of its answers contain no move.")
    assert "drop" not in said(run_of("a", of_kinds(3, 60)))
    assert "drop" not in said(run_of("a", of_kinds(40, 35)))  # most of it, and not for sure
    few = [run_of("a", cut("unreadable", 59), POOL[:3]), run_of("b", cut("illegal", 1))]
    assert "drop" not in said(*few)


def test_who_mostly_adapts_but_says_too_little_cannot_be_ranked() -> None:
    def play(number: int) -> Outcome:
        return "unreadable" if number % 100 < 30 else "adapted" if number % 100 < 65 else "special"

    told = said(run_of("a", keeps(50)), run_of("b", keeps(90)), run_of("c", play))
    assert told.startswith("a ")
    alone = said(run_of("a", keeps(50)), run_of("c", play))
    assert alone.endswith(
        "; c cannot be ranked: 30% of its answers under the changed rules contain no move."
    )


def test_where_all_chat_nobody_can_be_ranked() -> None:
    assert said(*(run_of(name, cut("unreadable", 59)) for name in "ab")) == (
        "No model can be ranked; a's drop is off-task replies: 59% of its answers contain no move; "
        "b's drop is off-task replies: 59% of its answers contain no move."
    )
    assert said(run_of("a", positions=POOL[:0])) == (
        "No model can be ranked; a cannot be ranked: it has no answers."
    )


def test_efforts_of_one_model_are_told_apart_like_models() -> None:
    efforts: dict[Effort, int] = {"none": 90, "low": 50, "high": 50}
    runs = [
        run_of("a", keeps(kept), settings=Settings(reasoning_effort=effort))
        for effort, kept in efforts.items()
    ]
    assert said(*runs) == (
        "a effort low is equivalent to a effort high in the rule uptake, to within 5 points; its "
        "lead over a effort none is significant."
    )


def test_every_place_has_a_verdict_of_its_own() -> None:
    runs = [run_of("a", keeps(60)), run_of("b", keeps(40))]
    others = [replace(each, plan=replace(each.plan, eval="all_diagonal")) for each in runs[:1]]
    told = [verdict(ranking) for ranking in rankings(entries_of([*runs, *others]))]
    assert told[0].startswith("b adapts most; its lead over a is significant")
    assert told[1].startswith("a adapts: its rule uptake is 0.40 ")


def test_a_lead_over_answers_without_a_move_holds_whatever_they_would_have_said() -> None:
    told = said(run_of("a", keeps(10)), run_of("b", cut("unreadable", 10)))
    assert told == (
        "a adapts most; its lead over b is significant: 80.0 to 90.0 points, depending on what "
        "answers without a move would have said, p < 0.001; b's drop is off-task replies: 10% of "
        "its answers contain no move."
    )


# Labels


def test_runs_of_one_name_are_told_apart_by_what_differs() -> None:
    def labels(*runs: Run) -> list[str]:
        return [model.label for model in pool_runs(runs)]

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


def test_no_two_are_called_the_same() -> None:
    """A model's name may be what another answers by, or that of a record of the original."""
    served = run_of("served", keeps(90), version="a", endpoint="http://x", identity={"name": "x"})
    other = run_of("served", keeps(50), version="b", endpoint="http://y", identity={"name": "y"})
    named = run_of("a", keeps(10), version="c")
    assert said(served, other, named).startswith(
        "c adapts most; its lead over b is significant: 40.0"
    )
    [ranking] = rankings(entries_of([served, other, named]))
    assert len(ranking.leads) == 3
    record = Record("a", "all", run_of("a").samples)
    [ranking] = rankings(entries_of([run_of("a", keeps(10)), run_of("b", keeps(50))], [record]))
    assert verdict(ranking) == (
        "a adapts most; its lead over b is significant: 40.0 points, p < 0.001; a (record) cannot "
        "be ranked: a record of the original does not tell legal moves."
    )


# What was not the same


def test_whatever_was_not_the_same_is_named_with_who_had_what() -> None:
    one = run_of("a")
    plan = replace(one.plan, reading="exact", wording="other", settings=Settings(0.0, 32))
    [*notes] = differences_in_plan(pool_runs([one, run_of("b"), replace(run_of("c"), plan=plan)]))
    assert len(notes) == 4
    assert notes[0] == (
        "the runs differ in max tokens, which may be why they score apart (a: 16; b: 16; c: 32)"
    )
    for what in ("reading", "wording", "the temperature that was used"):
        assert any(f"differ in {what}, " in note for note in notes)
    assert differences_in_plan(pool_runs([one, run_of("b")])) == []


def test_an_experiment_tells_what_was_not_the_same_but_for_the_efforts_that_it_is_about() -> None:
    efforts: tuple[Effort, ...] = ("low", "high")
    runs = [run_of("a", settings=Settings(reasoning_effort=effort)) for effort in efforts]
    assert not group_notes(entries_of(runs))
    assert group_notes(entries_of([*runs, run_of("b", settings=Settings(0.0))])) == [
        "all: the runs differ in the temperature that was used, which may be why they score apart "
        "(a effort low: 1; a effort high: 1; b its own effort: 0)"
    ]


def test_a_temperature_that_was_not_taken_is_a_difference() -> None:
    answer = Answer("e2e4", conceded=(NO_TEMPERATURE,))
    asked = [(POOL[0], {STANDARD_CONDITION: answer, CHANGED_CONDITION: answer})]
    own = run_that_said(asked, version="b", identity={"name": "b"})
    [note] = differences_in_plan(pool_runs([run_of("a"), own]))
    assert "(a: 1; some/model: the provider's own)" in note


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
    [note] = differences_in_plan(pool_runs(runs))
    assert note.startswith("the runs differ in how their datasets were selected")
    assert told in note


def test_runs_of_two_protocols_are_never_ranked_together() -> None:
    runs = [run_of("a"), run_of("b", protocol="2")]
    for rank in (entries_of, ranking_of):
        with pytest.raises(InvalidInput, match=r"protocols 2 and 3 cannot .*`cdta rescore RUN`"):
            rank(runs)


# The positions


def test_one_given_dataset_is_said_to_be_the_same_for_all() -> None:
    given = Dataset("", "both.jsonl")
    models = pool_runs([run_of(name, dataset=given) for name in "ab"])
    assert common_dataset(models) == given
    assert heading(models) == "All on one dataset: both.jsonl"
    assert advice(models) == ""


def test_one_models_own_dataset_is_not_fair_to_others() -> None:
    models = pool_runs([run_of(name, dataset=Dataset("a", "shipped")) for name in "ab"])
    assert heading(models) == "All on one dataset: shipped, the dataset of a"
    assert advice(models) == f"The positions were chosen for the habit of a; {UNION}."
    twice = [run_of("a", dataset=Dataset("a", "shipped"), settings=Settings(t)) for t in (0.0, 1.0)]
    assert advice(pool_runs(twice)) == ""


def test_datasets_of_their_own_are_said_to_be_so_with_advice() -> None:
    own = [run_of(name, dataset=Dataset(name, "built", asked=900)) for name in "ab"]
    models = pool_runs(own)
    assert common_dataset(models) is None
    assert heading(models) == "On the positions that each pair shares of its own datasets"
    assert UNION in advice(models)
    given = Dataset("", "both.jsonl")
    apart = [run_of(n, positions=p, dataset=given) for n, p in (("a", POOL[:9]), ("b", POOL[9:]))]
    assert common_dataset(pool_runs(apart)) is None


# Notes


def test_notes_of_several_seeds_are_one_note_on_all_of_them() -> None:
    def cut(number: int) -> Outcome:
        return "truncated" if number % 3 else "special"

    runs = [run_of("a", cut, POOL[:99], Settings(seed=seed)) for seed in range(3)]
    kept = replace(runs[0], notes=[*runs[0].notes, "every answer was kept"])
    [model] = pool_runs([kept, *runs[1:]])
    assert (
        len([note for note in model.notes_of_runs if note.startswith("answers that name no move")])
        == 1
    )
    assert any("198 truncated" in note for note in model.notes_of_runs)
    assert "every answer was kept" in model.notes_of_runs
    [alone] = pool_runs([kept])
    assert alone.notes_of_runs == kept.notes
