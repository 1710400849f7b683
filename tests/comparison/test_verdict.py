"""What a comparison says in one line, who is who in it, and what it warns of."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any

import pytest

from cant_do_that_anymore import Answer
from cant_do_that_anymore.comparison.entries import entries_of, pool_runs
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan, ranking_of, rankings
from cant_do_that_anymore.comparison.verdict import advice, common_dataset, heading, verdict
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.providers.base import Effort, Settings
from cant_do_that_anymore.providers.request_variants import NO_TEMPERATURE
from cant_do_that_anymore.report.columns import group_notes
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome
from testing import POOL, keeps, played, run_of, snapshot


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
    return [_keeping(name, kept, n) for name, kept in percents.items()]


@cache
def _keeping(name: str, kept: int, n: int) -> Run:
    return played(name, keeps(kept), positions=POOL[:n])


@cache
def saying(model: str = "a", **percents: int) -> Run:
    return played(model, mixed(**percents))


def of_few(model: str, **fields: Any) -> Run:
    """A run of 20 samples, where the numbers do not matter."""
    return played(model, positions=POOL[:20], **fields)


@cache
def at(**settings: Any) -> Run:
    """A model named "a", with other settings where they are given."""
    return of_few("a", settings=Settings(**settings))


def on(n: int = 0, model: str = "b", **dataset: Any) -> Run:
    """A model on nine positions of such a dataset."""
    return played(model, positions=POOL[n : n + 9], dataset=Dataset(**dataset))


def of_efforts(**kept: int) -> list[Run]:
    efforts: dict[Effort, int] = kept  # type: ignore[assignment]
    return [
        played("a", keeps(percent), settings=Settings(reasoning_effort=effort))
        for effort, percent in efforts.items()
    ]


def easy() -> Run:
    """It has easy positions of its own, and keeps the habit where others are asked the same."""
    return played("a", lambda n: "special" if n < 50 else "adapted")


def unlike(**fields: Any) -> Run:
    return of_few("a", identity={"name": "x"}, **fields)


def of_its_own_temperature() -> Run:
    answer = Answer("e2e4", conceded=(NO_TEMPERATURE,))
    said = dict.fromkeys((STANDARD_CONDITION, CHANGED_CONDITION), answer)
    return run_of([(POOL[0], said)], model="b")


GIVEN: dict[str, Any] = {"version": "", "origin": "both.jsonl"}
SHIPPED: dict[str, Any] = {"version": "a", "origin": "shipped"}
BUILT: dict[str, Any] = {"origin": "built", "asked": 900}
SCENARIOS: dict[str, Callable[[], list[Run]]] = {
    "one adapts": lambda: of_kept(a=40),
    "one does not": lambda: [played("a")],
    "one does not on few samples": lambda: of_kept(40, a=90),
    "one chats": lambda: [saying(unreadable=59)],
    "none does": lambda: [played("a"), played("b")],
    "no answer": lambda: [*of_kept(a=40), played("b", "error")],
    "nothing to adapt": lambda: [*of_kept(a=40), played("b", "legal", "legal")],
    "all chat": lambda: [saying(name, unreadable=59) for name in "ab"],
    "no samples": lambda: [played("a", positions=[])],
    "a lead": lambda: of_kept(a=60, b=40),
    "a lead over the second": lambda: of_kept(a=60, b=20, c=40),
    "legal moves count, not dropped habits": lambda: [
        played("legal", keeps(40)),
        played("wrong", keeps(10, "illegal")),
    ],
    "a tie": lambda: of_kept(a=40, b=40),
    "a tie hides nobody behind": lambda: of_kept(a=60, b=40, c=40),
    "efforts are like models": lambda: of_efforts(none=90, low=50, high=50),
    "ahead on shared positions": lambda: [easy(), *of_kept(50, b=25)],
    "several ahead on shared positions": lambda: [easy(), *of_kept(50, b=25, c=25)],
    "whatever junk would have said": lambda: [*of_kept(a=10), saying("b", unreadable=10)],
    "a drop of unreadable": lambda: [*of_kept(a=60, b=40), saying("c", unreadable=59)],
    "a drop of truncated": lambda: [*of_kept(a=60, b=40), saying("c", truncated=59)],
    "a drop of refused": lambda: [*of_kept(a=60, b=40), saying("c", refused=59)],
    "a drop of illegal": lambda: [*of_kept(a=60, b=40), saying("c", illegal=59)],
    "a drop of mostly one kind": lambda: [saying(unreadable=40, adapted=20)],
    "a drop of hardly that kind": lambda: [saying(unreadable=3, adapted=60)],
    "a drop of mostly that kind, and not for sure": lambda: [saying(unreadable=40, adapted=35)],
    "a drop on too few samples": lambda: [
        played("a", mixed(unreadable=59), positions=POOL[:3]),
        saying("b", illegal=1),
    ],
    "inconclusive, with how many samples would be enough": lambda: of_kept(100, a=50, b=52),
    "inconclusive, with nothing shared": lambda: (
        [*of_kept(90, a=1), played("b", keeps(2), positions=POOL[90:180])]
    ),
    "inconclusive among many": lambda: of_kept(60, **dict.fromkeys("abcdef", 40)),
    "who mostly adapts but says too little": lambda: (
        [*of_kept(a=50), saying("c", unreadable=30, adapted=35)]
    ),
    "who says too little beside two": lambda: (
        [*of_kept(a=50, b=90), saying("c", unreadable=30, adapted=35)]
    ),
    "every category has a verdict": lambda: (
        [*of_kept(a=60, b=40), played("a", keeps(60), plan={"eval": "all_diagonal"})]
    ),
    "named by temperature": lambda: [at(), at(temperature=0.0), of_few("b")],
    "named by temperature, one the default": lambda: [at(), at(temperature=None)],
    "named by max tokens": lambda: [at(), at(max_tokens=99)],
    "named by endpoint": lambda: [at(), unlike(endpoint="http://127.0.0.1:9/v1")],
    "named by number": lambda: [at(), unlike()],
    "a name that is nobody else's stays": lambda: [at(), unlike(), of_few("c", version="c-1")],
    "named like the version of another": lambda: [
        played("served", keeps(90), version="a", endpoint="http://x", identity={"name": "x"}),
        played("served", keeps(50), version="b", endpoint="http://y", identity={"name": "y"}),
        played("a", keeps(10), version="c"),
    ],
    "every difference in settings": lambda: [
        *(played("a"), played("b")),
        played("c", plan={"reading": "exact", "wordings": ("x",), "settings": Settings(0.0, 32)}),
    ],
    "efforts and another temperature": lambda: (
        [*of_efforts(low=50, high=50), played("b", settings=Settings(0.0))]
    ),
    "a temperature that was not taken": lambda: [played("a"), of_its_own_temperature()],
    "a shipped dataset and a built one": lambda: [
        on(model="a", **SHIPPED),
        on(version="b", origin="built", asked=90),
    ],
    "a dataset built without a temperature": lambda: [
        on(model="a", **SHIPPED),
        on(version="b", origin="built", asked=90, own_temperature=True),
    ],
    "a shipped dataset and a file": lambda: [
        on(model="a", **SHIPPED),
        on(version="", origin="x.jsonl"),
    ],
    "a given dataset": lambda: [on(model="a", **GIVEN), on(**GIVEN)],
    "the dataset of one model": lambda: [on(model="a", **SHIPPED), on(**SHIPPED)],
    "its own dataset": lambda: [
        played("a", positions=POOL[:9], settings=Settings(heat), dataset=Dataset(**SHIPPED))
        for heat in (1.0, 0.0)
    ],
    "datasets of their own": lambda: [
        on(model="a", version="a", **BUILT),
        on(version="b", **BUILT),
    ],
    "parts of one dataset": lambda: [on(model="a", **GIVEN), on(9, **GIVEN)],
}


def told(runs: Sequence[Run]) -> list[str]:
    """All sentences about these runs."""
    ranked, entries = rankings(entries_of(runs)), pool_runs(runs)
    assert (common_dataset(entries) is None) == heading(entries).startswith("Each pair")
    return [
        *(f"verdict: {verdict(ranking)}" for ranking in ranked),
        f"labels: {', '.join(entry.label for entry in entries)}",
        *(f"{title}. {advice(entries)}" for title in [heading(entries)] if "model-1" not in title),
        *(f"comparison: {note}" for note in differences_in_plan(entries)),
        *(f"experiment: {note}" for ranking in ranked for note in group_notes(ranking.entries)),
    ]


def test_verdicts_names_headings_and_differences_are_said_as_they_were() -> None:
    snapshot(
        "verdicts",
        "\n\n".join("\n".join([f"# {name}", *told(runs())]) for name, runs in SCENARIOS.items()),
    )


def test_runs_of_two_protocols_are_never_ranked_together() -> None:
    runs = [played("a"), played("b", protocol="2")]
    for rank in (entries_of, ranking_of):
        with pytest.raises(InvalidInput, match=r"protocols 2 and 3 cannot .*`cdta rescore RUN`"):
            rank(runs)


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
