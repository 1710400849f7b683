"""A run as a folder: written whole, read back, judged again."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.runs.lookup import check_free, new_run_dir
from cant_do_that_anymore.runs.results import PROTOCOL
from cant_do_that_anymore.runs.storage import FORMAT, facts_of, load_run, rescored, save_run
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION
from runs import run_of

WRONG_KINDS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a cost that is a text": lambda facts: facts["cost"].update(dataset="x"),
    "an eval that is none": lambda facts: facts.update(eval={}),
    "an identity that is a number": lambda facts: facts.update(identity=5),
    "a time that is no text": lambda facts: facts["dataset"].update(saved_at={}),
    "questions without a number": lambda facts: facts["dataset"].update(asked="many"),
    "a seed that is a text": lambda facts: facts["settings"].update(seed="x"),
    "a temperature without end": lambda facts: facts["settings"].update(temperature=1e999),
    "notes that are one text": lambda facts: facts.update(notes="none"),
    "a text of a condition that is none": lambda facts: facts["conditions"][0].update(text=[]),
    "a condition that is missing": lambda facts: facts["conditions"].pop(),
    "other outcomes": lambda facts: facts["outcomes"][CHANGED_CONDITION].update(special=7),
}


@pytest.mark.parametrize("alter", WRONG_KINDS.values(), ids=WRONG_KINDS)
def test_a_run_whose_facts_were_altered_is_refused_in_one_sentence(
    alter: Callable[[dict[str, Any]], object], run: Run, tmp_path: Path
) -> None:
    save_run(run, tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    facts = json.loads(file.read_text())
    alter(facts)
    file.write_text(json.dumps(facts))
    with pytest.raises(InvalidInput, match=r"run\.json"):
        load_run(tmp_path / "run")


def test_two_runs_of_one_second_have_two_folders(run: Run) -> None:
    folders = [new_run_dir(run), new_run_dir(run)]
    for folder in folders:
        save_run(run, folder)
        assert load_run(folder).samples == run.samples
    assert folders[0] != folders[1]


def test_the_folder_that_one_is_in_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (".", "", "x/.."):
        with pytest.raises(InvalidInput, match="the folder you are in"):
            check_free(Path(name))


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


def test_rescoring_follows_the_answers_not_the_old_outcomes() -> None:
    decorated = [
        (
            position,
            dict.fromkeys(
                (STANDARD_CONDITION, CHANGED_CONDITION), Answer(f"**{position.special_moves[0]}**")
            ),
        )
        for position in shipped_pool("pool")[:3]
    ]
    run = run_of(decorated)
    assert run.results.metrics["predicted_move_proportion"] == 1
    exact = rescored(run, "exact")
    assert exact.results.metrics["predicted_move_proportion"] == 0
    assert exact.plan.reading == "exact"


Line = dict[str, Any]


def twice(lines: list[Line]) -> None:
    lines[4] = lines[2]


def other_outcome(lines: list[Line]) -> None:
    lines[1]["replies"]["changed"] |= {"outcome": "adapted", "under_change": "adapted"}


def other_under_change(lines: list[Line]) -> None:
    lines[1]["replies"]["standard"]["under_change"] = "illegal"


def other_text(lines: list[Line]) -> None:
    lines[1]["replies"]["changed"]["text"] = "I cannot tell."


def other_position(lines: list[Line]) -> None:
    lines[3]["previous_moves"] = lines[2]["previous_moves"]


def other_tokens(lines: list[Line]) -> None:
    lines[0]["replies"]["standard"]["usage"]["input_tokens"] += 1


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (twice, r"samples.jsonl, line 5: the same sample as in line 3; the file was changed"),
        (other_outcome, r"samples.jsonl, line 2: the changed reply '.*' is .* not adapted"),
        (other_under_change, r"samples.jsonl, line 2: the standard reply .* illegal under"),
        (other_text, r"samples.jsonl, line 2: the changed reply 'I cannot tell.' is unreadable"),
        (other_position, r"samples.jsonl, line 4: the id is not that of the position; the file"),
        (other_tokens, r"run.json says that usage_\w+ is 0, and samples.jsonl gives 1: one of"),
    ],
)
def test_an_edited_file_of_samples_is_not_believed(
    run: Run, tmp_path: Path, edit: Callable[[list[Line]], None], sentence: str
) -> None:
    save_run(run, tmp_path / "run")
    path = tmp_path / "run" / "samples.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    edit(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InvalidInput, match=sentence):
        load_run(tmp_path / "run")


def save_with_number(run: Run, folder: Path, name: str, value: float) -> None:
    save_run(run, folder)
    facts = json.loads((folder / "run.json").read_text())
    facts["metrics"][name] = value
    (folder / "run.json").write_text(json.dumps(facts))


def test_an_edited_number_is_not_believed(run: Run, tmp_path: Path) -> None:
    save_with_number(run, tmp_path / "run", "predicted_move_proportion", 0.987)
    with pytest.raises(
        InvalidInput, match=r"run.json says that predicted_move_proportion is 0.987, "
    ):
        load_run(tmp_path / "run")


def test_a_number_that_this_version_does_not_know_is_left_alone(run: Run, tmp_path: Path) -> None:
    save_with_number(run, tmp_path / "run", "of_a_newer_version", 0.5)
    assert load_run(tmp_path / "run").results == run.results


def test_a_run_of_another_protocol_may_have_judged_and_measured_otherwise(
    run: Run, tmp_path: Path
) -> None:
    save_run(replace(run, protocol="2"), tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    facts = json.loads(path.read_text())
    facts["metrics"]["predicted_move_proportion"] = 0.987
    path.write_text(json.dumps(facts))
    old = load_run(tmp_path / "run")
    assert old.protocol == "2"
    again = rescored(old, old.plan.reading)
    assert (again.protocol, again.results) == (PROTOCOL, run.results)


def test_a_position_that_was_drawn_twice_is_two_samples(tmp_path: Path) -> None:
    said: Any = {STANDARD_CONDITION: "special", CHANGED_CONDITION: "legal"}
    save_run(run_of([(shipped_pool("pool")[0], said)] * 2), tmp_path / "run")
    assert [sample.draw for sample in load_run(tmp_path / "run").samples] == [0, 1]


def test_two_runs_of_one_second_get_two_folders(run: Run) -> None:
    first = new_run_dir(run)
    save_run(run, first)
    assert new_run_dir(run) != first


def test_a_folder_that_holds_something_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="is not empty"):
        check_free(tmp_path)
    check_free(tmp_path / "new")


def test_a_place_that_cannot_be_written_loses_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write the run to"):
        save_run(run, tmp_path / "file" / "run")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("run.json", "{", "run.json is damaged"),
        ("run.json", "{}", "run.json was written by another version of this program"),
        ("run.json", json.dumps({"format": FORMAT}), "run.json is damaged"),
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
    with pytest.raises(InvalidInput, match=sentence):
        load_run(tmp_path / "run")
    assert content is None or path.read_text() == content
