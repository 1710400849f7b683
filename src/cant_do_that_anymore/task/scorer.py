"""Score an answer: the move it names, and the outcome of that move under the rules.

The original eval's violations are weaker than legality: any move of an own piece to a square whose
occupant has another color passes, even a diagonal bishop move under the changed rules. Outcomes are
the strict measure; violations serve comparison with the original.

A legality question is about a special move, which is illegal now, or about a legal move. Nothing
else in the two prompts differs.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from sys import intern

import chess

from ..game.move_names import bare_move, named_moves
from ..game.position import Position
from ..game.reader import move_in
from ..game.rules import STANDARD, Rules
from ..providers.base import Answer
from .types import Outcome, QueriedMove, Reading, Score
from .yes_no import read_yes_no

VIOLATION_NAMES = (
    "violation",
    "violation_moved_outside_board",
    "violation_moving_invalid_piece",
    "violation_capturing_same_color",
    "violation_incorrect_notation",
)
_NO_MOVE = frozenset(("violation", "violation_incorrect_notation"))
_MOVE_AT_START = re.compile(r"([a-h][1-8])([a-h][1-8])(?:=?[nbrqkNBRQK])?")


@lru_cache(maxsize=16)  # several measures use it per sample
def original_violations(reply: str, position: Position) -> frozenset[str]:
    """Return the original eval's violations that a reply commits.

    As in the original, two empty squares count as the same color. Every readable move names squares
    on the board, so none leaves it.
    """
    move = _MOVE_AT_START.match(reply.strip())
    if not move:
        return _NO_MOVE
    start, target = (chess.BB_SQUARES[chess.parse_square(square)] for square in move.groups())
    own, theirs = position.occupied
    not_own = not start & own
    same = (bool(start & own), bool(start & theirs)) == (bool(target & own), bool(target & theirs))
    violations = {
        "violation_moving_invalid_piece": not_own,
        "violation_capturing_same_color": same,
        "violation": not_own or same,
    }
    return frozenset(name for name, committed in violations.items() if committed)


def judge(answer: Answer, position: Position, rules: Rules, reading: Reading = "lenient") -> Score:
    """Score the answer to ``position`` under ``rules``.

    >>> from ..game.rules import BISHOPS_AS_KNIGHTS
    >>> position = Position(4, ("e2e4", "b7b6", "d2d4"), ("c8b7",))
    >>> judge(Answer("c8b7"), position, BISHOPS_AS_KNIGHTS)
    Score(outcome='special', move='c8b7')
    """
    if answer.stop_reason == "error":
        return Score("error", None)
    move = answered_move(answer, position, rules, reading)
    if move is None:
        return Score(unusable_outcome(answer), None)
    return Score(outcome_of(move, position, rules), intern(move.uci()))


def judge_last_line(
    answer: Answer, position: Position, rules: Rules, reading: Reading = "lenient"
) -> Score:
    """Score an answer whose last line is to be the move; if that has none, all of it.

    One that was cut off names no move, whatever moves it mentions.

    >>> from ..game.rules import BISHOPS_AS_KNIGHTS
    >>> position = Position(4, ("e2e4", "b7b6", "d2d4"), ("c8b7",))
    >>> judge_last_line(Answer("c8b7: no\\ng8f6"), position, BISHOPS_AS_KNIGHTS)
    Score(outcome='legal', move='g8f6')
    """
    if answer.stop_reason == "length":
        return Score("truncated", None)
    last = replace(answer, text=answer.text.strip().rpartition("\n")[2])
    score = judge(last, position, rules, reading)
    return score if score.usable else judge(answer, position, rules, reading)


def answered_move(
    answer: Answer, position: Position, rules: Rules, reading: Reading = "lenient"
) -> chess.Move | None:
    """Return the move that an answer names, or None; exact reading accepts only a bare UCI move."""
    if reading == "exact":
        return bare_move(answer.text.strip())
    return move_in(answer.text, position.board(), rules, cut_off=answer.stop_reason == "length")


def names_special(text: str, position: Position) -> bool:
    """Whether a text names a special move; its notation is read under standard rules."""
    moves = named_moves(text, position.board(), STANDARD).values() if text else ()
    return any(move is not None and move.uci() in position.special_moves for move in moves)


def outcome_of(move: chess.Move, position: Position, rules: Rules) -> Outcome:
    """Return the outcome of a move in a position under the rules."""
    if move.uci() in position.special_moves:
        return "special"
    board = position.board()
    if rules.is_legal(board, move):
        return "legal" if STANDARD.is_legal(board, move) else "adapted"
    return "forbidden" if STANDARD.is_legal(board, move) else "illegal"


def unusable_outcome(answer: Answer) -> Outcome:
    """Return the outcome of an answer in which nothing could be read."""
    if answer.stop_reason == "refused":
        return "refused"
    return "truncated" if answer.stop_reason == "length" else "unreadable"


def forbidden_move(position: Position, rules: Rules) -> str:
    """Return a special move; of several, always the same one."""
    return _pick(position, position.special_moves)


@lru_cache(maxsize=4096)  # asked for by each question about it, its scoring and its expected cost
def allowed_move(position: Position, rules: Rules) -> str:
    """Return a move that is legal under the changed rules and, if possible, only under them.

    Of several it is always the same one. If no move is legal, it is a special move.
    """
    board = position.board()
    legal, before = list(rules.legal_moves(board)), set(STANDARD.legal_moves(board))
    newly_legal = [move for move in legal if move not in before]
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
