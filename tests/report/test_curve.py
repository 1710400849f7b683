"""The curve of rule uptake by reasoning tokens, measured with planted models, and its plot."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from cant_do_that_anymore.comparison.entries import entries_of
from cant_do_that_anymore.comparison.experiment import run_all, specs_for
from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.metrics.compute import compute
from cant_do_that_anymore.providers.base import (
    REASONING_TOKENS,
    Effort,
    Settings,
    Usage,
)
from cant_do_that_anymore.report.plots import curve_chart, has_curve
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.lookup import folders_in
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import load_run, save_run
from reasoning_servers import HABITS_KEPT, effort_server, keeps_habit_at, reasoning_tokens_at
from testing import (
    POOL,
    Body,
    CompletedCommand,
    Loopback,
    Serve,
    cdta,
    positions_of,
    run_with_outcomes,
    serving,
    without_plots,
)

N = 12
EFFORTS = ("none", "low", "high")


@dataclass(frozen=True)
class Experiment:
    """The folder of an experiment, and the requests that it sent."""

    out: Path
    requests: list[Body]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """Two planted models at three efforts, the highest first."""
    out = tmp_path_factory.mktemp("curve") / "out"
    models = ("--model", "yielding", "--model", "stubborn")
    with without_plots(), serving(effort_server()) as server:
        efforts = ("--reasoning-effort", "high", "--reasoning-effort", "none,low")
        done = run_experiment(server, out, *models, *efforts)
    assert done.returncode == 0, done.stderr
    return Experiment(out, server.requests)


@pytest.fixture
def server(serve: Serve) -> Loopback:
    return serve(effort_server())


def run_experiment(server: Loopback, out: Path, *arguments: str) -> CompletedCommand:
    options = ("--base-url", server.url, "-n", str(N), "--eval", "all", "--wording", "plain")
    return cdta("experiment", "--quiet", *options, "--out", out, *arguments)


def table(out: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (out / "results.csv").open() as file:
        return {(row["model"], row["reasoning_effort"]): row for row in csv.DictReader(file)}


def test_curve_and_plot_match_the_planted_values(experiment: Experiment) -> None:
    rows = table(experiment.out)
    assert sorted(rows) == sorted((model, effort) for model in HABITS_KEPT for effort in EFFORTS)
    for (model, effort), row in rows.items():
        run = load_run(experiment.out / f"{model}-all-bishops-as-knights-{effort}-20220722")
        move_lists = [position.moves for position in positions_of(run.samples)]
        share_kept = fmean(keeps_habit_at(effort, moves, model) for moves in move_lists)
        standard_tokens, changed_tokens = (
            fmean(reasoning_tokens_at(effort, moves, changed=changed) for moves in move_lists)
            for changed in (False, True)
        )
        for name, value in {
            "predicted_move_proportion": 1,
            "predicted_move_in_variant_proportion": share_kept,
            "variant_impact_factor": share_kept - 1,
            "rule_uptake": 1 - share_kept,
            "standard_reasoning_tokens": standard_tokens,
            "changed_reasoning_tokens": changed_tokens,
            "reasoning_tokens_difference": changed_tokens - standard_tokens,
        }.items():
            assert float(row[name] or 0) == pytest.approx(value, abs=1e-6), (model, effort, name)
    shares = [float(rows["yielding", e]["predicted_move_in_variant_proportion"]) for e in EFFORTS]
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) == 3
    figure = curve_chart(entries_of(map(load_run, folders_in(experiment.out))))
    models = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(models) == sorted(HABITS_KEPT)
    [axes] = figure.axes
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]  # not the markers
    for model, line in zip(models, lines, strict=False):
        for point, effort in zip(np.array(line.get_xydata()), EFFORTS, strict=True):
            row = rows[model, effort]
            planted = float(row["changed_reasoning_tokens"] or 0), float(row["rule_uptake"])
            assert point == pytest.approx(planted, abs=1e-6)


def test_all_efforts_share_the_dataset_of_the_lowest_effort(experiment: Experiment) -> None:
    runs = [load_run(file.parent) for file in experiment.out.glob("yielding-*/run.json")]
    assert {run.plan.settings.reasoning_effort for run in runs} == set(EFFORTS)
    assert {run.plan.select_effort for run in runs} == {"none"}
    assert len({tuple(sample.item.id for sample in run.samples) for run in runs}) == 1
    efforts = [request["reasoning_effort"] for request in experiment.requests]
    assert efforts.count("low") == 2 * 2 * N
    assert efforts.count("none") > 2 * 2 * N
    with_reasoning = [
        r["max_tokens"] for r in experiment.requests if r["reasoning_effort"] == "high"
    ]
    assert with_reasoning == [REASONING_TOKENS] * 2 * 2 * N


def runs_and_failures(
    server: Loopback, out: Path, *rules: str, efforts: Sequence[Effort], **options: Any
) -> tuple[list[Run], dict[str, UserError]]:
    """Run an experiment without writing tables and plots."""
    fields = {
        "model": "yielding",
        "base_url": server.url,
        "n": N,
        "evals": "all",
        "wording": "plain",
    } | options
    specs = specs_for(seed=1, rules=rules, efforts=efforts, **fields)
    return run_all({"yielding": specs}, out, save_run, quiet=True)


def test_a_stopped_experiment_resumes(server: Loopback, tmp_path: Path) -> None:
    """The server rejects the key during the last effort. Finished runs are still reported."""
    answer, sent = server.fault, 0
    assert answer

    async def reject_key(request: Body, number: int) -> web.StreamResponse | None:
        nonlocal sent
        sent += request["reasoning_effort"] == "high"
        return web.json_response({}, status=401) if sent > N else await answer(request, number)

    server.fault = reject_key
    arguments = ("--model", "yielding", "--reasoning-effort", ",".join(EFFORTS))
    with without_plots():
        stopped = run_experiment(server, tmp_path, *arguments)
    assert stopped.returncode == 1
    assert "some runs failed: yielding: " in stopped.stderr
    assert sorted(effort for _, effort in table(tmp_path)) == ["low", "none"]
    server.fault, before = answer, len(server.requests)
    with without_plots():
        assert run_experiment(server, tmp_path, *arguments).returncode == 0
    new = [request["reasoning_effort"] for request in server.requests[before:]]
    assert new[:PROBES] == ["none"] * PROBES  # whether it is still the same model
    assert set(new[PROBES:]) == {"high"}
    assert len(table(tmp_path)) == 3


def test_rules_have_their_own_datasets_and_share_requests(server: Loopback, tmp_path: Path) -> None:
    write_positions(tmp_path / "pool.jsonl", POOL[:N])
    rules = ("bishops-as-knights", "bishops-as-rooks")
    pool = str(tmp_path / "pool.jsonl")
    runs, _ = runs_and_failures(server, tmp_path, *rules, efforts=["low"], pool=pool)
    assert [run.plan.change.key for run in runs] == list(rules)
    prompts = [tuple(message["content"] for message in r["messages"]) for r in server.requests]
    # Standard rules: once to select and once to measure. Each change: once.
    assert sorted(map(prompts.count, set(prompts))) == [1] * 2 * N + [2] * N
    assert len(set(prompts)) == N + 2 * N


def run_with_tokens(model: str, effort: Effort, tokens: int) -> Run:
    """A run with this many reasoning tokens per answer. It keeps one habit of two."""
    settings = Settings(reasoning_effort=effort)
    run = run_with_outcomes(model, ["usual", "legal"], settings=settings)
    usage = Usage(1, tokens, tokens)
    samples = [
        replace(s, answers={name: replace(a, usage=usage) for name, a in s.answers.items()})
        for s in run.samples
    ]
    return replace(run, samples=samples, results=compute(samples, [], run.plan))


def test_a_curve_needs_two_efforts_of_a_model() -> None:
    none, low = run_with_tokens("m", "none", 0), run_with_tokens("m", "low", 500)
    assert has_curve(entries_of([none, low]))
    assert not has_curve(entries_of([none, run_with_tokens("other", "low", 500)]))
    assert not has_curve(entries_of([none, replace(none, version="m-2")]))
