"""A run as a folder: written whole, read back, judged again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.runs.lookup import check_free, new_run_dir
from cant_do_that_anymore.runs.results import PROTOCOL
from cant_do_that_anymore.runs.storage import FORMAT, load_run, rescored, run_json, save_run
from testing import POOL, Run, measure, positions, run_of

Facts = dict[str, Any]


@pytest.fixture(scope="module")
def run() -> Run:
    return measure("cdta/random", dataset=positions(10))


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    """The folder of that run."""
    save_run(run, tmp_path / "run")
    return tmp_path / "run"


def change_facts(folder: Path, change: Callable[[Facts], object]) -> None:
    file = folder / "run.json"
    facts = json.loads(file.read_text())
    change(facts)
    file.write_text(json.dumps(facts))


def test_a_run_is_read_back_as_it_was(run: Run, folder: Path) -> None:
    read = load_run(folder)
    assert (read.samples, read.plan) == (run.samples, run.plan)
    assert run_json(read) == run_json(run)
    assert run_json(read)["format"] == 4  # any other number makes all earlier runs unreadable
    assert sorted(path.name for path in folder.iterdir()) == ["run.json", "samples.jsonl"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda facts: facts["cost"].update(dataset="x"), "'cost.dataset' in .* a number, not 'x'"),
        (lambda facts: facts.update(eval={}), "'eval' in .* must be 'all', 'all_small' or"),
        (lambda facts: facts.update(identity=5), "'identity' in .* a table of values, not 5"),
        (lambda facts: facts["dataset"].update(saved_at={}), "'dataset.saved_at' .* a text, not"),
        (lambda facts: facts["dataset"].update(asked="many"), "'dataset.asked' .* a whole number"),
        (lambda facts: facts["settings"].update(seed="x"), "'settings.seed' .* a whole number"),
        (
            lambda facts: facts["settings"].update(temperature=1e999),
            "'settings.temperature' in .* must be a finite number, not inf",
        ),
        (lambda facts: facts.update(seconds=1e999), "'seconds' in .* finite number, not inf"),
        (lambda facts: facts.update(notes="none"), "'notes' in .* must be a list, not 'none'"),
        (lambda facts: facts["conditions"][0].update(text=[]), r"'conditions\[0\].text' .* a text"),
        (lambda facts: facts["conditions"].pop(), "no condition changed"),
        (lambda facts: facts["conditions"][1].update(rules="no"), "'no'"),
        (lambda facts: facts["conditions"][1].update(form="no"), "unknown form: 'no'"),
        (lambda facts: facts.pop("wording"), "is missing the key 'wording'"),
        (lambda facts: facts["outcomes"]["changed"].update(special=7), "not match the outcomes"),
        (
            lambda facts: facts["metrics"].update(delta=0.987),
            "says that delta is 0.987, but samples.jsonl gives",
        ),
        (lambda facts: facts["settings"].update(top_p=0.5), "unknown key in .*top_p"),
        (lambda facts: facts["conditions"][1].update(top_p=0.5), "unknown key in .*top_p"),
        (lambda facts: facts.update(rules="mine"), r"'mine', which are not .*load\(FOLDER, rules"),
    ],
)
def test_changed_facts(change: Callable[[Facts], object], sentence: str, folder: Path) -> None:
    change_facts(folder, change)
    with pytest.raises(InvalidInput, match=sentence) as refused:
        load_run(folder)
    assert str(folder) in str(refused.value) or "form" in str(refused.value)


def test_a_number_that_this_version_does_not_know_is_left_alone(run: Run, folder: Path) -> None:
    change_facts(folder, lambda facts: facts["metrics"].update(of_a_newer_version=0.5))
    assert load_run(folder).results == run.results


def test_a_run_of_another_protocol_may_have_other_numbers(run: Run, folder: Path) -> None:
    change_facts(folder, lambda facts: facts.update(protocol="2"))
    change_facts(folder, lambda facts: facts["metrics"].update(delta=0.987))
    old = load_run(folder)
    assert old.protocol == "2"
    again = rescored(old, old.plan.reading)
    assert (again.protocol, again.results) == (PROTOCOL, run.results)


def test_rescoring_asks_nothing_and_gives_the_same_numbers(run: Run, folder: Path) -> None:
    again = rescored(load_run(folder), run.plan.reading)
    assert again.results == run.results
    assert again.notes == [note for note in run.notes if "kept from" not in note]


def test_rescoring_follows_the_answers_not_the_old_outcomes() -> None:
    run = run_of(
        [
            (position, dict.fromkeys(("standard", "changed"), Answer(f"**{special}**")))
            for position in POOL[:3]
            for special in position.special_moves[:1]
        ]
    )
    assert run.results.metrics["predicted_move_proportion"] == 1
    exact = rescored(run, "exact")
    assert exact.results.metrics["predicted_move_proportion"] == 0
    assert exact.plan.reading == "exact"


def twice(lines: list[Facts]) -> None:
    lines[4] = lines[2]


def other_position(lines: list[Facts]) -> None:
    lines[3]["previous_moves"] = lines[2]["previous_moves"]


def other_reply(condition: str, **values: object) -> Callable[[list[Facts]], None]:
    return lambda lines: lines[1]["replies"][condition].update(values)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (twice, r"samples.jsonl, line 5: the same sample as in line 3; the file was changed"),
        (other_position, r"samples.jsonl, line 4: the id does not match the position; the file"),
        (
            other_reply("changed", outcome="adapted", under_change="adapted"),
            r"samples.jsonl, line 2: the changed reply '.*' is .* not adapted",
        ),
        (
            other_reply("standard", under_change="illegal"),
            r"samples.jsonl, line 2: the standard reply .* illegal under",
        ),
        (
            other_reply("changed", text="I cannot tell."),
            r"samples.jsonl, line 2: the changed reply 'I cannot tell.' is unreadable",
        ),
        (
            other_reply("standard", usage={"input_tokens": 1}),
            r"run.json says that usage_\w+ is 0, but samples.jsonl gives 1. One of",
        ),
        (other_reply("standard", usage={"input_tokens": -1}), "line 2: not a sample of a run"),
        (other_reply("standard", outcome="won"), "line 2: not a sample of a run"),
        (lambda lines: lines.pop(), "samples.jsonl is damaged: it has 9 of 10 samples"),
    ],
)
def test_an_edited_file_of_samples_is_not_believed(
    folder: Path, edit: Callable[[list[Facts]], None], sentence: str
) -> None:
    path = folder / "samples.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    edit(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InvalidInput, match=sentence):
        load_run(folder)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("run.json", "{", "run.json is damaged"),
        ("run.json", "{}", "run.json was written by another version of this program"),
        ("run.json", json.dumps({"format": FORMAT}), "run.json is damaged or of another version"),
        ("run.json", "[]", "run.json is damaged"),
        ("run.json", None, "is not a run folder"),
        ("samples.jsonl", "{}\n", "samples.jsonl, line 1: not a sample"),
        ("samples.jsonl", "\0\xff", "samples.jsonl, line 1: not a sample"),
        ("samples.jsonl", None, "cannot read"),
    ],
)
def test_damage_is_left_alone(folder: Path, name: str, content: str | None, sentence: str) -> None:
    path = folder / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(InvalidInput, match=sentence):
        load_run(folder)
    assert content is None or path.read_text() == content


def test_a_position_that_was_drawn_twice_is_two_samples(tmp_path: Path) -> None:
    said: Any = {"standard": "special", "changed": "legal"}
    save_run(run_of([(POOL[0], said)] * 2), tmp_path / "run")
    assert [sample.draw for sample in load_run(tmp_path / "run").samples] == [0, 1]


def test_two_runs_of_one_second_have_two_folders(run: Run) -> None:
    folders = [new_run_dir(run), new_run_dir(run)]
    for folder in folders:
        save_run(run, folder)
        assert load_run(folder).samples == run.samples
    assert new_run_dir(run) not in folders


def test_an_unusable_place(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (".", "", "x/.."):
        with pytest.raises(InvalidInput, match="the current folder"):
            check_free(Path(name))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="is not empty"):
        check_free(tmp_path / "mine")
    check_free(tmp_path / "new")
    with pytest.raises(UserError, match="cannot write the run to"):
        save_run(run, tmp_path / "mine" / "notes.txt" / "run")
