"""Legality questions: is this move legal now, yes or no?

They are about a special move, which is illegal, or about a legal move. Nothing else in the two
prompts differs.
"""

from collections.abc import Sequence

import chess

from ..game.position import Position
from ..game.rules import STANDARD, Rules
from ..providers.base import Answer
from .scorer import unusable_outcome
from .types import QueriedMove, Reading, Score
from .yes_no import read_yes_no


def forbidden_move(position: Position, rules: Rules) -> str:
    """Return a special move; of several, always the same one."""
    return _pick(position, position.special_moves)


def allowed_move(position: Position, rules: Rules) -> str:
    """Return a move that is legal under the changed rules and, if possible, only under them.

    Of several it is always the same one. If no move is legal, it is a special move.
    """
    board = position.board()
    legal = list(rules.legal_moves(board))
    newly_legal = [move for move in legal if not STANDARD.is_legal(board, move)]
    return _pick(position, [m.uci() for m in newly_legal or legal] or position.special_moves)


def _pick(position: Position, moves: Sequence[str]) -> str:
    # Without the last bit of the id, which decides the order of the answer options.
    return sorted(moves)[int(position.id, 16) // 2 % len(moves)]


def judge_knowledge(
    about: QueriedMove, answer: Answer, position: Position, rules: Rules, reading: Reading
) -> Score:
    """Score the answer to whether the move of ``about`` is legal under ``rules``."""
    if answer.stop_reason == "error":
        return Score("error", None)
    move = about(position, rules)
    if reading == "exact":
        says_legal = {"yes": True, "no": False}.get(answer.text.strip().lower())
    else:
        says_legal = read_yes_no(answer.text, move=move, cut_off=answer.stop_reason == "length")
    if says_legal is None:
        return Score(unusable_outcome(answer), None)
    legal = rules.is_legal(position.board(), chess.Move.from_uci(move))
    return Score("right" if says_legal == legal else "wrong", None)
