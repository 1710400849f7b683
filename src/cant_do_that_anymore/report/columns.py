"""Columns of leaderboards and run lists, each declared once, with legends and notes.

A row of a leaderboard is an object of ``results.json``. Its keys, the columns of ``results.csv``,
and the columns in the terminal, in Markdown and on the page all follow from `leaderboard_columns`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import attrgetter, methodcaller
from typing import Any, Literal, NamedTuple, get_args

from ..comparison.entries import Entry
from ..comparison.leaderboard import OUTCOME_GROUPS, changed_outcomes, differences_in_plan
from ..formatting import brief, dollars, duration, number, percentage, rounded
from ..habits.words import ANY_HABIT, Words
from ..metrics.diagnosis import (
    CONTRASTS,
    DIAGNOSIS,
    KNOWING_EFFECT,
    KNOWLEDGE,
    PLACEBO_CORRECTED,
    PLACEBO_IMPACT,
    placebo_moved,
)
from ..metrics.measures import (
    AMOUNTS,
    FORBIDDEN_SHARE,
    IMPACT,
    MEASURES,
    UNUSABLE_SHARE,
    UPTAKE,
    USUAL_SHARE,
    Amount,
)
from ..metrics.stats.intervals import ends_of
from ..runs.lookup import RunSummary
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION
from .html import interval
from .sentences import shares_text

Row = dict[str, Any]
View = Literal["terminal", "markdown", "page"]


@dataclass(frozen=True)
class Column:
    """A column of a leaderboard. JSON and CSV have all of them.

    Attributes:
        key: the key of its value in a row. A measure has its 95% interval beside it.
        title: the heading; a line break is for the terminal alone.
        value: computes the value; without it, the column is the metric of that name.
        text: formats the value, and ``short`` does so in the terminal.
        interval: whether the interval is shown with the value.
        below: the key of a number that the terminal shows below the value.
        shown: the views that show it, and its place there: lower numbers come first.
        page_title: the heading on the page, if it is another.
        only_if: whether a row needs the column; without such a row it is not shown.
        legend: what it shows, if the legend of all columns does not say so.
        diagnosis: whether it is there only if a model was diagnosed.
    """

    key: str
    title: str = ""
    value: Callable[[Entry], Any] | None = None
    text: Callable[[Any], str] = brief
    short: Callable[[Any], str] | None = None
    interval: bool = False
    below: str = ""
    shown: Mapping[View, int] = field(default_factory=lambda: dict.fromkeys(get_args(View), 0))
    page_title: str = ""
    only_if: Callable[[Row], object] = bool
    legend: str = ""
    diagnosis: bool = False

    def cells(self, entry: Entry) -> Row:
        """Return what a row holds of this column."""
        if self.value:
            return {self.key: self.value(entry)}
        results, key = entry.results, self.key
        cells: Row = {key: results.metrics.get(key)}
        if key in MEASURES or key in CONTRASTS:
            cells[f"{key}_low"], cells[f"{key}_high"] = ends_of(results.intervals.get(key))
        return cells

    def lines(self, row: Row, view: View) -> list[str]:
        """Return the text of a cell, and any text below it."""
        below = [brief(row[self.below])] if self.below else []
        value = row[self.key]
        if value is None or (self.key in PLACEBO_CORRECTED and row["placebo_moved"]):
            return ["–", *below]
        if self.interval and row[f"{self.key}_low"] is not None:
            below = ["[{}, {}]".format(*(brief(row[f"{self.key}_{e}"]) for e in ("low", "high")))]
        text = self.short if self.short and view == "terminal" else self.text
        return [text(value), *below]


def _data(key: str, value: Callable[[Entry], Any] | None = None, diagnosis: bool = False) -> Column:
    """Return a column that only JSON and CSV have."""
    return Column(key, value=value, shown={}, diagnosis=diagnosis)


def _has(amount: Amount, row: Row) -> bool:
    """Whether any answer has the amount, or the model was given a reasoning effort."""
    return row["reasoning_effort"] is not None or any(
        row[amount.under(name)] for name in USUAL_SHARE
    )


def _of_amount(amount: Amount) -> list[Column]:
    """Return the columns of its means; one of them is shown, if the amount has a column."""
    before, after = map(amount.under, USUAL_SHARE)
    return [
        Column(
            name,
            title,
            methodcaller("mean", name),
            amount.text,
            shown={"terminal": 0, "page": 1} if title else {},
            only_if=partial(_has, amount),
            legend=f"mean {amount.title.lower()} under the changed rules",
        )
        for name, title in {before: "", after: amount.column, amount.difference: ""}.items()
    ]


def _bound(name: str, end: str, entry: Entry) -> Any:
    return getattr(entry.results.bounds.get(name), end, None)


def _outcome(outcome: str, entry: Entry) -> int:
    return changed_outcomes(entry)[outcome]


_OF_DIAGNOSIS = (*(measure.name for measure in DIAGNOSIS), *CONTRASTS)
# The table of a diagnosis: headings by name of the measure.
_DIAGNOSIS_TITLES = {
    KNOWLEDGE: "J",
    KNOWING_EFFECT.name: "knowing",
    "reminder_effect": "reminder",
    PLACEBO_IMPACT: "placebo",
    **dict(zip(PLACEBO_CORRECTED, ("corrected", "specific"), strict=True)),
}
DIAGNOSIS_HEADING = "why the habit stays"


def _of_diagnosis(name: str) -> Column:
    places = {key: place for place, key in enumerate(_DIAGNOSIS_TITLES)}
    return Column(
        name,
        _DIAGNOSIS_TITLES.get(name, ""),
        interval=name in (KNOWLEDGE, *PLACEBO_CORRECTED),
        shown={"terminal": places[name], "page": places[name]} if name in places else {},
        diagnosis=True,
    )


_COUNTS: Mapping[View, int] = {"terminal": -1, "markdown": -1, "page": 1}
_COSTS: Mapping[View, int] = {"markdown": 0, "page": 1}
# In the order of JSON and CSV. A measure with a ``column`` needs no entry here.
COLUMNS: tuple[Column, ...] = (
    *(_data(name, attrgetter(name)) for name in ("model", "label", "eval")),
    _data("rules", attrgetter("change.key")),
    _data("form", attrgetter("form")),
    Column(
        "reasoning_effort",
        "effort",
        attrgetter("effort"),
        str,
        shown={"page": 0},
        only_if=lambda row: row["reasoning_effort"],
    ),
    _data("pool", attrgetter("pool")),
    Column("samples", "n", lambda e: e.results.metrics["n_samples"], number, shown=_COUNTS),
    Column(UPTAKE, "rule uptake", interval=True),
    Column(IMPACT, "impact factor", interval=True),
    Column(
        "after_change",
        "kept, right,\nneither",
        lambda entry: entry.run.after_change or None,
        shares_text,
        short=lambda shares: " ".join(map(rounded, shares.values())),
        only_if=lambda row: row["after_change"],
        legend="answers after the change: the usual one, the right one, another or none",
    ),
    Column("adaptation_rate", "adapts", only_if=lambda row: not row["after_change"]),
    *(
        Column(USUAL_SHARE[name], title, below=FORBIDDEN_SHARE[name], shown={"terminal": -1})
        for name, title in ((STANDARD_CONDITION, "habit\nany"), (CHANGED_CONDITION, "kept\nany"))
    ),
    *map(_data, (*FORBIDDEN_SHARE.values(), "delta")),
    *map(_of_diagnosis, _OF_DIAGNOSIS),
    _data(UNUSABLE_SHARE[STANDARD_CONDITION]),
    Column(
        UNUSABLE_SHARE[CHANGED_CONDITION],
        "no\n{answer}",
        text=percentage,
        short=partial(percentage, digits=0),
        page_title="answers, changed rules",
    ),
    *chain(*map(_of_amount, AMOUNTS.values())),
    *(
        _data(f"{name}_bounds_{end}", partial(_bound, name, end), name in _OF_DIAGNOSIS)
        for name in (UPTAKE, IMPACT, *_OF_DIAGNOSIS)
        for end in ("low", "high")
    ),
    *(_data(f"changed_{outcome}", partial(_outcome, outcome)) for outcome in OUTCOME_GROUPS),
    Column("tokens", "tokens", attrgetter("tokens"), number, shown=_COSTS),
    Column("dollars", "dollars", attrgetter("run.cost.total"), dollars, shown=_COSTS),
    Column("seconds", "time", attrgetter("run.seconds"), duration, shown=_COSTS),
    _data("placebo_moved", lambda e: placebo_moved(e.results), diagnosis=True),
    _data("suspect", attrgetter("is_suspect")),
    _data("notes", lambda e: list(e.notes)),
)


def leaderboard_columns() -> list[Column]:
    """Return all columns: those declared here, and those of measures that declare one."""
    with_column = (m for m in MEASURES.values() if m.column)
    return [*COLUMNS, *(Column(m.name, m.column, legend=m.meaning) for m in with_column)]


def words_of(entries: Sequence[Entry]) -> Words:
    """Return the words of the entries' habit, or those of any if they have several."""
    first = entries[0].words
    return first if all(entry.words == first for entry in entries) else ANY_HABIT


def columns_in(view: View, rows: Sequence[Row], *, diagnosis: bool = False) -> list[Column]:
    """Return the columns that a view shows of these rows, in its order.

    Those of a diagnosis are a table of their own.
    """
    shown = (
        column
        for column in leaderboard_columns()
        if view in column.shown and column.diagnosis == diagnosis and any(map(column.only_if, rows))
    )
    return sorted(shown, key=lambda column: column.shown[view])


def cells_in(view: View, entries: Sequence[Entry]) -> list[list[str]]:
    """Return a leaderboard as text: the headings, and one line of cells for each entry."""
    rows = as_rows(entries)
    columns = columns_in(view, rows)
    words = words_of(entries)
    headings = ["model", *(_one_line(words.fill(column.title)) for column in columns)]
    cells = [
        [marked(entry), *(" ".join(column.lines(row, view)) for column in columns)]
        for entry, row in zip(entries, rows, strict=True)
    ]
    return [headings, *cells]


def _one_line(title: str) -> str:
    return title.replace("\n", " ")


def as_rows(entries: Sequence[Entry]) -> list[Row]:
    """Return one row per entry: every metric with its 95% interval."""
    diagnosed = any(entry.is_diagnosed for entry in entries)
    columns = [c for c in leaderboard_columns() if diagnosed or not c.diagnosis]
    return [
        {key: value for column in columns for key, value in column.cells(entry).items()}
        for entry in entries
    ]


SUSPECT_LEGEND = "(!) most dropped habits may be unusable or missing answers"
LEGEND = (
    "Highest rule uptake first. habit: share of usual {answer}s under the standard rules. kept: "
    "the same under the changed rules. any: share of all forbidden {answer}s. [95% interval]. "
    "adapts: adaptation rate. no {answer}: replies under the changed rules that contain no "
    "{answer}"
)
DIAGNOSIS_LEGEND = (
    "J: knowledge of the rule (0 = guessing, 1 = always right). knowing: habits kept where the "
    "rule is known, minus those kept elsewhere. reminder: change in answers that are not "
    "{allowed}. placebo: effect of another change, which leaves the habit {allowed}. corrected: "
    "the changed rules compared with the placebo. specific: corrected, minus the change at control "
    "{items}. The last two are omitted if the placebo alone changed the habit."
)
BOUNDS_LEGEND = ". The intervals allow for every reading of them."
# The verdict on a pair, as a table shows it.
VERDICTS = {"different": "significant", "equivalent": "equivalent", "inconclusive": "inconclusive"}


def legend(rows: Sequence[Row], words: Words) -> list[str]:
    """Explain the columns that are shown, in the words of a habit."""
    others = [f"{_one_line(c.title)}: {c.legend}" for c in columns_in("terminal", rows) if c.legend]
    lines = [". ".join([LEGEND, *others]) + "."]
    if any(KNOWLEDGE in row for row in rows):
        lines.append(DIAGNOSIS_LEGEND)
    if any(row["suspect"] for row in rows):
        lines.append(SUSPECT_LEGEND + BOUNDS_LEGEND)
    return list(map(words.fill, lines))


def marked(entry: Entry) -> str:
    """Return the model's label, with a mark if its numbers are suspect."""
    return entry.label + (" (!)" if entry.is_suspect else "")


def group_notes(entries: Sequence[Entry]) -> list[str]:
    """Return the notes of a leaderboard, each once, with the models that it is about."""
    models_by_note: dict[str, list[str]] = {}
    for entry in entries:
        for note in entry.notes:
            models_by_note.setdefault(note, []).append(marked(entry))
    return [
        *(f"{', '.join(names)}: {note}" for note, names in models_by_note.items()),
        *differences_in_plan(entries, but=["reasoning effort"]),
    ]


def all_notes(entries: Sequence[Entry]) -> list[str]:
    """Return the notes of all runs, and the settings that differ between models."""
    return [
        *(f"{entry.label}: {note}" for entry in entries for note in entry.run.notes),
        *differences_in_plan(entries),
    ]


class RunColumn(NamedTuple):
    """A column of the list of runs.

    Attributes:
        text: formats the value of a run.
        unit: template for a number where there is no heading; only numbers have one.
    """

    text: Callable[[RunSummary], str]
    unit: str = ""

    def with_unit(self, run: RunSummary) -> str:
        """Format the value for a line without headings."""
        return self.unit.format(self.text(run)) or self.text(run)


RUN_COLUMNS = {
    "date": RunColumn(lambda run: run.started_at[:10]),
    "model": RunColumn(lambda run: f"{run.model} ({run.effort})" if run.effort else run.model),
    "tag": RunColumn(lambda run: run.tag),
    "rules": RunColumn(lambda run: run.rules),
    "eval": RunColumn(lambda run: run.eval),
    "n": RunColumn(lambda run: f"{run.samples:,}", unit="n {}"),
    "rule uptake": RunColumn(
        lambda run: (
            f"{number(run.uptake)} {interval(run.uptake_interval)} {shares_text(run.after_change)}"
        ).strip()
    ),
    "notes": RunColumn(lambda run: str(len(run.notes)), unit="notes {}"),
    "cost": RunColumn(lambda run: "–" if run.cost is None else dollars(run.cost), unit="cost {}"),
    "time": RunColumn(lambda run: duration(run.seconds), unit="time {}"),
}
