"""Experiments and comparisons as plain data: ``results.json`` and ``results.csv``."""

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

from ..comparison.entries import METRICS, OF_DIAGNOSIS, Standing
from ..comparison.leaderboard import OUTCOMES, Ranking, changed_outcomes
from ..comparison.pairwise import Comparison
from ..comparison.verdict import verdict
from ..formatting import Number, format_setting, named_fields
from ..metrics.diagnosis import placebo_moved
from ..metrics.measures import IMPACT, UNUSABLE, UPTAKE
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION
from .html import PAGE_NAME

Value = str | bool | Number | list[str]
Row = dict[str, Value]


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
    standings = [standing for ranking in ranked for standing in ranking.standings]
    contenders = [contender for ranking in ranked for contender in ranking.contenders]
    return {
        "verdicts": [
            {**_category(ranking.standings[0]), "verdict": verdict(ranking)} for ranking in ranked
        ],
        "results": as_rows(standings),
        "pairs": [
            {**_category(ranking.standings[0]), **pair_row(comparison)}
            for ranking in ranked
            for comparison in chain(*ranking.pairs)
        ],
        "runs": [row for standing in standings for row in _runs(standing, out)],
        "total": {
            "runs": sum(len(standing.runs) for standing in standings),
            "samples": sum(
                int(standing.results.metrics["n_samples"] or 0) for standing in standings
            ),
            "tokens": sum(contender.tokens for contender in contenders),
            "dollars": _sum(contender.dollars for contender in contenders),
            "spent_dollars": _sum(
                run.cost.spent for contender in contenders for run in contender.runs
            ),
            "seconds": sum(contender.seconds for contender in contenders),
        },
    }


def _sum(amounts: Iterable[float | None]) -> float | None:
    """Return the sum, or None if an amount is unknown or there are none."""
    every = list(amounts)
    known = [amount for amount in every if amount is not None]
    return sum(known) if known and len(known) == len(every) else None


def _category(standing: Standing) -> Row:
    eval_, rules, selection, pool = standing.place
    return {"eval": eval_, "rules": rules, "selection": selection, "pool": pool}


def as_rows(standings: Sequence[Standing]) -> list[Row]:
    """Return one row per model: every metric with its 95% interval and its error over seeds."""
    diagnosed = any(standing.is_diagnosed for standing in standings)
    names = (*METRICS, *(OF_DIAGNOSIS if diagnosed else ()))
    return [_row(standing, names) for standing in standings]


def _row(standing: Standing, names: Sequence[str]) -> Row:
    results = standing.results
    row: Row = {
        "model": standing.model,
        "label": standing.label,
        "eval": standing.eval,
        "rules": standing.change.key,
        "reasoning_effort": standing.effort,
        "selection": standing.selection,
        "pool": standing.pool,
        "runs": len(standing.runs),
        "samples": results.metrics["n_samples"],
    }
    for name in names:
        interval = results.intervals.get(name)
        row[name] = results.metrics.get(name)
        row[f"{name}_low"] = interval.low if interval else None
        row[f"{name}_high"] = interval.high if interval else None
        row[f"{name}_standard_error_over_seeds"] = standing.error_over_seeds(name)
    row |= {name: results.metrics.get(name) for name in UNUSABLE.values()}
    standard, changed = (
        standing.thinking_tokens(condition) for condition in (STANDARD_CONDITION, CHANGED_CONDITION)
    )
    row["standard_thinking_tokens"], row["changed_thinking_tokens"] = standard, changed
    difference = None if standard is None or changed is None else changed - standard
    row["thinking_tokens_difference"] = difference
    for name in (UPTAKE, IMPACT, *(name for name in names if name in OF_DIAGNOSIS)):
        bounds = results.bounds.get(name)
        row[f"{name}_bounds_low"] = bounds.low if bounds else None
        row[f"{name}_bounds_high"] = bounds.high if bounds else None
    counts = changed_outcomes(standing)
    row |= {f"changed_{outcome}": counts.get(outcome) for outcome in OUTCOMES}
    contender = standing.contender
    row["tokens"] = contender.tokens if contender else None
    row["dollars"] = contender.dollars if contender else None
    row["seconds"] = contender.seconds if contender else None
    if OF_DIAGNOSIS[0] in names:
        row["placebo_moved"] = placebo_moved(results)
    return row | {"suspect": standing.is_suspect, "notes": list(standing.notes)}


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
        "ranking": [standing.label for standing in ranking.standings],
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


def _runs(standing: Standing, out: Path) -> Iterator[Row]:
    """Yield a row for each run; record files of the original have none."""
    if standing.contender:
        for run in standing.contender.runs:
            yield {"label": standing.label, **_category(standing), **_run_row(run, out)}


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
