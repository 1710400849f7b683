"""HTML reports of experiments and comparisons, with their tables and plots."""

import json
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from ..comparison.leaderboard import Ranking
from ..formatting import pluralize
from ..task.types import CHANGED_CONDITION
from .formats.csv import as_csv
from .html import render, write_text
from .rows import (
    UPTAKE_COLUMN,
    Row,
    columns_of,
    diagnosis_table,
    group_notes,
    pair_table,
    words_of,
)
from .run_page import example_of
from .svg import axis_over
from .tables import outcomes_in

INDEX, TABLE, DOCUMENT = "index.html", "results.csv", "results.json"


def experiment_page(ranked: Sequence[Ranking], document: Row) -> str:
    """Render the report of several runs: an experiment or a comparison."""
    entries, rows = [e for ranking in ranked for e in ranking.entries], iter(document["results"])
    first, words, runs = entries[0], words_of(entries), [entry.run for entry in entries]
    days = sorted({run.started_at[:10] for run in runs})
    n_models = len({(run.model, run.endpoint) for run in runs})
    changes = {entry.change.key: entry.change for entry in entries}
    return render(
        "experiment.html",
        document=document,
        boards=[_board(ranking, rows) for ranking in ranked],
        columns=columns_of(entries),
        uptake=UPTAKE_COLUMN,
        uptake_axis=axis_over(entry.results.uptake for entry in entries),
        words=words,
        changes=list(changes.values()),
        example=example_of(first.run),
        definitions=first.change.its_habit.definitions(),
        prompts={c.name: c.prompts[0].text for c in first.run.plan.conditions},
        size=f"{pluralize(n_models, 'model')}, {pluralize(len(runs), 'run')}",
        outcomes=outcomes_in(run.results.outcomes[CHANGED_CONDITION] for run in runs),
        dates=" to ".join(dict.fromkeys((days[0], days[-1]))),
    )


def _board(ranking: Ranking, rows: Iterator[Row]) -> dict[str, object]:
    """Return one leaderboard, with the next rows of the document."""
    entries = ranking.entries
    return {
        "title": entries[0].title,
        "verdict": ranking.verdict,
        "entries": [(entry, next(rows)["report"]) for entry in entries],
        "unranked": ranking.why_unranked,
        "diagnosed": diagnosis_table(entries),
        "pairs": pair_table(ranking),
        "notes": group_notes(entries),
    }


def write(ranked: Sequence[Ranking], document: Row, out: Path) -> list[Path]:
    """Write tables, plots and report into a folder, and return the files in that order.

    Raises:
        UserError: if they cannot be written.
    """
    plots = _write_plots(ranked, out)
    texts = {
        TABLE: as_csv(document["results"]),
        DOCUMENT: json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        INDEX: experiment_page(ranked, document),
    }
    table, results, index = [write_text(text, out / name) for name, text in texts.items()]
    return [table, results, *plots, index]


def _write_plots(ranked: Sequence[Ranking], out: Path) -> list[Path]:
    """Write the plots, if matplotlib is installed, and return the files."""
    if not find_spec("matplotlib"):
        return []
    from .plots import charts, save_figure

    plots = charts(ranked).items()
    return [file for stem, draw in plots for file in save_figure(draw(), out / stem)]
