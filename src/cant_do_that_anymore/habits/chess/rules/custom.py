"""Validate user-defined rules and compute their identity."""

import re
from functools import cache
from hashlib import sha256
from random import Random

import chess

from ....errors import InvalidInput
from .base import Rules

_GAMES, _PLIES = 20, 60
_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def check_rules(rules: Rules) -> None:
    """Reject user-defined rules that cannot work, as far as random games show.

    Raises:
        InvalidInput: if a text is missing, or ``view`` does not return a copy of the board.
    """
    texts = [getattr(rules, name, None) for name in ("key", "title", "statement")]
    if not all(isinstance(text, str) and text for text in texts) or not _KEY.fullmatch(rules.key):
        raise InvalidInput(
            "rules need a title, a statement and a key such as 'no-en-passant', not "
            f"{texts[0]!r} ({type(rules).__name__})"
        )
    digest_of(rules)


@cache
def digest_of(rules: Rules) -> str:
    """Return a digest of the statement and of the legal moves in random games under the rules.

    Raises:
        InvalidInput: if ``view`` does not return a copy of the board with other legal moves.
    """
    random, digest = Random(0), sha256(rules.statement.encode())
    for _ in range(_GAMES):
        board = chess.Board()
        for _ in range(_PLIES):
            moves = _moves(rules, board)
            digest.update(" ".join(moves).encode() + b"\n")
            if not moves:
                break
            board.push(chess.Move.from_uci(random.choice(moves)))
    return digest.hexdigest()[:8]


def _moves(rules: Rules, board: chess.Board) -> list[str]:
    """Return the legal moves, after a check of the view that they come from."""
    before, view = board.copy(), rules.view(board)
    is_view = isinstance(view, chess.Board) and view.turn == before.turn and board == before
    moves = list(rules.legal_moves(board)) if is_view else []
    if not is_view or any(board.color_at(move.from_square) != board.turn for move in moves):
        raise InvalidInput(
            f"view() of {rules.key} must return a copy with other moves, and not change the board"
        )
    return sorted(move.uci() for move in moves)
