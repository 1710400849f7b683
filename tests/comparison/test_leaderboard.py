"""Rankings: names of entries, verdicts as sentences, models that get no rank, and notes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from cant_do_that_anymore.comparison.entries import named_entries
from cant_do_that_anymore.comparison.leaderboard import (
    advice,
    differences_in_plan,
    heading,
    ranking_of,
    rankings,
)
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.chess.rules import rules_named
from cant_do_that_anymore.providers.base import EFFORTS, Effort, Settings
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.task.types import Outcome
from testing import POOL, keeps_habit_in, run_with_outcomes, snapshot


def run_with(model: str = "a", n: int = 200, **percents: int) -> Run:
    """A run with these percentages of outcomes under the changed rules; the rest is the habit."""
    kinds = [kind for kind, percent in percents.items() for _ in range(percent)]

    def play(number: int) -> Outcome:
        place = number * 37 % 100  # spread over the positions
        return kinds[place] if place < len(kinds) else "usual"  # type: ignore[return-value]

    return run_with_outcomes(model, play, positions=POOL[:n])


def keeping(n: int = 200, **percents: int) -> list[Run]:
    """Models by name that keep the habit in this percentage of positions."""
    return [
        run_with_outcomes(name, keeps_habit_in(percent), positions=POOL[:n])
        for name, percent in percents.items()
    ]


def small_run(model: str = "a", **fields: Any) -> Run:
    return run_with_outcomes(model, positions=POOL[:20], **fields)


def on(model: str, first: int = 0, **dataset: Any) -> Run:
    """A run on nine positions of this dataset."""
    return run_with_outcomes(model, positions=POOL[first : first + 9], dataset=Dataset(**dataset))


def easy_run() -> Run:
    """A model that keeps the habit on the positions that others share, and adapts elsewhere."""
    return run_with_outcomes("a", lambda n: "usual" if n < 50 else "adapted")


SHIPPED: dict[str, Any] = {"version": "a", "origin": "shipped"}
BUILT: dict[str, Any] = {"origin": "built", "asked": 900}
SCENARIOS: dict[str, Callable[[], list[Run]]] = {
    "one breaks the rule more often when told": lambda: [
        run_with_outcomes("a", "usual", lambda n: "usual" if n % 2 else "legal")
    ],
    "a tie, and one behind": lambda: keeping(a=60, b=40, c=40),
    "inconclusive": lambda: keeping(100, a=50, b=52),
    "inconclusive among many": lambda: keeping(60, **dict.fromkeys("abcdef", 40)),
    "ahead on shared positions": lambda: [easy_run(), *keeping(50, b=25, c=25)],
    "nothing shared": lambda: [
        *keeping(90, a=1),
        run_with_outcomes("b", keeps_habit_in(2), positions=POOL[90:180]),
    ],
    "unreadable": lambda: [*keeping(a=60, b=40), run_with("c", unreadable=59)],
    "no answer, and no habit": lambda: [
        *keeping(a=40),
        run_with_outcomes("b", "error"),
        run_with_outcomes("c", "legal", "legal"),
    ],
    "every difference in settings": lambda: [
        small_run("a"),
        small_run(
            "c", plan={"reading": "exact", "wordings": ("x",), "settings": Settings(0.0, 32)}
        ),
    ],
    "datasets of their own": lambda: [on("a", version="a", **BUILT), on("b", version="b", **BUILT)],
    "datasets for other rules": lambda: [
        run_with_outcomes(
            name,
            positions=POOL[:9],
            plan={"change": rules_named("no-castling")},
            dataset=Dataset(name, **BUILT),
        )
        for name in "ab"
    ],
    "the dataset of one model": lambda: [on(name, **SHIPPED) for name in "ab"],
}


def sentences_about(runs: Sequence[Run]) -> list[str]:
    entries = named_entries(runs)
    return [
        *(f"verdict: {ranking.verdict}" for ranking in rankings(runs)),
        *(f"pair: {pair.sentence}" for rank in rankings(runs) for pair in rank.pairs[:3]),
        *(
            f"datasets: {title}. {advice(entries)}".rstrip()
            for title in [heading(entries)]
            if "model-1" not in title  # the default of these runs
        ),
        *(f"note: {note}" for note in differences_in_plan(entries)),
    ]


def test_verdicts_match_snapshot() -> None:
    blocks = ([f"# {name}", *sentences_about(runs())] for name, runs in SCENARIOS.items())
    snapshot("verdicts", "\n\n".join(map("\n".join, blocks)))


@pytest.mark.parametrize(
    ("percents", "reason"),
    [
        ({"unreadable": 12}, "12% of its replies under the changed rules contain no move"),
        ({"refused": 6, "unreadable": 6}, "12% of its replies under the changed rules contain no "),
        ({"truncated": 6}, "6% of its replies under the changed rules were cut off"),
        ({"unreadable": 10}, ""),
        ({"truncated": 5}, ""),
        ({"illegal": 59}, ""),
    ],
)
def test_models_with_too_many_unusable_replies_get_no_rank(
    percents: dict[str, int], reason: str
) -> None:
    runs = [run_with("junk", adapted=30, **percents), run_with("other", adapted=1)]
    [ranking] = rankings(runs)
    assert ranking.why_unranked.get("junk", "").startswith(reason)
    assert bool(ranking.why_unranked) == bool(reason)
    assert [entry.label for entry in ranking.entries][-1] == ("junk" if reason else "other")


def test_runs_of_two_protocols_are_never_ranked_together() -> None:
    runs = [small_run("a"), small_run("b", protocol="2")]
    for rank in (rankings, ranking_of):
        with pytest.raises(InvalidInput, match=r"protocols 2 and 5 cannot be ranked together"):
            rank(runs)


def run_at(model: str = "m", seed: int = 0, effort: Effort | None = None) -> Run:
    settings = Settings(seed=seed, reasoning_effort=effort)
    return small_run(model, settings=settings)


def labels(*runs: Run) -> list[str]:
    return [entry.label for entry in named_entries(runs)]


def test_runs_of_one_model_are_entries_named_by_what_differs() -> None:
    runs = [run_at(seed=1), run_at(seed=2), run_at("other")]
    assert labels(*runs) == ["m seed 1", "m seed 2", "other"]
    times = "2026-11-10T10:00:07Z", "2026-11-10T10:00:59Z"
    again = [replace(run_at(), started_at=time) for time in times]
    assert labels(*again) == ["m 2026-11-10 10:00:07", "m 2026-11-10 10:00:59"]
    assert labels(again[0], again[0]) == ["m #1", "m #2"]


def test_each_effort_is_an_entry_under_the_name_of_its_model() -> None:
    runs = [run_at(effort="none"), run_at(), run_at(effort="high")]
    names = ["m effort none", "m default effort", "m effort high"]
    assert labels(*runs, run_at("other", effort="none")) == [*names, "other"]
    assert labels(runs[0]) == ["m"]
    (note,) = differences_in_plan(named_entries(runs))
    assert "(m effort none: none; m default effort: default; m effort high: high)" in note
    low, none = ([run_at(seed=seed, effort=each) for seed in (1, 2)] for each in EFFORTS[:2])
    entries = named_entries([*low, *none])
    assert [entry.model for entry in entries] == ["m seed 1", "m seed 2"] * 2
