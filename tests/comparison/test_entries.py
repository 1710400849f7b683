"""What an experiment comes to: runs taken together, never across rules, and the best first."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore.comparison.entries import (
    entries_at,
    entries_of,
    pool_runs,
)
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, Rules, rules_named
from cant_do_that_anymore.metrics.bounds import interval_of
from cant_do_that_anymore.metrics.groups import by_affected_moves
from cant_do_that_anymore.metrics.measures import IMPACT, MEASURES, UPTAKE
from cant_do_that_anymore.providers.base import Answer, Effort, Settings, Usage
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import load_run, save_run
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome
from runs import plan_of, run_of

POOL = shipped_pool("pool")
QUEENS = rules_named("queens-as-knights")


def run(
    model: str,
    after: Sequence[Outcome],
    *,
    before: Sequence[Outcome] | None = None,
    seed: int = 0,
    change: Rules = BISHOPS_AS_KNIGHTS,
    **fields: Any,
) -> Run:
    """A run over the first positions, with the habit under the standard rules if not told."""
    said = zip(before or ["special"] * len(after), after, strict=True)
    asked: Any = [
        (p, {STANDARD_CONDITION: b, CHANGED_CONDITION: a})
        for p, (b, a) in zip(POOL, said, strict=False)
    ]
    plan = plan_of(len(asked), change=change, settings=Settings(seed=seed), **fields)
    return run_of(asked, plan, model=model, version=model, identity={"name": model})


KEEPS: list[Outcome] = ["special"] * 20
ADAPTS: list[Outcome] = ["adapted"] * 20
HALF: list[Outcome] = ["special", "legal"] * 10
JUNK: list[Outcome] = ["unreadable"] * 20


def test_value_and_interval_are_those_of_the_samples_of_all_runs() -> None:
    runs = [run("m", HALF, seed=1), run("m", ADAPTS, seed=2), run("m", KEEPS, seed=3)]
    (found,) = entries_of(runs)
    samples = [sample for each in runs for sample in each.samples]
    assert len(found.runs) == 3
    for name in (UPTAKE, IMPACT, "adaptation_rate"):
        assert found.results.metrics[name] == MEASURES[name].value(samples)
        assert found.results.intervals[name] == interval_of(MEASURES[name], samples)
    assert found.error_over_seeds(IMPACT) == pytest.approx(0.5 / 3**0.5)


def test_asking_the_same_again_makes_no_interval_narrower() -> None:
    (once,) = entries_of([run("m", HALF, seed=1)])
    (thrice,) = entries_of([run("m", HALF, seed=seed) for seed in (1, 2, 3)])
    one, three = (each.results.intervals[IMPACT] for each in (once, thrice))
    assert three.high - three.low >= one.high - one.low
    assert thrice.error_over_seeds(IMPACT) == 0
    assert once.error_over_seeds(IMPACT) is None


def test_what_two_runs_of_one_seed_share_is_counted_once_everywhere() -> None:
    """The second repeats the last ten samples of the first, and adds ten that think first."""
    first = run("m", [*KEEPS[:10], *ADAPTS[:10]])
    longer = run("m", [*KEEPS[:10], *ADAPTS])
    thought = {
        name: Answer(usage=Usage(0, 300, 300)) for name in (STANDARD_CONDITION, CHANGED_CONDITION)
    }
    added = [replace(sample, said=thought) for sample in longer.samples[20:]]
    second = replace(first, samples=[*first.samples[10:], *added])
    (found,) = entries_of([first, second])
    assert len(found.samples) == found.results.metrics["n_samples"] == 30
    assert [len(samples) for samples in found.samples_by_run] == [20, 10]
    assert found.thinking_tokens(CHANGED_CONDITION) == 100
    assert found.error_over_seeds(IMPACT) is None
    (apart,) = entries_of([first, replace(second, plan=run("m", KEEPS, seed=2).plan)])
    assert len(apart.samples) == 40
    assert apart.error_over_seeds(IMPACT) == pytest.approx(0.5 / 2)


def test_without_a_habit_there_is_no_impact_factor_and_no_error_of_it() -> None:
    none: list[Outcome] = ["legal"] * 20
    (found,) = entries_of([run("m", ADAPTS, before=none, seed=s) for s in (1, 2)])
    assert found.results.metrics[IMPACT] is None
    assert found.error_over_seeds(IMPACT) is None
    assert found.results.metrics[UPTAKE] is None


def test_useless_answers_never_make_a_model_the_best() -> None:
    illegal: list[Outcome] = ["illegal"] * 20
    models = {"chatty": JUNK, "wrong": illegal, "half": HALF, "keeps": KEEPS, "adapts": ADAPTS}
    runs = [run(model, after) for model, after in models.items()]
    runs.append(run("shy", ADAPTS, before=JUNK))  # nobody knows what it dropped
    found = entries_of(runs)
    assert [each.model for each in found[:2]] == ["adapts", "half"]
    assert found[-1].model == "shy"
    assert {each.model for each in found if each.is_suspect} == {"chatty", "wrong", "shy"}
    chatty = next(each for each in found if each.model == "chatty")
    assert chatty.results.metrics[IMPACT] == -1
    assert (chatty.results.bounds[IMPACT].low, chatty.results.bounds[IMPACT].high) == (-1, 0)
    assert any("answers that name no move" in note for note in chatty.notes)


def test_runs_under_different_rules_are_never_taken_together() -> None:
    runs = [
        run("m", HALF, seed=1),
        run("m", KEEPS, seed=1, change=QUEENS),
        run("m", HALF, seed=2),
        run("m", KEEPS, seed=1, eval="all_diagonal"),
    ]
    found = entries_of(runs)
    assert [(each.eval, each.change.key, len(each.runs)) for each in found] == [
        ("all", "bishops-as-knights", 2),
        ("all", "queens-as-knights", 1),
        ("all_diagonal", "bishops-as-knights", 1),
    ]


def test_runs_that_differ_in_more_than_the_seed_have_names_that_tell_them_apart() -> None:
    cold = run("m", HALF)
    cold = replace(cold, plan=replace(cold.plan, settings=Settings(temperature=0.0)))
    names = [each.model for each in entries_of([run("m", HALF), cold, run("other", KEEPS)])]
    assert names == ["m temperature 0", "m temperature 1", "other"]


def at(effort: Effort | None, before: Run, **fields: Any) -> Run:
    """The same run at another effort."""
    settings = replace(before.plan.settings, reasoning_effort=effort)
    return replace(before, plan=replace(before.plan, settings=settings, **fields))


def test_every_effort_of_a_model_stands_for_itself_under_one_name() -> None:
    once, again = run("m", HALF, seed=1), run("m", KEEPS, seed=2)
    runs = [at(effort, each) for effort in ("none", None, "high") for each in (once, again)]
    found = entries_of([*runs, at("none", run("other", ADAPTS))])
    assert [(each.model, each.effort, each.label, len(each.runs)) for each in found] == [
        ("other", "none", "other effort none", 1),
        ("m", "none", "m effort none", 2),
        ("m", "high", "m effort high", 2),
        ("m", None, "m its own effort", 2),
    ]
    assert [each.label for each in entries_of(runs[:2])] == ["m"]
    compared = pool_runs(runs)
    assert [each.label for each in compared] == [
        "m effort none",
        "m its own effort",
        "m effort high",
    ]
    (told,) = differences_in_plan(compared)
    assert "(m effort none: none; m its own effort: its own; m effort high: high)" in told


def test_efforts_on_positions_selected_at_different_efforts_are_not_of_one_line() -> None:
    """Unless nobody selected them: a dataset that was given, or the diagonal's."""
    asked = Dataset("m", "built", asked=40)
    for dataset, names in (
        (asked, ["m selected at effort high", "m selected at effort low"]),
        (Dataset("", "both.jsonl"), ["m", "m"]),
    ):
        plain = replace(run("m", HALF), dataset=dataset)
        found = entries_of([at(effort, plain, select_effort=effort) for effort in ("low", "high")])
        assert [each.model for each in found] == names


def test_what_was_selected_in_two_ways_is_never_ranked_together() -> None:
    drawn = Dataset("m", "built", asked=40, own_temperature=True)
    models = {"low": KEEPS, "high": ADAPTS, "middle": HALF}
    runs = [run(model, after) for model, after in models.items()]
    runs[1] = replace(runs[1], dataset=drawn)
    found = entries_of(runs)
    assert [each.model for each in found] == ["middle", "low", "high"]
    assert [each.selection for each in found] == ["", "", drawn.selection]
    assert len({each.category for each in found}) == 2
    seeds = [run("m", HALF, seed=1), replace(run("m", HALF, seed=2), dataset=drawn)]
    assert [len(each.runs) for each in entries_of(seeds)] == [1, 1]


def test_thinking_is_the_mean_over_the_samples_of_all_runs() -> None:
    thought = {STANDARD_CONDITION: (100, 300), CHANGED_CONDITION: (500, 1000)}
    asked: Any = [
        (
            p,
            {
                name: Answer("a2a3", usage=Usage(1, 9, tokens[n]))
                for name, tokens in thought.items()
            },
        )
        for n, p in enumerate(POOL[:2])
    ]
    (found,) = entries_of([run_of(asked)])
    assert (
        found.thinking_tokens(STANDARD_CONDITION),
        found.thinking_tokens(CHANGED_CONDITION),
    ) == (200, 750)


def test_notes_are_about_all_runs_together() -> None:
    fails: list[Outcome] = ["error", *HALF[1:]]
    (found,) = entries_of([run("m", fails, seed=seed) for seed in (1, 2)])
    assert found.results.metrics["n_samples"] == 38
    assert any("2 samples without an answer" in note for note in found.notes)


def test_the_same_folder_twice_a_copy_and_a_half_written_one_are_no_more_runs(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "runs" / "one"
    save_run(run("m", HALF), folder)
    shutil.copytree(folder, tmp_path / "runs" / "copy")
    half = tmp_path / "runs" / ".part-1"
    half.mkdir()
    shutil.copy(folder / "samples.jsonl", half)
    (found,) = entries_at([tmp_path / "runs", folder, folder / ".." / "one"])
    assert len(found.runs) == 1
    assert found.results.metrics == load_run(folder).results.metrics


def test_earlier_moves_are_those_that_the_change_concerns() -> None:
    moves = ("e2e4", "e7e5", "d1h5", "f8c5", "h5f7")
    asked: Any = [
        (
            Position(1, moves, ("e8f7",)),
            {STANDARD_CONDITION: "special", CHANGED_CONDITION: "special"},
        )
    ]
    samples = run_of(asked).samples
    labels = [
        by_affected_moves(samples, rules, 1.0)[0].label for rules in (BISHOPS_AS_KNIGHTS, QUEENS)
    ]
    assert labels == ["1", "2"]
