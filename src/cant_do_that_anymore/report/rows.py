"""A run as rows with readable columns, for tables of any kind."""

import chess

from ..game.notation import numbered, written, written_game
from ..providers.base import Answer
from ..runs.results import Run
from ..task.types import ScoredAnswer

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
            "moves": numbered(written_game(position.moves)),
            "fen": board.fen(),
            "special": ", ".join(written(board, uci) for uci in position.special_moves),
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
        "move": written(board, reply.move) if reply.move else None,
        "reply": answer.text,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "thinking_tokens": usage.thinking_tokens,
    }
