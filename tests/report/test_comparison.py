"""A comparison in the terminal, as Markdown and as a report."""

from pathlib import Path
from typing import Any

from browser import Opener, check_accessible, check_fits
from cant_do_that_anymore.comparison.leaderboard import ranking_of
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.formatting import visible
from cant_do_that_anymore.report.formats import markdown
from cant_do_that_anymore.report.pages import experiment_page
from cant_do_that_anymore.report.rows import build_document
from cant_do_that_anymore.report.tables import comparison_table
from cant_do_that_anymore.runs.run import Run
from testing import (
    POOL,
    Outcomes,
    keeps_habit_in,
    printed,
    run_with_outcomes,
    snapshot,
    text_of,
)

EVIL = '<img src=x onerror="window.hacked = 1">\u202e'
PLAYS: dict[str, Outcomes] = {
    "alpha": keeps_habit_in(35),
    "beta": keeps_habit_in(60),
    "gamma": lambda number: "unreadable" if number % 100 < 59 else "usual",
}


def make_run(model: str, play: Outcomes, n: int = 50, **fields: Any) -> Run:
    """A run on the first positions. All runs share one dataset."""
    defaults: dict[str, Any] = {"dataset": Dataset("", "both.jsonl"), "versions": {"chess": "1.0"}}
    return run_with_outcomes(model, play, positions=POOL[:n], **defaults | fields)


def page_of(*runs: Run) -> str:
    ranking = ranking_of(runs)
    return experiment_page([ranking], build_document([ranking], Path()))


def test_comparison_matches_snapshot() -> None:
    runs = [make_run(m, PLAYS[m], n=300) for m in PLAYS]
    ranking = ranking_of(runs)
    terminal = printed(comparison_table(ranking))
    assert len(terminal.splitlines()) < 40
    assert max(map(len, terminal.splitlines())) <= 80
    own_datasets = [
        make_run(name, keeps_habit_in(50), n=20, dataset=Dataset(name, "built", asked=900))
        for name in "ab"
    ]
    texts = (
        terminal,
        markdown.comparison(ranking),
        text_of(page_of(*runs)),
        printed(comparison_table(ranking_of(own_datasets))),
    )
    snapshot("comparison", "\n\n".join(texts))


def test_report_fits_every_screen_and_is_accessible(tmp_path: Path, open_page: Opener) -> None:
    two_models = [make_run(EVIL, PLAYS["alpha"]), make_run("beta", PLAYS["beta"])]
    path = tmp_path / "page.html"
    for runs in (two_models, [make_run(model, PLAYS[model]) for model in PLAYS]):
        path.write_text(page_of(*runs), encoding="utf-8")
        opened = open_page(path, width=1440)
        page = opened.page
        assert page.locator("img, script script, [style]").count() == 0
        assert page.locator("script").count() == 1
        assert page.evaluate("document.documentElement.scrollHeight") < 3500
        assert (visible(EVIL) in opened.text("table.board-of")) == (runs is two_models)
        for summary in page.locator("summary").all():
            summary.click()
        check_fits(page)
        page.set_viewport_size({"width": 320, "height": 900})
        cell_heights = "[...document.querySelectorAll('td')].map(cell => cell.offsetHeight)"
        assert max(page.evaluate(cell_heights)) < 160  # no column wraps letter by letter
    check_accessible(page)
