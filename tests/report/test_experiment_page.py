"""An experiment with several efforts: its curve, its report in a real browser; a comparison."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from playwright.sync_api import Page

from browser import Opener, check_accessible, check_fits
from cant_do_that_anymore.comparison.entries import named_entries
from cant_do_that_anymore.comparison.leaderboard import ranking_of, rankings
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.formatting import visible
from cant_do_that_anymore.providers.base import REASONING_TOKENS, Effort, Settings
from cant_do_that_anymore.report.formats import markdown
from cant_do_that_anymore.report.formats.csv import as_csv
from cant_do_that_anymore.report.pages import experiment_page, write
from cant_do_that_anymore.report.plots import curve_chart
from cant_do_that_anymore.report.rows import Row, build_document
from cant_do_that_anymore.report.tables import comparison_table
from cant_do_that_anymore.runs.lookup import folders_in
from cant_do_that_anymore.runs.storage import load_run
from planted_models import HABITS_KEPT, effort_server, keeps_habit_at, reasoning_tokens_at
from testing import (
    POOL,
    Body,
    CompletedCommand,
    Outcomes,
    cdta,
    keeps_habit_in,
    positions_of,
    printed,
    run_with_outcomes,
    serving_in_process,
    snapshot,
    text_of,
    without_plots,
)

N = 12
EFFORTS = ("none", "low", "high")
EVIL = '--><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">\u202e\x1b]]>'


@dataclass(frozen=True)
class Experiment:
    """The folder of an experiment, what was printed, and the requests that it sent."""

    out: Path
    printed: CompletedCommand
    requests: list[Body]

    @property
    def document(self) -> Row:
        document: Row = json.loads((self.out / "results.json").read_text())
        return document


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """Two planted models at three efforts, the highest first."""
    out = tmp_path_factory.mktemp("page") / "an experiment"
    options: list[object] = ["--reasoning-effort", "high", "--reasoning-effort", "none,low"]
    options += ["--price", "0.1,1", "-n", N, "--eval", "all", "--wording", "plain", "--out", out]
    options += [f"--model={model}" for model in HABITS_KEPT]
    with serving_in_process(effort_server()) as server, without_plots():
        done = cdta("experiment", "--base-url", server.url, *options, code=0)
    return Experiment(out, done, server.requests)


def test_curve_and_table_match_the_planted_values(experiment: Experiment) -> None:
    with (experiment.out / "results.csv").open() as file:
        table = list(csv.DictReader(file))
    rows = {(row["model"], row["reasoning_effort"]): row for row in table}
    assert sorted(rows) == sorted((model, effort) for model in HABITS_KEPT for effort in EFFORTS)
    for (model, effort), row in rows.items():
        run = load_run(experiment.out / f"{model}-{effort}")
        move_lists = [position.moves for position in positions_of(run.samples)]
        share_kept = fmean(keeps_habit_at(effort, moves, model) for moves in move_lists)
        before, after = (
            fmean(reasoning_tokens_at(effort, moves, changed=changed) for moves in move_lists)
            for changed in (False, True)
        )
        for name, value in {
            "predicted_move_in_variant_proportion": share_kept,
            "rule_uptake": 1 - share_kept,
            "standard_reasoning_tokens": before,
            "reasoning_tokens_difference": after - before,
        }.items():
            assert float(row[name] or 0) == pytest.approx(value, abs=1e-6), (model, effort, name)
    [axes] = curve_chart(named_entries([*map(load_run, folders_in(experiment.out))])).axes
    points = {tuple(point) for line in axes.lines for point in np.array(line.get_xydata()).round(6)}
    names = ("changed_reasoning_tokens", "rule_uptake")
    assert points >= {tuple(float(row[name] or 0) for name in names) for row in rows.values()}


def test_all_efforts_share_the_dataset_of_the_lowest_effort(experiment: Experiment) -> None:
    runs = [load_run(file.parent) for file in experiment.out.glob("yielding-*/run.json")]
    assert {run.plan.settings.reasoning_effort for run in runs} == set(EFFORTS)
    assert {run.plan.select_effort for run in runs} == {"none"}
    assert len({tuple(sample.item.id for sample in run.samples) for run in runs}) == 1
    efforts = [request["reasoning_effort"] for request in experiment.requests]
    assert efforts.count("low") == 2 * 2 * N
    assert efforts.count("none") > 2 * 2 * N
    high = [r["max_tokens"] for r in experiment.requests if r["reasoning_effort"] == "high"]
    assert high == [REASONING_TOKENS] * 2 * 2 * N


def test_a_report_states_the_verdict_first_links_to_the_runs_and_sorts_rows(
    open_page: Opener, experiment: Experiment
) -> None:
    page = open_page(experiment.out / "index.html", width=1440).page
    assert str(experiment.out / "index.html") in experiment.printed.stderr.splitlines()[-1]
    verdict = experiment.document["verdicts"][0]["verdict"]
    assert page.locator(".lede").inner_text() == verdict
    printed, _, _ = experiment.printed.stdout.partition("\n\n")
    assert "".join(printed.split()) == "".join(verdict.split())
    title = page.locator("h1").inner_text()
    assert title == page.title() == "Which model follows a new rule?"
    run = load_run(next(experiment.out.glob("*/run.json")).parent)
    prompts = [condition.prompts[0].text for condition in run.plan.conditions]
    assert page.locator("#made pre").all_text_contents() == prompts
    hrefs = page.evaluate("[...document.links].map(link => link.href)")
    assert len(hrefs) == 6 and all(Path(unquote(urlparse(href).path)).exists() for href in hrefs)

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
    page.get_by_role("button", name="model").click()
    names = page.locator("table.board-of tbody th").all_inner_texts()
    assert names == sorted(names)
    check_page(page)


def check_page(page: Page) -> None:
    """With everything unfolded, it fits all screens and is accessible."""
    for summary in page.locator("summary").all():
        summary.click()
    check_fits(page, tables_from=390)
    page.set_viewport_size({"width": 320, "height": 900})
    cell_heights = "[...document.querySelectorAll('td')].map(cell => cell.offsetHeight)"
    assert max(page.evaluate(cell_heights)) < 160  # no column wraps letter by letter
    check_accessible(page)


def test_titles_and_model_names_are_escaped(open_page: Opener, tmp_path: Path) -> None:
    efforts: tuple[Effort, ...] = ("none", "high")
    runs = [
        run_with_outcomes(EVIL, ["usual", "legal"], settings=Settings(reasoning_effort=effort))
        for effort in efforts
    ]
    ranked = rankings(runs)
    write(ranked, build_document(ranked, tmp_path, EVIL), tmp_path)
    assert (tmp_path / "uptake-all-bishops-as-knights.png").exists()
    page = open_page(tmp_path / "index.html", width=390).page
    assert page.locator("h1").inner_text() == visible(EVIL)
    page.get_by_role("button", name="model").click()
    labels = [f"{visible(EVIL)} effort {effort}" for effort in ("high", "none")]
    assert page.locator("table.board-of tbody th").all_inner_texts() == labels
    assert page.locator("script").count() == 1
    assert page.locator("img, script script, [style]").count() == 0
    check_page(page)


def test_a_comparison_matches_its_snapshot() -> None:
    """In the terminal, as Markdown and as a report."""
    plays: dict[str, Outcomes] = {
        "alpha": keeps_habit_in(35),
        "beta": keeps_habit_in(60),
        "gamma": lambda number: "unreadable" if number % 100 < 59 else "usual",
    }
    runs = [
        run_with_outcomes(
            model,
            play,
            positions=POOL[:300],
            dataset=Dataset("", "both.jsonl"),
            versions={"chess": "1.0"},
        )
        for model, play in plays.items()
    ]
    ranking = ranking_of(runs)
    terminal = printed(comparison_table(ranking))
    assert max(map(len, terminal.splitlines())) <= 80
    page = experiment_page([ranking], build_document([ranking], Path()))
    snapshot("comparison", "\n\n".join((terminal, markdown.comparison(ranking), text_of(page))))


def test_no_csv_cell_is_a_formula() -> None:
    texts = ["=cmd|'/c calc'!A1", "+1", "-1", "@x", "\t=1", ["=1", "x"]]
    table = as_csv([{"model": text, "uptake": -0.5} for text in texts])
    cells = [row["model"] for row in csv.DictReader(io.StringIO(table))]
    assert cells == ["'=cmd|'/c calc'!A1", "'+1", "'-1", "'@x", "'\t=1", "'=1 | x"]
    assert table.count(",-0.500000\n") == len(texts)
