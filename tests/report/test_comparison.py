"""A comparison as the terminal and the page show it."""

import re
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import pytest
from rich.console import Console

from browser import browser_or_skip
from cant_do_that_anymore.api import save_with_page
from cant_do_that_anymore.comparison.leaderboard import Ranking, ranking_of
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.formatting import visible
from cant_do_that_anymore.providers.base import Settings
from cant_do_that_anymore.report import markdown
from cant_do_that_anymore.report.pages import comparison_page
from cant_do_that_anymore.report.tables import comparison_table
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import Outcome
from testing import POOL, Play, cdta, keeps, played

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
EVIL = '<img src=x onerror="window.hacked = 1">\u202e'


def chats(number: int) -> Outcome:
    return "unreadable" if number % 100 < 59 else "special"


def measured(model: str, play: Play, *, seed: int = 0, n: int = 200, **fields: Any) -> Run:
    """A run on the positions of its seed, from one dataset for all."""
    usual: dict[str, Any] = {"dataset": Dataset("", "both.jsonl"), "settings": Settings(seed=seed)}
    return played(model, play, positions=POOL[seed * n : (seed + 1) * n], **usual | fields)


@cache
def ranking_of_three() -> Ranking:
    """Three models with three seeds."""
    plays: dict[str, Play] = {"alpha": keeps(35), "beta": keeps(60), "gamma": chats}
    return ranking_of([measured(m, plays[m], seed=seed) for m in plays for seed in range(3)])


def shown(ranking: Ranking, width: int = 80) -> str:
    console = Console(width=width, file=StringIO())
    console.print(comparison_table(ranking))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def page_of(*runs: Run) -> str:
    return comparison_page(ranking_of(runs), Path())


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


# Terminal


def test_three_models_with_three_seeds_take_one_row_a_pair_below_the_verdict() -> None:
    text = shown(ranking_of_three())
    lines = text.splitlines()
    assert squeezed(text).startswith(
        "alpha adapts most; its lead over beta is significant: 25.0 points, p < 0.001; gamma's "
        "drop is off-task replies: 59% of its answers contain no move. All models on one "
        "dataset: both.jsonl"
    )
    assert len(lines) < 40
    assert max(map(len, lines)) <= 80
    rows = [squeezed(line).strip() for line in lines if " over " in line and " 600 " in line]
    assert rows == [
        "alpha over beta 600 +25.0 [+21.7, +28.6] < 0.001 significant -25.0*",
        "alpha over gamma 600 +65.0 [-1.0, +68.7] 0.607 inconclusive -6.0",
        "beta over gamma 600 +40.0 [-26.7, +44.0] 1.000 inconclusive +19.0",
    ]
    assert squeezed(text).count("note: gamma: answers without a move") == 1
    assert "gamma (!)    3 600 " in text


def test_long_names_are_folded_and_nothing_is_cut_off() -> None:
    name = "provider-of-models/a-model-with-a-long-name-2026-11-15-preview"
    runs = [measured(name, keeps(35), n=20), measured("beta", keeps(60), n=20)]
    text = shown(ranking_of(runs))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_models_on_datasets_of_their_own_get_advice() -> None:
    own = [
        measured(name, keeps(50), n=20, dataset=Dataset(name, "built", asked=900))
        for name in ("a", "b")
    ]
    text = squeezed(shown(ranking_of(own)))
    assert "Each pair on the positions that their own datasets share" in text
    assert "`cdta dataset union A B -o both.jsonl`" in text


def test_the_command_prints_the_table_and_writes_the_page(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("alpha", "beta")]
    for kept, folder in zip((35, 60), folders, strict=True):
        save_with_page(measured(folder.name, keeps(kept)), folder)
    page = tmp_path / "pages" / "page.html"
    page.parent.mkdir()
    result = cdta("compare", *folders, folders[0], "-o", page)
    assert result.returncode == 0, result.stderr
    assert squeezed(result.stdout).startswith(
        "alpha adapts most; its lead over beta is significant"
    )
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


# Page


def test_the_page_tells_the_same_in_the_same_order() -> None:
    page = comparison_page(ranking_of_three(), Path())
    header, _, rest = page.partition("</header>")
    assert "<h1>Do alpha, beta and gamma follow a new chess rule?</h1>" in header
    text = squeezed(re.sub(r"<[^>]+>", " ", rest)).replace("\xa0", " ")
    parts = [
        "alpha adapts most; its lead over beta is significant",
        "alpha over beta 600 +25.0 +21.7 to +28.6 &lt; 0.001 significant",
        "beta over gamma 600 +40.0 −26.7 to +44.0 1.000 inconclusive",
        "Too many answers contain no move to tell whether gamma and alpha differ",
        "All models on one dataset: both.jsonl",
        "Each model on",
        "0.65 [ 0.61 , 0.69 ]",
        "gamma (!)",
        "59.0% no move",
        "gamma: answers without a move",
        "Methods",
        "2026-01-01",
        "wording default; reading lenient; temperature 1; max tokens 16; protocol 3",
        "1,800 in 9 runs",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_samples_make_a_page_too(n: int) -> None:
    runs = [measured(name, keeps(50), n=n) for name in ("a", "b")]
    assert "</html>" in page_of(*runs)
    told = squeezed(shown(ranking_of(runs)))
    assert told.startswith("No model adapts significantly" if n else "No model can be ranked")


def test_the_page_fits_every_screen_and_obeys_the_policy(tmp_path: Path) -> None:
    pages = {
        "two": page_of(measured(EVIL, keeps(35), n=50), measured("beta", keeps(60), n=50)),
        "three": comparison_page(ranking_of_three(), tmp_path),
    }
    said: list[str] = []
    with browser_or_skip() as browser:
        for name, text in pages.items():
            (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
            page = browser.new_page()
            page.on("console", lambda message: said.append(message.text))
            page.goto((tmp_path / f"{name}.html").as_uri())
            assert page.locator("img, script script, [style]").count() == 0
            assert page.locator("script").count() == 1
            page.set_viewport_size({"width": 1440, "height": 900})
            assert page.evaluate("document.documentElement.scrollHeight") < 3500
            for summary in page.locator("summary").all():
                summary.click()
            for width, scheme in zip((320, 390, 768, 1440), SCHEMES * 2, strict=True):
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                tallest = "[...document.querySelectorAll('td')].map(cell => cell.offsetHeight)"
                assert max(page.evaluate(tallest)) < 160  # no column of single letters
            assert page.evaluate("window.hacked") is None
            if name == "two":
                assert visible(EVIL) in (page.locator("table.board-of").text_content() or "")
    assert said == []
