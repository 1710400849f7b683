"""From a reply to an outcome: which move it names, and what that move is under the rules."""

from sys import intern

import chess

from ..game.mentions import bare_move
from ..game.move_parser import move_in, named_moves
from ..game.position import Position
from ..game.rules import STANDARD, Rules
from ..providers.base import Answer
from .vocabulary import Judgement, Outcome, Reading


def judge(
    answer: Answer, position: Position, rules: Rules, reading: Reading = "lenient"
) -> Judgement:
    """Judge the answer to ``position`` under ``rules``.

    >>> from ..game.rules import BISHOPS_AS_KNIGHTS
    >>> position = Position(4, ("e2e4", "b7b6", "d2d4"), ("c8b7",))
    >>> judge(Answer("c8b7"), position, BISHOPS_AS_KNIGHTS)
    Judgement(outcome='special', move='c8b7')
    """
    if answer.stop_reason == "error":
        return Judgement("error", None)
    move = answered_move(answer, position, rules, reading)
    if move is None:
        return Judgement(unread(answer), None)
    return Judgement(outcome_of(move, position, rules), intern(move.uci()))


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
