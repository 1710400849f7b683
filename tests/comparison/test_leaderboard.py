"""Rankings: verdicts as sentences, pairs, names of entries, notes, and the check of a baseline."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore import Estimate, rules_named
from cant_do_that_anymore.comparison.entries import named_entries
from cant_do_that_anymore.comparison.leaderboard import (
    check_baseline,
    differences_in_plan,
    heading,
    ranking_of,
    rankings,
)
from cant_do_that_anymore.comparison.pairwise import Pair, Verdict
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.providers.base import EFFORTS, Effort, Settings
from cant_do_that_anymore.report.rows import pair_table
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import save_run
from cant_do_that_anymore.task.types import Outcome
from custom_rules import NoEnPassant
from testing import POOL, Outcomes, cdta, keeps_habit_in, run_with_outcomes, snapshot


def runs_of(n: int = 200, first: int = 0, /, **plays: Outcomes) -> list[Run]:
    """Models by name on n positions, by their outcomes under the changed rules."""
    positions = POOL[first : first + n]
    return [run_with_outcomes(name, play, positions=positions) for name, play in plays.items()]


def keeping(n: int = 200, **percents: int) -> list[Run]:
    """Models by name that keep the habit in this percentage of positions."""
    return runs_of(n, **{name: keeps_habit_in(percent) for name, percent in percents.items()})


def some(percent: int, outcome: Outcome) -> Callable[[int], Outcome]:
    """This percentage of replies has an outcome; the others are the habit."""
    return lambda number: outcome if number % 100 < percent else "usual"


def small_run(model: str = "a", **fields: Any) -> Run:
    return run_with_outcomes(model, positions=POOL[:20], **fields)


SHIPPED: dict[str, Any] = {"dataset": Dataset("a", "shipped")}
NO_CASTLING: dict[str, Any] = {"plan": {"change": rules_named("no-castling")}}
OTHER_PLAN = {"reading": "exact", "wordings": ("x",), "settings": Settings(0.0, 32)}
SCENARIOS: dict[str, Callable[[], list[Run]]] = {
    "one breaks the rule more often when told": lambda: [
        run_with_outcomes("a", "usual", lambda n: "usual" if n % 2 else "legal")
    ],
    "a tie, and one behind": lambda: keeping(a=60, b=40, c=40),
    "inconclusive": lambda: keeping(100, a=50, b=52),
    "inconclusive among many": lambda: keeping(60, **dict.fromkeys("abcdef", 40)),
    "ahead on shared positions": lambda: [
        *runs_of(a=lambda n: "usual" if n < 50 else "adapted"),
        *keeping(50, b=25, c=25),
    ],
    "nothing shared": lambda: [*keeping(90, a=1), *runs_of(90, 90, b=keeps_habit_in(2))],
    "only what both answered counts": lambda: [
        *runs_of(300, a="usual"),
        *runs_of(300, 200, b=lambda n: "adapted" if n else "error"),
    ],
    "too many unusable replies": lambda: [
        *keeping(a=60, b=40),
        *runs_of(unreadable_10=some(10, "unreadable"), cut_off_5=some(5, "truncated")),
        *runs_of(unreadable_12=some(12, "unreadable"), cut_off_6=some(6, "truncated")),
        *runs_of(refused_12=some(12, "refused"), illegal=some(59, "illegal")),
    ],
    "no answer, and no habit": lambda: [
        *keeping(a=40),
        run_with_outcomes("b", "error"),
        run_with_outcomes("c", "legal", "legal"),
    ],
    "every difference in settings": lambda: [small_run("a"), small_run("c", plan=OTHER_PLAN)],
    "datasets of their own": lambda: [
        small_run(name, dataset=Dataset(name, "built")) for name in "ab"
    ],
    "datasets for other rules": lambda: [
        small_run(name, dataset=Dataset(name, "built"), **NO_CASTLING) for name in "ab"
    ],
    "the dataset of one model": lambda: [small_run(name, **SHIPPED) for name in "ab"],
}


def sentences_about(runs: Sequence[Run]) -> list[str]:
    entries = named_entries(runs)
    return [
        *(f"verdict: {ranking.verdict}" for ranking in rankings(runs)),
        *(
            f"pair: {', '.join(row)}"
            for rank in rankings(runs)
            for row in pair_table(rank).rows[:3]
        ),
        *(
            f"datasets: {title}"
            for title in [heading(entries)]
            if "model-1" not in title  # the default of these runs
        ),
        *(f"note: {note}" for note in differences_in_plan(entries)),
    ]


def on_day(day: int, play: Outcomes, n: int = 300) -> Run:
    return run_with_outcomes("m", play, positions=POOL[:n], started_at=f"2026-11-{day}T10:00:00Z")


BASELINE_CHECKS: list[tuple[Outcomes, Outcomes, float]] = [
    (keeps_habit_in(20), keeps_habit_in(40), 0.1),
    (keeps_habit_in(20), keeps_habit_in(40), 0.19),
    (keeps_habit_in(20), keeps_habit_in(40), 0.3),
    (keeps_habit_in(40), keeps_habit_in(20), 0.0),
    (keeps_habit_in(30), keeps_habit_in(30), 0.0),
    (keeps_habit_in(30), keeps_habit_in(30), 0.05),
    ("adapted", "unreadable", 0.0),  # which proves no drop
]


def test_verdicts_match_snapshot() -> None:
    blocks = [[f"# {name}", *sentences_about(runs())] for name, runs in SCENARIOS.items()]
    blocks.append(["# a baseline"])
    for old, new, tolerance in BASELINE_CHECKS:
        baseline, run = on_day(10, old), on_day(17, new)
        check = check_baseline(ranking_of([baseline, run]), [baseline], tolerance)
        blocks[-1].append(f"{check.verdict}: {check.sentence}")
    snapshot("verdicts", "\n\n".join(map("\n".join, blocks)))


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
    first, second = named_entries([small_run("a"), small_run("b")])
    pair = Pair(first, second, 10, Estimate((low + high) / 2, low, high, 10))
    assert (pair.verdict, pair.result) == (verdict, verdict)


def test_replies_without_a_move_never_win_and_hide_no_clear_difference() -> None:
    for percent in (3, 15, 59, 100):
        runs = runs_of(300, stubborn="usual", junk=some(percent, "truncated"))
        [pair] = ranking_of(runs).pairs
        assert pair.verdict != "different"
        assert pair.difference and pair.difference.sign == 0
    runs = runs_of(300, good=keeps_habit_in(10), deaf=some(10, "truncated"))
    [pair] = ranking_of(runs).pairs
    assert pair.verdict == "different"


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
    run = small_run(plan={"change": NoEnPassant()})
    other = replace(run, **{part: replace(getattr(run, part), **change)})
    with pytest.raises(InvalidInput, match=sentence):
        ranking_of([run, other])
    assert len(rankings([run, other])) == 2


def test_runs_of_two_protocols_are_never_ranked_together() -> None:
    for rank in (rankings, ranking_of):
        with pytest.raises(InvalidInput, match=r"protocols 2 and 5 cannot be ranked"):
            rank([small_run("a"), small_run("b", protocol="2")])


def run_at(model: str = "m", seed: int = 0, effort: Effort | None = None) -> Run:
    return small_run(model, settings=Settings(seed=seed, reasoning_effort=effort))


def labels(*runs: Run) -> list[str]:
    return [entry.label for entry in named_entries(runs)]


def test_runs_of_one_model_are_entries_named_by_what_differs() -> None:
    runs = [run_at(seed=1), run_at(seed=2), run_at("other")]
    assert labels(*runs) == ["m seed 1", "m seed 2", "other"]
    again = [on_day(day, "usual", 20) for day in (10, 17)]
    assert labels(*again) == ["m 2026-11-10 10:00:00", "m 2026-11-17 10:00:00"]
    assert labels(again[0], again[0]) == ["m #1", "m #2"]


def test_each_effort_is_an_entry_under_the_name_of_its_model() -> None:
    runs = [run_at(effort="none"), run_at(), run_at(effort="high")]
    names = ["m effort none", "m", "m effort high"]
    assert labels(*runs, run_at("other", effort="none")) == [*names, "other"]
    assert labels(runs[0]) == ["m"]
    assert differences_in_plan(named_entries(runs)) == []  # the names say it
    low, none = ([run_at(seed=seed, effort=each) for seed in (1, 2)] for each in EFFORTS[:2])
    entries = named_entries([*low, *none])
    assert [entry.model for entry in entries] == ["m seed 1", "m seed 2"] * 2


def save(folder: Path, *runs: Run) -> Path:
    for number, run in enumerate(runs):
        save_run(run, folder / str(number))
    return folder


def test_exit_code_follows_the_baseline_check(tmp_path: Path) -> None:
    good = save(tmp_path / "good", on_day(10, "adapted"))
    bad = save(tmp_path / "bad", on_day(17, "usual"))
    gate = ("compare", "--baseline", good, bad, "--tolerance", 10)
    result, json_result = cdta(*gate, code=1), cdta(*gate, "--json", code=1)
    sentence = result.stdout.splitlines()[-1]
    start = "The check fails: m 2026-11-17 10:00:00 is significantly worse than the baseline m 2026"
    assert sentence.startswith(start)
    check = json.loads(json_result.stdout)["baseline"]
    assert (result.stderr, json_result.stderr, check["sentence"]) == ("", "", sentence)
    assert (check["verdict"], check["tolerance"]) == ("worse", 0.1)
    assert check["difference"]["value"] == -1
    assert cdta(*gate, "--markdown", code=1).stderr == f"{sentence}\n"
    passed = cdta("compare", "--baseline", bad, good, code=0).stdout
    assert passed.splitlines()[-1].startswith("The check passes: ")


def test_a_comparison_without_two_comparable_runs_is_an_error(tmp_path: Path) -> None:
    old = save(tmp_path / "m", on_day(10, "usual", 20))
    [disjoint] = runs_of(20, 20, apart="usual")
    apart = save(tmp_path / "apart", disjoint)
    pair = save(tmp_path / "two", disjoint, on_day(11, "usual", 20))
    for arguments, sentence in (
        ((old, old / "0"), "this is one run; name two to compare,"),
        (("--baseline", old, apart), "apart and m cannot be compared: no shared position"),
        (("--baseline", old, pair), "--baseline RUN RUN takes one run on each side, not "),
    ):
        result = cdta("compare", *arguments, code=2)
        assert result.stderr.startswith(f"cdta: {sentence}")
        assert len(result.stderr.splitlines()) == 1
