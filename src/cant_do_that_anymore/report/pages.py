"""HTML reports of experiments and comparisons, with their tables and plots."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..comparison.entries import Entry
from ..comparison.leaderboard import Ranking, advice, heading
from ..files import atomic_write_text, file_errors, safe_name
from ..formatting import pluralize
from ..providers.base import EFFORTS
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION
from .formats.csv import as_csv
from .html import render
from .plots import Chart, curve_chart, has_curve, outcome_chart, save_chart, uptake_chart
from .rows import (
    UPTAKE_COLUMN,
    Row,
    build_document,
    columns_of,
    diagnosis_cells,
    group_notes,
    wording_cells,
    words_of,
)
from .run_page import example_of
from .svg import axis_over
from .tables import CHANCE

INDEX, TABLE, DOCUMENT = "index.html", "results.csv", "results.json"


def experiment_page(ranked: Sequence[Ranking], document: Row) -> str:
    """Render the report of an experiment."""
    return render("experiment.html", **_parts(ranked, document))


def comparison_page(ranking: Ranking, out: Path) -> str:
    """Render a comparison: verdict, pairs, and each model; links are relative to ``out``."""
    return render("comparison.html", **_parts([ranking], build_document([ranking], out)))


def _parts(ranked: Sequence[Ranking], document: Row) -> dict[str, object]:
    """Return the template variables of both kinds of reports."""
    entries, results = list(chain(*(r.entries for r in ranked))), document["results"]
    days = sorted({row["started_at"][:10] for row in results})
    first, words = entries[0], words_of(entries)
    n_models = len({json.dumps(entry.run.identity, default=str) for entry in entries})
    rows = iter(results)
    return {
        "document": document,
        "boards": [_board(ranking, rows) for ranking in ranked],
        "columns": columns_of(entries),
        "uptake": UPTAKE_COLUMN,
        "uptake_axis": axis_over(entry.results.uptake for entry in entries),
        "lead_axis": axis_over([p.difference for r in ranked for p in r.pairs], " points"),
        "diagnosed": diagnosis_cells(entries),
        "wordings": wording_cells(entries),
        "words": words,
        "rules": _rules(entries),
        "definitions": first.change.its_habit.definitions(),
        "standard_prompt": _prompt(first, STANDARD_CONDITION),
        "size": f"{pluralize(n_models, 'model')}, {pluralize(len(entries), 'run')}",
        "outcomes": [o for o in OUTCOMES if any(_counts(entry).get(o) for entry in entries)],
        "counts": _counts,
        "efforts": (*EFFORTS, None),
        "chance": CHANCE,
        "dates": " to ".join(dict.fromkeys((days[0], days[-1]))),
        "in_common": {
            title: _labels_by_value(results, name)
            for title, name in (
                ("Settings", "settings"),
                (words.items.capitalize(), "dataset"),
                ("Versions", "versions"),
            )
        },
    }


def _board(ranking: Ranking, rows: Iterator[Row]) -> dict[str, object]:
    """Return one leaderboard, with the next rows of the document."""
    entries = ranking.entries
    return {
        "title": ranking.title,
        "verdict": ranking.verdict,
        "entries": [(entry, next(rows)["report"]) for entry in entries],
        "unranked": ranking.why_unranked,
        "pairs": ranking.pairs,
        "compared": f"{heading(entries)}. {advice(entries)}".strip() if ranking.pairs else "",
        "notes": group_notes(entries),
    }


def _counts(entry: Entry) -> dict[str, int]:
    return {name: n for name, n in entry.results.outcomes[CHANGED_CONDITION].items() if n}


def _rules(entries: Sequence[Entry]) -> list[Row]:
    """Return what the report shows of each rule change: statement, diagram, prompt."""
    rules: dict[str, Row] = {}
    for first in entries:
        rules[first.change.key] = rules.get(first.change.key) or {
            "title": first.change.title,
            "statement": first.change.statement,
            "example": example_of(first.run),
            "prompt": _prompt(first, CHANGED_CONDITION),
        }
    return list(rules.values())


def _prompt(entry: Entry, condition: str) -> str:
    """Return the prompt of a condition, in the first wording."""
    return next(c.prompts[0].text for c in entry.plan.conditions if c.name == condition)


def _labels_by_value(results: Sequence[Row], name: str) -> dict[str, list[str]]:
    """Return the models with each value, or the rules if there is only one model."""
    who = "label" if len({row["label"] for row in results}) > 1 else "rules"
    labels: dict[str, dict[str, None]] = {}
    for row in results:
        labels.setdefault(row[name], {})[row[who]] = None
    return {value: list(same) for value, same in labels.items()}


def write(ranked: Sequence[Ranking], document: Row, out: Path) -> list[Path]:
    """Write tables, plots and report into a folder, and return the files in that order.

    Raises:
        UserError: if they cannot be written.
    """
    drawn = charts(ranked).items()
    plots = [file for stem, plot in drawn for file in save_chart(*plot, out / stem)]
    texts = {
        TABLE: as_csv(document["results"]),
        DOCUMENT: json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        INDEX: experiment_page(ranked, document),
    }
    with file_errors("write to", out):
        for name, text in texts.items():
            atomic_write_text(out / name, text)
    return [out / TABLE, out / DOCUMENT, *plots, out / INDEX]


def charts(ranked: Sequence[Ranking]) -> dict[str, tuple[Chart, Sequence[Entry]]]:
    """Return all plots with their entries, by the names of their files."""
    entries = list(chain(*(ranking.entries for ranking in ranked)))
    by_eval: dict[str, list[Entry]] = {}
    for entry in entries:
        by_eval.setdefault(entry.plan.eval, []).append(entry)
    several = {n: group for n, group in by_eval.items() if len({e.change.key for e in group}) > 1}
    by_rules = {f"rules-{name}": (uptake_chart, group) for name, group in several.items()}
    return {**by_rules, **dict(chain(*map(_charts, ranked)))}


def _charts(ranking: Ranking) -> Iterator[tuple[str, tuple[Chart, Sequence[Entry]]]]:
    """Yield the plots of one leaderboard; the curve needs a model with several efforts."""
    group, first = ranking.entries, ranking.entries[0]
    names = (first.plan.eval, first.change.key, *filter(None, (first.other_form, first.pool)))
    suffix = "-".join(map(safe_name, names))
    plots: dict[str, Chart] = {"curve": curve_chart} if has_curve(group) else {}
    for kind, chart in (plots | {"outcomes": outcome_chart, "uptake": uptake_chart}).items():
        yield f"{kind}-{suffix}", (chart, group)
