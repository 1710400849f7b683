"""HTML reports of experiments and comparisons, with their tables and plots."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from xml.etree import ElementTree

from markupsafe import Markup

from ..comparison.entries import Entry
from ..comparison.leaderboard import OUTCOME_GROUPS, Ranking
from ..comparison.verdict import advice, heading
from ..files import atomic_write_text, file_errors, safe_name
from ..formatting import pluralize
from ..metrics.diagnosis import KNOWLEDGE
from ..metrics.measures import MEASURES, UNUSABLE_SHARE, UPTAKE, USUAL_SHARE
from ..providers.base import EFFORTS
from ..svg_tags import move_styles
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION
from .columns import (
    DIAGNOSIS_HEADING,
    VERDICTS,
    Row,
    all_notes,
    columns_in,
    group_notes,
    legend,
    words_of,
)
from .document import CATEGORY, Document, as_csv, build_document
from .html import render
from .plots import (
    COLORS,
    GRID,
    INK,
    Chart,
    curve_chart,
    has_curve,
    outcome_chart,
    save_chart,
    svg_of,
    value_chart,
)
from .run_page import example_of
from .svg import Axis, axis_over

# CSS variables for the colors of the plots, so that they follow light and dark mode.
_PALETTE = dict(
    zip(
        COLORS,
        ("standard", "changed", "adapted", "illegal", "usual", "legal", "ink"),
        strict=True,
    )
)
_PALETTE |= {"#ffffff": "paper", "#000000": "ink", INK: "ink", GRID: "rule"}


# Titles of the plots that the report shows; the folder has all.
CAPTIONS = {
    "rules": "Headline measures by rules",
    "curve": "Reasoning tokens and rule uptake",
}


def embed_svg(svg: str, title: str, prefix: str, style: str) -> Markup:
    """Prepare an SVG plot for a report; the prefix keeps its ids apart from other plots."""
    plot = ElementTree.fromstring(svg)
    for parent in list(plot.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    move_styles(plot)
    for element in plot.iter():
        element.tag = _strip_namespace(element.tag)
        element.attrib = {_strip_namespace(key): value for key, value in element.attrib.items()}
    # Text has no color of its own.
    plot.attrib |= {"fill": "var(--ink)", "stroke-linejoin": "round"}
    plot.attrib |= {"class": f"plot on-{style}", "role": "img", "aria-label": title}
    text = ElementTree.tostring(plot, "unicode")
    for color, name in _PALETTE.items():
        text = text.replace(f'"{color}"', f'"var(--{name})"')
    return Markup(re.sub(r'( id="|href="#|"url\(#)', rf"\1{prefix}-", text))


def _strip_namespace(name: str) -> str:
    return name.rpartition("}")[2]


INDEX = "index.html"


def experiment_page(ranked: Sequence[Ranking], document: Document) -> str:
    """Render the report of an experiment."""
    entries = list(chain(*(ranking.entries for ranking in ranked)))
    return render(
        "experiment.html",
        of_rules=[_embed("rules", value_chart, group) for _, group in _groups_by_rules(entries)],
        plots=[
            [
                _embed(f"{kind}-{number}", figure, ranking.entries)
                for kind, figure in _figures(ranking.entries).items()
                if kind in CAPTIONS
            ]
            for number, ranking in enumerate(ranked)
        ],
        size=_size(entries),
        **_shared_parts(ranked, document),
    )


def _shared_parts(ranked: Sequence[Ranking], document: Document) -> dict[str, object]:
    """Return the template variables that experiment and comparison reports share."""
    results, runs = document["results"], document["runs"]
    columns = columns_in("page", results)
    words = words_of([ranking.entries[0] for ranking in ranked])
    rows, pairs = enumerate(results), enumerate(document["pairs"])
    days = sorted({run["started_at"][:10] for run in runs})
    return {
        "document": document,
        "rules": _rules(ranked),
        "standard_prompt": _prompt(ranked[0].entries[0], STANDARD_CONDITION),
        "n_samples": max(row["samples"] for row in results),
        "definitions": ranked[0].entries[0].change.its_habit.definitions(),
        "words": words,
        "shares": USUAL_SHARE,
        "any_bounds": any(row[f"{UPTAKE}_bounds_low"] is not None for row in results),
        "explained": any(row.get(KNOWLEDGE) is not None for row in results),
        "boards": [_board(ranking, rows, pairs) for ranking in ranked],
        "columns": columns,
        "of_diagnosis": columns_in("page", results, diagnosis=True),
        "why": DIAGNOSIS_HEADING,
        "axes": {column.key: _axis(results, column.key) for column in columns if column.interval},
        "difference_axis": _axis(
            [pair for pair in document["pairs"] if pair["measure"] == UPTAKE],
            "difference",
            factor=100,
            unit="points",
        ),
        "measures": MEASURES,
        "uptake": UPTAKE,
        "unusable": UNUSABLE_SHARE[CHANGED_CONDITION],
        "outcomes": [
            name for name in OUTCOME_GROUPS if any(row[f"changed_{name}"] for row in results)
        ],
        "counts_in": lambda row: {outcome: row[f"changed_{outcome}"] for outcome in OUTCOME_GROUPS},
        "links_of": lambda row: [run["page"] for run in runs if run["page"] and _is_of(row, run)],
        "efforts": (*EFFORTS, None),
        "with_effort": any(column.key == "reasoning_effort" for column in columns),
        "verdicts": VERDICTS,
        "legend": legend(results, words)[1:],
        "dates": " to ".join(dict.fromkeys((days[0], days[-1]))),
        "in_common": {
            "Settings": _labels_by_value(runs, "settings"),
            words.items.capitalize(): _labels_by_value(runs, "dataset"),
            "Versions": _labels_by_value(runs, "versions"),
        },
    }


def _board(
    ranking: Ranking, rows: Iterator[tuple[int, Row]], pairs: Iterator[tuple[int, Row]]
) -> dict[str, object]:
    """Return one leaderboard, with the next rows and pairs of the document and their indexes."""
    entries, own_pairs = ranking.entries, list(islice(pairs, len(ranking.comparisons)))
    return {
        "title": ranking.title,
        "labels": [entry.label for entry in entries],
        "rows": list(islice(rows, len(entries))),
        "pairs": own_pairs,
        "leads": {
            (row["model"], row["other"]): (index, row)
            for index, row in own_pairs
            if row["measure"] == UPTAKE
        },
        "compared": f"{heading(entries)}. {advice(entries)}".strip() if own_pairs else "",
        "notes": group_notes(entries),
    }


def _rules(ranked: Sequence[Ranking]) -> list[Row]:
    """Return what the report shows of each rule change: statement, diagram, prompt."""
    rules: dict[str, Row] = {}
    for first in (ranking.entries[0] for ranking in ranked):
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


def _is_of(row: Row, run: Row) -> bool:
    return all(run[name] == row[name] for name in ("label", *CATEGORY))


def _labels_by_value(runs: Sequence[Row], name: str) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for run in runs:
        same = labels.setdefault(run[name], [])
        if run["label"] not in same:
            same.append(run["label"])
    return labels


def _axis(rows: Sequence[Row], key: str, factor: float = 1, unit: str = "") -> Axis:
    """Return an axis that covers the values of a column and their intervals."""
    names = (key, f"{key}_low", f"{key}_high")
    return axis_over((row[name] for row in rows for name in names), factor, unit)


def _embed(name: str, chart: Chart, entries: Sequence[Entry]) -> Markup:
    """Draw a plot for wide screens and for narrow ones; the style sheet shows one of them."""
    return Markup().join(
        embed_svg(
            svg_of(chart, entries, narrow=width == "narrow"),
            CAPTIONS[name.partition("-")[0]],
            f"{name}-{width}",
            width,
        )
        for width in ("wide", "narrow")
    )


def _size(entries: Sequence[Entry]) -> str:
    """Return the numbers of models, efforts and runs, as text."""
    parts = [
        pluralize(len({json.dumps(entry.run.identity, default=str) for entry in entries}), "model")
    ]
    efforts = len({entry.effort for entry in entries})
    if efforts > 1:
        parts.append(pluralize(efforts, "effort"))
    parts.append(pluralize(len(entries), "run"))
    return ", ".join(parts)


def comparison_page(ranking: Ranking, out: Path) -> str:
    """Render a comparison: verdict, pairs, and each model; links are relative to ``out``."""
    document = build_document([ranking], out)
    return render(
        "comparison.html", remarks=all_notes(ranking.entries), **_shared_parts([ranking], document)
    )


TABLE, DOCUMENT = "results.csv", "results.json"


def write(ranked: Sequence[Ranking], document: Document, out: Path) -> list[Path]:
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
    by_rules = {f"rules-{n}": (value_chart, group) for n, group in _groups_by_rules(entries)}
    return {**by_rules, **dict(chain(*map(_charts, ranked)))}


def _groups_by_rules(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """Return the entries of each eval that was measured under several rules."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.eval, []).append(entry)
    return [(n, group) for n, group in groups.items() if len({e.change.key for e in group}) > 1]


def _figures(group: Sequence[Entry]) -> dict[str, Chart]:
    """Return the plots of one leaderboard; the curve needs a model with several efforts."""
    curve = {"curve": curve_chart} if has_curve(group) else {}
    return curve | {"bars": outcome_chart, "headline": value_chart}


def _charts(ranking: Ranking) -> Iterator[tuple[str, tuple[Chart, Sequence[Entry]]]]:
    group = ranking.entries
    rules = group[0].change.key
    if group[0].other_form:
        rules += f"-{safe_name(group[0].form)}"
    if group[0].pool:
        rules += f"-{safe_name(group[0].pool)}"
    for kind, figure in _figures(group).items():
        yield f"{kind}-{group[0].eval}-{rules}", (figure, group)
