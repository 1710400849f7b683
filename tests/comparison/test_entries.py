"""Entries of an experiment: one for each run, under a unique name."""

from dataclasses import replace

from cant_do_that_anymore.comparison.entries import entries_of, named_entries
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan
from cant_do_that_anymore.providers.base import Effort, Settings
from cant_do_that_anymore.runs.run import Run
from testing import POOL, run_with_outcomes


def run(model: str = "m", seed: int = 0, effort: Effort | None = None) -> Run:
    settings = Settings(seed=seed, reasoning_effort=effort)
    return run_with_outcomes(model, positions=POOL[:20], settings=settings)


def labels(*runs: Run) -> list[str]:
    return [entry.label for entry in named_entries(runs)]


def test_runs_of_one_model_are_entries_named_by_what_differs() -> None:
    runs = [run(seed=1), run(seed=2), run("other")]
    assert labels(*runs) == ["m seed 1", "m seed 2", "other"]
    assert [entry.run for entry in entries_of(runs)] == runs
    times = "2026-11-10T10:00:07Z", "2026-11-10T10:00:59Z"
    again = [replace(run(), started_at=time) for time in times]
    assert labels(*again) == ["m 2026-11-10 10:00:07", "m 2026-11-10 10:00:59"]
    assert labels(again[0], again[0]) == ["m #1", "m #2"]


def test_each_effort_is_an_entry_under_the_name_of_its_model() -> None:
    runs = [run(effort="none"), run(), run(effort="high")]
    names = ["m effort none", "m default effort", "m effort high"]
    assert labels(*runs, run("other", effort="none")) == [*names, "other effort none"]
    assert labels(runs[0]) == ["m"]
    (note,) = differences_in_plan(named_entries(runs))
    assert "(m effort none: none; m default effort: default; m effort high: high)" in note
    entries = named_entries([run(seed=seed, effort="low") for seed in (1, 2)] + runs[:1])
    assert [entry.model for entry in entries] == ["m seed 1", "m seed 2", "m seed 0"]
