"""Runs and comparisons in notebooks and as data frames."""

import chess
from markupsafe import Markup

from ..comparison.leaderboard import Ranking
from ..comparison.verdict import heading, verdict
from ..formatting import in_points, number, pluralize, range_in_points, visible
from ..game.notation import notate, notate_game, with_move_numbers
from ..metrics.measures import MEASURES, TILES
from ..providers.base import Answer
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION, ScoredAnswer
from .html import asset, interval, render
from .run_page import first_numbers

Row = dict[str, object]


def sample_rows(run: Run) -> list[Row]:
    """Return one row per sample: position, special moves, and each reply with its outcome."""
    rows = []
    for sample in run.samples:
        position, board, answers = sample.position, sample.position.board(), sample.answers
        row: Row = {
            "id": position.id,
            "draw": sample.draw + 1,
            "game": position.game,
            "source": position.source,
            "moves": with_move_numbers(notate_game(position.moves)),
            "fen": board.fen(),
            "special": ", ".join(notate(board, uci) for uci in position.special_moves),
        }
        for name, reply in sample.replies.items():
            columns = _reply_columns(reply, answers[name], board).items()
            row |= {f"{name}_{column}": value for column, value in columns}
        rows.append(row)
    return rows


def _reply_columns(reply: ScoredAnswer, answer: Answer, board: chess.Board) -> Row:
    usage = answer.usage
    return {
        "outcome": reply.outcome,
        "move": notate(board, reply.move) if reply.move else None,
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
    outcomes = [o for o in OUTCOMES if any(count.get(o) for count in counts.values())]
    return render(
        "notebook_run.html",
        **first_numbers(run),
        palette=_palette(),
        counts=counts,
        outcomes=outcomes,
        saved=_folder_text(run),
    )


def comparison_html(ranking: Ranking) -> str:
    """Render the verdict, and every pair in every measure."""
    return render(
        "notebook_comparison.html",
        palette=_palette(),
        verdict=verdict(ranking),
        heading=heading(ranking.entries),
        pairs=ranking.pairs,
        in_points=in_points,
        range_in_points=range_in_points,
    )


def _folder_text(run: Run) -> str:
    return f"saved in {run.folder}" if run.folder else "not saved: run.save()"


def _palette() -> Markup:
    """Return the CSS variables with the colors of the reports."""
    return Markup(asset("page.css").partition("{")[2].partition("}")[0])
