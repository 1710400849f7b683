"""From Python and in notebooks: the examples of the docs, and runs that show themselves."""

import ast
import asyncio
import doctest
import json
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

import cant_do_that_anymore
from cant_do_that_anymore import Comparisons, Run, Spec, compare, evaluate, load
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.formatting import percentage

DOCS = Path(__file__).parents[2] / "docs"
EVIL = "</style><script>window.hacked = 1</script>\u202e"


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers that are kept from one test to the next."""
    return tmp_path_factory.mktemp("python") / "home"


@pytest.fixture
def home(shared_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CDTA_HOME", str(shared_home))
    monkeypatch.chdir(tmp_path)
    return shared_home


@pytest.fixture
def run() -> Run:
    return evaluate(Spec(model="cdta/pocket", n=20), quiet=True)


@pytest.fixture
def found(run: Run) -> Comparisons:
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


def test_the_notebook_runs_and_shows_what_it_says() -> None:
    cells = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    with ThreadPoolExecutor() as another:  # in this one a browser may have a loop of its own
        shown = another.submit(asyncio.run, executed(code)).result()
    deaf, obedient, comparison, frame, folder, same = shown
    assert deaf.results.metrics["variant_impact_factor"] > -0.5
    assert obedient.results.metrics["variant_impact_factor"] == -1
    assert comparison.verdict.startswith("cdta/pocket-rules adapts most")
    outcomes = deaf.results.outcomes["changed"]
    assert len(frame) == outcomes["special"] + outcomes["forbidden"]
    assert (folder / "report.html").exists()
    assert same is True


async def executed(cells: list[str]) -> list[Any]:
    """What a notebook shows below its cells: the last value of each. It has a loop of its own."""
    names: dict[str, Any] = {}
    shown = []
    for cell in cells:
        *before, last = ast.parse(cell).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(before, []), "cell", "exec"), names)
        shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return shown


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


def test_a_run_is_loaded_by_its_folder_or_by_name(run: Run) -> None:
    folder = run.save("by-name")
    for name in (folder, "by-name", "y-nam", "latest"):
        again = load(name)
        assert isinstance(again, Run)
        assert again.samples == run.samples
    with pytest.raises(InvalidInput, match="no run matches 'nobody'"):
        load("nobody")


def test_a_frame_has_a_row_for_each_sample(run: Run) -> None:
    frame = run.to_frame()
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
    found: Comparisons, tmp_path: Path
) -> None:
    assert repr(found) == f"<Comparisons: {found.verdict}>"
    frame = found.to_frame()
    assert list(frame.difference) == [each.difference for each in found.comparisons]
    assert set(frame.verdict) <= {"different", "equivalent", "inconclusive"}
    page = found.save(tmp_path / "page.html")
    assert found.verdict.partition(";")[0] in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("colour", ["rgb(0, 0, 0)", "rgb(230, 230, 230)"])
def test_runs_and_comparisons_are_shown_in_the_colours_of_the_notebook(
    run: Run, found: Comparisons, browser: Browser, colour: str
) -> None:
    window = browser.new_page()
    complaints: list[str] = []
    window.on("console", lambda message: complaints.append(message.text))
    shown = replace(run, notes=[EVIL])._repr_html_() + found._repr_html_()
    window.set_content(f"<body style='color: {colour}'>{shown}<p id=after>after</p>")
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
    used = window.locator(".lede, .value, td, .cdta, #after").evaluate_all(
        "all => [...new Set(all.map(one => getComputedStyle(one).color))]"
    )
    assert used == [colour]
    assert EVIL[:-1] in window.locator(".soft").first.inner_text()
    assert window.locator("script").count() == 0
    assert window.evaluate("window.hacked") is None
    assert complaints == []
    window.close()
