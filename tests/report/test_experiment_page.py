"""The report of an experiment, opened from disk in a real browser."""

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

from browser import Opener, OpenPage, browser_or_skip, check_accessible, check_fits
from cant_do_that_anymore.comparison.entries import entries_of
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.formatting import visible
from cant_do_that_anymore.providers.base import Effort, Settings
from cant_do_that_anymore.report import pages
from cant_do_that_anymore.report.formats.csv import as_csv
from cant_do_that_anymore.report.pages import experiment_page, write
from cant_do_that_anymore.report.rows import Row, build_document
from cant_do_that_anymore.runs.lookup import folders_in
from cant_do_that_anymore.runs.storage import load_run
from reasoning_servers import HABITS_KEPT, effort_server
from testing import cdta, run_with_outcomes, serving, without_plots

EVIL = '--><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">\u202e\x1b]]>'


@pytest.fixture(scope="module")
def browser(experiment: Path) -> Iterator[Browser]:
    """Opens after the experiment, because a server cannot start beside Playwright's event loop."""
    with browser_or_skip() as browser:
        yield browser


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two planted models at two efforts, measured with the command."""
    out = tmp_path_factory.mktemp("page") / "an experiment"
    models = [argument for model in HABITS_KEPT for argument in ("--model", model)]
    options = ("--reasoning-effort", "none,low", "--eval", "all", "-n", "6", "--wording", "plain")
    price = ("--price", "1,10")
    no_plot_files: Any = patch.object(pages, "save_chart", lambda *_: [])
    with no_plot_files, serving(effort_server()) as server:
        done = cdta("experiment", "--base-url", server.url, *models, *options, *price, "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == str(out / "index.html")
    document = json.loads((out / "results.json").read_text())
    verdict, _, _ = done.stdout.partition("\n\n")
    assert "".join(verdict.split()) == "".join(document["verdicts"][0]["verdict"].split())
    return out


@pytest.fixture(scope="module")
def document(experiment: Path) -> Row:
    document: Row = json.loads((experiment / "results.json").read_text())
    return document


@pytest.fixture
def opened(open_page: Opener, experiment: Path) -> OpenPage:
    return open_page(experiment / "index.html", width=1440)


@pytest.fixture
def page(opened: OpenPage) -> Page:
    return opened.page


def test_report_is_readable_and_accessible_on_any_screen(page: Page) -> None:
    for summary in page.locator("#made summary").all():
        summary.click()
    check_fits(page, tables_from=390)
    check_accessible(page)


def test_report_states_the_question_and_the_verdict_first(
    page: Page, experiment: Path, document: Row
) -> None:
    lede = page.locator(".lede")
    assert lede.inner_text() == document["verdicts"][0]["verdict"]
    title = page.locator("h1").inner_text()
    assert title == page.title() == document["title"]
    assert title == "Do yielding and stubborn follow a new rule?"
    run = load_run(next(experiment.glob("*/run.json")).parent)
    assert page.locator("#made pre").all_text_contents() == [
        c.prompts[0].text for c in run.plan.conditions
    ]


def test_rows_can_be_sorted_by_mouse_and_keyboard(page: Page) -> None:
    def column(head: str) -> list[float]:
        cells = page.locator(f"table.board-of tbody td[data-head='{head}']").all()
        return [float(cell.get_attribute("data-sort") or 0) for cell in cells]

    uptake = column("rule uptake")
    assert uptake == sorted(uptake, reverse=True)
    head = page.get_by_role("columnheader", name="reasoning tokens")
    page.get_by_role("button", name="reasoning tokens").click()
    assert column("reasoning tokens") == sorted(column("reasoning tokens"))
    assert head.get_attribute("aria-sort") == "ascending"
    assert page.locator("[aria-sort]").count() == 1
    page.keyboard.press("Enter")
    assert column("reasoning tokens") == sorted(column("reasoning tokens"), reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="model").click()
    names = page.locator("table.board-of tbody th").all_inner_texts()
    assert names == sorted(names)


def test_the_table_works_without_scripts(browser: Browser, experiment: Path) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto((experiment / "index.html").as_uri())
    assert page.locator("table.board-of tbody tr").count() == 4
    assert page.locator("button").count() == 0


def test_rows_link_to_the_reports_of_their_runs(opened: OpenPage, document: Row) -> None:
    page = opened.page
    rows = page.locator("table.board-of tbody tr").all()
    for row, result in zip(rows, document["results"], strict=True):
        links = [str(link.get_attribute("href")) for link in row.locator("a").all()]
        assert links == [result["report"]]
    hrefs = page.evaluate("[...document.links].map(link => link.href)")
    assert all(Path(unquote(urlparse(href).path)).exists() for href in hrefs)
    page.locator("table.board-of a").first.click()
    assert page.locator("h1").inner_text() == "yielding"
    opened.requests.pop()  # for the linked report


def test_titles_and_model_names_are_escaped(open_page: Opener, tmp_path: Path) -> None:
    efforts: tuple[Effort, ...] = ("none", "high")
    runs = [
        run_with_outcomes(EVIL, ["usual", "legal"], settings=Settings(reasoning_effort=effort))
        for effort in efforts
    ]
    ranked = rankings(entries_of(runs))
    write(ranked, build_document(ranked, tmp_path, EVIL), tmp_path)
    assert (tmp_path / "uptake-all-bishops-as-knights.png").exists()
    page = open_page(tmp_path / "index.html", width=390).page
    assert page.locator("h1").inner_text() == visible(EVIL)
    page.get_by_role("button", name="model").click()
    labels = [f"{visible(EVIL)} effort {effort}" for effort in ("high", "none")]
    assert page.locator("table.board-of tbody th").all_inner_texts() == labels
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0


def test_only_runs_with_a_report_are_linked(experiment: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy #1"
    shutil.copytree(experiment, copy)
    *_, last_report = sorted(copy.glob("*/report.html"))
    last_report.unlink()
    ranked = rankings(entries_of(map(load_run, folders_in(copy))))
    with without_plots():
        text = experiment_page(ranked, build_document(ranked, tmp_path / "elsewhere"))
    assert text.count('<a href="../copy%20%231/') == 3


def test_no_csv_cell_is_a_formula() -> None:
    texts = ["=cmd|'/c calc'!A1", "+1", "-1", "@x", "\t=1", ["=1", "x"]]
    table = as_csv([{"model": text, "uptake": -0.5} for text in texts])
    cells = [row["model"] for row in csv.DictReader(io.StringIO(table))]
    assert cells == ["'=cmd|'/c calc'!A1", "'+1", "'-1", "'@x", "'\t=1", "'=1 | x"]
    assert table.count(",-0.500000\n") == len(texts)
