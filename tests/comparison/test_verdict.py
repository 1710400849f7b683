"""What a comparison says in one line, who is who in it, and what it warns of."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import pytest

from cant_do_that_anymore.comparison.entries import entries_of, pool_runs
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan, ranking_of, rankings
from cant_do_that_anymore.comparison.openai_records import Record
from cant_do_that_anymore.comparison.verdict import UNION, advice, common_dataset, heading, verdict
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.providers.base import Answer, Effort, Settings
from cant_do_that_anymore.providers.request_variants import NO_TEMPERATURE
from cant_do_that_anymore.report.columns import group_notes
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome
from testing import POOL, keeps, played, run_of


def said(*runs: Run) -> str:
    [ranking] = rankings(entries_of(runs))
    return verdict(ranking)


def mixed(**percents: int) -> Callable[[int], Outcome]:
    """So many of a hundred answers have each outcome, the others are the habit."""
    outcomes: Sequence[Outcome] = list(percents)  # type: ignore[arg-type]
    ends = list(accumulate(percents.values()))
    return lambda number: next(
        (outcome for outcome, end in zip(outcomes, ends, strict=True) if number % 100 < end),
        "special",
    )


def of_kept(n: int = 200, **percents: int) -> list[Run]:
    """Models by name that keep the habit in so many of a hundred positions."""
    return [played(name, keeps(kept), positions=POOL[:n]) for name, kept in percents.items()]


def easy() -> Run:
    """It has easy positions of its own, and keeps the habit where others are asked the same."""
    return played("a", lambda n: "special" if n < 50 else "adapted")


def _with_drop(outcome: str) -> list[Run]:
    return [*of_kept(a=60, b=40), played("c", mixed(**{outcome: 59}))]


ADAPTS = "a adapts: its rule uptake is 0.60 (95% interval 0.53 to 0.67)"
CHATS = "drop is off-task replies: 59% of its answers contain no move"
EFFORTS: dict[Effort, int] = {"none": 90, "low": 50, "high": 50}
LEADS = "adapts most; its lead over {} is significant: {} points, p < 0.001"
VERDICTS: dict[str, tuple[Callable[[], list[Run]], str]] = {
    "one adapts": (lambda: of_kept(a=40), f"{ADAPTS}."),
    "one does not": (
        lambda: [played("a")],
        "a does not adapt significantly: its rule uptake is 0.00 (95% interval -0.02 to 0.02).",
    ),
    "one chats": (
        lambda: [played("a", mixed(unreadable=59))],
        "a does not adapt significantly: its rule uptake is 0.00 (95% interval -0.02 to 0.66, "
        f"allowing for answers that contain no move); a's {CHATS}.",
    ),
    "none does": (
        lambda: [played("a"), played("b")],
        "No model adapts significantly: the highest rule uptake, that of a, is 0.00 (95% interval "
        "-0.02 to 0.02).",
    ),
    "no answer": (
        lambda: [*of_kept(a=40), played("b", "error")],
        f"{ADAPTS}; b cannot be ranked: it has no answers.",
    ),
    "nothing to adapt": (
        lambda: [*of_kept(a=40), played("b", "legal", "legal")],
        f"{ADAPTS}; b cannot be ranked: none of its answers under the standard rules is a move "
        "that is now illegal.",
    ),
    "all chat": (
        lambda: [played(name, mixed(unreadable=59)) for name in "ab"],
        f"No model can be ranked; a's {CHATS}; b's {CHATS}.",
    ),
    "no samples": (
        lambda: [played("a", positions=[])],
        "No model can be ranked; a cannot be ranked: it has no answers.",
    ),
    "a lead": (lambda: of_kept(a=60, b=40), f"b {LEADS.format('a', '20.0')}."),
    "a lead over the second": (
        lambda: of_kept(a=60, b=20, c=40),
        f"b {LEADS.format('c', '20.0')}.",
    ),
    "legal moves count, not dropped habits": (
        lambda: [played("legal", keeps(40)), played("wrong", keeps(10, "illegal"))],
        f"legal {LEADS.format('wrong', '60.0')}; wrong's drop is no adaptation: 90% of its answers "
        "are other illegal moves or contain no move.",
    ),
    "a tie": (
        lambda: of_kept(a=40, b=40),
        "a is equivalent to b in the rule uptake, to within 5 points.",
    ),
    "a tie hides nobody behind": (
        lambda: of_kept(a=60, b=40, c=40),
        "b is equivalent to c in the rule uptake, to within 5 points; its lead over a is "
        "significant.",
    ),
    "efforts are like models": (
        lambda: [
            played("a", keeps(kept), settings=Settings(reasoning_effort=effort))
            for effort, kept in EFFORTS.items()
        ],
        "a effort low is equivalent to a effort high in the rule uptake, to within 5 points; its "
        "lead over a effort none is significant.",
    ),
    "ahead on shared positions": (
        lambda: [easy(), *of_kept(50, b=25)],
        f"b {LEADS.format('a', '50.0')}; on its own positions a has the highest rule uptake.",
    ),
    "several ahead on shared positions": (
        lambda: [easy(), *of_kept(50, b=25, c=25)],
        "No model is significantly ahead of all others: a has the highest rule uptake, but on the "
        "positions that they share b and c are ahead of it.",
    ),
    "whatever junk would have said": (
        lambda: [*of_kept(a=10), played("b", mixed(unreadable=10))],
        "a adapts most; its lead over b is significant: 80.0 to 90.0 points, depending on how "
        "answers without a move are read, p < 0.001; b's drop is off-task replies: 10% of its "
        "answers contain no move.",
    ),
    **{
        f"a drop of {outcome}": (
            partial(_with_drop, outcome),
            f"b {LEADS.format('a', '20.0')}; c's drop is {drop}.",
        )
        for outcome, drop in {
            "unreadable": "off-task replies: 59% of its answers contain no move",
            "truncated": "cut-off replies: 59% of its answers contain no move",
            "refused": "refusals: 59% of its answers contain no move",
            "illegal": (
                "no adaptation: 59% of its answers are other illegal moves or contain no move"
            ),
        }.items()
    },
}


@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_is_one_sentence(name: str) -> None:
    runs, sentence = VERDICTS[name]
    assert said(*runs()) == sentence


def test_an_inconclusive_lead_comes_with_how_many_samples_would_be_enough() -> None:
    assert said(*of_kept(40, a=90)).startswith("a does not adapt significantly: its")
    assert re.fullmatch(
        r"a has the highest rule uptake, but its lead over b is inconclusive \(\+2\.0 points, p = "
        r"[\d.]+\); only 100 samples shared, and detecting a difference of 5 points would take "
        r"about [\d,]+\.",
        said(*of_kept(100, a=50, b=52)),
    )
    apart = [*of_kept(90, a=1), played("b", keeps(2), positions=POOL[90:180])]
    assert "over b is inconclusive (they share no position that both answered)" in said(*apart)
    many = said(*of_kept(60, **dict.fromkeys("abcdef", 40)))
    assert many.startswith("a has the highest rule uptake, but its lead over b, c, d and 2 others ")
    assert "is inconclusive (0.0 points, p = 1.000 over b)" in many


def test_a_drop_of_several_kinds_is_mostly_one_or_none_of_them() -> None:
    told = said(played("a", mixed(unreadable=40, adapted=20)))
    assert told.endswith("a's drop is mostly off-task replies: 40% of its answers contain no move.")
    few = [
        played("a", mixed(unreadable=59), positions=POOL[:3]),
        played("b", mixed(illegal=1)),
    ]
    for runs in (
        [played("a", mixed(unreadable=3, adapted=60))],
        [played("a", mixed(unreadable=40, adapted=35))],  # most of it, and not for sure
        few,
    ):
        assert "drop" not in said(*runs)


def test_who_mostly_adapts_but_says_too_little_cannot_be_ranked() -> None:
    quiet = played("c", mixed(unreadable=30, adapted=35))
    assert said(*of_kept(a=50, b=90), quiet).startswith("a ")
    assert said(*of_kept(a=50), quiet).endswith(
        "; c cannot be ranked: 30% of its answers under the changed rules contain no move."
    )


def test_every_category_has_a_verdict_of_its_own() -> None:
    runs = [*of_kept(a=60, b=40), played("a", keeps(60), plan={"eval": "all_diagonal"})]
    told = [verdict(ranking) for ranking in rankings(entries_of(runs))]
    assert told[0].startswith("b adapts most; its lead over a is significant")
    assert told[1].startswith("a adapts: its rule uptake is 0.40 ")


# Labels


def test_runs_of_one_name_are_labelled_by_what_differs() -> None:
    one = played("a")
    unlike: dict[str, Any] = {"identity": {"name": "x"}}
    elsewhere = played("a", endpoint="http://127.0.0.1:9/v1", **unlike)
    for others, labels in (
        ([played("b")], ["a", "b"]),
        (
            [played("a", settings=Settings(temperature=0.0)), played("b")],
            ["a temperature 1", "a temperature 0", "b"],
        ),
        (
            [played("a", settings=Settings(temperature=None))],
            ["a temperature 1", "a temperature default"],
        ),
        (
            [played("a", settings=Settings(max_tokens=99))],
            ["a max tokens 16", "a max tokens 99"],
        ),
        ([elsewhere], ["a", "a http://127.0.0.1:9/v1"]),
        ([played("a", **unlike)], ["a #1", "a #2"]),
        # A name that is nobody else's stays as it is.
        ([played("a", **unlike), played("c", version="c-1")], ["a #1", "a #2", "c"]),
    ):
        assert [entry.label for entry in pool_runs([one, *others])] == labels


def test_no_two_are_called_the_same() -> None:
    """A model's name may be what another answers by, or that of a record of the original."""
    served = played("served", keeps(90), version="a", endpoint="http://x", identity={"name": "x"})
    other = played("served", keeps(50), version="b", endpoint="http://y", identity={"name": "y"})
    named = played("a", keeps(10), version="c")
    [ranking] = rankings(entries_of([served, other, named]))
    assert verdict(ranking).startswith("c adapts most; its lead over b is significant: 40.0")
    assert len(ranking.leads) == 3
    record = Record("a", "all", played("a").samples)
    [ranking] = rankings(entries_of(of_kept(a=10, b=50), [record]))
    assert verdict(ranking) == (
        f"a {LEADS.format('b', '40.0')}; a (record) cannot be ranked: a record of the original "
        "does not say which moves are legal."
    )


# What was not the same


def test_every_difference_in_settings_is_a_note_with_the_values() -> None:
    alike = [played("a"), played("b")]
    assert differences_in_plan(pool_runs(alike)) == []
    unlike = {"reading": "exact", "wording": "other", "settings": Settings(0.0, 32)}
    notes = differences_in_plan(pool_runs([*alike, played("c", plan=unlike)]))
    assert len(notes) == 4
    assert notes[0] == (
        "these runs differ in max tokens, which may explain the difference (a: 16; b: 16; c: 32)"
    )
    for what in ("reading", "wording", "the temperature used"):
        assert any(f"differ in {what}, " in note for note in notes)


def test_an_experiment_notes_all_differences_except_its_efforts() -> None:
    efforts: tuple[Effort, ...] = ("low", "high")
    runs = [played("a", settings=Settings(reasoning_effort=effort)) for effort in efforts]
    assert not group_notes(entries_of(runs))
    assert group_notes(entries_of([*runs, played("b", settings=Settings(0.0))])) == [
        "these runs differ in the temperature used, which may explain the difference (a effort "
        "low: 1; a effort high: 1; b default effort: 0)"
    ]


def test_a_temperature_that_was_not_taken_is_a_difference() -> None:
    answer = Answer("e2e4", conceded=(NO_TEMPERATURE,))
    own = run_of([(POOL[0], {STANDARD_CONDITION: answer, CHANGED_CONDITION: answer})], model="b")
    [note] = differences_in_plan(pool_runs([played("a"), own]))
    assert "(a: 1; b: the provider's own)" in note


@pytest.mark.parametrize(
    ("dataset", "told"),
    [
        (Dataset("b", "built", asked=90), "built at temperature 0"),
        (
            Dataset("b", "built", asked=90, own_temperature=True),
            "built by 2 of 3 draws at the provider's own temperature",
        ),
        (Dataset("", "x.jsonl"), "x.jsonl"),
    ],
)
def test_datasets_that_were_selected_in_other_ways_are_a_difference(
    dataset: Dataset, told: str
) -> None:
    [note] = differences_in_plan(pool_runs([played("a"), played("b", dataset=dataset)]))
    assert note.startswith("these runs differ in the selection of their datasets")
    assert f"(a: shipped at temperature 0; b: {told})" in note


def test_runs_of_two_protocols_are_never_ranked_together() -> None:
    runs = [played("a"), played("b", protocol="2")]
    for rank in (entries_of, ranking_of):
        with pytest.raises(InvalidInput, match=r"protocols 2 and 3 cannot .*`cdta rescore RUN`"):
            rank(runs)


# The positions


GIVEN, OF_A = Dataset("", "both.jsonl"), Dataset("a", "shipped")
BUILT = Dataset("a", "built", asked=900)
OWN = "Each pair on the positions that their own datasets share"


UNFAIR = f"Each pair is compared only on positions where both have the habit. {UNION}."


@pytest.mark.parametrize(
    ("one", "other", "title", "hint"),
    [
        ({"dataset": GIVEN}, {}, "All models on one dataset: both.jsonl", ""),
        (
            {"dataset": OF_A},
            {},
            "All models on one dataset: shipped, the dataset of a",
            f"The positions were chosen for the habit of a. {UNION}.",
        ),
        (
            {"dataset": OF_A},
            {"model": "a", "settings": Settings(0.0)},
            "All models on one dataset: shipped, the dataset of a",
            "",
        ),
        ({"dataset": BUILT}, {"dataset": replace(BUILT, version="b")}, OWN, UNFAIR),
        ({"dataset": GIVEN}, {"positions": POOL[9:18]}, OWN, UNFAIR),
    ],
    ids=["given", "of one model", "its own", "own datasets", "disjoint"],
)
def test_the_heading_names_the_dataset_and_the_advice_a_fairer_one(
    one: dict[str, Any], other: dict[str, Any], title: str, hint: str
) -> None:
    usual = {"positions": POOL[:9]} | one
    entries = pool_runs([played("a", **usual), played(**{"model": "b"} | usual | other)])
    assert (heading(entries), advice(entries)) == (title, hint)
    assert (common_dataset(entries) is None) == (title == OWN)


# Notes


def test_notes_of_several_seeds_are_one_note_on_all_of_them() -> None:
    runs = [
        played("a", mixed(truncated=66), positions=POOL[:99], settings=Settings(seed=seed))
        for seed in range(3)
    ]
    kept = replace(runs[0], notes=[*runs[0].notes, "every answer was kept"])
    [entry] = pool_runs([kept, *runs[1:]])
    [note] = [n for n in entry.notes_of_runs if n.startswith("answers without a move")]
    assert "198 truncated" in note
    assert "every answer was kept" in entry.notes_of_runs
    [alone] = pool_runs([kept])
    assert alone.notes_of_runs == kept.notes
