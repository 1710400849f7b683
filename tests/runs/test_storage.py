"""A run as a folder: written, read back, and found by name by every command."""

import json
import shutil
import webbrowser
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from cant_do_that_anymore import rules_named
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.runs.lookup import find_run, find_runs, new_run_dir, runs_to_compare
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import load_run, run_json, save_run
from cant_do_that_anymore.task.prompts import Wording
from testing import cdta, measure, positions, run_with_outcomes, wavering

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
    assert run_json(loaded)["format"] == 8  # any other number makes all earlier runs unreadable
    assert sorted(path.name for path in folder.iterdir()) == ["run.json", "samples.jsonl"]


OPTIONS: dict[str, dict[str, Any]] = {
    "a diagnosis": {"diagnose": True, "pool": positions(40), "dataset": None, "n": 6},
    "interventions": {"interventions": ["reminded", "legal-moves", "check-first"]},
    "own texts": {"wording": Wording("own", "Play {position}.", "Play. {change}")},
    "a base model": {"model": "completions/m", "reading": "exact", "max_tokens": 9},
    "settings": {"temperature": 0.5, "seed": 5, "extra_body": {"top_k": 3}},
    "a key": {"header": ["X-Gate=planted-secret"]},
    "a form": {"form": "moves+fen"},
    "questions": {"rules": "base-9", "dataset": None, "diagnose": True, "interventions": "all"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_saved_run_gives_the_same_numbers(options: dict[str, Any], tmp_path: Path) -> None:
    source = "cdta/random" if "rules" in options else wavering
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
    edit(folder / "run.json", lambda data: data.update(delta=None, of_a_newer_version=0.5))
    assert load_run(folder).results == run.results
    changed = {"text": "I cannot tell.", "outcome": "adapted"}
    edit(folder / "samples.jsonl", lambda data: data["replies"]["changed"].update(changed), line=1)
    loaded = load_run(folder)
    assert loaded.samples[1].replies["changed"].outcome == "unreadable"
    assert loaded.samples[2:] == run.samples[2:]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda data: data.update(format=5), "'format' in .* must be 8, not 5.*another version"),
        (lambda data: data["cost"].update(total="x"), "'cost.total' in .* a valid number, not 'x'"),
        (lambda data: data["options"].update(temperature=1e999), "temperature must be a finite"),
        (lambda data: data["prompts"]["changed"].pop("plain"), "plain"),
        (lambda data: data["prompts"].pop("changed"), "changed"),
        (lambda data: data["prompts"].update(standard={}), "there is no prompt for"),
        (lambda data: data["prompts"].update(mine={}), "unknown condition: 'mine'"),
        (lambda data: data.pop("options"), "is missing the key 'options'"),
        (lambda data: data["options"].update(top_p=0.5), "unexpected keyword argument 'top_p'"),
        (lambda data: data.update(rules="mine", change=None), r"load\(FOLDER, rules"),
        (lambda data: data.update(n=99), r"has 10 of 99 samples"),
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


# Names of runs

RUN = run_with_outcomes(changed=["legal"] * 3)


def make_run(
    model: str,
    day: int,
    folder: Path | None = None,
    endpoint: str = "",
    tag: str = "",
    run: Run = RUN,
) -> Path:
    names: dict[str, Any] = {"model": model, "version": model, "endpoint": endpoint}
    identity = {"name": model} | ({"tag": tag} if tag else {})
    run = replace(run, **names, identity=identity, started_at=f"2026-01-{day:02}T00:00:00Z")
    folder = folder or new_run_dir(run)
    save_run(run, folder)
    return folder


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Two runs in CDTA_HOME, and three runs of an experiment in the current folder."""
    monkeypatch.chdir(tmp_path)
    return {
        "old": make_run("openai/gpt-4o", 1),
        "new": make_run("openai/gpt-4o-mini", 9),
        "alpha": make_run("alpha", 2, Path("mine/alpha-all-1")),
        "alpha again": make_run("alpha", 3, Path("mine/alpha-all-2")),
        "beta": make_run("beta", 4, Path("mine/beta-all-1"), "http://127.0.0.1:1/v1", "Step-2000"),
    }


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("latest", "new"),
        ("2026-01-01", "old"),
        ("openai/gpt-4o", "old"),  # a model's full name takes precedence over part of another
        ("gpt-4o", "old"),  # and so does its last part
        ("GPT-4o-M", "new"),
        ("beta", "beta"),
        ("beta@http://127.0.0.1:1/v1", "beta"),
        ("mine/beta-all-1", "beta"),
        ("mine/beta-all-1/run.json", "beta"),
        ("alpha-all-2", "alpha again"),
        ("step-2", "beta"),
        ("beta Step-2000", "beta"),
    ],
)
def test_a_run_has_many_names(runs: dict[str, Path], name: str, key: str) -> None:
    assert find_run(name).resolve() == runs[key].resolve()


def test_commands_accept_names_and_view_opens_reports(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Mock(return_value=True)
    monkeypatch.setattr(webbrowser, "open", browser)
    cdta("show", "Step-2000", code=0)
    cdta("compare", "Step-2000", "alpha-all-1", code=0)
    Path("index.html").write_text("an experiment")
    pages = [runs[name].resolve() / "report.html" for name in ("beta", "new")]
    for name in ("Step-2000", ".", "latest"):  # reports are written
        cdta("view", name, code=0)
    index = Path("index.html").resolve()
    opened = [call.args[0] for call in browser.call_args_list]
    assert opened == [path.as_uri() for path in (pages[0], index, pages[1])]
    assert all(path.exists() for path in pages)
    browser.return_value = False  # there is none
    assert cdta("view", "beta", code=0).stdout == "report: mine/beta-all-1/report.html\n"


def test_runs_are_listed_one_per_line_with_a_name_that_commands_accept(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cant_do_that_anymore.cli.commands.runs.PIPE_WIDTH", 80)
    header, *lines = cdta("runs", code=0).stdout.splitlines()
    assert " ".join(header.split()) == "run model options and rules n rule uptake"
    assert max(map(len, lines)) <= 80
    found = [find_run(line.split()[0]).resolve() for line in lines]
    newest_first = ("new", "beta", "alpha again", "alpha", "old")
    assert found == [runs[key].resolve() for key in newest_first]
    assert ["beta Step-2000 " in line for line in lines] == ["beta" in line for line in lines]
    assert all(RUN["rule_uptake"].as_share in line for line in lines)
    listed = json.loads(cdta("runs", "mine", "--json", code=0).stdout)
    assert (len(listed), listed[0]["identity"]["tag"]) == (3, "Step-2000")
    assert listed[0]["rule_uptake"] == asdict(RUN["rule_uptake"])


def test_a_name_stands_for_the_newest_run_and_for_all_where_several_are_wanted(
    runs: dict[str, Path],
) -> None:
    alpha_runs = [runs["alpha"], runs["alpha again"]]
    assert sorted(find_runs(["alpha"])) == alpha_runs
    assert find_runs(["mine", "alpha", "mine/beta-all-1"]) == [*alpha_runs, runs["beta"]]
    for name in ("gamma", "x" * 5000):
        with pytest.raises(InvalidInput, match=r"no run matches.*\(see `cdta runs`\)$"):
            find_run(name)
    for name in ("alpha", "mine/alpha-all-2", "alpha-all"):
        assert find_run(name) == runs["alpha again"]
    assert "run: mine/alpha-all-2\n" in cdta("show", "alpha", code=0).stdout
    assert cdta("export", "alpha", "-o", "out", code=0).stderr == "run: mine/alpha-all-2\n"
    folders = cdta("export", "mine", "-o", "out", code=0).stderr.splitlines()
    assert len(folders) == 3


def test_the_list_names_damaged_runs(runs: dict[str, Path]) -> None:
    (runs["alpha"] / "run.json").write_text("{")
    shutil.copytree(runs["alpha again"], "mine/.part-1")  # not written completely
    done = cdta("runs", code=0)
    (line,) = done.stderr.splitlines()
    assert line.startswith("cdta: 1 run left out, damaged or of another version: mine/alpha-all-1")
    assert len(done.stdout.splitlines()) == 1 + 4


def test_names_to_compare_stand_for_their_newest_runs_of_one_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    no_castling = replace(RUN, plan=replace(RUN.plan, change=rules_named("no-castling")))
    old, new = make_run("a", 1), make_run("a", 2)
    other = make_run("a", 3, run=no_castling)
    b, c = make_run("x/a", 4), make_run("c", 5, run=no_castling)
    assert runs_to_compare(["a", "x/a"]) == [[new], [b]]  # a full name comes before a part
    assert runs_to_compare(["x/a", "a"]) == [[b], [new]]
    assert runs_to_compare(["a", "c"]) == [[other], [c]]
    assert runs_to_compare(["x/a", "c"]) == [[b], [c]]  # which cannot be compared
    assert runs_to_compare([old, "a"]) == [[old], [new]]
    assert sorted(runs_to_compare(["a"])[0]) == [old, new, other]
