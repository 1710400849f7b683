"""From Python and in notebooks: the examples of the docs, and runs that show themselves."""

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
from typing import Any

import pytest
from playwright.sync_api import Browser

import cant_do_that_anymore
from cant_do_that_anymore import (
    Comparison,
    Experiment,
    Run,
    Spec,
    compare,
    estimate,
    evaluate,
    experiment,
    load,
    saved_runs,
)
from cant_do_that_anymore.errors import Incomplete, InvalidInput, UserError
from cant_do_that_anymore.formatting import percentage
from cant_do_that_anymore.game import rule_pool
from testing import without_plots

DOCS = Path(__file__).parents[2] / "docs"
EVIL = "</style><script>window.hacked = 1</script>\u202e"


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Answers that are kept from one test to the next; of mined pools only the first positions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_pool, "POOL_SIZE", 400)
        yield tmp_path_factory.mktemp("python") / "home"


@pytest.fixture
def home(shared_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CDTA_HOME", str(shared_home))
    monkeypatch.chdir(tmp_path)
    return shared_home


@pytest.fixture
def run(pocket_run: Run) -> Run:
    return replace(pocket_run)  # a run remembers where it is saved


@pytest.fixture
def found(run: Run) -> Comparison:
    return compare(run, evaluate(Spec(model="cdta/pocket-rules", n=20), quiet=True))


def test_the_examples_of_the_document_say_what_is_true() -> None:
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, "python.md", None, 0)
    told: list[str] = []
    tried = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    outcome = tried.run(parsed, out=told.append)
    assert outcome.attempted > 10
    assert outcome.failed == 0, "".join(told)


def test_the_package_shows_its_names_and_has_them() -> None:
    names = dir(cant_do_that_anymore)
    assert {"Run", "Spec", "compare", "evaluate", "load"} <= set(names)
    assert all(getattr(cant_do_that_anymore, name).__doc__ for name in names)


def test_a_run_says_whether_it_is_saved_and_where(run: Run, home: Path) -> None:
    assert repr(run).endswith("not saved: run.save()>")
    kept = len(list(home.glob("runs/*")))
    folder = run.save()
    assert folder.parent == home / "runs"
    assert len(list(home.glob("runs/*"))) == kept + 1
    assert repr(run).endswith(f"saved in {folder}>")
    assert str(folder) in run._repr_html_()
    assert {path.name for path in folder.iterdir()} == {
        *("run.json", "samples.jsonl", "report.html")
    }
    with pytest.raises(InvalidInput, match="is not empty; give a new folder"):
        run.save(folder)
    with pytest.raises(InvalidInput, match=r"run\.json' is a file; give a new folder"):
        run.save(folder / "run.json")


def test_a_run_is_loaded_by_its_folder_or_by_name(run: Run) -> None:
    folder = run.save("by-name")
    for name in (folder, "by-name", "y-nam", "latest"):
        again = load(name)
        assert isinstance(again, Run)
        assert again.samples == run.samples
    with pytest.raises(InvalidInput, match="no run matches 'nobody'"):
        load("nobody")


def test_a_frame_has_a_row_for_each_sample(run: Run) -> None:
    frame = run.to_frame("samples")
    assert list(frame.id) == [sample.position.id for sample in run.samples]
    for condition in ("standard", "changed"):
        told = {name: n for name, n in run.results.outcomes[condition].items() if n}
        assert Counter(frame[f"{condition}_outcome"]) == told
    first, answer = frame.iloc[0], run.samples[0].answers["changed"]
    assert first.changed_reply == answer.text
    assert first.changed_output_tokens == answer.usage.output_tokens


def test_without_pandas_a_frame_is_refused_in_a_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="needs pandas: pip install pandas"):
        run.to_frame()


def test_a_comparison_holds_every_pair_and_says_its_verdict(
    found: Comparison, tmp_path: Path
) -> None:
    assert repr(found) == f"<Comparison: {found.summary()}>"
    frame = found.to_frame("pairs")
    assert list(frame.difference) == [each.difference for each in found.comparisons]
    assert set(frame.verdict) <= {"different", "equivalent", "inconclusive"}
    page = found.report(tmp_path / "page.html")
    assert found.summary().partition(";")[0] in page.read_text(encoding="utf-8")


def test_names_of_runs_are_compared_with_a_baseline(found: Comparison) -> None:
    for entry in found.entries:
        [run] = entry.runs
        assert isinstance(run, Run)
        run.save(entry.label.replace("/", "-"))
    checked = compare("cdta-pocket", baseline="cdta-pocket-rules", tolerance=5).check
    assert checked
    assert (checked.verdict, checked.tolerance) == ("worse", 0.05)
    assert compare("cdta-pocket-rules", "cdta-pocket").summary() == found.summary()


@pytest.fixture(scope="module")
def trial(shared_home: Path) -> Experiment:
    """Two models under two rules, evaluated as in a notebook: in a running event loop."""

    async def in_a_loop() -> Experiment:
        models, rules = ["cdta/pocket", "cdta/pocket-rules"], ["no-castling", "bishops-as-knights"]
        wordings = ["terse", {"standard": "Your move.", "changed": "Your move. {change}"}]
        options: dict[str, Any] = {"wordings": wordings, "seeds": [1], "n": 12, "quiet": True}
        return experiment(models, rules=rules, **options)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor() as another:
        patch.setenv("CDTA_HOME", str(shared_home))
        return another.submit(asyncio.run, in_a_loop()).result()


def test_an_experiment_ranks_every_combination(trial: Experiment) -> None:
    assert [run.plan.wordings for run in trial.runs] == [("terse", "own")] * 4
    assert all(isinstance(run, Run) and run.folder is None for run in trial.runs)
    titles = [ranking.title for ranking in trial.rankings]
    assert [line.partition(": ")[0] for line in trial.summary().splitlines()] == titles
    frame = trial.to_frame()
    uptake = frame[frame.measure == "rule_uptake"]
    entries = [entry for ranking in trial.rankings for entry in ranking.entries]
    assert list(uptake.model) == [entry.label for entry in entries]
    assert list(uptake.rules) == [entry.change.key for entry in entries]
    expected = [entry.results.intervals["rule_uptake"] for entry in entries]
    assert list(zip(uptake.low, uptake.high, strict=True)) == [(i.low, i.high) for i in expected]
    assert list(uptake.value) == [entry.results.metrics["rule_uptake"] for entry in entries]
    assert len(trial.to_frame("samples")) == 4 * 12


def test_samples_that_several_runs_share_are_in_the_frame_once(trial: Experiment) -> None:
    run = trial.runs[0]
    parts = [replace(run, samples=run.samples[:8]), replace(run, samples=run.samples[4:])]
    assert list(Experiment(parts).to_frame("samples").id) == list(run.to_frame("samples").id)


def test_an_experiment_writes_its_files_and_draws_their_plots(
    trial: Experiment, tmp_path: Path
) -> None:
    with without_plots():
        files = trial.save(tmp_path / "out", "Four runs")
        report = trial.report(tmp_path / "report.html")
    assert [file.name for file in files] == ["results.csv", "results.json", "index.html"]
    assert "Four runs" in files[-1].read_text(encoding="utf-8")
    assert "Do cdta/pocket" in report.read_text(encoding="utf-8")
    bars = trial.plot("bars")
    assert bars._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    for name in ("", "rules-all"):
        assert trial.plot(name).get_suptitle().startswith("Headline measures by rules")
    one_rule = trial.plot("headline-all-no-castling").get_suptitle()
    assert one_rule.startswith("Headline measures when castling")
    assert trial.runs[0].plot().get_suptitle().startswith("Headline measures when castling")
    with pytest.raises(InvalidInput, match=r"unknown plot: 'bar' .*bars-all-no-castling"):
        trial.plot("bar")
    with pytest.raises(InvalidInput, match="unknown rows: 'sample'"):
        trial.to_frame("sample")  # type: ignore[arg-type]


def test_an_experiment_says_what_failed(tmp_path: Path) -> None:
    gone = "gone@http://127.0.0.1:9/v1"
    options: dict[str, Any] = {"evals": "all", "seeds": 1, "n": 5, "quiet": True}
    found = experiment([gone, "cdta/random"], out=tmp_path / "out", **options)
    assert list(found.failures) == ["gone"]
    assert [run.model for run in found.runs] == ["cdta/random"]
    assert "gone: " in found._repr_html_()
    with pytest.raises(Incomplete, match="some runs failed: gone: "):
        experiment(gone, **options)


def test_an_estimate_has_a_row_for_each_step_and_figure(tmp_path: Path) -> None:
    found = estimate(Spec(model="openai/gpt-4o", n=10), Spec(model="cdta/pocket", n=10))
    frame = found.to_frame().set_index(["model", "step", "measure"])
    first = found.plans[0]
    total = frame.loc["openai/gpt-4o", "total", "dollars"]
    assert first.total.dollars
    assert (total.low, total.value, total.high) == tuple(first.total.dollars)
    assert found.summary().splitlines()[0].startswith("openai/gpt-4o, all: ")
    assert [axes.get_title("left") for axes in found.plot().axes] == [
        *("requests", "US dollars", "minutes")
    ]
    page = found.report(tmp_path / "estimate.html").read_text(encoding="utf-8")
    assert first.assumptions[0][:40] in page


def test_saved_runs_are_listed_drawn_and_reported(trial: Experiment, tmp_path: Path) -> None:
    for number, run in enumerate(trial.runs):
        assert isinstance(run, Run)
        replace(run).save(tmp_path / "saved" / str(number))
    found = saved_runs("saved")
    assert len(found) == len(found.to_frame()) == 4
    assert found[0].model in repr(found[:1])
    assert set(found.to_frame("measures").value) == set(trial.to_frame().value)
    assert sorted(found.summary().splitlines()) == sorted(trial.summary().splitlines())
    assert str(found[0].folder) in found._repr_html_()
    with pytest.raises(InvalidInput, match="no run matches 'nothing'"):
        saved_runs("nothing")


def test_a_notebook_shows_a_mistake_as_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    shell = import_module("IPython.core.interactiveshell").InteractiveShell.instance()
    shell.run_cell("import cant_do_that_anymore as c; c.Spec(model='gpt-4o')")
    shown = capsys.readouterr().out.strip()
    assert shown == "InvalidInput: unknown model: 'gpt-4o' (did you mean 'openai/gpt-4o'?)"
    shell.run_cell("c.saved_runs()[:0].plot()")
    assert "there are no runs yet" in capsys.readouterr().out


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

asyncio.new_event_loop().run_until_complete(cell())  # as a kernel: Ctrl-C raises in the cell
"""


def test_interrupting_a_notebook_stops_the_work_in_its_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.split() == ["cancelled", "stopped"]


def test_runs_and_comparisons_are_shown_in_the_colours_of_the_notebook(
    run: Run, found: Comparison, browser: Browser
) -> None:
    window = browser.new_page()
    complaints: list[str] = []
    window.on("console", lambda message: complaints.append(message.text))
    shown = replace(run, notes=[EVIL])._repr_html_() + found._repr_html_()
    for color in ("rgb(0, 0, 0)", "rgb(230, 230, 230)"):
        window.set_content(f"<body style='color: {color}'>{shown}<p id=after>after</p>")
        used = window.locator(".lede, .value, td, .cdta, #after").evaluate_all(
            "all => [...new Set(all.map(one => getComputedStyle(one).color))]"
        )
        assert used == [color]
    numbers = window.locator("[data-metric]").evaluate_all(
        "all => all.map(one => [one.dataset.metric, JSON.parse(one.value)])"
    )
    assert len(numbers) == 4
    assert dict(numbers).items() <= run.results.metrics.items()
    share = percentage(run.results.metrics["predicted_move_proportion"], 0).replace(" ", "\u00a0")
    assert share in window.locator(".lede").first.inner_text()
    bars = window.locator(".bar").first.locator("i")
    widths = bars.evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    counts = [n for n in run.results.outcomes["standard"].values() if n]
    assert widths == pytest.approx([sum(widths) * n / len(run.samples) for n in counts], abs=0.5)
    assert EVIL[:-1] in window.locator(".soft").first.inner_text()
    assert window.locator("script").count() == 0
    assert window.evaluate("window.hacked") is None
    assert complaints == []
    window.close()
