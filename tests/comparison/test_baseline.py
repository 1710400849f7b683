"""One model then and now, and the check against a baseline with its exit code."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from cant_do_that_anymore import compare
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan, ranking_of
from cant_do_that_anymore.comparison.verdict import BaselineCheck, check_baseline
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.providers.base import Settings
from cant_do_that_anymore.runs.results import ALL_CACHED, Run
from cant_do_that_anymore.runs.storage import save_run
from testing import POOL, Play, Responder, Serve, cdta, habit, keeps, perfect, played, positions


@cache
def run_at(moment: str, play: Play, seed: int = 0, n: int = 300, model: str = "m") -> Run:
    settings = Settings(seed=seed)
    return played(
        model, play, positions=POOL[:n], settings=settings, started_at=f"2026-11-{moment}Z"
    )


def saved(folder: Path, *runs: Run) -> Path:
    for number, run in enumerate(runs):
        save_run(run, folder / str(number))
    return folder


def checked(old: Play, new: Play, tolerance: float = 0.0, n: int = 300) -> BaselineCheck:
    baseline, run = (run_at(f"{day}T10:00:00", play, n=n) for day, play in ((10, old), (17, new)))
    return check_baseline(ranking_of([baseline], [run]), [baseline], tolerance)


def test_two_runs_of_one_model_are_compared_and_named_by_date_and_time() -> None:
    then, now = run_at("10T10:00:07", keeps(20)), run_at("17T09:30:00", keeps(60))
    found = compare(then, now)
    assert found.summary().startswith(
        "m 2026-11-10 10:00 adapts most; its lead over m 2026-11-17 09:30 is significant: 40.0 "
    )
    soon = replace(now, started_at="2026-11-10T10:00:59Z")
    assert [entry.label for entry in compare(then, soon).entries] == [
        "m 2026-11-10 10:00:07",
        "m 2026-11-10 10:00:59",
    ]


def test_each_name_stands_for_its_runs_if_all_are_of_one_model(tmp_path: Path) -> None:
    weeks = [
        saved(
            tmp_path / day,
            *(run_at(f"{day}T10:00:00", keeps(kept), seed, n=100) for seed in (1, 2)),
        )
        for day, kept in (("10", 20), ("17", 60))
    ]
    [pair, *_] = json.loads(cdta("compare", *weeks, "--json", code=0).stdout)["pairs"]
    assert pair["models"] == ["m 2026-11-10 10:00", "m 2026-11-17 10:00"]
    assert (pair["samples"], pair["difference"]) == (200, pytest.approx(0.4))
    for names, why in (
        ([tmp_path], "all 4 runs are of one model with the same settings"),
        ([weeks[0] / "0"], "this is one run"),
        ([weeks[0] / "0"] * 2, "this is one run"),
    ):
        refused = cdta("compare", *names, code=2)
        assert refused.stderr == (
            f"cdta: there is nothing to compare, because {why}; name two runs, as in `cdta "
            "compare RUN RUN` (see `cdta runs`)\n"
        )


def test_seeds_stay_pooled_beside_another_model() -> None:
    runs = [run_at("10T10:00:00", keeps(20), seed) for seed in (1, 2)]
    entries = compare(*runs, run_at("10T10:00:00", keeps(50), model="other")).entries
    assert [(entry.label, len(entry.runs)) for entry in entries] == [("m", 2), ("other", 1)]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_run_that_only_repeats_cached_answers_shows_no_change(backwards: bool) -> None:
    then = run_at("10T10:00:00", keeps(20))
    same = replace(then, started_at="2026-11-17T10:00:00Z")
    assert compare(then, same).comparisons[0].verdict == "equivalent"  # --fresh, and unchanged
    both = [then, replace(same, notes=[ALL_CACHED])]
    with pytest.raises(InvalidInput, match=r"17 10:00:00 only repeats .* --fresh or --tag NAME"):
        compare(*(both[::-1] if backwards else both))


def test_a_longer_run_that_repeats_all_shared_answers_is_noted() -> None:
    """New samples make it more than a repetition, but a comparison is on the shared ones."""
    then, longer = run_at("10T10:00:00", keeps(20)), run_at("17T10:00:00", keeps(60))
    longer = replace(longer, samples=[*then.samples[:200], *longer.samples[200:]])
    then = replace(then, samples=then.samples[:200])
    [note] = differences_in_plan(compare(then, longer).entries)
    assert "have the same answers in all 200 shared samples" in note
    assert not differences_in_plan(compare(then, run_at("17T10:00:00", keeps(60))).entries)


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
    check = checked(keeps(old), keeps(new), tolerance)
    assert check.verdict == verdict
    assert check.difference == pytest.approx((old - new) / 100)
    assert check.low <= check.difference <= check.high
    assert (check.baseline, check.run) == ("m 2026-11-10 10:00", "m 2026-11-17 10:00")


def test_few_samples_prove_nothing_and_five_changes_are_not_significant() -> None:
    """The exact p of five changes in one direction is 0.0625, whatever the interval says."""
    assert [checked("adapted", keeps(percent), n=100).verdict for percent in (5, 6)] == [
        "inconclusive",
        "worse",
    ]


def test_answers_without_a_move_may_hide_a_drop_but_never_make_one() -> None:
    check = checked("adapted", "unreadable")
    assert (check.verdict, check.difference) == ("inconclusive", -1)
    assert check.high >= 0
    assert check.sentence.endswith(", and too many answers contain no move.")


@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [(perfect, habit, 1, "fails"), (habit, perfect, 0, "passes"), (perfect, perfect, 0, "passes")],
)
def test_planted_models_decide_the_exit_code(
    old: Responder, new: Responder, code: int, says: str, serve: Serve, tmp_path: Path
) -> None:
    server = serve(old)
    for name, player in (("then", old), ("now", new)):
        server.respond = player
        command = ("run", "--base-url", server.url, "--model", "m", "--dataset", positions(40))
        cdta(*command, "--fresh", "--quiet", "--out", tmp_path / name, code=0)
    gate = ("compare", "--baseline", tmp_path / "then", tmp_path / "now", "--tolerance", 10)
    done, data = cdta(*gate, code=code), cdta(*gate, "--json", code=code)
    sentence = done.stdout.splitlines()[-1]
    assert sentence.startswith(f"The check {says}: ")
    facts = json.loads(data.stdout)["baseline"]
    assert (done.stderr, data.stderr, facts["sentence"]) == ("", "", sentence)
    assert cdta(*gate, "--markdown", code=code).stderr == f"{sentence}\n"
    assert (facts["verdict"] == "worse", facts["tolerance"]) == (code == 1, 0.1)
    if code:
        assert facts["difference"] == -1
        assert "is significantly worse than the baseline m 20" in sentence
        assert " by more than 10 points; its rule uptake differs by -100.0 points (95% " in sentence


def test_a_check_that_cannot_decide_anything_is_an_error(tmp_path: Path) -> None:
    m = saved(tmp_path / "m", run_at("10T10:00:00", keeps(20), n=20))
    apart = saved(tmp_path / "apart", played("apart", keeps(20), positions=POOL[20:40]))
    two = saved(tmp_path / "two", *(played(name, keeps(20), positions=POOL[:20]) for name in "ab"))
    for arguments, sentence in (
        ((m, apart, "--tolerance", 5), "--tolerance needs --baseline RUN"),
        (("--baseline", m, m), "there is nothing to compare, because this is one run; "),
        (("--baseline", m, apart), "apart and the baseline m cannot be compared: "),
        (("--baseline", m, two), "--baseline RUN RUN takes one model on each side, not "),
    ):
        refused = cdta("compare", *arguments, code=2)
        assert refused.stderr.startswith(f"cdta: {sentence}")
        assert len(refused.stderr.splitlines()) == 1
