"""One row per result: for the terminal, Markdown, reports, JSON and data frames."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import quote

from ..comparison.entries import Entry
from ..comparison.leaderboard import Ranking, differences_in_plan, settings_of
from ..comparison.pairwise import Pair
from ..formatting import amount, dollars, duration, join_words, rounded
from ..habits.words import ANY_HABIT, Words
from ..metrics.measures import SHARE_AFTER, SHARE_BEFORE, UPTAKE, reasoning_name
from ..providers.base import Answer, add_costs
from ..runs.run import Run
from ..runs.storage import results_json
from ..task.types import CHANGED_CONDITION, UNUSABLE_OUTCOMES, Sample, ScoredAnswer
from .html import PAGE_NAME

Row = dict[str, Any]
# The names of what makes a category of entries.
CATEGORY = ("eval", "rules", "form", "pool")


@dataclass(frozen=True)
class Column:
    """A column of a leaderboard.

    Attributes:
        title: the heading, in the words of the habit; a line break is for the terminal alone.
        text: returns the text of a cell.
        value: returns the number by which reports sort.
        only_if: whether an entry needs the column; without such an entry it is not shown.
        in_terminal: whether the terminal has room for it.
    """

    title: str
    text: Callable[[Entry], str]
    value: Callable[[Entry], float | None]
    only_if: Callable[[Entry], object] = lambda _: True
    in_terminal: bool = True


def _share(title: str, share: Callable[[Entry], float | None], **rest: Any) -> Column:
    return Column(title, lambda entry: rounded(share(entry)), share, **rest)


def _estimate(name: str) -> Callable[[Entry], float | None]:
    def value(entry: Entry) -> float | None:
        estimate = entry.results.get(name)
        return estimate.value if estimate else None

    return value


def _uptake_text(entry: Entry) -> str:
    return entry.results.uptake.as_share if entry.results.uptake else "–"


def _after_change(entry: Entry) -> str:
    return ", ".join(map(rounded, entry.run.after_change.values()))


def unusable_share(entry: Entry) -> float:
    """Return the share of replies under the changed rules that are unusable."""
    return entry.results.share(CHANGED_CONDITION, *UNUSABLE_OUTCOMES)


_REASONING = _estimate(reasoning_name(CHANGED_CONDITION))
UPTAKE_COLUMN = Column("rule uptake", _uptake_text, _estimate(UPTAKE.name))
COLUMNS = (
    Column("n", lambda e: f"{e.results.n:,}", lambda e: e.results.n),
    UPTAKE_COLUMN,
    Column(
        "kept, right,\nneither",
        _after_change,
        lambda entry: entry.run.after_change.get("right"),
        only_if=lambda entry: entry.run.after_change,
    ),
    _share("usual\nbefore", _estimate(SHARE_BEFORE), only_if=lambda e: not e.run.after_change),
    _share("usual\nafter", _estimate(SHARE_AFTER), only_if=lambda e: not e.run.after_change),
    _share("no\n{answer}", unusable_share, only_if=unusable_share),
    Column(
        "reasoning\ntokens",
        lambda entry: amount(_REASONING(entry)),
        _REASONING,
        only_if=lambda entry: _REASONING(entry) is not None,
    ),
    Column(
        "cost",
        lambda entry: dollars(entry.run.cost.total),
        lambda entry: entry.run.cost.total,
        only_if=lambda entry: entry.run.cost.total,
        in_terminal=False,
    ),
    Column(
        "time",
        lambda entry: duration(entry.run.seconds),
        lambda entry: entry.run.seconds,
        in_terminal=False,
    ),
)


def columns_of(entries: Sequence[Entry], *, in_terminal: bool = False) -> list[Column]:
    """Return the columns that a leaderboard of these entries shows."""
    return [
        column
        for column in COLUMNS
        if any(map(column.only_if, entries)) and (column.in_terminal or not in_terminal)
    ]


def words_of(entries: Sequence[Entry]) -> Words:
    """Return the words of the entries' habit, or those of any if they have several."""
    first = entries[0].words
    return first if all(entry.words == first for entry in entries) else ANY_HABIT


def leaderboard_cells(entries: Sequence[Entry]) -> list[list[str]]:
    """Return a leaderboard as text: the headings, and one line of cells for each entry."""
    columns, words = columns_of(entries), words_of(entries)
    headings = [words.fill(column.title).replace("\n", " ") for column in columns]
    rows = ([entry.label, *(column.text(entry) for column in columns)] for entry in entries)
    return [["model", *headings], *rows]


# In the order of the findings.
DIAGNOSIS_HEADINGS = ("knows the rule", "the rule's effect", "a reminder", "other answers")


def diagnosis_cells(entries: Sequence[Entry]) -> list[list[str]]:
    """Return the diagnoses of entries as text: the headings, and a line for each that has one."""
    diagnosed = [entry for entry in entries if entry.results.diagnosis]
    if not diagnosed:
        return []
    rows = ([entry.label, *_findings(entry)] for entry in diagnosed)
    return [["why the habit stays", *DIAGNOSIS_HEADINGS], *rows]


def _findings(entry: Entry) -> Iterator[str]:
    for finding in entry.results.diagnosis.values():
        yield finding.estimate.as_difference if finding.estimate else "–"


def pair_cells(ranking: Ranking) -> list[list[str]]:
    """Return the pairs of a ranking as text: the headings, and a line for each."""
    rows = (
        [
            f"{pair.first.label} over {pair.second.label}",
            f"{pair.shared:,}",
            pair.difference.as_difference if pair.difference else "–",
            pair.verdict,
        ]
        for pair in ranking.pairs
    )
    return [["lead", "shared", "points", "verdict"], *rows]


def wording_cells(entries: Sequence[Entry]) -> list[list[str]]:
    """Return the rule uptake by wording as text: a column per entry; nothing without wordings."""
    names = dict.fromkeys(
        chain(*(e.results.wordings.by_wording for e in entries if e.results.wordings))
    )
    if not names:
        return []
    facets = [(e.label, e.plan.eval, e.change.key, e.other_form or "") for e in entries]
    varying = [place for place in range(4) if len({facet[place] for facet in facets}) > 1]
    headings = [", ".join(filter(None, (facet[n] for n in varying))) for facet in facets]
    rows = [[name, *(_of_wording(entry, name) for entry in entries)] for name in names]
    every = ["all", *(rounded(_estimate(UPTAKE.name)(entry)) for entry in entries)]
    return [["rule uptake by wording", *(h or entries[0].label for h in headings)], *rows, every]


def _of_wording(entry: Entry, name: str) -> str:
    wordings = entry.results.wordings
    estimate = wordings.by_wording.get(name) if wordings else None
    return rounded(estimate.value if estimate else None)


def group_notes(entries: Sequence[Entry]) -> list[str]:
    """Return the notes of entries, each once with the models that it is about."""
    models_by_note: dict[str, list[str]] = {}
    for entry in entries:
        for note in entry.run.notes:
            models_by_note.setdefault(note, []).append(entry.label)
    return [
        *(f"{', '.join(names)}: {note}" for note, names in models_by_note.items()),
        *differences_in_plan(entries, but=["reasoning effort"]),
    ]


class Document(TypedDict):
    """The contents of ``results.json``: an experiment or a comparison.

    Attributes:
        title: the title of the report: the one given, or a default.
        verdicts: one row for each ranking.
        results: one row for each run, by ranking, the best first.
        pairs: one row for each pair of a ranking.
        total: totals over all runs: tokens and dollars of all samples, and what the runs spent,
            including the search for items.
    """

    title: str
    verdicts: list[Row]
    results: list[Row]
    pairs: list[Row]
    total: Row


def build_document(ranked: Sequence[Ranking], out: Path, title: str = "") -> Document:
    """Build the document of all rankings, with links to reports relative to ``out``."""
    entries = [entry for ranking in ranked for entry in ranking.entries]
    runs = [entry.run for entry in entries]
    return {
        "title": title or _default_title(entries),
        "verdicts": [category(r.entries[0]) | {"verdict": r.verdict} for r in ranked],
        "results": [result_row(e, r.why_unranked, out) for r in ranked for e in r.entries],
        "pairs": [
            category(ranking.entries[0]) | pair_row(pair)
            for ranking in ranked
            for pair in ranking.pairs
        ],
        "total": {
            "runs": len(entries),
            "samples": sum(entry.results.n for entry in entries),
            "tokens": sum(map(tokens_of, entries)),
            "spent_dollars": add_costs(*(run.cost.spent for run in runs)),
            "seconds": sum(run.seconds for run in runs),
        },
    }


def _default_title(entries: Sequence[Entry]) -> str:
    models = list(dict.fromkeys(entry.model for entry in entries))
    habits = {entry.change.its_habit.name for entry in entries if entry.change.its_habit.changes}
    rule = f"{habits.pop()} rule" if len(habits) == 1 else "rule"
    rules = f"a new {rule}" if len({e.change.key for e in entries}) == 1 else f"new {rule}s"
    if len(models) == 1:
        return f"Does {models[0]} follow {rules}?"
    names = f"{len(models)} models" if len(models) > 3 else join_words(models)
    return f"Do {names} follow {rules}?"


def category(entry: Entry) -> Row:
    """Return what makes the category of an entry."""
    return dict(zip(CATEGORY, entry.category, strict=True))


def tokens_of(entry: Entry) -> int:
    """Return the tokens of all requests and answers of an entry's samples."""
    return entry.results.usage.input_tokens + entry.results.usage.output_tokens


def result_row(entry: Entry, why_unranked: Mapping[str, str], out: Path) -> Row:
    """Return everything about an entry, ready for JSON."""
    run = entry.run
    return {
        "label": entry.label,
        "model": run.model,
        "version": run.version,
        "endpoint": run.endpoint,
        **category(entry),
        "reasoning_effort": entry.plan.settings.reasoning_effort,
        "unranked": why_unranked.get(entry.label),
        **results_json(run.results),
        "after_change": run.after_change,
        "seed": run.plan.settings.seed,
        "started_at": run.started_at,
        "dataset": origin_text(run),
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
        "sentence": pair.sentence,
    }


def comparison_json(ranking: Ranking) -> Row:
    """Return what ``cdta compare --json`` prints: the models, the best first, and all pairs."""
    return {
        "ranking": [entry.label for entry in ranking.entries],
        "unranked": ranking.why_unranked,
        "verdict": ranking.verdict,
        "pairs": list(map(pair_row, ranking.pairs)),
    }


def origin_text(run: Run) -> str:
    """Return where the dataset came from, without who built it when."""
    return replace(run.dataset, built_now=False, saved_at="", endpoint="").provenance


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
    several = len({entry.category for entry in entries}) > 1
    return [
        {"model": entry.label}
        | (category(entry) if several else {})
        | {"measure": name, **asdict(estimate)}
        for entry in entries
        for name, estimate in entry.results.estimates.items()
    ]


def sample_rows(entry: Entry) -> list[Row]:
    """Return one row per sample: item, usual answers, and each reply with its outcome."""
    return [_sample_row(entry, sample) for sample in entry.run.samples]


def _sample_row(entry: Entry, sample: Sample) -> Row:
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
        shown = habit.label(item, reply.answer) if reply.answer else None
        columns = _reply_columns(reply, sample.answers[name]) | {habit.words.answer: shown}
        row |= {f"{name}_{column}": value for column, value in columns.items()}
    return row


def _reply_columns(reply: ScoredAnswer, answer: Answer) -> Row:
    return {
        "outcome": reply.outcome,
        "reply": answer.text,
        "input_tokens": answer.usage.input_tokens,
        "output_tokens": answer.usage.output_tokens,
        "reasoning_tokens": answer.usage.thinking_tokens,
    }
