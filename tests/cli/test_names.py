"""Commands that find runs by name: runs, view, show and compare."""

import json
import shutil
import webbrowser
from dataclasses import asdict
from pathlib import Path

import pytest

from cant_do_that_anymore.runs.lookup import find_run
from cant_do_that_anymore.runs.storage import load_run
from testing import cdta


@pytest.fixture(scope="module")
def folder_with_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home of two runs, and one run outside that home."""
    folder = tmp_path_factory.mktemp("named")
    for number, model in enumerate(("pocket", "random", "random")):
        out = ["--out", folder / "lies elsewhere"] if number == 2 else []
        options = ("--model", f"cdta/{model}", "-n", 4, "--seed", number, "--quiet", *out)
        cdta("run", *options, code=0, CDTA_HOME=str(folder / "home"))
    return folder


@pytest.fixture
def workdir(folder_with_runs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CDTA_HOME", str(folder_with_runs / "home"))
    monkeypatch.chdir(folder_with_runs)
    return folder_with_runs


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that the browser was told to open."""
    addresses: list[str] = []

    def browse(address: str) -> bool:
        addresses.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    return addresses


def test_runs_are_listed_with_names_that_commands_accept(workdir: Path, tmp_path: Path) -> None:
    done = cdta("runs")
    header, *lines = done.stdout.splitlines()
    assert " ".join(header.split()) == "run model options and rules n rule uptake"
    assert len(lines) == 3
    assert "lies elsewhere" in done.stdout
    [pocket] = [line for line in lines if "cdta/pocket" in line]
    folder = find_run(pocket.split()[0])
    run = load_run(folder)
    uptake = run["rule_uptake"]
    assert uptake.as_share in pocket
    shutil.copytree(folder, tmp_path / "copy")
    listed = json.loads(cdta("runs", "--json", tmp_path / "copy").stdout)
    assert [row["rule_uptake"] for row in listed] == [asdict(uptake)]


def test_no_runs_give_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cdta("runs").stdout == "no runs yet; start one with `cdta run`\n"
    advice = "there are no runs yet; start one with `cdta run`"
    for name in ("latest", 300 * "x"):
        assert cdta("view", name, code=2).stderr == f"cdta: no run matches '{name}': {advice}\n"


def test_view_opens_the_latest_run_a_report_or_an_experiment(
    workdir: Path, opened: list[str], tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("an experiment")
    elsewhere = workdir / "lies elsewhere" / "report.html"
    elsewhere.unlink()
    for name in ("lies", str(elsewhere), str(tmp_path), str(tmp_path / "index.html")):
        cdta("view", name, code=0)
    index = (tmp_path / "index.html").as_uri()
    assert opened == [elsewhere.as_uri(), elsewhere.as_uri(), index, index]
    assert elsewhere.exists()
    cdta("view", code=0)
    newest = json.loads(cdta("runs", "--json").stdout)[0]["folder"]
    assert opened[-1] == (Path(newest).resolve() / "report.html").as_uri()


def test_view_without_a_browser_names_the_file(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    done = cdta("view", "lies", code=1)
    assert "open 'lies elsewhere/report.html' in one" in done.stderr


def test_each_run_is_one_line_of_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--model", "cdta/random", "--wording", "plain", "--diagnose")
    cdta("run", *options, "-n", 4, "--quiet", code=0)
    monkeypatch.setattr("cant_do_that_anymore.cli.commands.runs.PIPE_WIDTH", 80)
    header, line = cdta("runs").stdout.splitlines()
    assert len(header) <= 80 and len(line) <= 80
    assert "wording plain, diagnose, bish" in line
    assert find_run(line.split()[0])
