"""A run as a folder: written and read back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.runs.lookup import new_run_dir
from cant_do_that_anymore.runs.storage import load_run, run_json, save_run
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


def edit(file: Path, change: Callable[[Json], object], line: int = 0) -> None:
    """Change a JSON object in a file: its only one, or that of a line."""
    lines = [file.read_text()] if file.suffix == ".json" else file.read_text().splitlines()
    data = json.loads(lines[line])
    change(data)
    lines[line] = json.dumps(data)
    file.write_text("".join(f"{line}\n" for line in lines))


def test_saved_answers_are_scored_when_a_run_is_loaded(run: Run, folder: Path) -> None:
    edit(folder / "run.json", lambda data: data.update(n=99, delta=None, of_a_newer_version=0.5))
    assert load_run(folder).results == run.results
    changed = {"text": "I cannot tell.", "outcome": "adapted"}
    edit(folder / "samples.jsonl", lambda data: data["replies"]["changed"].update(changed), line=1)
    loaded = load_run(folder)
    assert loaded.samples[1].replies["changed"].outcome == "unreadable"
    assert loaded.samples[2:] == run.samples[2:]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda data: data.update(format=5), "'format' in .* must be 7, not 5.*another version"),
        (lambda data: data["cost"].update(total="x"), "'cost.total' in .* a valid number, not 'x'"),
        (lambda data: data["options"].update(temperature=1e999), "temperature must be a finite"),
        (lambda data: data["conditions"]["standard"].update(prompts={}), "have different wordings"),
        (lambda data: data["conditions"].pop("changed"), "no condition changed"),
        (lambda data: data.pop("options"), "is missing the key 'options'"),
        (lambda data: data["conditions"]["changed"].update(top_p=0.5), "unknown key in .*top_p"),
        (lambda data: data.update(rules="mine", change=None), r"load\(FOLDER, rules"),
        (lambda data: data["outcomes"]["standard"].update(usual=99), r"has 10 of \d+ samples"),
    ],
)
def test_bad_run_json_is_refused(
    change: Callable[[Json], object], error: str, folder: Path
) -> None:
    edit(folder / "run.json", change)
    with pytest.raises(InvalidInput, match=error) as refusal:
        load_run(folder)
    assert str(folder) in str(refusal.value)


@pytest.mark.parametrize("name", ["run.json", "samples.jsonl"])
def test_damage_is_only_reported(folder: Path, name: str) -> None:
    file = folder / name
    for content in ("{", "\0\xff"):
        file.write_text(content)
        with pytest.raises(InvalidInput, match=f"cannot read the run '.*{name}'"):
            load_run(folder)
        assert file.read_text() == content
    file.unlink()
    with pytest.raises(InvalidInput, match=f"cannot read the run '.*{name}'"):
        load_run(folder)


def test_two_runs_in_one_second_have_two_folders(run: Run) -> None:
    folders = [new_run_dir(run), new_run_dir(run)]
    for folder in folders:
        save_run(run, folder)
        assert load_run(folder).samples == run.samples
    assert new_run_dir(run) not in folders
