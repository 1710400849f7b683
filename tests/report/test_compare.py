"""A comparison as the terminal and the page show it."""

import re
from collections.abc import Callable
from functools import cache
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest
from markupsafe import escape
from rich.console import Console

from browser import NoBrowser, opened_browser
from cant_do_that_anymore.evaluation.comparison import compare
from cant_do_that_anymore.evaluation.folder import save_run
from cant_do_that_anymore.evaluation.results import Dataset, Run
from cant_do_that_anymore.evaluation.verdicts import verdict
from cant_do_that_anymore.evaluation.vocabulary import AFTER, BEFORE, Outcome
from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.models.model import Answer, Settings
from cant_do_that_anymore.report.comparison_page import comparison_page
from cant_do_that_anymore.report.comparison_table import comparison_table
from cant_do_that_anymore.report.markup import visible
from processes import cdta
from runs import plan_of, run_of

POOL = shipped_pool("pool")
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
EVIL = '<img src=x onerror="window.hacked = 1">\u202e'

Play = Callable[[int], Outcome]


def keeps(percent: int) -> Play:
    return lambda number: "special" if number % 100 < percent else "adapted"


def chats(number: int) -> Outcome:
    return "unreadable" if number % 100 < 59 else "special"


def measured(model: str, play: Play, *, seed: int = 0, n: int = 200, **fields: Any) -> Run:
    """A run whose replies are those that the outcomes stand for."""

    def answer(outcome: Outcome, position: Position) -> Answer:
        if outcome == "adapted":
            legal = BISHOPS_AS_KNIGHTS.legal_moves(position.board())
            return Answer(min(move.uci() for move in legal))
        return Answer("Well, now." if outcome == "unreadable" else position.special_moves[0])

    positions = POOL[seed * n : (seed + 1) * n]
    asked = [
        (position, {BEFORE: answer("special", position), AFTER: answer(play(number), position)})
        for number, position in enumerate(positions)
    ]
    usual: dict[str, Any] = {
        "model": model,
        "version": model,
        "identity": {"name": model},
        "dataset": Dataset("", "both.jsonl"),
    }
    return run_of(asked, plan_of(n, settings=Settings(seed=seed)), **usual | fields)


@cache
def two() -> list[Run]:
    return [measured("alpha", keeps(35)), measured("beta", keeps(60))]


@cache
def three_with_three_seeds() -> list[Run]:
    plays: dict[str, Play] = {"alpha": keeps(35), "beta": keeps(60), "gamma": chats}
    return [measured(m, play, seed=seed) for m, play in plays.items() for seed in range(3)]


def shown(runs: list[Run], width: int = 100) -> str:
    console = Console(width=width, file=StringIO())
    console.print(comparison_table(compare(runs), width))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


# Terminal


def test_two_models_get_one_small_table_below_the_verdict() -> None:
    text = shown(two())
    assert squeezed(text).startswith(verdict(compare(two())))
    assert "All on one dataset: both.jsonl" in text
    assert "alpha (first) and beta (second): 200 shared samples of 200 games" in text
    [row] = [line for line in text.splitlines() if line.startswith("Impact factor ")]
    assert squeezed(row) == "Impact factor -0.650 -0.400 +25.0 [+19.5, +31.4] < 0.001"
    assert (
        text.index("Impact factor") < text.index("Each model alone") < text.index("- alpha drops")
    )


def test_three_models_with_three_seeds_take_one_row_a_pair() -> None:
    text = shown(three_with_three_seeds())
    lines = text.splitlines()
    assert len(lines) < 50
    assert max(map(len, lines)) <= 100
    rows = [squeezed(line) for line in lines if re.match(r"(alpha|beta), \w+ +600 ", line)]
    assert len(rows) == 3
    assert rows[0].startswith("alpha, beta 600 +25.0 [+21.")
    assert " first " in rows[0]
    assert " open " in rows[1]
    assert "gamma cannot be ranked: 59.0 % of its answers" in squeezed(text)
    assert squeezed(text).count("note: gamma: answers that name no move") == 1
    assert "600 samples, 3 seeds" in text
    assert "bounds [" in text


@pytest.mark.parametrize("width", [80, 100, 140])
def test_nothing_is_cut_off_in_a_terminal(width: int) -> None:
    for runs in (two(), three_with_three_seeds()):
        text = shown(runs, width)
        assert "…" not in text
        for heading in ("legal gain", "no move", "special", "ahead" if len(runs) > 2 else "p"):
            assert heading in squeezed(text)


def test_models_on_datasets_of_their_own_get_advice() -> None:
    own = [
        measured(name, keeps(50), dataset=Dataset(name, "built", asked=900)) for name in ("a", "b")
    ]
    text = squeezed(shown(own))
    assert "On the positions that each pair shares of its own datasets" in text
    assert "`cdta dataset union A B -o both.jsonl`" in text


def test_every_difference_is_in_points(tmp_path: Path) -> None:
    page = comparison_page(compare(two()))
    assert "difference, points" in page
    assert "+25.0" in page
    assert ">0.250<" not in page


def test_the_command_prints_the_table_and_writes_the_page(tmp_path: Path) -> None:
    folders = [tmp_path / run.model for run in two()]
    for run, folder in zip(two(), folders, strict=True):
        save_run(run, folder)
    page = tmp_path / "page.html"
    result = cdta("compare", *folders, folders[0], "-o", page)
    assert result.returncode == 0, result.stderr
    assert squeezed(result.stdout).startswith("alpha drops more of its habit than beta")
    assert result.stdout.endswith(f"page: {page}\n")
    assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")
    alone = cdta("compare", folders[0], folders[0])
    assert alone.returncode == 2
    assert "these are 1 run of one" in alone.stderr


# Page


def test_the_page_tells_the_same_in_the_same_order() -> None:
    runs = three_with_three_seeds()
    page = comparison_page(compare(runs))
    lede, _, rest = page.partition("<nav")
    assert escape(verdict(compare(runs)).replace(" %", "\xa0%")) in lede
    text = squeezed(re.sub(r"<[^>]+>", " ", rest.partition("</nav>")[2]))
    parts = [
        "All on one dataset: both.jsonl",
        "alpha (first) and beta (second) in every measure: 600 shared samples of 600 games",
        "Each model alone",
        "600 samples, 3 seeds",
        "In words",
        "Too many answers name no move to tell whether alpha and gamma differ",
        "gamma: answers that name no move",
        "How it was made",
        "all; wording default; reading lenient; temperature 1; max tokens 16; protocol 2",
        "Seed 2 2026-01-01, 200 samples; dataset: both.jsonl",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)


def test_the_name_of_a_model_cannot_act_as_html() -> None:
    runs = [measured("<script>alert(1)</script>", keeps(50)), measured("b", keeps(9))]
    page = comparison_page(compare(runs))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_samples_make_a_page_too(n: int) -> None:
    runs = [measured(name, keeps(50), n=n) for name in ("a", "b")]
    assert "</html>" in comparison_page(compare(runs))
    assert "nothing can be said" in squeezed(shown(runs)) or n


def test_the_page_fits_every_screen_and_obeys_the_policy(tmp_path: Path) -> None:
    pages = {
        "two": [measured(EVIL, keeps(35)), measured("beta", keeps(60))],
        "three": [*three_with_three_seeds(), measured(EVIL, keeps(1))],
    }
    for name, runs in pages.items():
        (tmp_path / f"{name}.html").write_text(comparison_page(compare(runs)), encoding="utf-8")
    said: list[str] = []
    try:
        with opened_browser() as browser:
            for name in pages:
                page = browser.new_page()
                page.on("console", lambda message: said.append(message.text))
                page.goto((tmp_path / f"{name}.html").as_uri())
                for summary in page.locator("summary").all():
                    summary.click()
                assert page.locator("img, script, [style]").count() == 0
                assert visible(EVIL) in (page.locator("table.alone").text_content() or "")
                for width, scheme in product((320, 390, 768, 1440), SCHEMES):
                    page.set_viewport_size({"width": width, "height": 900})
                    page.emulate_media(color_scheme=scheme)
                    assert page.evaluate("document.documentElement.scrollWidth") <= width
                    tallest = "[...document.querySelectorAll('td')].map(cell => cell.offsetHeight)"
                    assert max(page.evaluate(tallest)) < 160  # no column of single letters
                assert page.evaluate("window.hacked") is None
    except NoBrowser as problem:
        pytest.skip(str(problem))
    assert said == []
