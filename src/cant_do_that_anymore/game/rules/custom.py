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
    """Reject a key that cannot be part of a file name.

    Raises:
        InvalidInput: if it is not a key such as ``no-en-passant``.
    """
    if not isinstance(rules.key, str) or not _KEY.fullmatch(rules.key):
        raise InvalidInput(f"the key of rules is a name such as 'no-en-passant', not {rules.key!r}")


@cache
def digest_of(rules: Rules) -> str:
    """Return a digest of the statement and of the legal moves in random games under the rules.

    Raises:
        InvalidInput: if ``view`` changes the board, or gives different results for equal boards.
    """
    random, digest = Random(0), sha256(rules.statement.encode())
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
            digest.update(" ".join(moves).encode() + b"\n")
            seen.append((before, moves))
            if not moves:
                break
            board.push(chess.Move.from_uci(random.choice(moves)))
    for before, moves in reversed(seen):  # in another order, to detect state
        if differing := {*moves} ^ {*_moves(rules, before)}:
            raise InvalidInput(
                f"view() of {rules.key} answers differently when asked twice about one board "
                f"({min(differing)} in {before.fen()}); let it depend on the board alone"
            )
    return digest.hexdigest()[:8]


def _moves(rules: Rules, board: chess.Board) -> list[str]:
    return sorted(move.uci() for move in rules.legal_moves(board))
