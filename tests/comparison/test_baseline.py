"""Compare a model with its earlier runs, and check it against a baseline with an exit code."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from cant_do_that_anymore.comparison.leaderboard import BaselineCheck, check_baseline, ranking_of
from cant_do_that_anymore.providers.base import Settings
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import save_run
from testing import (
    POOL,
    Outcomes,
    Responder,
    Serve,
    cdta,
    habit,
    keeps_habit_in,
    perfect,
    positions,
    run_with_outcomes,
)


@cache
def run_at(moment: str, play: Outcomes, seed: int = 0, n: int = 300) -> Run:
    settings = Settings(seed=seed)
    return run_with_outcomes(
        "m",
        play,
        positions=POOL[:n],
        settings=settings,
        options={"seed": seed},
        started_at=f"2026-11-{moment}Z",
    )


def save(folder: Path, *runs: Run) -> Path:
    for number, run in enumerate(runs):
        save_run(run, folder / str(number))
    return folder


def baseline_check(
    old: Outcomes, new: Outcomes, tolerance: float = 0.0, n: int = 300
) -> BaselineCheck:
    baseline, run = (run_at(f"{day}T10:00:00", play, n=n) for day, play in ((10, old), (17, new)))
    return check_baseline(ranking_of([baseline, run]), [baseline], tolerance)


def test_all_runs_of_a_folder_are_compared(tmp_path: Path) -> None:
    runs = [run_at("10T10:00:00", keeps_habit_in(20), seed, n=100) for seed in (1, 2)]
    folder = save(tmp_path / "runs", *runs)
    [pair] = json.loads(cdta("compare", folder, "--json", code=0).stdout)["pairs"]
    assert pair["models"] == ["m seed 1", "m seed 2"]
    assert (pair["shared"], pair["difference"]["value"]) == (100, 0)
    for folders in ([folder / "0"], [folder / "0"] * 2):
        result = cdta("compare", *folders, code=2)
        assert result.stderr == (
            "cdta: there is nothing to compare, because this is one run; name two runs, as in "
            "`cdta compare RUN RUN` (see `cdta runs`)\n"
        )


@pytest.mark.parametrize(
    ("old", "new", "tolerance", "verdict"),
    [
        (20, 40, 0.0, "worse"),
        (20, 40, 0.1, "worse"),
        (20, 40, 0.19, "inconclusive"),
        (20, 40, 0.3, "not worse"),
        (40, 20, 0.0, "not worse"),
        (30, 30, 0.0, "inconclusive"),
        (30, 30, 0.05, "not worse"),
        (30, 33, 0.05, "inconclusive"),
    ],
)
def test_a_run_is_worse_if_its_whole_interval_is_below_the_tolerance(
    old: int, new: int, tolerance: float, verdict: str
) -> None:
    check = baseline_check(keeps_habit_in(old), keeps_habit_in(new), tolerance)
    assert check.verdict == verdict
    assert check.difference.value == pytest.approx((old - new) / 100)
    assert (check.baseline, check.run) == ("m 2026-11-10 10:00:00", "m 2026-11-17 10:00:00")


def test_three_changes_are_not_significant_but_six_are() -> None:
    checks = [baseline_check("adapted", keeps_habit_in(percent), n=100) for percent in (3, 6)]
    assert [check.verdict for check in checks] == ["inconclusive", "worse"]


def test_answers_without_a_move_never_prove_a_drop() -> None:
    check = baseline_check("adapted", "unreadable")
    assert (check.verdict, check.difference.value) == ("inconclusive", -1)
    assert check.difference.high is not None and check.difference.high >= 0


@pytest.mark.parametrize(
    ("old", "new", "code", "expected"),
    [(perfect, habit, 1, "fails"), (habit, perfect, 0, "passes")],
)
def test_exit_code_follows_the_baseline_check(
    old: Responder, new: Responder, code: int, expected: str, serve: Serve, tmp_path: Path
) -> None:
    server = serve(old)
    for name, player in (("then", old), ("now", new)):
        server.respond = player
        command = ("run", "--base-url", server.url, "--model", "m", "--dataset", positions(40))
        cdta(*command, "--fresh", "--quiet", "--out", tmp_path / name, code=0)
    gate = ("compare", "--baseline", tmp_path / "then", tmp_path / "now", "--tolerance", 10)
    result, json_result = cdta(*gate, code=code), cdta(*gate, "--json", code=code)
    sentence = result.stdout.splitlines()[-1]
    assert sentence.startswith(f"The check {expected}: ")
    facts = json.loads(json_result.stdout)["baseline"]
    assert (result.stderr, json_result.stderr, facts["sentence"]) == ("", "", sentence)
    assert cdta(*gate, "--markdown", code=code).stderr == f"{sentence}\n"
    assert (facts["verdict"] == "worse", facts["tolerance"]) == (code == 1, 0.1)
    if code:
        assert facts["difference"]["value"] == -1
        assert re.search(r"is significantly worse than the baseline m( 20\S+ \S+| #1)", sentence)
        assert (
            " by more than 10 points. Its rule uptake differs by −100 points [−100, −" in sentence
        )


def test_a_baseline_check_without_two_comparable_runs_is_an_error(tmp_path: Path) -> None:
    old = save(tmp_path / "m", run_at("10T10:00:00", keeps_habit_in(20), n=20))
    disjoint = save(
        tmp_path / "apart", run_with_outcomes("apart", keeps_habit_in(20), positions=POOL[20:40])
    )
    pair = save(
        tmp_path / "two",
        *(run_with_outcomes(name, keeps_habit_in(20), positions=POOL[:20]) for name in "ab"),
    )
    for arguments, sentence in (
        ((old, disjoint, "--tolerance", 5), "--tolerance needs --baseline RUN"),
        (("--baseline", old, old), "there is nothing to compare, because this is one run; "),
        (
            ("--baseline", old, disjoint),
            "the runs cannot be checked: apart and m share no position",
        ),
        (("--baseline", old, pair), "--baseline RUN RUN takes one run on each side, not "),
    ):
        result = cdta("compare", *arguments, code=2)
        assert result.stderr.startswith(f"cdta: {sentence}")
        assert len(result.stderr.splitlines()) == 1
