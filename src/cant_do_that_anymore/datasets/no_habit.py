"""When a search gives up because a model hardly shows the habit, and what would help."""

from collections.abc import Sequence

import chess

from ..formatting import join_words, percentage
from ..game.position import Position
from ..game.rules import CATALOG, Rules

# A search gives up if there are so many positions for each hit, and for one more.
MAX_POSITIONS_PER_HIT = 400
# A model that plays fewer legal moves cannot play chess.
MIN_LEGAL_SHARE = 0.5
MAX_SUGGESTIONS = 3
# A rule is suggested if it forbids at least this share of the moves.
MIN_FORBIDDEN_SHARE = 0.02


def is_too_rare(hits: int, searched: int) -> bool:
    """Whether a search has too few hits to go on.

    >>> [is_too_rare(0, 399), is_too_rare(0, 400), is_too_rare(1, 799), is_too_rare(1, 800)]
    [False, True, False, True]
    """
    return searched >= MAX_POSITIONS_PER_HIT * (hits + 1)


def advice(played: Sequence[tuple[Position, str]], change: Rules) -> str:
    """Say what a model's moves under the standard rules show, as a sentence; "" if nothing."""
    moves = [(position.board(), chess.Move.from_uci(uci)) for position, uci in played]
    legal = sum(move in board.legal_moves for board, move in moves)
    if legal < MIN_LEGAL_SHARE * len(moves):
        share = percentage(legal / len(moves), 0)
        return f". Only {share} of its moves are legal: it can't play chess; try another model"
    return _other_habits(moves, change)


def _other_habits(moves: Sequence[tuple[chess.Board, chess.Move]], change: Rules) -> str:
    """Name the other rules that forbid most of these moves.

    Of rules that forbid the same moves, it is the first of the catalog.
    """
    rules_by_moves: dict[tuple[int, ...], str] = {}
    for rules in CATALOG.values():
        forbidden = tuple(n for n, move in enumerate(moves) if rules.is_special(*move))
        if rules != change and len(forbidden) >= max(1, MIN_FORBIDDEN_SHARE * len(moves)):
            rules_by_moves.setdefault(forbidden, rules.key)
    frequent = sorted(rules_by_moves, key=len, reverse=True)[:MAX_SUGGESTIONS]
    if not frequent:
        return ""
    shares = {rules_by_moves[forbidden]: len(forbidden) / len(moves) for forbidden in frequent}
    named = [f"--rules {key} ({percentage(share, 0)})" for key, share in shares.items()]
    return f". Its {len(moves):,} moves show other habits: try {join_words(named, 'or')}"
