"""Entries of an experiment: one for each run, ranked only under the same rules, best first."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from cant_do_that_anymore.comparison.entries import entries_of, named_entries
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan
from cant_do_that_anymore.providers.base import Effort, Settings
from cant_do_that_anymore.runs.lookup import find_runs
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import load_run, save_run
from cant_do_that_anymore.task.types import Outcome
from testing import POOL, Outcomes, run_with_outcomes

HALF: list[Outcome] = ["usual", "legal"] * 10


def run(
    model: str = "m", after: Outcomes = "usual", before: Outcomes = "usual", **fields: Any
) -> Run:
    """A run of 20 samples; ``seed`` and ``effort`` are settings, other fields go to `played`."""
    settings = Settings(seed=fields.pop("seed", 0), reasoning_effort=fields.pop("effort", None))
    return run_with_outcomes(model, after, before, POOL[:20], settings=settings, **fields)


def test_runs_of_one_model_are_entries_of_their_own_named_by_seed_or_time() -> None:
    runs = [run(after=HALF, seed=1), run(seed=2), run("other", "adapted")]
    entries = entries_of(runs)
    assert [entry.label for entry in entries] == ["m seed 1", "m seed 2", "other"]
    assert [entry.run for entry in entries] == runs
    times = ["2026-11-10T10:00:07Z", "2026-11-10T10:00:59Z", "2026-11-17T09:30:00Z"]
    again = [replace(run(), started_at=time) for time in times]
    assert [entry.label for entry in named_entries(again)] == [
        "m 2026-11-10 10:00:07",
        "m 2026-11-10 10:00:59",
        "m 2026-11-17 09:30:00",
    ]
    assert [entry.label for entry in named_entries([again[0]] * 2)] == [
        "m #1",
        "m #2",
    ]


def test_each_effort_is_an_entry_under_the_name_of_its_model() -> None:
    efforts: tuple[Effort | None, ...] = ("none", None, "high")
    runs = [run(effort=effort) for effort in efforts]
    other = run("other", "adapted", effort="none")
    entries = entries_of([*runs, other])
    assert [
        (entry.model, entry.plan.settings.reasoning_effort, entry.label) for entry in entries
    ] == [
        ("m", "none", "m effort none"),
        ("m", None, "m default effort"),
        ("m", "high", "m effort high"),
        ("other", "none", "other effort none"),
    ]
    assert [entry.label for entry in entries_of(runs[:1])] == ["m"]
    (note,) = differences_in_plan(named_entries(runs))
    assert "(m effort none: none; m default effort: default; m effort high: high)" in note


def test_the_efforts_of_a_seed_have_one_name() -> None:
    efforts: tuple[Effort, ...] = ("none", "high")
    runs = [run(effort=effort, seed=seed) for effort in efforts for seed in (1, 2)]
    entries = named_entries(runs)
    assert [entry.model for entry in entries] == ["m seed 1", "m seed 2"] * 2
    assert entries[0].label == "m seed 1 effort none"


def test_unfinished_folders_and_second_names_add_no_run(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"
    save_run(run(after=HALF), folder)
    unfinished = tmp_path / "runs" / ".part-1"
    unfinished.mkdir()
    shutil.copy(folder / "samples.jsonl", unfinished)
    folders = find_runs([tmp_path / "runs", folder, folder / ".." / "one"])
    (entry,) = entries_of(map(load_run, folders))
    assert entry.results == load_run(folder).results
