"""Validate user-defined rules and compute their identity."""

import re
from functools import cache
from hashlib import sha256
from random import Random

import chess

from ...errors import InvalidInput
from .base import Rules

_GAMES, _PLIES = 20, 60
_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def check_key(rules: Rules) -> None:
    """Refuse a key that is no name for files.

    Raises:
        InvalidInput: if it is not such as ``no-en-passant``.
    """
    if not isinstance(rules.key, str) or not _KEY.fullmatch(rules.key):
        raise InvalidInput(f"the key of rules is a name such as 'no-en-passant', not {rules.key!r}")


@cache
def digest_of(rules: Rules) -> str:
    """Differs where rules do: a digest of their legal moves in random games played by them.

    Raises:
        InvalidInput: if their view of a board changes it, or is another when it is asked for again.
    """
    random, told = Random(0), sha256(rules.statement.encode())
    seen: list[tuple[chess.Board, list[str]]] = []
    for _ in range(_GAMES):
        board = chess.Board()
        for _ in range(_PLIES):
            before = board.copy()
            moves = _moves(rules, board)
            if board != before:
                raise InvalidInput(
                    f"view() of {rules.key} changes the board it is given; return a copy"
                )
            told.update(" ".join(moves).encode() + b"\n")
            seen.append((before, moves))
            if not moves:
                break
            board.push(chess.Move.from_uci(random.choice(moves)))
    for before, moves in reversed(seen):  # in another order, so that what is remembered shows
        if differing := {*moves} ^ {*_moves(rules, before)}:
            raise InvalidInput(
                f"view() of {rules.key} answers differently when asked twice about one board "
                f"({min(differing)} in {before.fen()}); let it depend on the board alone"
            )
    return told.hexdigest()[:8]


def _moves(rules: Rules, board: chess.Board) -> list[str]:
    return sorted(move.uci() for move in rules.legal_moves(board))
