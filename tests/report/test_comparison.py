"""A comparison as the terminal and the page show it."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from browser import Opener, check_accessible, check_fits
from cant_do_that_anymore.api.results import save_with_page
from cant_do_that_anymore.comparison.leaderboard import Ranking, ranking_of
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.formatting import visible
from cant_do_that_anymore.providers.base import Settings
from cant_do_that_anymore.report.formats import markdown
from cant_do_that_anymore.report.pages import comparison_page
from cant_do_that_anymore.report.tables import comparison_table
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import Outcome
from testing import POOL, Play, cdta, keeps, played, printed, snapshot, text_of

EVIL = '<img src=x onerror="window.hacked = 1">\u202e'


def chats(number: int) -> Outcome:
    return "unreadable" if number % 100 < 59 else "special"


def measured(model: str, play: Play, *, seed: int = 0, n: int = 200, **fields: Any) -> Run:
    """A run on the positions of its seed, from one dataset for all."""
    usual: dict[str, Any] = {"dataset": Dataset("", "both.jsonl"), "versions": {"chess": "1.0"}}
    usual["settings"] = Settings(seed=seed)
    return played(model, play, positions=POOL[seed * n : (seed + 1) * n], **usual | fields)


@cache
def ranking_of_three() -> Ranking:
    """Three models with three seeds."""
    plays: dict[str, Play] = {"alpha": keeps(35), "beta": keeps(60), "gamma": chats}
    return ranking_of([measured(m, plays[m], seed=s, n=100) for m in plays for s in range(3)])


def page_of(*runs: Run) -> str:
    return comparison_page(ranking_of(runs), Path())


def test_three_models_with_three_seeds_are_told_in_all_formats_as_before() -> None:
    terminal = printed(comparison_table(ranking_of_three()))
    assert len(terminal.splitlines()) < 40
    assert max(map(len, terminal.splitlines())) <= 80
    page = comparison_page(ranking_of_three(), Path())
    texts = (terminal, markdown.comparison(ranking_of_three()), text_of(page))
    own = [
        measured(name, keeps(50), n=20, dataset=Dataset(name, "built", asked=900)) for name in "ab"
    ]
    snapshot("comparison", "\n\n".join([*texts, printed(comparison_table(ranking_of(own)))]))


def test_long_names_are_folded_and_nothing_is_cut_off() -> None:
    name = "provider-of-models/a-model-with-a-long-name-2026-11-15-preview"
    runs = [measured(name, keeps(35), n=20), measured("beta", keeps(60), n=20)]
    text = printed(comparison_table(ranking_of(runs)))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_command_prints_the_table_and_writes_the_page(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("alpha", "beta")]
    for kept, folder in zip((35, 60), folders, strict=True):
        save_with_page(measured(folder.name, keeps(kept)), folder)
    page = tmp_path / "pages" / "page.html"
    page.parent.mkdir()
    result = cdta("compare", *folders, folders[0], "-o", page)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("alpha adapts most; its lead over beta is significant")
    assert result.stdout.endswith(f"report: {page}\n")
    assert '<a href="../alpha/report.html">' in page.read_text(encoding="utf-8")
    alone = cdta("compare", folders[0], folders[0])
    assert alone.returncode == 2
    assert "nothing to compare, because this is one run" in alone.stderr


def test_markdown_is_a_table_in_which_names_stay_names() -> None:
    runs = [measured("a|b <i>*x*", keeps(35), n=50), measured("beta", keeps(60), n=50)]
    text = markdown.comparison(ranking_of(runs))
    head, leaderboard, pairs = text.split("\n\n")
    assert r"a\|b \<i\>\*x\* adapts most" in head
    for table in (leaderboard, pairs):
        heads, rule, *rows = table.splitlines()
        assert set(rule) <= set("|-: ")
        for row in (heads, *rows):
            assert len(re.findall(r"(?<!\\)\|", row)) == rule.count("|")
        assert rows[0].startswith(r"| a\|b \<i\>\*x\* ")


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_samples_make_a_page_too(n: int) -> None:
    runs = [measured(name, keeps(50), n=n) for name in ("a", "b")]
    assert "</html>" in page_of(*runs)
    told = printed(comparison_table(ranking_of(runs)))
    assert told.startswith("No model adapts significantly" if n else "No model can be ranked")


def test_the_page_fits_every_screen_and_is_accessible(tmp_path: Path, open_page: Opener) -> None:
    plays: dict[str, Play] = {"alpha": keeps(35), "beta": keeps(60), "gamma": chats}
    three = [measured(m, plays[m], seed=seed, n=50) for m in plays for seed in range(2)]
    two = [measured(EVIL, keeps(35), n=50), measured("beta", keeps(60), n=50)]
    path = tmp_path / "page.html"
    for runs in (two, three):
        path.write_text(page_of(*runs), encoding="utf-8")
        opened = open_page(path, width=1440)
        page = opened.page
        assert page.locator("img, script script, [style]").count() == 0
        assert page.locator("script").count() == 1
        assert page.evaluate("document.documentElement.scrollHeight") < 3500
        assert (visible(EVIL) in opened.text("table.board-of")) == (runs is two)
        for summary in page.locator("summary").all():
            summary.click()
        check_fits(page)
        for width in (320, 390, 768, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            tallest = "[...document.querySelectorAll('td')].map(cell => cell.offsetHeight)"
            assert max(page.evaluate(tallest)) < 160  # no column of single letters
    check_accessible(page)
