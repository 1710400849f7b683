"""The thinking curve: what a planted model yields with effort is measured exactly, and drawn."""

import csv
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import pytest

from cant_do_that_anymore.evaluation.folder import load_run
from loopback import serving
from processes import Done, cdta
from thinkers import KEPT, Obedient, keeps_at, planted_thinker, thinks_at

N = 40
EFFORTS = ("none", "low", "high")


@pytest.fixture
def server() -> Iterator[Obedient]:
    with serving(planted_thinker()) as server:
        yield server


def measure(server: Obedient, out: Path, *arguments: str) -> Done:
    asked = ("--base-url", server.url, "-n", str(N), "--runs", "1", "--eval", "all")
    return cdta("experiment", "--quiet", *asked, "--out", out, *arguments)


def table(out: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (out / "results.csv").open() as file:
        return {(row["model"], row["reasoning_effort"]): row for row in csv.DictReader(file)}


def test_the_measured_curve_is_the_planted_one(server: Obedient, tmp_path: Path) -> None:
    models = ("--model", "yielding", "--model", "stubborn")
    done = measure(server, tmp_path, *models, "--reasoning-effort", ",".join(EFFORTS))
    assert done.returncode == 0, done.stderr
    rows = table(tmp_path)
    assert sorted(rows) == sorted((model, effort) for model in KEPT for effort in EFFORTS)
    for (model, effort), row in rows.items():
        run = load_run(tmp_path / f"{model}-all-bishops-as-knights-{effort}-20220722")
        games = [sample.position.moves for sample in run.samples]
        kept = fmean(keeps_at(effort, moves, model) for moves in games)
        before, after = (
            fmean(thinks_at(effort, moves, changed=changed) for moves in games)
            for changed in (False, True)
        )
        for name, value in {
            "predicted_move_proportion": 1,
            "predicted_move_in_variant_proportion": kept,
            "variant_impact_factor": kept - 1,
            "legal_gain": 1 - kept,
            "standard_thinking_tokens": before,
            "changed_thinking_tokens": after,
            "thinking_tokens_difference": after - before,
        }.items():
            assert float(row[name]) == pytest.approx(value, abs=1e-6), (model, effort, name)
    shares = [float(rows["yielding", e]["predicted_move_in_variant_proportion"]) for e in EFFORTS]
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) == 3


def test_one_dataset_found_at_the_lowest_effort_serves_all(
    server: Obedient, tmp_path: Path
) -> None:
    efforts = ("--reasoning-effort", "high", "--reasoning-effort", "none,low")
    assert measure(server, tmp_path, "--model", "yielding", *efforts).returncode == 0
    runs = [load_run(file.parent) for file in tmp_path.glob("*/run.json")]
    assert {run.plan.settings.reasoning_effort for run in runs} == set(EFFORTS)
    assert {run.plan.select_effort for run in runs} == {"none"}
    assert len({tuple(sample.position.id for sample in run.samples) for run in runs}) == 1
    asked = [request["reasoning_effort"] for request in server.requests]
    assert asked.count("low") == asked.count("high") == 2 * N
    assert asked.count("none") > 2 * N
    without = [r for r in server.requests if r["reasoning_effort"] == "none"]
    assert {request["max_tokens"] for request in without} == {16}


def test_another_effort_may_select(server: Obedient, tmp_path: Path) -> None:
    efforts = ("--reasoning-effort", "none,low", "--select-effort", "low")
    assert measure(server, tmp_path, "--model", "yielding", *efforts).returncode == 0
    asked = [request["reasoning_effort"] for request in server.requests]
    assert asked.count("none") == 2 * N < asked.count("low")
