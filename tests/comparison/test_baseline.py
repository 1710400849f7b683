"""Compare a model with its earlier runs, and check it against a baseline with an exit code."""

import json
from functools import cache
from pathlib import Path

import pytest

from cant_do_that_anymore.comparison.leaderboard import BaselineCheck, check_baseline, ranking_of
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import save_run
from testing import POOL, Outcomes, cdta, keeps_habit_in, run_with_outcomes


@cache
def run_on(day: int, play: Outcomes, n: int = 300) -> Run:
    date = f"2026-11-{day}T10:00:00Z"
    return run_with_outcomes("m", play, positions=POOL[:n], started_at=date)


def save(folder: Path, *runs: Run) -> Path:
    for number, run in enumerate(runs):
        save_run(run, folder / str(number))
    return folder


def baseline_check(
    old: Outcomes, new: Outcomes, tolerance: float = 0.0, n: int = 300
) -> BaselineCheck:
    baseline, run = run_on(10, old, n), run_on(17, new, n)
    return check_baseline(ranking_of([baseline, run]), [baseline], tolerance)


@pytest.mark.parametrize(
    ("old", "new", "tolerance", "verdict"),
    [
        (20, 40, 0.1, "worse"),
        (20, 40, 0.19, "inconclusive"),
        (20, 40, 0.3, "not worse"),
        (40, 20, 0.0, "not worse"),
        (30, 30, 0.0, "inconclusive"),
        (30, 30, 0.05, "not worse"),
    ],
)
def test_a_run_is_worse_if_its_whole_interval_is_below_the_tolerance(
    old: int, new: int, tolerance: float, verdict: str
) -> None:
    check = baseline_check(keeps_habit_in(old), keeps_habit_in(new), tolerance)
    assert check.verdict == verdict
    assert check.difference.value == pytest.approx((old - new) / 100)
    assert (check.baseline, check.run) == ("m 2026-11-10 10:00:00", "m 2026-11-17 10:00:00")


def test_answers_without_a_move_never_prove_a_drop() -> None:
    check = baseline_check("adapted", "unreadable")
    assert (check.verdict, check.difference.value) == ("inconclusive", -1)


def test_exit_code_follows_the_baseline_check(tmp_path: Path) -> None:
    good = save(tmp_path / "good", run_on(10, "adapted"))
    bad = save(tmp_path / "bad", run_on(17, "usual"))
    gate = ("compare", "--baseline", good, bad, "--tolerance", 10)
    result, json_result = cdta(*gate, code=1), cdta(*gate, "--json", code=1)
    sentence = result.stdout.splitlines()[-1]
    start = "The check fails: m 2026-11-17 10:00:00 is significantly worse than the baseline m 2026"
    assert sentence.startswith(start)
    assert "by more than 10 points. Its rule uptake differs by −100 points [" in sentence
    check = json.loads(json_result.stdout)["baseline"]
    assert (result.stderr, json_result.stderr, check["sentence"]) == ("", "", sentence)
    assert (check["verdict"], check["tolerance"]) == ("worse", 0.1)
    assert check["difference"]["value"] == -1
    assert cdta(*gate, "--markdown", code=1).stderr == f"{sentence}\n"
    passed = cdta("compare", "--baseline", bad, good, code=0).stdout
    assert passed.splitlines()[-1].startswith("The check passes: ")


def test_a_comparison_without_two_comparable_runs_is_an_error(tmp_path: Path) -> None:
    old = save(tmp_path / "m", run_on(10, "usual", 20))
    disjoint = run_with_outcomes("apart", positions=POOL[20:40])
    apart = save(tmp_path / "apart", disjoint)
    pair = save(tmp_path / "two", disjoint, run_on(11, "usual", 20))
    one_run = (
        "there is nothing to compare, because this is one run; name two runs, as in "
        "`cdta compare RUN RUN` (see `cdta runs`)"
    )
    for arguments, sentence in (
        ((old, old / "0"), one_run),
        (("--baseline", old, old), one_run),
        (("--baseline", old, apart), "apart and m cannot be compared: no shared position"),
        (("--baseline", old, pair), "--baseline RUN RUN takes one run on each side, not "),
    ):
        result = cdta("compare", *arguments, code=2)
        assert result.stderr.startswith(f"cdta: {sentence}")
        assert len(result.stderr.splitlines()) == 1
