"""Entries of an experiment: runs are pooled, never across rules, and the best is first."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore import Answer, rules_named
from cant_do_that_anymore.comparison.entries import entries_of, pool_runs
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.metrics.bounds import interval_of
from cant_do_that_anymore.metrics.measures import IMPACT, MEASURES, UPTAKE
from cant_do_that_anymore.providers.base import Effort, Settings, Usage
from cant_do_that_anymore.runs.lookup import find_runs
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import load_run, save_run
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome
from testing import POOL, Outcomes, run_from_answers, run_with_outcomes

QUEENS = rules_named("queens-as-knights")
HALF: list[Outcome] = ["special", "legal"] * 10


def run(
    model: str = "m", after: Outcomes = "special", before: Outcomes = "special", **fields: Any
) -> Run:
    """A run of 20 samples; ``seed`` and ``effort`` are settings, other fields go to `played`."""
    settings = Settings(seed=fields.pop("seed", 0), reasoning_effort=fields.pop("effort", None))
    return run_with_outcomes(model, after, before, POOL[:20], settings=settings, **fields)


def test_value_and_interval_cover_the_samples_of_all_runs() -> None:
    runs = [run(after=HALF, seed=1), run(after="adapted", seed=2), run(seed=3)]
    (entry,) = entries_of(runs)
    samples = [sample for r in runs for sample in r.samples]
    assert len(entry.runs) == 3
    for name in (UPTAKE, IMPACT, "adaptation_rate", "delta"):
        assert entry.results.metrics[name] == MEASURES[name].value(samples)
        assert entry.results.intervals[name] == interval_of(MEASURES[name], samples)
    assert entry.error_over_seeds(IMPACT) == pytest.approx(0.5 / 3**0.5)


def test_repeated_answers_make_no_interval_narrower() -> None:
    (one_seed,) = entries_of([run(after=HALF, seed=1)])
    (three_seeds,) = entries_of([run(after=HALF, seed=seed) for seed in (1, 2, 3)])
    single, pooled = (entry.results.intervals[IMPACT] for entry in (one_seed, three_seeds))
    assert pooled.high - pooled.low >= single.high - single.low
    assert three_seeds.error_over_seeds(IMPACT) == 0
    assert one_seed.error_over_seeds(IMPACT) is None


def test_samples_shared_by_two_runs_of_one_seed_count_once() -> None:
    """The second run repeats the last ten samples of the first and adds ten with reasoning."""
    outcomes: list[Outcome] = [*["special"] * 10, *["adapted"] * 20]  # type: ignore[list-item]
    first, longer = run_with_outcomes("m", outcomes[:20]), run_with_outcomes("m", outcomes)
    answers = dict.fromkeys(
        (STANDARD_CONDITION, CHANGED_CONDITION), Answer(usage=Usage(0, 300, 300))
    )
    added = [replace(sample, answers=answers) for sample in longer.samples[20:]]
    second = replace(first, samples=[*first.samples[10:], *added])
    (entry,) = entries_of([first, second])
    assert len(entry.samples) == entry.results.metrics["n_samples"] == 30
    assert [len(samples) for samples in entry.samples_by_run] == [20, 10]
    assert entry.mean("changed_thinking_tokens") == 100
    assert entry.error_over_seeds(IMPACT) is None
    assert not any("more positions" in note for note in entry.notes)  # none is missing
    (other_seed,) = entries_of([first, replace(second, plan=run(seed=2).plan)])
    assert len(other_seed.samples) == 40
    assert other_seed.error_over_seeds(IMPACT) == pytest.approx(0.5 / 2)


@pytest.mark.parametrize("failed", [[3], [3, 7], range(20)])
def test_a_run_with_failed_samples_and_its_repetition_are_counted_once(failed: list[int]) -> None:
    """The repetition gets all other answers from the cache."""
    complete = run(after=HALF)
    samples = [*complete.samples]
    for index in failed:
        error = replace(samples[index].replies[CHANGED_CONDITION], outcome="error", move=None)
        replies = {**samples[index].replies, CHANGED_CONDITION: error}
        samples[index] = replace(samples[index], replies=replies)
    incomplete = replace(complete, samples=samples)
    for runs in ([incomplete, complete], [complete, incomplete], [incomplete, incomplete]):
        (entry,) = entries_of(runs)
        assert len(entry.samples) == 20
    (shorter,) = entries_of([incomplete, replace(complete, samples=complete.samples[:8])])
    assert len(shorter.answered) == len({s.position.id for s in shorter.answered})


def test_without_a_habit_there_is_no_impact_factor_and_no_seed_error() -> None:
    (entry,) = entries_of([run("m", "adapted", "legal", seed=seed) for seed in (1, 2)])
    assert entry.results.metrics[IMPACT] is None
    assert entry.error_over_seeds(IMPACT) is None
    assert entry.results.metrics[UPTAKE] is None


def test_useless_answers_never_make_a_model_the_best() -> None:
    models: dict[str, Outcomes] = {
        "chatty": "unreadable",
        "wrong": "illegal",
        "half": HALF,
        "keeps": "special",
        "adapts": "adapted",
    }
    runs = [run(model, after) for model, after in models.items()]
    runs.append(run("shy", "adapted", "unreadable"))  # its habit is unknown
    entries = {entry.model: entry for entry in entries_of(runs)}
    assert [*entries][:2] == ["adapts", "half"]
    assert [*entries][-1] == "shy"
    assert {name for name, entry in entries.items() if entry.is_suspect} == {
        *("chatty", "wrong", "shy")
    }
    results = entries["chatty"].results
    assert results.metrics[IMPACT] == -1
    assert (results.bounds[IMPACT].low, results.bounds[IMPACT].high) == (-1, 0)
    assert any("answers without a move" in note for note in entries["chatty"].notes)


def test_runs_under_different_rules_or_evals_are_never_pooled() -> None:
    others: list[dict[str, Any]] = [{"change": QUEENS}, {"eval": "all_diagonal"}]
    runs = [run(seed=1), *(run(plan=other) for other in others), run(seed=2)]
    assert [(entry.eval, entry.change.key, len(entry.runs)) for entry in entries_of(runs)] == [
        ("all", "bishops-as-knights", 2),
        ("all", "queens-as-knights", 1),
        ("all_diagonal", "bishops-as-knights", 1),
    ]


def test_runs_that_differ_in_more_than_the_seed_have_different_names() -> None:
    cold = run(after=HALF, plan={"settings": Settings(temperature=0.0)})
    names = [entry.model for entry in entries_of([run(after=HALF), cold, run("other")])]
    assert names == ["m temperature 0", "m temperature 1", "other"]


def test_each_effort_is_an_entry_under_the_name_of_its_model() -> None:
    efforts: tuple[Effort | None, ...] = ("none", None, "high")
    outcomes: tuple[Outcomes, ...] = (HALF, "special")
    runs = [
        run(after=after, seed=seed, effort=effort)
        for effort in efforts
        for seed, after in enumerate(outcomes)
    ]
    other = run("other", "adapted", effort="none")
    entries = entries_of([*runs, other])
    assert [(entry.model, entry.effort, entry.label, len(entry.runs)) for entry in entries] == [
        ("other", "none", "other effort none", 1),
        ("m", "none", "m effort none", 2),
        ("m", "high", "m effort high", 2),
        ("m", None, "m default effort", 2),
    ]
    assert [entry.label for entry in entries_of(runs[:2])] == ["m"]
    (note,) = differences_in_plan(pool_runs(runs))
    assert "(m effort none: none; m default effort: default; m effort high: high)" in note


def test_efforts_with_different_selection_efforts_get_different_names() -> None:
    """Unless no model selected the positions, as in a given dataset or that of the diagonal."""
    for dataset, names in (
        (
            Dataset("m", "built", asked=40),
            ["m selected at effort high", "m selected at effort low"],
        ),
        (Dataset("", "both.jsonl"), ["m", "m"]),
    ):
        runs = [
            run(effort=effort, plan={"select_effort": effort}, dataset=dataset)
            for effort in ("low", "high")
        ]
        assert [entry.model for entry in entries_of(runs)] == names


def test_reasoning_tokens_are_averaged_over_samples() -> None:
    tokens = {STANDARD_CONDITION: (100, 300), CHANGED_CONDITION: (500, 1000)}
    answers: Any = [
        (p, {name: Answer("a2a3", usage=Usage(1, 9, used[n])) for name, used in tokens.items()})
        for n, p in enumerate(POOL[:2])
    ]
    (entry,) = entries_of([run_from_answers(answers)])
    assert [entry.mean(f"{name}_thinking_tokens") for name in tokens] == [200, 750]


def test_notes_cover_all_runs() -> None:
    (entry,) = entries_of([run(after=["error", *HALF[1:]], seed=seed) for seed in (1, 2)])
    assert entry.results.metrics["n_samples"] == 38
    assert any("2 samples without an answer" in note for note in entry.notes)


def test_copied_or_unfinished_folders_add_no_run(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"
    save_run(run(after=HALF), folder)
    shutil.copytree(folder, tmp_path / "runs" / "copy")
    unfinished = tmp_path / "runs" / ".part-1"
    unfinished.mkdir()
    shutil.copy(folder / "samples.jsonl", unfinished)
    folders = find_runs([tmp_path / "runs", folder, folder / ".." / "one"])
    (entry,) = entries_of(map(load_run, folders))
    assert len(entry.runs) == 1
    assert entry.results.metrics == load_run(folder).results.metrics
