"""Validate user-defined rules and compute their identity."""

import re
from functools import cache
from hashlib import sha256
from random import Random

import chess

from ....errors import InvalidInput
from .base import Rules, legal_moves_of

_GAMES, _PLIES = 20, 60
_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def check_rules(rules: Rules) -> None:
    """Reject user-defined rules that cannot work, as far as one board shows.

    Raises:
        InvalidInput: if the key cannot be part of a file name, a field cannot be hashed, a text is
            missing, or ``view`` does not return a board with the same side to move.
    """
    key = getattr(rules, "key", None)
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidInput(f"the key of rules must be a name such as 'no-en-passant', not {key!r}")
    try:
        hash(rules)
    except TypeError as problem:
        raise InvalidInput(
            f"the rules {key!r} have a field that cannot be hashed ({problem}); use a tuple"
        ) from None
    for name in ("statement", "title"):
        text = getattr(rules, name, None)
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput(f"the rules {key!r} need a {name} (a text), not {text!r}")
    if not isinstance(rules.placebo, Rules | None):
        raise InvalidInput(
            f"the placebo of {key!r} must be rules such as MyRule(), not {rules.placebo!r}"
        )
    _moves(rules, chess.Board())


@cache
def digest_of(rules: Rules) -> str:
    """Return a digest of the statement and of the legal moves in random games under the rules.

    Raises:
        InvalidInput: if ``view`` changes the board, or returns no board of the same position.
    """
    random, digest = Random(0), sha256(rules.statement.encode())
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
            if not moves:
                break
            board.push(chess.Move.from_uci(random.choice(moves)))
    return digest.hexdigest()[:8]


def _moves(rules: Rules, board: chess.Board) -> list[str]:
    """Return the legal moves, after a check of the view that they come from."""
    view = rules.view(board)
    if not isinstance(view, chess.Board) or view.turn != board.turn:
        raise InvalidInput(
            f"view() of {rules.key} must return a chess.Board with the same side to move, not "
            f"{view!r}"
        )
    moves = list(legal_moves_of(view, board))
    for move in moves:
        if board.color_at(move.from_square) != board.turn:
            raise InvalidInput(
                f"view() of {rules.key} allows {move} where the side to move has no piece; "
                "return a copy of the board with other moves, not another position"
            )
    return sorted(move.uci() for move in moves)
