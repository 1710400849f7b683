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
    if not isinstance(rules.key, str) or not _KEY.fullmatch(rules.key):
        raise InvalidInput(
            f"the key of rules must be a name such as 'no-en-passant', not {rules.key!r}"
        )
    try:
        hash(rules)
    except TypeError as problem:
        raise InvalidInput(
            f"the rules {rules.key!r} have a field that cannot be hashed ({problem}); use a tuple"
        ) from None
    for name, purpose in (
        ("statement", "the text of the prompt"),
        ("title", "the name in reports"),
    ):
        text = getattr(rules, name)
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput(f"the rules {rules.key!r} need a {name} ({purpose}), not {text!r}")
    if not isinstance(rules.placebo, Rules | None):
        raise InvalidInput(
            f"the placebo of {rules.key!r} must be rules such as MyRule(), not {rules.placebo!r}"
        )
    _moves(rules, chess.Board())


@cache
def digest_of(rules: Rules) -> str:
    """Return a digest of the statement and of the legal moves in random games under the rules.

    Raises:
        InvalidInput: if ``view`` changes the board, returns no board of the same position, or gives
            different results for equal boards.
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
                f"view() of {rules.key} returns different moves when it is called twice with the "
                f"same board ({min(differing)} in {before.fen()}); it must depend on the board "
                "alone"
            )
    return digest.hexdigest()[:8]


def _moves(rules: Rules, board: chess.Board) -> list[str]:
    """Return the legal moves, after a check of the view that they come from."""
    view = rules.view(board)
    if not isinstance(view, chess.Board):
        raise InvalidInput(f"view() of {rules.key} returns {view!r}, not a chess.Board")
    if view.turn != board.turn:
        raise InvalidInput(
            f"view() of {rules.key} changes the side to move; keep the turn of the board"
        )
    moves = sorted(legal_moves_of(view, board), key=chess.Move.uci)
    for move in moves:
        if board.color_at(move.from_square) != board.turn:
            raise InvalidInput(
                f"view() of {rules.key} allows {move} where the side to move has no piece; "
                "return a copy of the board with other moves, not another position"
            )
    return [move.uci() for move in moves]
