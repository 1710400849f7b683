"""Runs and comparisons in notebooks and as data frames."""

import chess
from markupsafe import Markup

from ..comparison.leaderboard import Ranking
from ..comparison.verdict import heading, verdict
from ..errors import pluralize, visible
from ..formatting import in_points, number, range_in_points
from ..game.notation import notate, notate_game, with_move_numbers
from ..metrics.measures import MEASURES, TILES
from ..providers.base import Answer
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION, ScoredAnswer
from .html import asset, interval, rendered
from .run_page import first_numbers

Row = dict[str, object]


def sample_rows(run: Run) -> list[Row]:
    """One for each sample: the position, its special moves, and every reply with its outcome."""
    rows = []
    for sample in run.samples:
        position, board, said = sample.position, sample.position.board(), sample.answers
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
            told = _reply(reply, said[name], board).items()
            row |= {f"{name}_{column}": value for column, value in told}
        rows.append(row)
    return rows


def _reply(reply: ScoredAnswer, answer: Answer, board: chess.Board) -> Row:
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
    """Who was measured how, the first number of its page, and whether it was saved."""
    first = MEASURES[TILES[run.plan.eval][0]]
    value, around = run.results.metrics[first.name], run.results.intervals.get(first.name)
    told = [
        f"{run.version}: {run.plan.eval}",
        run.plan.change.key,
        pluralize(len(run.answered), "sample"),
        f"{first.title.lower()} {number(value)} {interval(around)}".rstrip(),
        _whether_saved(run),
    ]
    return visible(f"<Run of {', '.join(told)}>")


def run_html(run: Run) -> str:
    """Headline, tiles and outcomes."""
    counts = {name: run.results.outcomes[name] for name in (STANDARD_CONDITION, CHANGED_CONDITION)}
    outcomes = [o for o in OUTCOMES if any(count.get(o) for count in counts.values())]
    return rendered(
        "notebook_run.html",
        **first_numbers(run),
        palette=_palette(),
        counts=counts,
        outcomes=outcomes,
        saved=_whether_saved(run),
    )


def comparison_html(ranking: Ranking) -> str:
    """The verdict, and every pair in every measure."""
    return rendered(
        "notebook_comparison.html",
        palette=_palette(),
        verdict=verdict(ranking),
        heading=heading(ranking.contenders),
        pairs=ranking.pairs,
        in_points=in_points,
        range_in_points=range_in_points,
    )


def _whether_saved(run: Run) -> str:
    return f"saved in {run.folder}" if run.folder else "not saved: run.save()"


def _palette() -> Markup:
    """The colours of the pages, by name."""
    return Markup(asset("page.css").partition("{")[2].partition("}")[0])
