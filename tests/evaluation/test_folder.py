"""A run as a folder: written whole, read back, judged again."""

import json
from pathlib import Path

import pytest

from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.errors import BadInput, Problem
from cant_do_that_anymore.evaluation.folder import (
    check_free,
    facts_of,
    free_folder,
    load_run,
    rescored,
    save_run,
)


@pytest.fixture(scope="module")
def run() -> Run:
    return evaluate(Spec(model="cdta/random", n=10), quiet=True)


def test_a_run_is_read_back_as_it_was(run: Run, tmp_path: Path) -> None:
    save_run(run, tmp_path / "run")
    read = load_run(tmp_path / "run")
    assert read.samples == run.samples
    assert read.plan == run.plan
    assert facts_of(read) == facts_of(run)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "run.json",
        "samples.jsonl",
    ]


def test_rescoring_asks_nothing_and_gives_the_same_numbers(run: Run, tmp_path: Path) -> None:
    save_run(run, tmp_path / "run")
    again = rescored(load_run(tmp_path / "run"), run.plan.reading)
    assert again.results == run.results
    assert again.notes == [note for note in run.notes if "kept from" not in note]


def test_rescoring_follows_the_answers_not_the_old_outcomes(run: Run, tmp_path: Path) -> None:
    save_run(run, tmp_path / "run")
    path = tmp_path / "run" / "samples.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["replies"]["standard"]["text"] = f"**{line['next_filtered_moves'][0]}**"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    altered = load_run(tmp_path / "run")
    assert rescored(altered, "lenient").results.metrics["predicted_move_proportion"] == 1
    exact = rescored(altered, "exact")
    assert exact.results.metrics["predicted_move_proportion"] == 0
    assert exact.plan.reading == "exact"


def test_two_runs_of_one_second_get_two_folders(run: Run) -> None:
    first = free_folder(run)
    save_run(run, first)
    assert free_folder(run) != first


def test_a_folder_that_holds_something_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="is not empty"):
        check_free(tmp_path)
    check_free(tmp_path / "new")


def test_a_place_that_cannot_be_written_loses_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Problem, match="cannot write the run to"):
        save_run(run, tmp_path / "file" / "run")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("run.json", "{", "run.json is damaged"),
        ("run.json", "{}", "run.json was written by another version of this program"),
        ("run.json", '{"format": 2}', "run.json is damaged"),
        ("run.json", "[]", "run.json is damaged"),
        ("run.json", None, "is no run folder"),
        ("samples.jsonl", "{}\n", "samples.jsonl, line 1: not a sample"),
        ("samples.jsonl", "\0\xff", "samples.jsonl, line 1: not a sample"),
        ("samples.jsonl", None, "cannot read"),
    ],
)
def test_a_damaged_folder_is_said_plainly_and_left_alone(
    run: Run, tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    save_run(run, tmp_path / "run")
    path = tmp_path / "run" / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(BadInput, match=sentence):
        load_run(tmp_path / "run")
    assert content is None or path.read_text() == content
