"""Rules of one's own: what can work, and what tells them apart."""

import re
from functools import cache
from hashlib import sha256
from random import Random

import chess

from ...errors import BadInput
from .base import Rules

_GAMES, _PLIES = 20, 60
_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def check_key(rules: Rules) -> None:
    """Refuse a key that is no name for files.

    Raises:
        BadInput: if it is not such as ``no-en-passant``.
    """
    if not isinstance(rules.key, str) or not _KEY.fullmatch(rules.key):
        raise BadInput(f"the key of rules is a name such as 'no-en-passant', not {rules.key!r}")


@cache
def digest_of(rules: Rules) -> str:
    """Differs where rules do: a digest of their legal moves in random games played by them.

    Raises:
        BadInput: if their view of a board changes it.
    """
    random, told = Random(0), sha256(rules.statement.encode())
    for _ in range(_GAMES):
        board = chess.Board()
        for _ in range(_PLIES):
            before = board.copy(stack=False)
            moves = sorted(move.uci() for move in rules.legal_moves(board))
            if board != before:
                raise BadInput(
                    f"view() of {rules.key} changes the board it is given; return a copy"
                )
            told.update(" ".join(moves).encode() + b"\n")
            if not moves:
                break
            board.push(chess.Move.from_uci(random.choice(moves)))
    return told.hexdigest()[:8]
