"""Knowledge questions: is this move legal now, yes or no?

What is asked about is either a special move, which is not, or a move that is; nothing else in the
question differs.
"""

from collections.abc import Sequence

import chess

from ..game.position import Position
from ..game.rules import STANDARD, Rules
from ..providers.base import Answer
from .scorer import unread
from .types import QueriedMove, Reading, Score
from .yes_no import read_yes_no

MOVE, ANSWERS = "{move}", "{answers}"
"""Stand in a question for the move it is about, and for what may be answered."""


def forbidden_move(position: Position, rules: Rules) -> str:
    """A special move; always the same one of several."""
    return _chosen(position, position.special_moves)


def allowed_move(position: Position, rules: Rules) -> str:
    """A move that is legal under the changed rules and, where there is one, only under them.

    It is always the same one of several; a special move where no move is legal.
    """
    board = position.board()
    legal = list(rules.legal_moves(board))
    only_now = [move for move in legal if not STANDARD.is_legal(board, move)]
    return _chosen(position, [m.uci() for m in only_now or legal] or position.special_moves)


def _chosen(position: Position, moves: Sequence[str]) -> str:
    # The last bit of the id decides about the order of the answers.
    return sorted(moves)[int(position.id, 16) // 2 % len(moves)]


def answers_for(position: Position) -> str:
    """What may be answered: "yes" comes first in half of the positions, as their ids say.

    So a liking for the first, or for the last, is not taken for knowledge.
    """
    return "no or yes" if int(position.id, 16) % 2 else "yes or no"


def judge_knowledge(
    about: QueriedMove, answer: Answer, position: Position, rules: Rules, reading: Reading
) -> Score:
    """Judge the answer to whether the move that ``about`` gives is legal under ``rules``."""
    if answer.stop_reason == "error":
        return Score("error", None)
    move = about(position, rules)
    if reading == "exact":
        said = {"yes": True, "no": False}.get(answer.text.strip().lower())
    else:
        said = read_yes_no(answer.text, move=move, cut_off=answer.stop_reason == "length")
    if said is None:
        return Score(unread(answer), None)
    legal = rules.is_legal(position.board(), chess.Move.from_uci(move))
    return Score("right" if said == legal else "wrong", None)
