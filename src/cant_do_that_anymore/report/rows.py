"""One row per result: for the terminal, Markdown, reports, JSON and data frames."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from ..comparison.entries import Entry, category_of
from ..comparison.leaderboard import Ranking, differences_in_plan, heading, settings_of
from ..comparison.pairwise import Pair
from ..formatting import amount, dollars, duration, number, rounded
from ..habits.words import ANY_HABIT, Words
from ..metrics.estimates import Estimate
from ..metrics.measures import SHARE_AFTER, SHARE_BEFORE, UPTAKE, reasoning_name
from ..providers.base import add_costs
from ..runs.run import Run
from ..runs.storage import results_json
from ..task.types import CHANGED_CONDITION, UNUSABLE_OUTCOMES, Sample
from .html import PAGE_NAME
from .sentences import wordings_shown

Row = dict[str, Any]
# The names of what makes a category of entries.
CATEGORY = ("eval", "rules", "form", "pool")
DEFAULT_TITLE = "Which model follows a new rule?"
YES_OR_NO = (
    "“Yes” and “No” need an interval on one side of 0; for knowing the rule, also on one side of "
    "50 points."
)
CHANCE = (
    "Differences are in points; their 95% intervals hold for all pairs together. Different: the "
    "interval excludes 0. Equivalent: it is within ±5 points. Inconclusive: neither."
)


class Table(NamedTuple):
    """A table of texts, the same in every format; without rows it is not shown.

    Attributes:
        headings: of the columns; a line break is for the terminal alone.
        rows: the texts of each row, its name first; a line break ends the name.
        estimates: what reports draw beside each row, if anything.
        unit: of these on their axis.
        note: what a reader of the table must know.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    estimates: Sequence[Estimate | None] = ()
    unit: str = "%"
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.rows)


class Column(NamedTuple):
    """A column of a leaderboard, shown if an entry has a value.

    Attributes:
        title: the heading, in the words of the habit; a line break is for the terminal alone.
        value: returns what reports sort by; None if an entry has none.
        format: formats a value.
        in_terminal: whether the terminal has room for it.
    """

    title: str
    value: Callable[[Entry], Any]
    format: Callable[[Any], str]
    in_terminal: bool = True

    def text(self, entry: Entry) -> str:
        """Return the text of a cell."""
        value = self.value(entry)
        return "–" if value is None else self.format(value)


def share_text(estimate: Estimate | None) -> str:
    """Format a number with its interval, in percent; a dash if there is none."""
    return estimate.as_share if estimate else "–"


def points_text(difference: Estimate | None) -> str:
    """Format a difference with its interval, in points; a dash if there is none."""
    return difference.as_difference if difference else "–"


def _usual(entry: Entry, name: str) -> float | None:
    """Return a share of usual answers; None for habits with one right answer."""
    share = entry.results.get(name)
    return share.value if share and not entry.run.after_change else None


def _unusable(entry: Entry) -> float | None:
    """Return the share of replies under the changed rules that are unusable; None if none is."""
    return entry.results.share(CHANGED_CONDITION, *UNUSABLE_OUTCOMES) or None


def reasoning_of(entry: Entry) -> float | None:
    """Return the mean reasoning tokens under the changed rules; None without reasoning."""
    tokens = entry.results.get(reasoning_name(CHANGED_CONDITION))
    return tokens.value if tokens else None


UPTAKE_COLUMN = Column("rule uptake", lambda entry: entry.results.uptake, share_text)
COLUMNS = (
    Column("n", lambda entry: entry.results.n, number),
    UPTAKE_COLUMN,
    Column("kept", lambda entry: entry.run.after_change.get("kept"), rounded),
    Column("right", lambda entry: entry.run.after_change.get("right"), rounded),
    Column("neither", lambda entry: entry.run.after_change.get("neither"), rounded),
    Column("usual\nbefore", lambda entry: _usual(entry, SHARE_BEFORE), rounded),
    Column("usual\nafter", lambda entry: _usual(entry, SHARE_AFTER), rounded),
    Column("no\n{answer}", _unusable, rounded),
    Column("reasoning\ntokens", reasoning_of, amount),
    Column("cost", lambda entry: entry.run.cost.total or None, dollars, in_terminal=False),
    Column("time", lambda entry: entry.run.seconds, duration, in_terminal=False),
)


def columns_of(entries: Sequence[Entry], *, in_terminal: bool = False) -> list[Column]:
    """Return the columns that a leaderboard of these entries shows."""
    columns = [column for column in COLUMNS if column.in_terminal or not in_terminal]
    return [column for column in columns if any(column.value(e) is not None for e in entries)]


def words_of(entries: Sequence[Entry]) -> Words:
    """Return the words of the entries' habit, or those of any if they have several."""
    first = entries[0].run.words
    return first if all(entry.run.words == first for entry in entries) else ANY_HABIT


def leaderboard_table(entries: Sequence[Entry], *, in_terminal: bool = False) -> Table:
    """Return a leaderboard with a row for each entry."""
    columns, words = columns_of(entries, in_terminal=in_terminal), words_of(entries)
    headings = ["model", *(words.fill(column.title) for column in columns)]
    rows = [[entry.label, *(column.text(entry) for column in columns)] for entry in entries]
    return Table(headings, rows)


def pair_table(ranking: Ranking) -> Table:
    """Return the pairs of a ranking, a row for each."""
    rows = [
        [pair.lead, number(pair.shared), points_text(pair.difference), pair.result]
        for pair in ranking.pairs
    ]
    differences = [pair.difference for pair in ranking.pairs]
    note = f"{heading(ranking.entries)}. {CHANCE}"
    return Table(["lead", "shared", "points", "verdict"], rows, differences, " points", note)


# The findings of a diagnosis: their headings in leaderboards, what they answer, and what their
# points are.
FINDINGS = {
    "knowledge": (
        "knows the rule",
        "Does it know the rule?\n  {allowed} {answer}s it calls {allowed} minus {disallowed} ones",
    ),
    "rule_effect": (
        "the rule's effect",
        "Is it the rule, not just any change of the prompt?\n"
        "  usual {answer}s under a placebo minus under the rule",
    ),
    "reminder_effect": (
        "a reminder",
        "Does a reminder help?\n  rule uptake with a reminder minus without",
    ),
    "other_play": (
        "other answers",
        "Do other habits suffer?\n  usual {answer}s that stay {allowed}, after minus before",
    ),
}


def diagnosis_table(entries: Sequence[Entry]) -> Table:
    """Return the diagnoses of entries, a row for each that has one."""
    headings = ["why the habit stays", *(heading for heading, _ in FINDINGS.values())]
    rows = [
        [entry.label, *(points_text(each.estimate) for each in entry.results.diagnosis.values())]
        for entry in entries
        if entry.results.diagnosis
    ]
    return Table(headings, rows)


def finding_table(run: Run) -> Table:
    """Return the questions of a diagnosis with their answers and numbers."""
    found = run.results.diagnosis
    rows = [
        [run.words.fill(FINDINGS[name][1]), finding.answer, points_text(finding.estimate)]
        for name, finding in found.items()
    ]
    estimates = [finding.estimate for finding in found.values()]
    return Table(["question", "answer", "points"], rows, estimates, " points", YES_OR_NO)


def intervention_table(run: Run) -> Table:
    """Return the interventions with their rule uptake and their effects."""
    effects, without = run.results.interventions, run.results.uptake
    rows, estimates = [["(none)", share_text(without), "", "", ""]], [without]
    for effect in effects:
        uptake = effect.rule_uptake if effect.can_be_judged else None
        difference = effect.difference if effect.can_be_judged else None
        numbers = [share_text(uptake), points_text(difference), amount(effect.extra_tokens or None)]
        rows.append([effect.name, *numbers, effect.verdict])
        estimates.append(uptake)
    headings = ["intervention", "rule uptake", "points", "more\ntokens", "verdict"]
    return Table(headings, rows if effects else [], estimates)


def wording_table(run: Run) -> Table:
    """Return the rule uptake by wording, highest first; nothing if some have too few samples."""
    by_name = sorted(wordings_shown(run).items(), key=lambda item: -item[1].value)
    rows = [[name, number(estimate.n), estimate.as_share] for name, estimate in by_name]
    estimates = [estimate for _, estimate in by_name]
    return Table(["wording", "samples", "rule uptake"], rows, estimates)


def group_notes(entries: Sequence[Entry]) -> list[str]:
    """Return the notes of entries, each once with the models that it is about."""
    models_by_note: dict[str, list[str]] = {}
    for entry in entries:
        for note in entry.run.notes:
            models_by_note.setdefault(note, []).append(entry.label)
    notes = [f"{', '.join(names)}: {note}" for note, names in models_by_note.items()]
    return [*notes, *differences_in_plan(entries)]


def build_document(ranked: Sequence[Ranking], out: Path, title: str = "") -> Row:
    """Build the contents of ``results.json``, with links to reports relative to ``out``.

    It has the title, a row for each verdict, run (by ranking, the best first) and pair, and totals
    over all runs: the tokens of all samples, and what the runs spent, including the search for
    items.
    """
    entries = [entry for ranking in ranked for entry in ranking.entries]
    usages = [entry.results.usage for entry in entries]
    return {
        "title": title or DEFAULT_TITLE,
        "verdicts": [category(r.entries[0]) | {"verdict": r.verdict} for r in ranked],
        "results": [result_row(e, r.why_unranked, out) for r in ranked for e in r.entries],
        "pairs": [category(pair.first) | pair_row(pair) for r in ranked for pair in r.pairs],
        "total": {
            "runs": len(entries),
            "samples": sum(entry.results.n for entry in entries),
            "tokens": sum(u.input_tokens + u.output_tokens for u in usages),
            "spent_dollars": add_costs(*(entry.run.cost.spent for entry in entries)),
            "seconds": sum(entry.run.seconds for entry in entries),
        },
    }


def category(entry: Entry) -> Row:
    """Return what makes the category of an entry."""
    return dict(zip(CATEGORY, category_of(entry.run), strict=True))


def result_row(entry: Entry, why_unranked: Mapping[str, str], out: Path) -> Row:
    """Return everything about an entry, ready for JSON."""
    run = entry.run
    return {
        "label": entry.label,
        "model": run.model,
        "version": run.version,
        "endpoint": run.endpoint,
        **category(entry),
        "reasoning_effort": run.plan.settings.reasoning_effort,
        "unranked": why_unranked.get(entry.label),
        **results_json(run.results),
        "after_change": run.after_change,
        "seed": run.plan.settings.seed,
        "started_at": run.started_at,
        "dataset": run.dataset.provenance,
        "settings": settings_text(run),
        "versions": ", ".join(f"{name} {version}" for name, version in run.versions.items()),
        "dollars": run.cost.total,
        "spent_dollars": run.cost.spent,
        "seconds": run.seconds,
        "report": _report_link(run, out),
        "notes": run.notes,
    }


def pair_row(pair: Pair) -> Row:
    """Return the row of a pair; the difference is the value of the first model minus the other."""
    return {
        "models": [pair.first.label, pair.second.label],
        "measure": UPTAKE.name,
        "shared": pair.shared,
        "difference": asdict(pair.difference) if pair.difference else None,
        "verdict": pair.verdict,
    }


def comparison_json(ranking: Ranking) -> Row:
    """Return what ``cdta compare --json`` prints: the models, the best first, and all pairs."""
    return {
        "ranking": [entry.label for entry in ranking.entries],
        "unranked": ranking.why_unranked,
        "verdict": ranking.verdict,
        "pairs": list(map(pair_row, ranking.pairs)),
    }


def settings_text(run: Run) -> str:
    """Return all settings of a run except the seed, as text."""
    settings = (f"{name} {text}" for name, text in settings_of(run).items())
    return "; ".join([*settings, f"protocol {run.protocol}"])


def _report_link(run: Run, out: Path) -> str | None:
    """Return the relative link to the report of a run, or None if it has none."""
    page = run.folder / PAGE_NAME if run.folder else None
    if not page or not page.exists():
        return None
    return quote(Path(os.path.relpath(page, out)).as_posix())


def measure_rows(entries: Sequence[Entry]) -> list[Row]:
    """Return one row per entry and number, with its 95% interval."""
    several = len({category_of(entry.run) for entry in entries}) > 1
    return [
        {"model": entry.label}
        | (category(entry) if several else {})
        | {"measure": name, **asdict(estimate)}
        for entry in entries
        for name, estimate in entry.results.estimates.items()
    ]


def sample_row(entry: Entry, sample: Sample) -> Row:
    """Return the row of a sample: item, usual answers, and each reply with its outcome."""
    item, habit = sample.item, entry.change.its_habit
    row: Row = {
        "model": entry.label,
        "id": item.id,
        "draw": sample.draw + 1,
        "group": item.group,
        "source": item.source,
        **habit.details(item),
        "usual": ", ".join(habit.label(item, answer) for answer in item.usual),
    }
    for name, reply in sample.replies.items():
        answer = sample.answers[name]
        row |= {
            f"{name}_outcome": reply.outcome,
            f"{name}_reply": answer.text,
            f"{name}_{habit.words.answer}": reply.answer and habit.label(item, reply.answer),
            **{f"{name}_{key}": n for key, n in asdict(answer.usage).items()},
        }
    return row
