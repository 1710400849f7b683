"""A run as a folder: written and read back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.runs.lookup import new_run_dir
from cant_do_that_anymore.runs.storage import FORMAT, load_run, run_json, save_run
from testing import Run, measure, positions, wavering

Json = dict[str, Any]


@pytest.fixture(scope="module")
def run() -> Run:
    return measure("cdta/random", dataset=positions(10))


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    """A folder with that run."""
    save_run(run, tmp_path / "run")
    return tmp_path / "run"


def edit_run_json(folder: Path, edit: Callable[[Json], object]) -> None:
    file = folder / "run.json"
    data = json.loads(file.read_text())
    edit(data)
    file.write_text(json.dumps(data))


def test_a_saved_run_is_read_back_unchanged(run: Run, folder: Path) -> None:
    loaded = load_run(folder)
    assert (loaded.samples, loaded.plan) == (run.samples, run.plan)
    assert run_json(loaded) == run_json(run)
    assert run_json(loaded)["format"] == 7  # any other number makes all earlier runs unreadable
    assert sorted(path.name for path in folder.iterdir()) == ["run.json", "samples.jsonl"]


OF_SERVER: dict[str, dict[str, Any]] = {
    "a diagnosis": {"diagnose": True, "pool": positions(40), "dataset": None, "n": 6},
    "interventions": {"interventions": ["reminded", "legal-moves", "check-first"]},
    "own texts": {"wording": {"standard": "Play {position}.", "changed": "Play. {change}"}},
    "a base model": {"model": "completions/m", "reading": "exact", "max_tokens": 9},
    "settings": {"temperature": 0.5, "seed": 5, "extra_body": {"top_k": 3}},
    "a key": {"header": ["X-Gate=planted-secret"]},
}
OF_RANDOM_MODEL: dict[str, dict[str, Any]] = {
    "a form": {"form": "moves+fen"},
    "questions": {"rules": "base-9", "dataset": None, "diagnose": True, "interventions": "all"},
}


@pytest.mark.parametrize("name", [*OF_SERVER, *OF_RANDOM_MODEL])
def test_a_saved_run_gives_the_same_numbers(name: str, tmp_path: Path) -> None:
    source = wavering if name in OF_SERVER else "cdta/random"
    options = {**OF_SERVER, **OF_RANDOM_MODEL}[name]
    run = measure(source, **{"dataset": positions(10), "n": 10} | options)
    save_run(run, tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert (loaded.results, loaded.samples) == (run.results, run.samples)
    assert run_json(loaded) == run_json(run)
    assert loaded.plan == run.plan
    assert "planted-secret" not in "".join(p.read_text() for p in (tmp_path / "run").iterdir())


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        (lambda data: data.update(format=5), "'format' in .* must be 7, not 5.*another version"),
        (lambda data: data["cost"].update(total="x"), "'cost.total' in .* a valid number, not 'x'"),
        (lambda data: data["options"].update(temperature=1e999), "temperature must be a finite"),
        (lambda data: data["conditions"]["standard"].update(prompts={}), "have different wordings"),
        (lambda data: data["conditions"].pop("changed"), "no condition changed"),
        (lambda data: data.pop("options"), "is missing the key 'options'"),
        (lambda data: data["conditions"]["changed"].update(top_p=0.5), "unknown key in .*top_p"),
        (lambda data: data.update(rules="mine", change=None), r"load\(FOLDER, rules"),
    ],
)
def test_bad_run_json_is_refused(edit: Callable[[Json], object], error: str, folder: Path) -> None:
    edit_run_json(folder, edit)
    with pytest.raises(InvalidInput, match=error) as refusal:
        load_run(folder)
    assert str(folder) in str(refusal.value)


def edit_samples(folder: Path, edit: Callable[[list[Json]], object]) -> None:
    path = folder / "samples.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    edit(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_saved_answers_are_scored_when_a_run_is_loaded(run: Run, folder: Path) -> None:
    edit_run_json(folder, lambda data: data.update(n=99, delta=None, of_a_newer_version=0.5))
    assert load_run(folder).results == run.results

    def edit(lines: list[Json]) -> None:
        lines[1]["replies"]["changed"] |= {"text": "I cannot tell.", "outcome": "adapted"}

    edit_samples(folder, edit)
    loaded = load_run(folder)
    assert loaded.samples[1].replies["changed"].outcome == "unreadable"
    assert loaded.samples[2:] == run.samples[2:]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("run.json", "{", "cannot read the run '.*run.json"),
        ("run.json", json.dumps({"format": FORMAT}), "run.json' .*another version"),
        ("run.json", None, "cannot read the run"),
        ("samples.jsonl", "\0\xff", "cannot read the run '.*samples.jsonl"),
        ("samples.jsonl", None, "cannot read"),
    ],
)
def test_damage_is_only_reported(folder: Path, name: str, content: str | None, error: str) -> None:
    path = folder / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(InvalidInput, match=error):
        load_run(folder)
    assert content is None or path.read_text() == content


def test_a_lost_sample_or_reply_is_reported(folder: Path) -> None:
    edit_samples(folder, lambda lines: lines.pop())
    with pytest.raises(InvalidInput, match=r"samples.jsonl' \(it has 9 of 10 samples\)"):
        load_run(folder)
    edit_samples(folder, lambda lines: lines[1]["replies"].pop("changed"))
    with pytest.raises(InvalidInput, match=r"samples.jsonl' \('changed'\)"):
        load_run(folder)


def test_two_runs_in_one_second_have_two_folders(run: Run) -> None:
    folders = [new_run_dir(run), new_run_dir(run)]
    for folder in folders:
        save_run(run, folder)
        assert load_run(folder).samples == run.samples
    assert new_run_dir(run) not in folders


def test_a_folder_that_cannot_be_written_is_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="cannot write the run to"):
        save_run(run, tmp_path / "notes.txt" / "run")
