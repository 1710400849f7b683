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
    """What all runs took together.

    Attributes:
        tokens: of all questions and answers behind the samples, and ``dollars`` what these cost.
        spent_dollars: what the runs themselves spent, on finding positions as well.
    """

    runs: int
    samples: int
    tokens: int
    dollars: float | None
    spent_dollars: float | None
    seconds: float


class Document(TypedDict):
    """The parts, each a table.

    Attributes:
        verdicts: one for each ranking.
        results: one for each model at one effort, those of a ranking together, the best first.
        pairs: every pair of a ranking in every measure that is compared.
        runs: every run, and how it was made.
        total: what all runs took together.
    """

    verdicts: list[Row]
    results: list[Row]
    pairs: list[Row]
    runs: list[Row]
    total: Total


def document(ranked: Sequence[Ranking], out: Path) -> Document:
    """All of it, for a folder that the links to pages lead from."""
    standings = [standing for ranking in ranked for standing in ranking.standings]
    contenders = [contender for ranking in ranked for contender in ranking.contenders]
    return {
        "verdicts": [
            {**_place(ranking.standings[0]), "verdict": verdict(ranking)} for ranking in ranked
        ],
        "results": as_rows(standings),
        "pairs": [
            {**_place(ranking.standings[0]), **pair_row(comparison)}
            for ranking in ranked
            for comparison in chain(*ranking.pairs)
        ],
        "runs": [row for standing in standings for row in _runs(standing, out)],
        "total": {
            "runs": sum(len(standing.runs) for standing in standings),
            "samples": sum(int(each.results.metrics["n_samples"] or 0) for each in standings),
            "tokens": sum(contender.tokens for contender in contenders),
            "dollars": _sum(contender.dollars for contender in contenders),
            "spent_dollars": _sum(run.cost.spent for each in contenders for run in each.runs),
            "seconds": sum(contender.seconds for contender in contenders),
        },
    }


def _sum(amounts: Iterable[float | None]) -> float | None:
    """All together; None where one is unknown, or there is none."""
    found = list(amounts)
    known = [amount for amount in found if amount is not None]
    return sum(known) if known and len(known) == len(found) else None


def _place(standing: Standing) -> Row:
    eval_, rules, selection, pool = standing.place
    return {"eval": eval_, "rules": rules, "selection": selection, "pool": pool}


def as_rows(found: Sequence[Standing]) -> list[Row]:
    """Plain values by name, every metric with its 95 % interval and its error over seeds."""
    diagnosed = any(standing.is_diagnosed for standing in found)
    names = (*METRICS, *(OF_DIAGNOSIS if diagnosed else ()))
    return [_row(standing, names) for standing in found]


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
    before, after = (
        standing.thinking_tokens(condition) for condition in (STANDARD_CONDITION, CHANGED_CONDITION)
    )
    row["standard_thinking_tokens"], row["changed_thinking_tokens"] = before, after
    longer = None if before is None or after is None else after - before
    row["thinking_tokens_difference"] = longer
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
    """The second stands higher in the ranking: the difference is its value minus the other's."""
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
    """What ``cdta compare --json`` prints: the models, the best first, and every pair of them.

    The first model of a pair ranks higher; the difference is its value minus the other's.
    """
    return {
        "ranking": [standing.label for standing in ranking.standings],
        "pairs": [
            {
                "models": [each.second.label, each.first.label],
                "measure": each.measure.name,
                "samples": each.n_samples,
                "difference": each.difference,
                "low": each.interval.low if each.interval else None,
                "high": each.interval.high if each.interval else None,
                "p": each.corrected_p,
                "p_uncorrected": each.p,
                "verdict": each.verdict,
            }
            for each in chain(*ranking.pairs)
        ],
    }


def _runs(standing: Standing, out: Path) -> Iterator[Row]:
    """How its runs were made; nothing is known of the original's."""
    if standing.contender:
        for run in standing.contender.runs:
            yield {"label": standing.label, **_place(standing), **_made(run, out)}


def _made(run: Run, out: Path) -> Row:
    return {
        "model": run.model,
        "version": run.version,
        "endpoint": run.endpoint,
        "seed": run.plan.settings.seed,
        "started_at": run.started_at,
        "samples": len(run.answered),
        "dataset": run.dataset.provenance,
        "settings": settings_in_words(run),
        "versions": ", ".join(f"{name} {version}" for name, version in run.versions.items()),
        "tokens": int(run.results.metrics["usage_total_tokens"] or 0),
        "dollars": run.cost.measuring,
        "dataset_dollars": run.cost.dataset,
        "spent_dollars": run.cost.spent,
        "seconds": run.seconds,
        "page": _page(run, out),
    }


def settings_in_words(run: Run) -> str:
    """All that was asked for but the seed."""
    told = [
        f"{title.lower()} {format_setting(value)}"
        for title, value in named_fields(run.plan.settings)
        if title != "Seed" and value not in (None, "")
    ]
    fixed = [f"wording {run.plan.wording}", f"reading {run.plan.reading}"]
    return "; ".join([*fixed, *told, f"protocol {run.protocol}"])


def _page(run: Run, out: Path) -> str | None:
    """The link to its page, if it has one."""
    page = run.folder / PAGE_NAME if run.folder else None
    if not page or not page.exists():
        return None
    return quote(Path(os.path.relpath(page, out)).as_posix())


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as a file for other programs."""
    text = StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Value) -> str:
    if isinstance(value, list):
        return " | ".join(value)
    return f"{value:.6f}" if isinstance(value, float) else "" if value is None else str(value)
