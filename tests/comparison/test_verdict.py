"""The one-line verdict of a comparison, the names of its models, and its warnings."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import pytest

from cant_do_that_anymore.comparison.entries import entries_of, named_entries
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan, ranking_of, rankings
from cant_do_that_anymore.comparison.verdict import advice, common_dataset, heading, verdict
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.providers.base import Effort, Settings
from cant_do_that_anymore.report.columns import group_notes
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import Outcome
from testing import POOL, keeps_habit_in, run_with_outcomes, snapshot


def mixed(**percents: int) -> Callable[[int], Outcome]:
    """These percentages of the answers have these outcomes; all others are the habit."""
    outcomes: Sequence[Outcome] = list(percents)  # type: ignore[arg-type]
    ends = list(accumulate(percents.values()))
    return lambda number: next(
        (outcome for outcome, end in zip(outcomes, ends, strict=True) if number % 100 < end),
        "usual",
    )


def keeping(n: int = 200, **percents: int) -> list[Run]:
    """Models by name that keep the habit in this percentage of positions."""
    return [_run_keeping(name, percent, n) for name, percent in percents.items()]


@cache
def _run_keeping(name: str, percent: int, n: int) -> Run:
    return run_with_outcomes(name, keeps_habit_in(percent), positions=POOL[:n])


@cache
def run_with(model: str = "a", **percents: int) -> Run:
    return run_with_outcomes(model, mixed(**percents))


def small_run(model: str, **fields: Any) -> Run:
    """A run of 20 samples whose numbers do not matter."""
    return run_with_outcomes(model, positions=POOL[:20], **fields)


@cache
def run_a(**settings: Any) -> Run:
    """A run of model "a" with these settings."""
    return small_run("a", settings=Settings(**settings))


def run_on(n: int = 0, model: str = "b", **dataset: Any) -> Run:
    """A run on nine positions of this dataset."""
    return run_with_outcomes(model, positions=POOL[n : n + 9], dataset=Dataset(**dataset))


def runs_by_effort(**percents: int) -> list[Run]:
    efforts: dict[Effort, int] = percents  # type: ignore[assignment]
    return [
        run_with_outcomes("a", keeps_habit_in(percent), settings=Settings(reasoning_effort=effort))
        for effort, percent in efforts.items()
    ]


def easy_run() -> Run:
    """A model that keeps the habit on the positions that others share, and adapts elsewhere."""
    return run_with_outcomes("a", lambda n: "usual" if n < 50 else "adapted")


def namesake(**fields: Any) -> Run:
    """Another model named "a"."""
    return small_run("a", identity={"name": "x"}, **fields)


GIVEN: dict[str, Any] = {"version": "", "origin": "both.jsonl"}
SHIPPED: dict[str, Any] = {"version": "a", "origin": "shipped"}
BUILT: dict[str, Any] = {"origin": "built", "asked": 900}
SCENARIOS: dict[str, Callable[[], list[Run]]] = {
    "one adapts": lambda: keeping(a=40),
    "one does not": lambda: [run_with_outcomes("a")],
    "one does not on few samples": lambda: keeping(40, a=90),
    "one chats": lambda: [run_with(unreadable=59)],
    "none does": lambda: [run_with_outcomes("a"), run_with_outcomes("b")],
    "no answer": lambda: [*keeping(a=40), run_with_outcomes("b", "error")],
    "nothing to adapt": lambda: [*keeping(a=40), run_with_outcomes("b", "legal", "legal")],
    "all chat": lambda: [run_with(name, unreadable=59) for name in "ab"],
    "no samples": lambda: [run_with_outcomes("a", positions=[])],
    "a lead": lambda: keeping(a=60, b=40),
    "a lead over the second": lambda: keeping(a=60, b=20, c=40),
    "legal moves count, not dropped habits": lambda: [
        run_with_outcomes("legal", keeps_habit_in(40)),
        run_with_outcomes("wrong", keeps_habit_in(10, "illegal")),
    ],
    "a tie": lambda: keeping(a=40, b=40),
    "a tie hides nobody behind": lambda: keeping(a=60, b=40, c=40),
    "efforts are like models": lambda: runs_by_effort(none=90, low=50, high=50),
    "ahead on shared positions": lambda: [easy_run(), *keeping(50, b=25)],
    "several ahead on shared positions": lambda: [easy_run(), *keeping(50, b=25, c=25)],
    "whatever junk would have said": lambda: [*keeping(a=10), run_with("b", unreadable=10)],
    "a drop of unreadable": lambda: [*keeping(a=60, b=40), run_with("c", unreadable=59)],
    "a drop of illegal": lambda: [*keeping(a=60, b=40), run_with("c", illegal=59)],
    "a drop of mostly one kind": lambda: [run_with(unreadable=40, adapted=20)],
    "a drop of hardly that kind": lambda: [run_with(unreadable=3, adapted=60)],
    "a drop of mostly that kind, and not for sure": lambda: [run_with(unreadable=40, adapted=35)],
    "a drop on too few samples": lambda: [
        run_with_outcomes("a", mixed(unreadable=59), positions=POOL[:3]),
        run_with("b", illegal=1),
    ],
    "inconclusive, with how many samples would be enough": lambda: keeping(100, a=50, b=52),
    "inconclusive, with nothing shared": lambda: (
        [*keeping(90, a=1), run_with_outcomes("b", keeps_habit_in(2), positions=POOL[90:180])]
    ),
    "inconclusive among many": lambda: keeping(60, **dict.fromkeys("abcdef", 40)),
    "who mostly adapts but says too little": lambda: (
        [*keeping(a=50), run_with("c", unreadable=30, adapted=35)]
    ),
    "who says too little beside two": lambda: (
        [*keeping(a=50, b=90), run_with("c", unreadable=30, adapted=35)]
    ),
    "every category has a verdict": lambda: (
        [
            *keeping(a=60, b=40),
            run_with_outcomes("a", keeps_habit_in(60), plan={"eval": "all_diagonal"}),
        ]
    ),
    "named by temperature": lambda: [run_a(), run_a(temperature=0.0), small_run("b")],
    "named by max tokens": lambda: [run_a(), run_a(max_tokens=99)],
    "named by endpoint": lambda: [run_a(), namesake(endpoint="http://127.0.0.1:9/v1")],
    "named by number": lambda: [run_a(), namesake()],
    "a name that is nobody else's stays": lambda: [
        run_a(),
        namesake(),
        small_run("c", version="c-1"),
    ],
    "named like the version of another": lambda: [
        run_with_outcomes(
            "served", keeps_habit_in(90), version="a", endpoint="http://x", identity={"name": "x"}
        ),
        run_with_outcomes(
            "served", keeps_habit_in(50), version="b", endpoint="http://y", identity={"name": "y"}
        ),
        run_with_outcomes("a", keeps_habit_in(10), version="c"),
    ],
    "every difference in settings": lambda: [
        *(run_with_outcomes("a"), run_with_outcomes("b")),
        run_with_outcomes(
            "c", plan={"reading": "exact", "wordings": ("x",), "settings": Settings(0.0, 32)}
        ),
    ],
    "a shipped dataset and a built one": lambda: [
        run_on(model="a", **SHIPPED),
        run_on(version="b", origin="built", asked=90),
    ],
    "a shipped dataset and a file": lambda: [
        run_on(model="a", **SHIPPED),
        run_on(version="", origin="x.jsonl"),
    ],
    "a given dataset": lambda: [run_on(model="a", **GIVEN), run_on(**GIVEN)],
    "the dataset of one model": lambda: [run_on(model="a", **SHIPPED), run_on(**SHIPPED)],
    "datasets of their own": lambda: [
        run_on(model="a", version="a", **BUILT),
        run_on(version="b", **BUILT),
    ],
    "parts of one dataset": lambda: [run_on(model="a", **GIVEN), run_on(9, **GIVEN)],
}


def sentences_about(runs: Sequence[Run]) -> list[str]:
    ranked, entries = rankings(entries_of(runs)), named_entries(runs)
    assert (common_dataset(entries) is None) == heading(entries).startswith("Each pair")
    return [
        *(f"verdict: {verdict(ranking)}" for ranking in ranked),
        f"labels: {', '.join(entry.label for entry in entries)}",
        *(f"{title}. {advice(entries)}" for title in [heading(entries)] if "model-1" not in title),
        *(f"comparison: {note}" for note in differences_in_plan(entries)),
        *(f"experiment: {note}" for ranking in ranked for note in group_notes(ranking.entries)),
    ]


def test_verdicts_and_notes_match_snapshot() -> None:
    blocks = ([f"# {name}", *sentences_about(runs())] for name, runs in SCENARIOS.items())
    snapshot("verdicts", "\n\n".join(map("\n".join, blocks)))


def test_runs_of_two_protocols_are_never_ranked_together() -> None:
    runs = [run_with_outcomes("a"), run_with_outcomes("b", protocol="2")]
    for rank in (entries_of, ranking_of):
        with pytest.raises(InvalidInput, match=r"protocols 2 and 4 cannot be ranked together"):
            rank(runs)
