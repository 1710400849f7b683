"""Reasoning tokens by effort: what a planted model yields is measured exactly, and drawn."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from aiohttp import web
from matplotlib.figure import Figure

from cant_do_that_anymore.comparison import experiment
from cant_do_that_anymore.comparison.entries import Entry, entries_of
from cant_do_that_anymore.comparison.experiment import specs_for
from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.game.position import write_positions
from cant_do_that_anymore.metrics.compute import compute
from cant_do_that_anymore.providers.base import Effort, Settings, Usage
from cant_do_that_anymore.report import pages
from cant_do_that_anymore.report.plots.curve import PANELS, curve_chart, has_curve
from cant_do_that_anymore.report.plots.style import Chart, save_chart
from cant_do_that_anymore.runs.lookup import folders_in
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import load_run, save_run
from reasoning_servers import KEPT, keeps_at, planted_thinker, thinks_at
from testing import POOL, Body, Done, Loopback, Serve, cdta, played, serving, without_plots

N = 12
EFFORTS = ("none", "low", "high")


@dataclass(frozen=True)
class Measured:
    """The folder of an experiment, and what was asked for it."""

    out: Path
    requests: list[Body]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Two planted models at three efforts, the highest first."""
    out = tmp_path_factory.mktemp("curve") / "out"
    models = ("--model", "yielding", "--model", "stubborn")
    with without_plots(), serving(planted_thinker()) as server:
        efforts = ("--reasoning-effort", "high", "--reasoning-effort", "none,low")
        done = measure(server, out, *models, *efforts)
    assert done.returncode == 0, done.stderr
    return Measured(out, server.requests)


@pytest.fixture
def server(serve: Serve) -> Loopback:
    return serve(planted_thinker())


def measure(server: Loopback, out: Path, *arguments: str) -> Done:
    asked = ("--base-url", server.url, "-n", str(N), "--runs", "1", "--eval", "all")
    return cdta("experiment", "--quiet", *asked, "--out", out, *arguments)


def table(out: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (out / "results.csv").open() as file:
        return {(row["model"], row["reasoning_effort"]): row for row in csv.DictReader(file)}


def test_the_measured_curve_and_every_point_of_its_picture_are_planted(measured: Measured) -> None:
    rows = table(measured.out)
    assert sorted(rows) == sorted((model, effort) for model in KEPT for effort in EFFORTS)
    for (model, effort), row in rows.items():
        run = load_run(measured.out / f"{model}-all-bishops-as-knights-{effort}-20220722")
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
            "rule_uptake": 1 - kept,
            "standard_thinking_tokens": before,
            "changed_thinking_tokens": after,
            "thinking_tokens_difference": after - before,
        }.items():
            assert float(row[name]) == pytest.approx(value, abs=1e-6), (model, effort, name)
    shares = [float(rows["yielding", e]["predicted_move_in_variant_proportion"]) for e in EFFORTS]
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) == 3
    figure = curve_chart(entries_of(map(load_run, folders_in(measured.out))))
    models = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(models) == sorted(KEPT)
    for axes, name in zip(figure.axes, PANELS, strict=True):
        lines = [line for line in axes.lines if line.get_linestyle() != "None"]  # no marks
        for model, line in zip(models, lines, strict=False):
            for (x, y), effort in zip(np.array(line.get_xydata()), EFFORTS, strict=True):
                row = rows[model, effort]
                assert y == pytest.approx(float(row[name]), abs=1e-6)
                if effort != "none":  # those who do not think stand side by side
                    assert x == pytest.approx(float(row["changed_thinking_tokens"]), abs=1e-6)


def test_one_dataset_found_at_the_lowest_effort_serves_all(measured: Measured) -> None:
    runs = [load_run(file.parent) for file in measured.out.glob("yielding-*/run.json")]
    assert {run.plan.settings.reasoning_effort for run in runs} == set(EFFORTS)
    assert {run.plan.select_effort for run in runs} == {"none"}
    assert len({tuple(sample.position.id for sample in run.samples) for run in runs}) == 1
    asked = [request["reasoning_effort"] for request in measured.requests]
    assert asked.count("low") == asked.count("high") == 2 * 2 * N
    assert asked.count("none") > 2 * 2 * N
    without = [r for r in measured.requests if r["reasoning_effort"] == "none"]
    assert {request["max_tokens"] for request in without} == {16}


def runs_and_failures(
    server: Loopback, out: Path, *rules: str, efforts: Sequence[Effort], **options: Any
) -> tuple[list[Run], dict[str, UserError]]:
    """An experiment without its tables and pictures."""
    given = {"model": "yielding", "base_url": server.url, "n": N, "evals": "all"} | options
    specs = specs_for([1], rules=rules, efforts=efforts, **given)
    return experiment.run_all({"yielding": specs}, out, save_run, quiet=True)


def test_another_effort_may_select(server: Loopback, tmp_path: Path) -> None:
    efforts: tuple[Effort, ...] = ("none", "low")
    runs, _ = runs_and_failures(server, tmp_path, efforts=efforts, select_effort="low")
    assert len(runs) == 2
    asked = [request["reasoning_effort"] for request in server.requests]
    assert asked.count("none") == 2 * N < asked.count("low")
    _, failures = runs_and_failures(server, tmp_path, efforts=efforts)
    assert "contains a run that differs in select effort" in str(failures["yielding"])


def test_an_experiment_that_was_stopped_goes_on_where_it_was(
    server: Loopback, tmp_path: Path
) -> None:
    """The server refuses the key in the middle of the last effort; what is finished is shown."""
    answer, asked = server.fault, 0
    assert answer

    async def refusing(request: Body, number: int) -> web.StreamResponse | None:
        nonlocal asked
        asked += request["reasoning_effort"] == "high"
        return web.json_response({}, status=401) if asked > N else await answer(request, number)

    server.fault = refusing
    efforts = ("--model", "yielding", "--reasoning-effort", ",".join(EFFORTS))
    with without_plots():
        stopped = measure(server, tmp_path, *efforts)
    assert stopped.returncode == 1
    assert "some runs failed: yielding: " in stopped.stderr
    assert sorted(effort for _, effort in table(tmp_path)) == ["low", "none"]
    server.fault, before = answer, len(server.requests)
    with without_plots():
        assert measure(server, tmp_path, *efforts).returncode == 0
    _, _, *new = server.requests[before:]  # who is there: of the finished runs, and of this one
    assert {request["reasoning_effort"] for request in new} == {"high"}
    assert 0 < len(new) <= N
    assert len(table(tmp_path)) == 3


def test_runs_that_exist_give_the_same_curve_and_one_effort_gives_none(
    measured: Measured, tmp_path: Path
) -> None:
    again, one = tmp_path / "again", tmp_path / "one"
    (high,) = (file.parent for file in measured.out.glob("yielding-*-high-*/run.json"))
    with without_plots(), patch.object(pages, "save_chart", named):
        cdta("experiment", "--plots-only", measured.out, "--out", again, code=0)
        printed = cdta("experiment", "--plots-only", high, "--out", one, code=0)
    assert table(again) == table(measured.out)
    assert [file.stem for file in again.glob("curve*")] == ["curve-all-bishops-as-knights"]
    assert not list(one.glob("curve*"))
    assert "effort" not in printed.stdout
    assert " reasons" in printed.stdout


def named(chart: Chart, entries: Sequence[Entry], stem: Path) -> list[Path]:
    """Write an empty file in the place of a plot."""
    stem.touch()
    return [stem]


def test_a_plot_is_the_same_file_every_time(tmp_path: Path) -> None:
    def line_of(*_: object, **__: object) -> Figure:
        figure = Figure()
        figure.subplots().plot([1, 2])
        return figure

    files = [save_chart(line_of, [], tmp_path / name) for name in ("a", "b")]
    assert [file.suffix for file in files[0]] == [".png", ".svg"]
    assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]


def test_several_rules_have_a_dataset_each_and_share_what_is_asked_alike(
    server: Loopback, tmp_path: Path
) -> None:
    write_positions(tmp_path / "pool.jsonl", POOL[:N])
    rules = ("bishops-as-knights", "bishops-as-rooks")
    pool = str(tmp_path / "pool.jsonl")
    runs, _ = runs_and_failures(server, tmp_path, *rules, efforts=["low"], pool=pool)
    assert [run.plan.change.key for run in runs] == list(rules)
    asked = [tuple(turn["content"] for turn in r["messages"]) for r in server.requests]
    # Once to select and once to measure under the standard rules, and once under each change; the
    # first once more, to see that it is the same model.
    assert sorted(map(asked.count, set(asked))) == [1] * 2 * N + [2] * (N - 1) + [3]
    assert len(set(asked)) == N + 2 * N


def run(model: str, effort: Effort, tokens: int) -> Run:
    """A run that thinks so long about two positions, and keeps its habit in the first."""
    settings = Settings(reasoning_effort=effort)
    made = played(model, ["special", "legal"], settings=settings)
    usage = Usage(1, tokens, tokens)
    samples = [
        replace(s, stored={name: replace(said, usage=usage) for name, said in s.answers.items()})
        for s in made.samples
    ]
    return replace(made, samples=samples, results=compute(samples, made.plan))


def test_a_curve_needs_two_efforts_on_the_same_positions() -> None:
    none, low = run("m", "none", 0), run("m", "low", 500)
    assert has_curve(entries_of([none, low]))
    assert not has_curve(entries_of([none, run("other", "low", 500)]))
    shorter = replace(low, samples=low.samples[:1])
    assert not has_curve(entries_of([none, shorter]))
    stopped = replace(shorter, plan=replace(low.plan, precision=0.1))
    assert has_curve(entries_of([none, stopped]))
    assert not has_curve(entries_of([none, replace(none, version="m-2")]))


@pytest.mark.parametrize("tokens", [(0, 0, 0), (0, 700, 9_000), (650, 700, 900), (1, 5, 100_000)])
def test_every_point_is_in_the_picture_whatever_the_tokens(tokens: tuple[int, ...]) -> None:
    efforts: tuple[Effort, ...] = ("none", "low", "high")
    runs = [run("m", effort, n) for effort, n in zip(efforts, tokens, strict=True)]
    for axes in curve_chart(entries_of(runs)).axes:
        left, right = axes.get_xlim()
        ticks = [tick for tick in axes.get_xticks() if left <= tick <= right]
        assert left < min(tokens) <= max(tokens) < right
        assert (0 in ticks) == (0 in tokens)
        assert max(ticks) >= max(tokens)
        labels = [text.get_text() for text in axes.texts]
        assert labels == ["none" if tokens[0] else "", "low", "high"]  # the axis says that of 0


def test_labels_of_two_models_do_not_collide_and_more_have_a_legend_of_efforts() -> None:
    efforts: tuple[Effort, ...] = ("low", "medium", "high")
    tokens = (300, 1_000, 4_000)
    of_models = [
        [run(model, effort, n) for effort, n in zip(efforts, tokens, strict=True)]
        for model in ("a", "b", "c")
    ]
    two = curve_chart(entries_of([*of_models[0], *of_models[1]]))
    two.draw_without_rendering()
    for axes in two.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert len(boxes) == 2 * len(efforts)
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    three = curve_chart(entries_of(chain(*of_models)))
    assert not any(axes.texts for axes in three.axes)
    told = [text.get_text() for text in three.legends[0].get_texts()]
    assert told == ["a", "b", "c", "effort: low", "effort: medium", "effort: high"]
