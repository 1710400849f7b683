"""Score a reply: which move it names, and what that move is under the rules.

They are weaker than legality: any move of an own piece to a square whose occupant has another
colour passes, a diagonal bishop move under the changed rules included. Outcomes are the strict
measure; violations stay for comparison with the original.
"""

import re
from functools import lru_cache
from sys import intern

import chess

from ..game.mentions import bare_move
from ..game.move_parser import move_in, named_moves
from ..game.position import Position
from ..game.rules import STANDARD, Rules
from ..providers.base import Answer
from .types import Outcome, Reading, Score

VIOLATION_NAMES = (
    "violation",
    "violation_moved_outside_board",
    "violation_moving_invalid_piece",
    "violation_capturing_same_color",
    "violation_incorrect_notation",
)
_NO_MOVE = frozenset(("violation", "violation_incorrect_notation"))
_MOVE_AT_START = re.compile(r"([a-h][1-8])([a-h][1-8])(?:=?[nbrqkNBRQK])?")


@lru_cache(maxsize=16)  # several measures ask for each of them, sample by sample
def original_violations(reply: str, position: Position) -> frozenset[str]:
    """Which violations a reply to that position commits.

    As in the original, two empty squares count as the same colour, and since every readable move
    names squares of the board, none leaves it.
    """
    move = _MOVE_AT_START.match(reply.strip())
    if not move:
        return _NO_MOVE
    start, target = (chess.BB_SQUARES[chess.parse_square(square)] for square in move.groups())
    own, theirs = position.occupied
    foreign = not start & own
    same = (bool(start & own), bool(start & theirs)) == (bool(target & own), bool(target & theirs))
    found = {
        "violation_moving_invalid_piece": foreign,
        "violation_capturing_same_color": same,
        "violation": foreign or same,
    }
    return frozenset(name for name, is_so in found.items() if is_so)


def judge(answer: Answer, position: Position, rules: Rules, reading: Reading = "lenient") -> Score:
    """Judge the answer to ``position`` under ``rules``.

    >>> from ..game.rules import BISHOPS_AS_KNIGHTS
    >>> position = Position(4, ("e2e4", "b7b6", "d2d4"), ("c8b7",))
    >>> judge(Answer("c8b7"), position, BISHOPS_AS_KNIGHTS)
    Score(outcome='special', move='c8b7')
    """
    if answer.stop_reason == "error":
        return Score("error", None)
    move = answered_move(answer, position, rules, reading)
    if move is None:
        return Score(unread(answer), None)
    return Score(outcome_of(move, position, rules), intern(move.uci()))


def answered_move(
    answer: Answer, position: Position, rules: Rules, reading: Reading = "lenient"
) -> chess.Move | None:
    """The move that an answer names, or None; the exact reader takes a bare UCI move alone."""
    if reading == "exact":
        return bare_move(answer.text.strip())
    return move_in(
        answer.text,
        position.board(),
        rules,
        cut_off=answer.stop_reason == "length",
        previous=position.moves[-1] if position.moves else None,
    )


def names_special(text: str, position: Position) -> bool:
    """Whether a running text names a special move; standard chess says what notation means."""
    named = named_moves(text, position.board(), STANDARD).values() if text else ()
    return any(move is not None and move.uci() in position.special_moves for move in named)


def outcome_of(move: chess.Move, position: Position, rules: Rules) -> Outcome:
    """What a move is in a position under the rules."""
    board = position.board()
    if move.uci() in position.special_moves:
        return "special"
    if rules.is_legal(board, move):
        return "legal" if STANDARD.is_legal(board, move) else "adapted"
    return "forbidden" if STANDARD.is_legal(board, move) else "illegal"


def unread(answer: Answer) -> Outcome:
    """What an answer was that did not tell what was asked for."""
    if answer.stop_reason == "refused":
        return "refused"
    return "truncated" if answer.stop_reason == "length" else "unreadable"
