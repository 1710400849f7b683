"""Experiments and comparisons as plain data: ``results.json`` and ``results.csv``."""

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

from ..comparison.entries import Entry
from ..comparison.leaderboard import OUTCOMES, Ranking, changed_outcomes
from ..comparison.pairwise import Comparison
from ..comparison.verdict import verdict
from ..formatting import Number, format_setting, named_fields
from ..metrics.diagnosis import CONTRASTS, DIAGNOSIS, placebo_moved
from ..metrics.measures import FORBIDDEN, IMPACT, SHARES, UNUSABLE, UPTAKE
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION
from .html import PAGE_NAME

Value = str | bool | Number | list[str]
Row = dict[str, Value]
# Reported for every model.
METRICS = (UPTAKE, IMPACT, "adaptation_rate", *SHARES.values(), *FORBIDDEN.values(), "delta")
# Reported if any model was diagnosed.
OF_DIAGNOSIS = (*(measure.name for measure in DIAGNOSIS), *CONTRASTS)


class Total(TypedDict):
    """Totals over all runs.

    Attributes:
        tokens: input and output tokens of all samples.
        dollars: the cost of those tokens.
        spent_dollars: what the runs spent, including the search for positions.
    """

    runs: int
    samples: int
    tokens: int
    dollars: float | None
    spent_dollars: float | None
    seconds: float


class Document(TypedDict):
    """The contents of ``results.json``: tables of an experiment or a comparison.

    Attributes:
        verdicts: one row for each ranking.
        results: one row for each model at one effort, by ranking, the best first.
        pairs: one row for each pair of a ranking and each measure compared.
        runs: one row for each run, with its settings.
        total: totals over all runs.
    """

    verdicts: list[Row]
    results: list[Row]
    pairs: list[Row]
    runs: list[Row]
    total: Total


def build_document(ranked: Sequence[Ranking], out: Path) -> Document:
    """Build the document of all rankings, with links to reports relative to ``out``."""
    entries = [entry for ranking in ranked for entry in ranking.entries]
    comparable = [entry for ranking in ranked for entry in ranking.comparable]
    return {
        "verdicts": [
            {**_category(ranking.entries[0]), "verdict": verdict(ranking)} for ranking in ranked
        ],
        "results": as_rows(entries),
        "pairs": [
            {**_category(ranking.entries[0]), **pair_row(comparison)}
            for ranking in ranked
            for comparison in chain(*ranking.pairs)
        ],
        "runs": [row for entry in entries for row in _runs(entry, out)],
        "total": {
            "runs": sum(len(entry.samples_by_run) for entry in entries),
            "samples": sum(int(entry.results.metrics["n_samples"] or 0) for entry in entries),
            "tokens": sum(entry.tokens or 0 for entry in comparable),
            "dollars": _sum(entry.dollars for entry in comparable),
            "spent_dollars": _sum(run.cost.spent for entry in comparable for run in entry.runs),
            "seconds": sum(entry.seconds or 0.0 for entry in comparable),
        },
    }


def _sum(amounts: Iterable[float | None]) -> float | None:
    """Return the sum, or None if an amount is unknown or there are none."""
    every = list(amounts)
    known = [amount for amount in every if amount is not None]
    return sum(known) if known and len(known) == len(every) else None


def _category(entry: Entry) -> Row:
    eval_, rules, selection, pool = entry.category
    return {"eval": eval_, "rules": rules, "selection": selection, "pool": pool}


def as_rows(entries: Sequence[Entry]) -> list[Row]:
    """Return one row per model: every metric with its 95% interval and its error over seeds."""
    diagnosed = any(entry.is_diagnosed for entry in entries)
    names = (*METRICS, *(OF_DIAGNOSIS if diagnosed else ()))
    return [_row(entry, names) for entry in entries]


def _row(entry: Entry, names: Sequence[str]) -> Row:
    results = entry.results
    row: Row = {
        "model": entry.model,
        "label": entry.label,
        "eval": entry.eval,
        "rules": entry.change.key,
        "reasoning_effort": entry.effort,
        "selection": entry.selection,
        "pool": entry.pool,
        "runs": len(entry.samples_by_run),
        "samples": results.metrics["n_samples"],
    }
    for name in names:
        interval = results.intervals.get(name)
        row[name] = results.metrics.get(name)
        row[f"{name}_low"] = interval.low if interval else None
        row[f"{name}_high"] = interval.high if interval else None
        row[f"{name}_standard_error_over_seeds"] = entry.error_over_seeds(name)
    row |= {name: results.metrics.get(name) for name in UNUSABLE.values()}
    standard, changed = (
        entry.thinking_tokens(condition) for condition in (STANDARD_CONDITION, CHANGED_CONDITION)
    )
    row["standard_thinking_tokens"], row["changed_thinking_tokens"] = standard, changed
    difference = None if standard is None or changed is None else changed - standard
    row["thinking_tokens_difference"] = difference
    for name in (UPTAKE, IMPACT, *(name for name in names if name in OF_DIAGNOSIS)):
        bounds = results.bounds.get(name)
        row[f"{name}_bounds_low"] = bounds.low if bounds else None
        row[f"{name}_bounds_high"] = bounds.high if bounds else None
    counts = changed_outcomes(entry)
    row |= {f"changed_{outcome}": counts.get(outcome) for outcome in OUTCOMES}
    row["tokens"] = entry.tokens
    row["dollars"] = entry.dollars
    row["seconds"] = entry.seconds
    if OF_DIAGNOSIS[0] in names:
        row["placebo_moved"] = placebo_moved(results)
    return row | {"suspect": entry.is_suspect, "notes": list(entry.notes)}


def pair_row(comparison: Comparison) -> Row:
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
                "models": [comparison.second.label, comparison.first.label],
                "measure": comparison.measure.name,
                "samples": comparison.n_samples,
                "difference": comparison.difference,
                "low": comparison.interval.low if comparison.interval else None,
                "high": comparison.interval.high if comparison.interval else None,
                "p": comparison.corrected_p,
                "p_uncorrected": comparison.p,
                "verdict": comparison.verdict,
            }
            for comparison in chain(*ranking.pairs)
        ],
    }


def _runs(entry: Entry, out: Path) -> Iterator[Row]:
    """Yield a row for each run; record files of the original have none."""
    for run in entry.runs:
        yield {"label": entry.label, **_category(entry), **_run_row(run, out)}


def _run_row(run: Run, out: Path) -> Row:
    return {
        "model": run.model,
        "version": run.version,
        "endpoint": run.endpoint,
        "seed": run.plan.settings.seed,
        "started_at": run.started_at,
        "samples": len(run.answered),
        "dataset": run.dataset.provenance,
        "settings": settings_text(run),
        "versions": ", ".join(f"{name} {version}" for name, version in run.versions.items()),
        "tokens": int(run.results.metrics["usage_total_tokens"] or 0),
        "dollars": run.cost.measuring,
        "dataset_dollars": run.cost.dataset,
        "spent_dollars": run.cost.spent,
        "seconds": run.seconds,
        "page": _report_link(run, out),
    }


def settings_text(run: Run) -> str:
    """Return all settings of a run except the seed, as text."""
    others = [
        f"{title.lower()} {format_setting(value)}"
        for title, value in named_fields(run.plan.settings)
        if title != "Seed" and value not in (None, "")
    ]
    fixed = [f"wording {run.plan.wording}", f"reading {run.plan.reading}"]
    return "; ".join([*fixed, *others, f"protocol {run.protocol}"])


def _report_link(run: Run, out: Path) -> str | None:
    """Return the relative link to the report of a run, or None if it has none."""
    page = run.folder / PAGE_NAME if run.folder else None
    if not page or not page.exists():
        return None
    return quote(Path(os.path.relpath(page, out)).as_posix())


def as_csv(rows: Sequence[Row]) -> str:
    """Format rows as CSV."""
    text = StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Value) -> str:
    if isinstance(value, list):
        return " | ".join(value)
    return f"{value:.6f}" if isinstance(value, float) else "" if value is None else str(value)
