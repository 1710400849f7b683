"""The Python API and notebooks: the examples of the docs, and how results are displayed."""

import asyncio
import doctest
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Browser

import cant_do_that_anymore
from cant_do_that_anymore import (
    Comparison,
    Experiment,
    Run,
    Spec,
    Wording,
    api,
    compare,
    evaluate,
    experiment,
    load,
)
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.habits.chess import rule_pool
from testing import measure, without_plots

DOCS = Path(__file__).parents[2] / "docs"
EVIL = "</style><script>window.hacked = 1</script>\u202e"


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home whose cache all tests share; mined pools are cut to their first positions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_pool, "POOL_SIZE", 400)
        yield tmp_path_factory.mktemp("python") / "home"


@pytest.fixture
def home(shared_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CDTA_HOME", str(shared_home))
    monkeypatch.chdir(tmp_path)
    return shared_home


@pytest.fixture(scope="module")
def pocket_run() -> Run:
    return measure("cdta/pocket", n=20)


@pytest.fixture
def run(pocket_run: Run) -> Run:
    return replace(pocket_run)  # a copy, since a run stores where it is saved


@pytest.fixture
def comparison(run: Run) -> Comparison:
    return compare(run, evaluate(Spec(model="cdta/pocket-rules", n=20), quiet=True))


def test_the_list_of_public_names_is_complete() -> None:
    names = {name for name, value in vars(api).items() if not isinstance(value, ModuleType)}
    assert set(cant_do_that_anymore.__all__) == {name for name in names if name[0] != "_"}


def test_the_examples_in_the_docs_work() -> None:
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "python.md", None, 0)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    outcome = runner.run(test, out=output.append)
    assert outcome.attempted > 10
    assert outcome.failed == 0, "".join(output)


def test_a_run_is_saved_once_and_loaded_by_folder_or_name(run: Run, home: Path) -> None:
    assert repr(run).endswith("not saved: run.save()>")
    folder = run.save()
    assert folder.parent == home / "runs"
    assert repr(run).endswith(f"saved in {folder}>")
    assert str(folder) in run._repr_html_()
    files = {path.name for path in folder.iterdir()}
    assert files == {"run.json", "samples.jsonl", "report.html"}
    with pytest.raises(InvalidInput, match="is not a new folder"):
        run.save(folder)
    for name in (run.save("by-name"), "y-nam"):
        loaded = load(name)
        assert isinstance(loaded, Run)
        assert loaded.samples == run.samples


def test_a_frame_has_one_row_per_sample_and_needs_pandas(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = run.to_frame("samples")
    assert list(frame.id) == [sample.item.id for sample in run.samples]
    expected = {name: n for name, n in run.results.outcomes["changed"].items() if n}
    assert Counter(frame.changed_outcome) == expected
    assert frame.changed_reply[0] == run.samples[0].answers["changed"].text
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="needs pandas: pip install pandas"):
        run.to_frame()


def test_runs_are_compared_also_by_name_and_with_a_baseline(
    comparison: Comparison, tmp_path: Path
) -> None:
    assert repr(comparison) == f"<Comparison: {comparison.summary()}>"
    report = comparison.report(tmp_path / "page.html")
    assert comparison.summary().partition(";")[0] in report.read_text(encoding="utf-8")
    for entry in comparison.entries:
        assert isinstance(entry.run, Run)
        entry.run.save(entry.label.replace("/", "-"))
    check = compare("cdta-pocket", baseline="cdta-pocket-rules", tolerance=5).check
    assert check
    assert (check.verdict, check.tolerance) == ("worse", 0.05)


@pytest.fixture(scope="module")
def grid(shared_home: Path) -> Experiment:
    """Two models under two rules, evaluated as in a notebook: in a running event loop."""

    async def run_in_loop() -> Experiment:
        models, rules = ["cdta/pocket", "cdta/pocket-rules"], ["no-castling", "bishops-as-knights"]
        wordings = ["terse", Wording("own", "Your move.", "Your move. {change}")]
        options: dict[str, Any] = {"wordings": wordings, "n": 12, "quiet": True}
        return experiment(models, rules=rules, **options)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor() as executor:
        patch.setenv("CDTA_HOME", str(shared_home))
        return executor.submit(asyncio.run, run_in_loop()).result()


def test_an_experiment_ranks_every_combination_and_is_saved_with_plots(
    grid: Experiment, tmp_path: Path
) -> None:
    assert [run.plan.wordings for run in grid.runs] == [("terse", "own")] * 4
    assert all(isinstance(run, Run) and run.folder is None for run in grid.runs)
    titles = [ranking.entries[0].title for ranking in grid.rankings]
    assert [line.partition(": ")[0] for line in grid.summary().splitlines()] == titles
    frame = grid.to_frame()
    uptake = frame[frame.measure == "rule_uptake"]
    entries = [entry for ranking in grid.rankings for entry in ranking.entries]
    assert list(uptake.model) == [entry.label for entry in entries]
    assert list(uptake.value) == [entry.results["rule_uptake"].value for entry in entries]
    with without_plots():
        files = grid.save(tmp_path / "out", "Four runs")
    assert [file.name for file in files] == ["results.csv", "results.json", "index.html"]
    assert "Four runs" in files[-1].read_text(encoding="utf-8")
    assert grid.plot().get_suptitle().startswith("Rule uptake by rules")
    assert grid.plot("outcomes")._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match=r"unknown plot: 'bar' .*uptake-all-no-castling"):
        grid.plot("bar")
    with pytest.raises(InvalidInput, match="unknown rows: 'sample'"):
        grid.to_frame("sample")  # type: ignore[arg-type]


def test_an_experiment_lists_failed_runs(tmp_path: Path) -> None:
    models = ["gone@http://127.0.0.1:9/v1", "cdta/random"]
    result = experiment(models, evals="all", n=5, out=tmp_path / "out", quiet=True)
    assert list(result.failures) == ["gone"]
    assert [run.model for run in result.runs] == ["cdta/random"]
    assert "gone: " in result._repr_html_()


def test_a_notebook_shows_an_error_as_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    shell = import_module("IPython.core.interactiveshell").InteractiveShell.instance()
    shell.run_cell("import cant_do_that_anymore as c; c.Spec(model='gpt-4o')")
    output = capsys.readouterr().out.strip()
    assert output == "InvalidInput: unknown model: 'gpt-4o' (did you mean 'openai/gpt-4o'?)"


INTERRUPTED = """
import _thread, asyncio, threading
from cant_do_that_anymore.errors import Stopped
from cant_do_that_anymore.interrupts import run_interruptible

async def work():
    threading.Timer(0.2, _thread.interrupt_main).start()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("cancelled")
        raise

async def cell():
    try:
        run_interruptible(work())
    except Stopped:
        print("stopped")

asyncio.new_event_loop().run_until_complete(cell())  # like a kernel: Ctrl-C raises in the cell
"""


def test_interrupting_a_notebook_stops_the_work_in_its_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.split() == ["cancelled", "stopped"]


def test_runs_and_comparisons_use_the_colors_of_the_notebook(
    run: Run, comparison: Comparison, browser: Browser
) -> None:
    window = browser.new_page()
    html = replace(run, notes=[EVIL])._repr_html_() + comparison._repr_html_()
    for color in ("rgb(0, 0, 0)", "rgb(230, 230, 230)"):
        window.set_content(f"<body style='color: {color}'>{html}<p id=after>after</p>")
        colors = window.locator(".lede, .value, td, .cdta, #after").evaluate_all(
            "all => [...new Set(all.map(item => getComputedStyle(item).color))]"
        )
        assert colors == [color]
    assert EVIL[:-1] in window.locator(".soft").first.inner_text()
    assert window.locator("script").count() == 0
    assert window.evaluate("window.hacked") is None
    window.close()
