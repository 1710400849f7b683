"""Finding runs by name, and the errors if no run or too many match."""

import json
import shutil
import webbrowser
from dataclasses import replace
from pathlib import Path

import pytest

from cant_do_that_anymore import rules_named
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.runs.lookup import (
    find_run,
    find_runs,
    known_folders,
    new_run_dir,
    readable_runs,
    runs_to_compare,
)
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import save_run
from testing import cdta, run_with_outcomes

RUN = run_with_outcomes(changed=["legal"] * 3)


def make_run(
    model: str,
    day: int,
    folder: Path | None = None,
    endpoint: str = "",
    tag: str = "",
    run: Run = RUN,
) -> Path:
    started_at = f"2026-01-{day:02}T00:00:00Z"
    identity = {"name": model} | ({"tag": tag} if tag else {})
    run = replace(run, model=model, version=model, started_at=started_at, endpoint=endpoint)
    run = replace(run, identity=identity)
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
        ("GPT-4o-M", "new"),
        ("beta", "beta"),
        ("beta@http://127.0.0.1:1/v1", "beta"),
        ("mine/beta-all-1", "beta"),
        ("mine/beta-all-1/run.json", "beta"),
        ("alpha-all-2", "alpha again"),
        ("Step-2000", "beta"),
        ("step-2", "beta"),
        ("beta Step-2000", "beta"),
    ],
)
def test_a_run_has_many_names(runs: dict[str, Path], name: str, key: str) -> None:
    assert find_run(name).resolve() == runs[key].resolve()


@pytest.mark.parametrize("command", ["show", "view", "compare"])
def test_a_tag_names_a_run_in_every_command(
    command: str, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda address: "beta-all-1" in address)
    cdta(command, "Step-2000", *(["alpha-all-1"] if command == "compare" else []), code=0)


def test_a_tag_is_listed_with_the_model(runs: dict[str, Path]) -> None:
    header, *lines = cdta("runs", "mine", code=0).stdout.splitlines()
    assert header.split()[:2] == ["run", "model"]
    assert ["beta Step-2000 " in line for line in lines] == ["beta" in line for line in lines]
    assert json.loads(cdta("runs", "mine", "--json", code=0).stdout)[0]["tag"] == "Step-2000"


def test_an_ambiguous_name_lists_the_runs(runs: dict[str, Path]) -> None:
    for name in ("alpha", "mine"):
        with pytest.raises(
            InvalidInput, match=rf"'{name}' matches \d runs; name one: .*alpha-all-"
        ):
            find_run(name)
    for number in range(8):
        make_run("many", number + 10)
    with pytest.raises(
        InvalidInput, match=r"matches 13 runs; name one: ([^,]+, ){11}[^,]+, \.\.\.$"
    ):
        find_run("a")


def test_each_run_of_a_folder_or_model_is_found_once(runs: dict[str, Path]) -> None:
    alpha_runs = [runs["alpha"], runs["alpha again"]]
    assert sorted(find_runs(["alpha"])) == alpha_runs
    assert find_runs(["mine", "alpha", "mine/beta-all-1"]) == [*alpha_runs, runs["beta"]]


def test_a_name_without_a_run_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"no run matches 'latest'.*there are no runs yet"):
        find_run("latest")
    make_run("alpha", 1)
    for name in ("gamma", "x" * 5000, "a\0b"):
        with pytest.raises(InvalidInput, match=r"no run matches.*\(see `cdta runs`\)$"):
            find_run(name)
    (tmp_path / "alpha").mkdir()  # a folder without runs hides no run
    assert find_run("alpha").name.endswith("alpha-all")


def test_the_list_is_newest_first_and_names_damaged_runs(runs: dict[str, Path]) -> None:
    (runs["alpha"] / "run.json").write_text("{")
    facts = json.loads((runs["beta"] / "run.json").read_text())
    (runs["beta"] / "run.json").write_text(json.dumps(facts | {"rule_uptake": []}))
    bad_cost = make_run("number", 5, Path("mine/number"))
    (bad_cost / "run.json").write_text(json.dumps(facts | {"cost": {"total": "x"}}))
    shutil.copytree(runs["alpha again"], "mine/.part-1")
    assert find_run("beta") == runs["beta"]  # loading it explains the damage
    summaries, errors = readable_runs(known_folders())
    assert [run.model for run in summaries] == ["openai/gpt-4o-mini", "alpha", "openai/gpt-4o"]
    assert [str(error).split("'")[1] for error in errors] == [
        "mine/alpha-all-1/run.json",
        "mine/beta-all-1/run.json",
        "mine/number/run.json",
    ]
    done = cdta("runs", code=0)
    assert (done.stderr.count("cannot read the run"), "gpt-4o-mini" in done.stdout) == (3, True)
    assert (summaries[0].n_samples, summaries[0].cost.total) == (3, None)


def test_names_to_compare_stand_for_their_newest_runs_of_one_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    no_castling = replace(RUN, plan=replace(RUN.plan, change=rules_named("no-castling")))
    old, new = make_run("a", 1), make_run("a", 2)
    other = make_run("a", 3, run=no_castling)
    b, c = make_run("b", 4), make_run("c", 5, run=no_castling)
    assert runs_to_compare(["a", "b"]) == [[new], [b]]
    assert runs_to_compare(["b", "a"]) == [[b], [new]]
    assert runs_to_compare(["a", "c"]) == [[other], [c]]
    assert runs_to_compare(["b", "c"]) == [[b], [c]]  # which cannot be compared
    assert runs_to_compare([old, "a"]) == [[old], [new]]
    assert sorted(runs_to_compare(["a"])[0]) == [old, new, other]
