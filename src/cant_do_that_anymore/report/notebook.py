"""Runs, comparisons and experiments in notebooks and as data frames."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from ..comparison.leaderboard import Ranking
from ..comparison.verdict import heading, verdict, verdicts
from ..formatting import number, pluralize, visible
from ..habits.base import Habit, Item
from ..metrics.measures import MEASURES, TILES
from ..providers.base import Answer
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Sample, ScoredAnswer
from .columns import VERDICTS, cells_in
from .html import asset, interval, render
from .run_page import headline_and_tiles, outcomes_in

Row = dict[str, object]


def sample_rows(samples: Sequence[Sample], habit: Habit) -> list[Row]:
    """Return one row per sample: item, usual answers, and each reply with its outcome."""
    rows = []
    for sample in samples:
        item, answers = sample.item, sample.answers
        row: Row = {
            "id": item.id,
            "draw": sample.draw + 1,
            "group": item.group,
            "source": item.source,
            **habit.details(item),
            "usual": ", ".join(habit.label(item, answer) for answer in item.usual),
        }
        for name, reply in sample.replies.items():
            columns = _reply_columns(reply, answers[name], item, habit).items()
            row |= {f"{name}_{column}": value for column, value in columns}
        rows.append(row)
    return rows


def _reply_columns(reply: ScoredAnswer, answer: Answer, item: Item, habit: Habit) -> Row:
    usage = answer.usage
    return {
        "outcome": reply.outcome,
        habit.words.answer: habit.label(item, reply.answer) if reply.answer else None,
        "reply": answer.text,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "thinking_tokens": usage.thinking_tokens,
    }


def run_line(run: Run) -> str:
    """Summarize a run in one line: model, eval, rules, headline measure, and its folder."""
    first = MEASURES[TILES[run.plan.eval][0]]
    value, bounds = run.results.metrics[first.name], run.results.intervals.get(first.name)
    parts = [
        f"{run.version}: {run.plan.eval}",
        run.plan.change.key,
        pluralize(len(run.answered), "sample"),
        f"{first.title.lower()} {number(value)} {interval(bounds)}".rstrip(),
        _folder_text(run),
    ]
    return visible(f"<Run of {', '.join(parts)}>")


def run_html(run: Run) -> str:
    """Render the headline, the tiles and the outcomes of a run."""
    counts = {name: run.results.outcomes[name] for name in (STANDARD_CONDITION, CHANGED_CONDITION)}
    return render(
        "notebook_run.html",
        **headline_and_tiles(run),
        palette=_palette(),
        counts=counts,
        outcomes=outcomes_in(counts),
        saved=_folder_text(run),
    )


def comparison_html(ranking: Ranking) -> str:
    """Render the verdict, and every pair in every measure."""
    return render(
        "notebook_comparison.html",
        palette=_palette(),
        verdict=verdict(ranking),
        heading=heading(ranking.entries),
        words=ranking.entries[0].words,
        pairs=ranking.pairs,
        verdicts=VERDICTS,
    )


def rankings_html(ranked: Sequence[Ranking], remarks: Sequence[str] = ()) -> str:
    """Render the verdict and the leaderboard of each ranking."""
    tables = (cells_in("markdown", ranking.entries) for ranking in ranked)
    return _tables_html(dict(zip(verdicts(ranked), tables, strict=True)), remarks)


def _tables_html(tables: Mapping[str, Sequence[Sequence[str]]], remarks: Sequence[str] = ()) -> str:
    """Render tables below their titles; the first row of each has its headings."""
    return render("notebook_tables.html", palette=_palette(), tables=tables, remarks=remarks)


def _folder_text(run: Run) -> str:
    return f"saved in {run.folder}" if run.folder else "not saved: run.save()"


def _palette() -> Markup:
    """Return the CSS variables with the colors of the reports."""
    return Markup(asset("page.css").partition("{")[2].partition("}")[0])
