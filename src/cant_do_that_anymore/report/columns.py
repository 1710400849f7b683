"""Columns, legends and notes of leaderboards and run lists."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from ..comparison.entries import Entry
from ..comparison.leaderboard import OUTCOMES, Ranking, differences_in_plan
from ..comparison.verdict import advice, heading
from ..formatting import dollars, in_points, number
from ..metrics.diagnosis import (
    CORRECTED,
    KNOWING_EFFECT,
    KNOWLEDGE,
    OF_PLACEBO,
    PLACEBO_IMPACT,
    SPECIFIC,
    unclaimed,
)
from ..metrics.measures import FORBIDDEN, IMPACT, MEASURES, SHARES, UNUSABLE, UPTAKE
from ..providers.base import EFFORTS
from ..runs.lookup import RunSummary
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION
from .document import Document, Row, Value
from .html import interval
from .svg import Axis, axis_over, dot, scale, stack

SUSPECT_LEGEND = "(!) dropped habits may be useless or missing answers"
LEGEND = (
    "Highest rule uptake first. habit and kept: special moves under the standard and the "
    "changed rules; below them, any forbidden moves. [95% interval], all runs together. "
    "adapts: adaptation rate. no move: answers under the changed rules that name none"
)
REASONING_LEGEND = "; thinks: tokens of thoughts under the changed rules, mean"
DIAGNOSIS_LEGEND = (
    "J: knowledge of the rule, 0 = guessing, 1 = always right. knowing: habits kept where the rule "
    "is known, minus those kept elsewhere. reminder: change in answers that are not legal. "
    "placebo: effect of another change, which leaves the habit legal. corrected: the changed rules "
    "compared with the placebo. specific: the same, less what happens to habits that stay legal. "
    "The last two are left out where the placebo alone moved the habit."
)
BOUNDS_LEGEND = "; intervals allow for every reading of them."

Columns = dict[str, Callable[[Entry], str]]


def marked(entry: Entry) -> str:
    """Return the model's label, with a mark if its numbers are suspect."""
    return entry.label + (" (!)" if entry.is_suspect else "")


def group_notes(group: Sequence[Entry]) -> list[str]:
    """Return the notes of a leaderboard, each once, with the models that it is about."""
    models_by_note: dict[str, list[str]] = {}
    for entry in group:
        for note in entry.notes:
            models_by_note.setdefault(note, []).append(marked(entry))
    models = [entry for entry in group if entry.runs]
    of_all = differences_in_plan(models, but=["reasoning effort"]) if models else []
    return [
        *(f"{', '.join(names)}: {note}" for note, names in models_by_note.items()),
        *(f"all: {note}" for note in of_all),
    ]


def all_notes(models: Sequence[Entry]) -> list[str]:
    """Return the notes of all runs, and the settings that differ between models."""
    return [
        *(f"{model.label}: {note}" for model in models for note in model.notes_of_runs),
        *differences_in_plan(models),
    ]


def legend(entries: Sequence[Entry]) -> list[str]:
    """Explain the columns that are shown."""
    thinks = REASONING_LEGEND if any(map(has_reasoning, entries)) else ""
    return [
        f"{LEGEND}{thinks}.",
        *([DIAGNOSIS_LEGEND] if any(entry.is_diagnosed for entry in entries) else []),
        *([SUSPECT_LEGEND + BOUNDS_LEGEND] if any(entry.is_suspect for entry in entries) else []),
    ]


def columns(entries: Sequence[Entry]) -> Columns:
    """Return the leaderboard columns by heading; reasoning tokens only if any model has some.

    A heading and its cells may have a second line.
    """
    return {
        "runs": lambda entry: str(len(entry.samples_by_run)),
        "n": lambda entry: f"{entry.results.metrics['n_samples']:,}",
        "habit\nany": lambda entry: _special_and_forbidden(entry, STANDARD_CONDITION),
        "kept\nany": lambda entry: _special_and_forbidden(entry, CHANGED_CONDITION),
        "rule uptake": lambda entry: _value_and_interval(UPTAKE, entry),
        "impact factor": lambda entry: _value_and_interval(IMPACT, entry),
        "adapts": lambda entry: brief(entry.results.metrics.get("adaptation_rate")),
        "no\nmove": lambda entry: _percent(entry.results.metrics.get(UNUSABLE[CHANGED_CONDITION])),
        **({"thinks": _reasoning_tokens} if any(map(has_reasoning, entries)) else {}),
    }


def has_reasoning(entry: Entry) -> bool:
    """Whether the model returned reasoning tokens or was given a reasoning effort."""
    has_effort = entry.effort is not None
    return has_effort or any(
        entry.thinking_tokens(name) for name in (STANDARD_CONDITION, CHANGED_CONDITION)
    )


def _reasoning_tokens(entry: Entry) -> str:
    tokens = entry.thinking_tokens(CHANGED_CONDITION)
    return "–" if tokens is None else f"{tokens:,.0f}"


def _special_and_forbidden(entry: Entry, condition: str) -> str:
    """Format the share of special moves, and below it the share of all forbidden moves."""
    metrics = entry.results.metrics
    any_forbidden = brief(metrics.get(FORBIDDEN[condition]))
    return f"{brief(metrics[SHARES[condition]])}\n{any_forbidden}"


def _value(name: str, entry: Entry) -> str:
    """Format a metric without its interval."""
    return brief(entry.results.metrics.get(name))


def _value_and_interval(name: str, entry: Entry) -> str:
    """Format a metric, and below it its interval."""
    interval = entry.results.intervals.get(name)
    interval_text = f"\n[{brief(interval.low)}, {brief(interval.high)}]" if interval else ""
    return brief(entry.results.metrics.get(name)) + interval_text


def brief(value: float | None) -> str:
    """Format with two decimals: the table has no room for more.

    >>> brief(-0.001), brief(-0.984), brief(None)
    ('0.00', '-0.98', '–')
    """
    return "–" if value is None else f"{round(value, 2) + 0:.2f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


# Measures of a diagnosis by heading.
DIAGNOSIS_MEASURES = {
    "J": KNOWLEDGE,
    "knowing": KNOWING_EFFECT.name,
    "reminder": "reminder_effect",
    "placebo": PLACEBO_IMPACT,
    "corrected": CORRECTED.name,
    "specific": SPECIFIC.name,
}
WITH_INTERVAL = ("J", "corrected", "specific")


def _diagnosed(heading: str, entry: Entry) -> str:
    name = DIAGNOSIS_MEASURES[heading]
    if name in unclaimed(entry.results):
        return "–"
    return (_value_and_interval if heading in WITH_INTERVAL else _value)(name, entry)


DIAGNOSIS_COLUMNS: Columns = {
    heading: partial(_diagnosed, heading) for heading in DIAGNOSIS_MEASURES
}
DIAGNOSIS_HEADING = "why the habit stays"

# The verdict on a pair, as a table shows it.
VERDICTS = {
    "different": "significant",
    "equivalent": "equivalent",
    "inconclusive": "inconclusive",
}

NumberedRow = tuple[int, Row]  # with its index in the document


@dataclass(frozen=True)
class Board:
    """One leaderboard of a report.

    Attributes:
        title: the eval and the rules.
        number: the index of its verdict in the document.
        labels: the models that are compared, the best first.
        rows: one row for each model at one effort.
        pairs: the comparisons of each pair, one for each measure.
        compared_on: the positions on which the pairs are compared.
        advice: a fairer set of positions, if there is one.
        notes: notes on the runs.
        plots: the plots of the leaderboard, as SVG.
    """

    title: str
    number: int
    labels: Sequence[str]
    rows: Sequence[NumberedRow]
    pairs: Sequence[Sequence[NumberedRow]]
    compared_on: str
    advice: str
    notes: Sequence[str]
    plots: Sequence[Markup] = ()

    @property
    def leads(self) -> Mapping[tuple[str, str], NumberedRow]:
        """The difference in rule uptake of each pair, by the labels of the higher and the lower."""
        return {
            (str(row["model"]), str(row["other"])): (number, row)
            for pair in self.pairs
            for number, row in pair
            if row["measure"] == UPTAKE
        }


def boards(
    ranked: Sequence[Ranking],
    document: Document,
    plots: Sequence[Sequence[Markup]] = (),
) -> list[Board]:
    """Return a leaderboard for each ranking, with its plots if there are any."""
    rows, pairs = enumerate(document["results"]), enumerate(document["pairs"])
    return [
        Board(
            title=ranking.title,
            number=number,
            labels=[entry.label for entry in ranking.comparable],
            rows=[next(rows) for _ in ranking.entries],
            pairs=[[next(pairs) for _ in pair] for pair in ranking.pairs],
            compared_on=heading(ranking.comparable) if ranking.pairs else "",
            advice=advice(ranking.comparable) if ranking.pairs else "",
            notes=group_notes(ranking.entries),
            plots=plots[number] if plots else (),
        )
        for number, ranking in enumerate(ranked)
    ]


def shared_parts(ranked: Sequence[Ranking], document: Document) -> dict[str, object]:
    """Return the template variables that experiment and comparison reports share."""
    results, runs = document["results"], document["runs"]
    entries = [entry for ranking in ranked for entry in ranking.entries]
    return {
        "document": document,
        "axes": {name: _axis(results, name) for name in (UPTAKE, IMPACT)},
        "difference_axis": _axis_of_differences(document["pairs"]),
        "measures": MEASURES,
        "impact": IMPACT,
        "uptake": UPTAKE,
        "outcomes": OUTCOMES,
        "counts_in": lambda row: {outcome: row[f"changed_{outcome}"] for outcome in OUTCOMES},
        "links_of": lambda row: [run["page"] for run in runs if run["page"] and _is_of(row, run)],
        "efforts": (*EFFORTS, None),
        "with_effort": any(row["reasoning_effort"] for row in results),
        "with_thoughts": any(row["changed_thinking_tokens"] for row in results),
        "diagnosed": DIAGNOSIS_MEASURES,
        "with_interval": WITH_INTERVAL,
        "of_placebo": OF_PLACEBO,
        "why": DIAGNOSIS_HEADING,
        "verdicts": VERDICTS,
        "legend": legend(entries)[1:],
        "dates": " to ".join(_first_and_last(str(run["started_at"])[:10] for run in runs))
        or "unknown",
        "in_common": {
            title: _labels_by_value(runs, name) for title, name in _IN_COMMON.items() if runs
        },
        "brief": brief,
        "in_points": in_points,
        "dot": dot,
        "scale": scale,
        "stack": stack,
    }


# Facts about the runs by title; the report shows which models had which value.
_IN_COMMON = {"Settings": "settings", "Positions": "dataset", "Versions": "versions"}


def _is_of(row: Row, run: Row) -> bool:
    return all(run[name] == row[name] for name in ("label", "eval", "rules", "selection", "pool"))


def _first_and_last(days: Iterable[str]) -> list[str]:
    unique = sorted(set(days))
    return [*unique[:1], *unique[1:][-1:]]


def _labels_by_value(runs: Sequence[Row], name: str) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for run in runs:
        same = labels.setdefault(str(run[name]), [])
        if run["label"] not in same:
            same.append(str(run["label"]))
    return labels


def _axis(rows: Sequence[Row], name: str) -> Axis:
    return _axis_over(row[key] for row in rows for key in (name, f"{name}_low", f"{name}_high"))


def _axis_of_differences(pairs: Sequence[Row]) -> Axis:
    names = ("difference", "difference_low", "difference_high")
    values = (pair[name] for pair in pairs if pair["measure"] == UPTAKE for name in names)
    return _axis_over(values, factor=100, unit="points")


def _axis_over(values: Iterable[Value], factor: float = 1, unit: str = "") -> Axis:
    numbers = (value for value in values if isinstance(value, int | float))
    return axis_over(numbers, factor, unit)


@dataclass(frozen=True)
class Column:
    """A column of the list of runs.

    Attributes:
        text: formats the value of a run.
        unit: template for a number where there is no heading.
    """

    text: Callable[[RunSummary], str]
    unit: str = ""

    @property
    def is_number(self) -> bool:
        """Whether the column is right-aligned."""
        return bool(self.unit)

    def with_unit(self, run: RunSummary) -> str:
        """Format the value for a line without headings."""
        return self.unit.format(self.text(run)) or self.text(run)


RUN_COLUMNS = {
    "date": Column(lambda run: run.started_at[:10]),
    "model": Column(lambda run: f"{run.model} ({run.effort})" if run.effort else run.model),
    "rules": Column(lambda run: run.rules),
    "eval": Column(lambda run: run.eval),
    "n": Column(lambda run: f"{run.samples:,}", unit="n {}"),
    "impact factor": Column(lambda run: f"{number(run.impact)} {interval(run.interval)}".strip()),
    "notes": Column(lambda run: str(len(run.notes)), unit="notes {}"),
    "cost": Column(lambda run: "–" if run.cost is None else dollars(run.cost), unit="cost {}"),
}
