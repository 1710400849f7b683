"""Runs by name in the commands: listed, opened, compared, read again."""

import json
import re
import webbrowser
from pathlib import Path

import pytest

from cant_do_that_anymore.runs.storage import load_run
from testing import cdta


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two runs, and a run elsewhere."""
    place = tmp_path_factory.mktemp("named")
    for number, model in enumerate(("pocket", "random", "random")):
        out = ["--out", place / "lies elsewhere"] if number == 2 else []
        asked = ("--model", f"cdta/{model}", "-n", 4, "--seed", number, "--quiet", *out)
        cdta("run", *asked, code=0, CDTA_HOME=str(place / "home"))
    return place


@pytest.fixture
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CDTA_HOME", str(made / "home"))
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the browser was asked to open."""
    found: list[str] = []

    def browse(address: str) -> bool:
        found.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    return found


def test_runs_are_listed_with_their_headline_and_can_be_named_by_what_is_shown(
    here: Path, tmp_path: Path
) -> None:
    done = cdta("runs")
    heads, *lines = done.stdout.splitlines()
    assert " ".join(heads.split()) == "date model rules eval n rule uptake notes cost time run"
    assert len(lines) == 3
    assert "lies elsewhere" in done.stdout
    [pocket] = [line for line in lines if "cdta/pocket" in line]
    name = pocket.split()[-1]
    run = load_run(here / "home" / "runs" / name)
    around = run.results.intervals["rule_uptake"]
    value = run.results.metrics["rule_uptake"]
    assert f"{value:.3f} [{around.low:.3f}, {around.high:.3f}]" in pocket
    cdta("rescore", name, "--out", here / name, code=0)
    told = json.loads(cdta("runs", "--json", here / name).stdout)
    assert [(one["model"], one["uptake"]) for one in told] == [("cdta/pocket", value)]


def test_a_damaged_run_is_named_in_one_line_and_the_others_are_listed(
    here: Path, tmp_path: Path
) -> None:
    for name in ("good", "bad"):
        cdta("rescore", "lies elsewhere", "--out", tmp_path / name, code=0)
    (tmp_path / "bad" / "run.json").write_text("{")
    done = cdta("runs", tmp_path, code=0)
    assert done.stdout.splitlines()[1].split()[-1] == str(tmp_path / "good")
    assert re.fullmatch(rf"cdta: {tmp_path}/bad/run.json is damaged: .*\n", done.stderr)
    assert "no run matches" in cdta("runs", tmp_path / "home").stderr


def test_no_runs_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cdta("runs").stdout == "no runs yet; start one with `cdta run`\n"
    none_yet = "there are no runs yet; start one with `cdta run`"
    for name in ("latest", 300 * "x"):
        assert cdta("view", name, code=2).stderr == f"cdta: no run matches '{name}': {none_yet}\n"


@pytest.mark.parametrize("command", ["view", "report", "show", "rescore", "compare"])
def test_an_unknown_name_gets_one_sentence(here: Path, command: str) -> None:
    assert cdta(command, "ghost", code=2).stderr == (
        "cdta: no run matches 'ghost': give a folder, part of its name, a model name, a tag, or "
        "'latest' (see `cdta runs`)\n"
    )


def test_commands_take_names_and_folders_of_runs(here: Path) -> None:
    cdta("compare", "pocket", "lies", code=0)
    pages = cdta("report", "home/runs").stdout.splitlines()
    assert [Path(page).parent.parent.name for page in pages] == ["runs", "runs"]
    refused = cdta("rescore", "random", code=2)
    assert "'random' matches 2 runs; name one: " in refused.stderr


def test_view_opens_the_latest_a_page_or_what_has_an_index(
    here: Path, opened: list[str], tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("an experiment")
    elsewhere = here / "lies elsewhere" / "report.html"
    elsewhere.unlink()
    for name in ("lies", str(elsewhere), str(tmp_path), str(tmp_path / "index.html")):
        cdta("view", name, code=0)
    index = (tmp_path / "index.html").as_uri()
    assert opened == [elsewhere.as_uri(), elsewhere.as_uri(), index, index]
    assert elsewhere.exists()
    cdta("view", code=0)
    newest = json.loads(cdta("runs", "--json").stdout)[0]["folder"]
    assert opened[-1] == (Path(newest).resolve() / "report.html").as_uri()


def test_view_without_a_browser_says_which_file_to_open(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    done = cdta("view", "lies", code=1)
    assert "open 'lies elsewhere/report.html' in one" in done.stderr
