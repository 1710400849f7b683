"""The page of an experiment, opened from disk in a real browser."""

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote, urlparse

import pytest
from playwright.sync_api import Browser, Page

from browser import SCREENS, Opened, Opener, browser_or_skip, check_accessible, check_fits
from cant_do_that_anymore import rules_named
from cant_do_that_anymore.comparison.entries import entries_of
from cant_do_that_anymore.comparison.leaderboard import OUTCOME_GROUPS, rankings
from cant_do_that_anymore.formatting import dollars, duration, visible
from cant_do_that_anymore.providers.base import Effort, Settings
from cant_do_that_anymore.report import pages
from cant_do_that_anymore.report.columns import VERDICTS
from cant_do_that_anymore.report.document import Document, as_csv, build_document
from cant_do_that_anymore.report.pages import experiment_page, write
from cant_do_that_anymore.runs.lookup import folders_in
from cant_do_that_anymore.runs.storage import load_run
from reasoning_servers import KEPT, planted_thinker
from testing import POOL, cdta, played, serving, without_plots

EVIL = '--><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">\u202e\x1b]]>'


@pytest.fixture(scope="module")
def browser(experiment: Path) -> Iterator[Browser]:
    """Opened when the experiment is made: no server starts beside Playwright's event loop."""
    with browser_or_skip() as found:
        yield found


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two planted models at two efforts, measured as a user does."""
    out = tmp_path_factory.mktemp("page") / "an experiment"
    models = [argument for model in KEPT for argument in ("--model", model)]
    asked = ("--reasoning-effort", "none,low", "--eval", "all", "-n", "6", "--runs", "2")
    price = ("--price", "1,10")
    without_files: Any = patch.object(pages, "save_chart", lambda *_: [])
    with without_files, serving(planted_thinker()) as server:
        done = cdta("experiment", "--base-url", server.url, *models, *asked, *price, "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == str(out / "index.html")
    told = json.loads((out / "results.json").read_text())
    verdict, _, _ = done.stdout.partition("\n\n")
    assert "".join(verdict.split()) == "".join(told["verdicts"][0]["verdict"].split())
    return out


@pytest.fixture(scope="module")
def told(experiment: Path) -> Document:
    found: Document = json.loads((experiment / "results.json").read_text())
    return found


@pytest.fixture
def opened(open_page: Opener, experiment: Path) -> Opened:
    return open_page(experiment / "index.html", width=1440)


@pytest.fixture
def page(opened: Opened) -> Page:
    return opened.page


def test_the_page_is_readable_and_accessible_on_any_screen(page: Page) -> None:
    drawn = page.locator("svg.plot:visible")
    heads, rows = (page.locator(f"table.board-of {part} .scale").first for part in ("thead", "td"))
    for width, scheme in SCREENS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert drawn.count() == 1
        assert drawn.get_attribute("aria-label") == "Reasoning tokens and rule uptake"
        assert (heads.is_visible(), rows.is_visible()) == (width == 1440, width == 390)
        assert page.evaluate(
            "[...document.querySelectorAll('.board-of thead th')]"
            ".every(head => head.scrollWidth <= head.clientWidth)"  # none is written over the next
        )
        ground, ink = page.evaluate(
            "[getComputedStyle(document.querySelector('.plot path')).fill,"
            " getComputedStyle(document.querySelector('.plot')).fill]"
        )
        assert ground == page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert ink == page.evaluate("getComputedStyle(document.body).color")
        box = drawn.bounding_box()
        assert box and (box["width"] > 1000 if width == 1440 else 340 < box["width"] <= 350)
        letters = "plot => plot.getBoundingClientRect().width / plot.viewBox.baseVal.width"
        assert drawn.evaluate(letters) > 0.95  # of their size in points
    page.locator("#made summary").click()
    check_fits(page, tables_from=390)
    check_accessible(page)


def test_the_page_says_what_was_tested_and_the_verdict_is_the_first_result(
    page: Page, experiment: Path, told: Document
) -> None:
    lede = page.locator(".lede")
    assert lede.inner_text().replace("\xa0", " ") == told["verdicts"][0]["verdict"]
    box = lede.bounding_box()
    assert box and box["y"] < 1000
    title = page.locator("h1").inner_text()
    assert title == page.title() == told["title"]
    assert title == "Do yielding and stubborn follow a new chess rule?"
    text = page.locator("header").inner_text()
    assert "positions from chess games" in text and "Rule uptake is how often" in text
    run = load_run(next(experiment.glob("*/run.json")).parent)
    assert page.locator("header pre").all_inner_texts() == [
        c.prompts[0].text for c in run.plan.conditions
    ]
    assert page.locator("header .board use").count() > 20
    assert "... --diagnose" in page.locator("#leaderboard code").inner_text()
    shown = page.locator("body").inner_text()
    assert "`" not in shown and "all: " not in shown
    used = [
        name for name in OUTCOME_GROUPS if any(row[f"changed_{name}"] for row in told["results"])
    ]
    assert page.locator(".key-of span").all_inner_texts() == used


def test_a_title_and_several_rules_are_shown_once(tmp_path: Path) -> None:
    runs = [
        played(model, plan={"change": rules_named(rules)}, positions=POOL[:40])
        for model in ("a", "b")
        for rules in ("bishops-as-knights", "no-castling")
    ]
    ranked = rankings(entries_of(runs))
    with without_plots():
        text = experiment_page(ranked, build_document(ranked, tmp_path, "Habits <b>"))
    assert "<h1>Habits &lt;b&gt;</h1>" in text
    assert text.count('class="rule"') == 1
    assert text.count("All models on one dataset") == 1
    assert text.count("<blockquote>") == 2
    assert text.count('class="plot on-wide"') == 1


def at(told: Any, path: str) -> Any:
    """What results.json holds there."""
    for step in path.split("."):
        told = told[int(step) if isinstance(told, list) else step]
    return told


def is_shown(path: str, kept: float, shown: str) -> bool:
    """Whether a number is written as its column has it."""
    if path.endswith("seconds"):
        return shown == duration(kept)
    if path.endswith("dollars"):
        return shown == dollars(kept)
    if path.endswith("_p") and kept < 0.001:
        return shown == "< 0.001"
    in_hundredths = "difference" in path or path.endswith("proportion")
    places = 0 if path.endswith("tokens") else 1 if in_hundredths else 2
    number = float(shown.replace(",", "").lstrip("$").rstrip("\xa0%"))
    return number == pytest.approx(100 * kept if in_hundredths else kept, abs=0.51 * 10**-places)


def test_every_number_is_that_of_results_json(page: Page, told: Document) -> None:
    found = page.evaluate(
        "[...document.querySelectorAll('data')].map(e => [e.dataset.in, e.value, e.textContent])"
    )
    assert len(found) > 4 * 12 + 6 * 2 + 5
    for path, value, shown in found:
        kept = at(told, path)
        assert json.loads(value) == kept, path
        assert is_shown(path, kept, shown.replace("−", "-")), (path, shown, kept)
    bare = page.evaluate(
        "[...document.querySelectorAll('.board-of td, .matrix td')]"
        ".flatMap(cell => [...cell.childNodes])"
        ".filter(node => node.nodeType === 3 && /[0-9]/.test(node.textContent)).length"
    )
    assert bare == 0  # no cell has a number that does not name its place


def test_rows_are_sorted_by_any_column_with_mouse_and_keyboard(page: Page, told: Document) -> None:
    rows = told["results"]

    def column(head: str) -> list[str]:
        cells = page.locator(f"table.board-of tbody td[data-head='{head}']").all_inner_texts()
        return [cell.replace(",", "") for cell in cells]

    given = [str(row["tokens"]) for row in rows]
    assert column("tokens") == given
    head = page.get_by_role("columnheader", name="tokens")
    page.get_by_role("button", name="tokens").click()
    assert column("tokens") == sorted(given, key=int)
    assert head.get_attribute("aria-sort") == "ascending"
    assert page.locator("[aria-sort]").count() == 1
    page.keyboard.press("Enter")
    assert column("tokens") == sorted(given, key=int, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="effort").click()
    assert column("effort") == ["none", "none", "low", "low"]
    page.get_by_role("button", name="model").click()
    names = page.locator("table.board-of tbody th").all_inner_texts()
    assert names == sorted(names)
    for reverse in (False, True):
        page.get_by_role("button", name="rule uptake").click()
        cells = page.locator("td[data-head='rule uptake']").all()
        keys = [float(str(cell.get_attribute("data-sort"))) for cell in cells]
        assert keys == sorted(keys, reverse=reverse)
        assert len(set(keys)) > 1


def test_without_scripts_the_table_is_a_plain_one(browser: Browser, experiment: Path) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto((experiment / "index.html").as_uri())
    assert page.locator("table.board-of tbody tr").count() == 4
    assert page.locator("button").count() == 0


def test_links_lead_to_the_pages_of_the_runs(opened: Opened, told: Document) -> None:
    page = opened.page
    rows = page.locator("table.board-of tbody tr").all()
    for row, result in zip(rows, told["results"], strict=True):
        links = [str(link.get_attribute("href")) for link in row.locator("a").all()]
        own = [run["page"] for run in told["runs"] if run["label"] == result["label"]]
        assert links == own
        assert len(links) == 2
    hrefs = page.evaluate("[...document.links].map(link => link.href)")
    assert all(Path(unquote(urlparse(href).path)).exists() for href in hrefs)
    page.locator("table.board-of a").first.click()
    assert page.locator("h1").inner_text() == "yielding"
    opened.requests.pop()  # that page


def test_the_matrix_says_of_every_pair_whether_it_is_significant(
    page: Page, told: Document
) -> None:
    pairs = [pair for pair in told["pairs"] if pair["measure"] == "rule_uptake"]
    cells = page.locator(".matrix td:not(:empty)").all()
    assert len(cells) == len(pairs) == 6
    for cell, pair in zip(cells, pairs, strict=True):
        assert (
            cell.locator("small").inner_text().startswith(f"{VERDICTS[str(pair['verdict'])]}, p ")
        )
        assert str(pair["sentence"]) in str(cell.get_attribute("title"))
        assert "p " in str(cell.get_attribute("title"))


def test_names_stay_text_in_page_and_pictures(open_page: Opener, tmp_path: Path) -> None:
    efforts: tuple[Effort, ...] = ("none", "high")
    runs = [
        played(EVIL, ["special", "legal"], settings=Settings(reasoning_effort=effort))
        for effort in efforts
    ]
    ranked = rankings(entries_of(runs))
    write(ranked, build_document(ranked, tmp_path), tmp_path)
    assert (tmp_path / "curve-all-bishops-as-knights.png").exists()
    page = open_page(tmp_path / "index.html", width=390).page
    page.get_by_role("button", name="model").click()
    assert page.locator("table.board-of tbody th").all_inner_texts() == [visible(EVIL)] * 2
    assert page.locator(".matrix thead th").last.inner_text() == f"{visible(EVIL)} effort high"
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0


def test_a_run_without_a_page_has_no_link_and_one_elsewhere_is_linked(
    experiment: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy #1"
    shutil.copytree(experiment, copy)
    *_, first = sorted(copy.glob("*/report.html"))
    first.unlink()
    ranked = rankings(entries_of(map(load_run, folders_in(copy))))
    with without_plots():
        text = experiment_page(ranked, build_document(ranked, tmp_path / "elsewhere"))
    board, _, every_run = text.partition("</section>")
    for part in (board, every_run):
        assert part.count('<a href="../copy%20%231/') == 7


def test_no_cell_of_the_table_is_a_formula() -> None:
    texts = ["=cmd|'/c calc'!A1", "+1", "-1", "@x", "\t=1", ["=1", "x"]]
    rows = as_csv([{"model": text, "uptake": -0.5} for text in texts])
    cells = [row["model"] for row in csv.DictReader(io.StringIO(rows))]
    assert cells == ["'=cmd|'/c calc'!A1", "'+1", "'-1", "'@x", "'\t=1", "'=1 | x"]
    assert rows.count(",-0.500000\n") == len(texts)
