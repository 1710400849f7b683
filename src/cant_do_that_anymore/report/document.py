"""Experiments and comparisons as plain data: ``results.json`` and ``results.csv``."""

import csv
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

from ..comparison.entries import Entry
from ..comparison.leaderboard import Ranking
from ..comparison.pairwise import PairComparison
from ..comparison.verdict import verdict
from ..formatting import Number, format_setting, join_words, number
from ..metrics.measures import UPTAKE
from ..providers.base import add_costs
from ..runs.results import Run
from .columns import Row, as_rows
from .html import PAGE_NAME
from .run_page import main_measures
from .sentences import shares_text


class Matrix(TypedDict):
    """The rule uptake by wording (rows), and by the facets that vary (columns)."""

    columns: list[str]
    rows: dict[str, list[Number]]


class Document(TypedDict):
    """The contents of ``results.json``: tables of an experiment or a comparison.

    Attributes:
        title: the title of the report: the one given, or a default.
        verdicts: one row for each ranking.
        results: one row for each model at one effort, by ranking, the best first.
        pairs: one row for each pair of a ranking and each measure compared.
        runs: one row for each run, with its settings.
        matrix: the rule uptake by wording, and by what else varies; None with one wording and form.
        total: totals over all runs: tokens and dollars of all samples, and what the runs spent,
            including the search for items.
    """

    title: str
    verdicts: list[Row]
    results: list[Row]
    pairs: list[Row]
    runs: list[Row]
    total: Row
    matrix: Matrix | None


def build_document(ranked: Sequence[Ranking], out: Path, title: str = "") -> Document:
    """Build the document of all rankings, with links to reports relative to ``out``."""
    entries = [entry for ranking in ranked for entry in ranking.entries]
    runs = [entry.run for entry in entries]
    return {
        "title": title or _default_title(entries),
        "verdicts": [
            {**_category(ranking.entries[0]), "verdict": verdict(ranking)} for ranking in ranked
        ],
        "results": as_rows(entries),
        "pairs": [
            {**_category(ranking.entries[0]), **pair_row(comparison)}
            for ranking in ranked
            for comparison in chain(*ranking.pairs)
        ],
        "matrix": matrix_of(entries),
        "runs": [_run_row(entry, out) for entry in entries],
        "total": {
            "runs": len(entries),
            "samples": sum(int(entry.results.metrics["n_samples"] or 0) for entry in entries),
            "tokens": sum(entry.tokens for entry in entries),
            "spent_dollars": add_costs(*(run.cost.spent for run in runs)),
            "seconds": sum(run.seconds for run in runs),
        },
    }


def matrix_of(entries: Sequence[Entry]) -> Matrix | None:
    """Return the rule uptake of all entries by wording, if wordings or forms vary."""
    wordings = dict.fromkeys(
        chain(*(entry.results.wordings.by_wording for entry in entries if entry.results.wordings))
    )
    if not wordings and len({entry.other_form for entry in entries}) < 2:
        return None
    facets = [(entry.label, entry.eval, entry.change.key, entry.form) for entry in entries]
    varying = [place for place in range(4) if len({facet[place] for facet in facets}) > 1]
    rows: dict[str, list[Number]] = {
        name: [
            entry.results.wordings.by_wording.get(name) if entry.results.wordings else None
            for entry in entries
        ]
        for name in wordings
    }
    rows["all" if wordings else UPTAKE] = [entry.results.metrics[UPTAKE] for entry in entries]
    headings = [", ".join(facet[place] for place in varying) for facet in facets]
    return {"columns": [heading or entries[0].label for heading in headings], "rows": rows}


def matrix_cells(matrix: Matrix) -> list[list[str]]:
    """Return the headings of a matrix, then its rows, as text."""
    headings = ["rule uptake by wording", *matrix["columns"]]
    return [headings, *([name, *map(number, row)] for name, row in matrix["rows"].items())]


def _default_title(entries: Sequence[Entry]) -> str:
    models = list(dict.fromkeys(entry.model for entry in entries))
    habit, *others = {
        entry.change.its_habit.name: entry.change.its_habit for entry in entries
    }.values()
    rule = f"{habit.name} rule" if habit.changes and not others else "rule"
    rules = f"a new {rule}" if len({e.change.key for e in entries}) == 1 else f"new {rule}s"
    if len(models) == 1:
        return f"Does {models[0]} follow {rules}?"
    names = f"{len(models)} models" if len(models) > 3 else join_words(models)
    return f"Do {names} follow {rules}?"


def measure_rows(entries: Sequence[Entry]) -> list[Row]:
    """Return one row per entry and measure, with its 95% interval."""
    rows: list[Row] = []
    for entry in entries:
        results = entry.results
        for measure in main_measures(results):
            limits = results.intervals.get(measure.name)
            rows.append(
                {"model": entry.label}
                | dict(zip(CATEGORY[:3], entry.category, strict=False))
                | {"samples": results.metrics["n_samples"], "measure": measure.name}
                | {"value": results.metrics[measure.name]}
                | {end: getattr(limits, end, None) for end in ("low", "high")}
            )
    return rows


# The names of what makes a category of entries.
CATEGORY = ("eval", "rules", "form", "pool")


def _category(entry: Entry) -> Row:
    return dict(zip(CATEGORY, entry.category, strict=True))


def pair_row(comparison: PairComparison) -> Row:
    """Return the row of a comparison; ``model`` ranks higher, and its value comes first."""
    interval, extremes = comparison.interval, comparison.extremes
    other, value = comparison.values
    return {
        "model": comparison.second.label,
        "other": comparison.first.label,
        "measure": comparison.measure.name,
        "samples": comparison.n_samples,
        "games": comparison.n_games,
        "value": value,
        "other_value": other,
        "difference": comparison.difference,
        "difference_low": interval.low if interval else None,
        "difference_high": interval.high if interval else None,
        "difference_least": extremes[0] if extremes else None,
        "difference_greatest": extremes[1] if extremes else None,
        "p": comparison.p,
        "corrected_p": comparison.corrected_p,
        "verdict": comparison.verdict,
        "sentence": comparison.sentence,
    }


def comparison_facts(ranking: Ranking) -> dict[str, object]:
    """Return what ``cdta compare --json`` prints: the models, the best first, and all pairs.

    The first model of a pair ranks higher; the difference is its value minus the other's.
    """
    return {
        "ranking": [entry.label for entry in ranking.entries],
        "pairs": [
            {
                "models": [row["model"], row["other"]],
                "measure": row["measure"],
                "samples": row["samples"],
                "difference": row["difference"],
                "low": row["difference_low"],
                "high": row["difference_high"],
                "p": row["corrected_p"],
                "p_uncorrected": row["p"],
                "verdict": row["verdict"],
            }
            for row in map(pair_row, chain(*ranking.pairs))
        ],
    }


def _run_row(entry: Entry, out: Path) -> Row:
    run = entry.run
    return {
        "label": entry.label,
        **_category(entry),
        "model": run.model,
        "version": run.version,
        "endpoint": run.endpoint,
        "seed": run.plan.settings.seed,
        "started_at": run.started_at,
        "samples": len(run.answered),
        # Without what differs between runs that share it: who built it when.
        "dataset": replace(run.dataset, built_now=False, saved_at="", endpoint="").provenance,
        "settings": settings_text(run),
        "versions": ", ".join(f"{name} {version}" for name, version in run.versions.items()),
        "tokens": int(run.results.metrics["usage_total_tokens"] or 0),
        "dollars": run.cost.total,
        "spent_dollars": run.cost.spent,
        "seconds": run.seconds,
        "page": _report_link(run, out),
    }


def settings_text(run: Run) -> str:
    """Return all settings of a run except the seed, as text."""
    plan = run.plan
    others = [
        f"{name.replace('_', ' ')} {format_setting(value)}"
        for name, value in (plan.scoring | asdict(plan.settings)).items()
        if name != "seed" and value not in (None, "") and value is not False
    ]
    fixed = [f"wording {plan.wording}", f"form {plan.form.name}"]
    return "; ".join([*fixed, *others, f"protocol {run.protocol}"])


def _report_link(run: Run, out: Path) -> str | None:
    """Return the relative link to the report of a run, or None if it has none."""
    page = run.folder / PAGE_NAME if run.folder else None
    if not page or not page.exists():
        return None
    return quote(Path(os.path.relpath(page, out)).as_posix())


_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def as_csv(rows: Sequence[Row]) -> str:
    """Format rows as CSV. A text that a spreadsheet would run as a formula gets a quote before."""
    text = StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, list):
        value = " | ".join(value)
    if isinstance(value, dict):
        value = shares_text(value)
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
    return f"{value:.6f}" if isinstance(value, float) else "" if value is None else str(value)
