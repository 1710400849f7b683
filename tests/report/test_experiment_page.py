"""The page of an experiment, opened from disk in a real browser."""

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from browser import browser_or_skip
from cant_do_that_anymore.evaluation.standings import standings, standings_in
from cant_do_that_anymore.evaluation.vocabulary import AFTER, BEFORE
from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.models.model import Effort, Settings
from cant_do_that_anymore.report.experiment import write
from cant_do_that_anymore.report.experiment_page import experiment_page
from cant_do_that_anymore.report.markup import visible
from loopback import serving
from processes import cdta
from runs import plan_of, run_of
from thinkers import KEPT, planted_thinker

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
    asked = ("--reasoning-effort", "none,low", "--eval", "all", "-n", "12", "--runs", "2")
    with serving(planted_thinker()) as server:
        done = cdta("experiment", "--base-url", server.url, *models, *asked, "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == str(out / "index.html")
    return out


def opened(
    browser: Browser, path: Path, width: int, scheme: Literal["light", "dark"], faults: list[str]
) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: faults.append(request.url))
    page.goto(path.as_uri())
    assert faults == [path.as_uri()]
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_is_readable_on_any_screen_and_asks_for_nothing(
    browser: Browser, experiment: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = opened(browser, experiment / "index.html", width, scheme, [])
    assert page.locator("svg.plot").first.get_attribute("aria-label") == (
        "The thinking curve (all-bishops-as-knights)"
    )
    assert page.locator("svg.plot").count() == 3
    ground, ink = page.evaluate(
        "[getComputedStyle(document.querySelector('.plot path')).fill,"
        " getComputedStyle(document.querySelector('.plot')).fill]"
    )
    assert ground == page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ink == page.evaluate("getComputedStyle(document.body).color")
    drawn = page.locator("svg.plot").first.bounding_box()
    assert drawn
    assert drawn["width"] > 1000  # on a small screen it is scrolled, and letters stay letters


def test_numbers_and_links_are_those_of_the_runs(browser: Browser, experiment: Path) -> None:
    page = opened(browser, experiment / "index.html", 1440, "light", [])
    with (experiment / "results.csv").open() as file:
        results = list(csv.DictReader(file))
    rows = page.locator(".standings tbody tr").all()
    assert len(rows) == len(results) == 4
    for row, result in zip(rows, results, strict=True):
        cells = {
            cell.get_attribute("data-head"): cell.inner_text().replace("−", "-")
            for cell in row.locator("td").all()
        }
        name = f"{result['model']} effort {result['reasoning_effort']}"
        assert row.locator("th").inner_text() in (name, f"{name} (!)")
        assert (cells["runs"], cells["n"]) == (result["runs"], result["samples"])
        shares = [
            float(result[name])
            for name in ("predicted_move_in_variant_proportion", "changed_forbidden_proportion")
        ]
        assert list(map(float, cells["kept, any"].split())) == pytest.approx(shares, abs=0.005)
        tokens = float(result["changed_thinking_tokens"])
        assert float(cells["thinks"].replace(",", "")) == pytest.approx(tokens, abs=0.5)
        links = [link.get_attribute("href") for link in row.locator("a").all()]
        assert len(links) == 2
        assert f"-{result['eval']}-" in str(links[0])
    page.locator(".standings a").first.click()
    assert page.locator("h1").inner_text() == "yielding"


def test_names_stay_text_in_page_and_pictures(browser: Browser, tmp_path: Path) -> None:
    said: Any = [{BEFORE: "special", AFTER: after} for after in ("special", "legal")]
    asked = list(zip(shipped_pool("pool"), said, strict=False))
    efforts: tuple[Effort, ...] = ("none", "high")
    runs = [
        run_of(asked, plan_of(2, settings=Settings(reasoning_effort=effort)), model=EVIL)
        for effort in efforts
    ]
    write(standings(runs), tmp_path)
    page = opened(browser, tmp_path / "index.html", 390, "light", [])
    names = page.locator(".standings tbody th").all_inner_texts()
    assert names == [f"{visible(EVIL)} effort {effort}" for effort in efforts]
    assert page.locator("script, img").count() == 0


def test_a_run_without_a_page_has_no_link_and_one_elsewhere_is_linked(
    experiment: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy #1"
    shutil.copytree(experiment, copy)
    *_, first = sorted(copy.glob("*/report.html"))
    first.unlink()
    text = experiment_page(standings_in([copy]), [[]], tmp_path / "elsewhere")
    assert text.count('<a href="../copy%20%231/') == text.count("</a>") == 7
