"""The original's violations, by its definitions, with its reader's faults mended.

They are weaker than legality: any move of an own piece to a square whose occupant has another
colour passes, a diagonal bishop move under the changed rules included. Outcomes are the strict
measure; violations stay for comparison with the original.
"""

import re
from functools import lru_cache

import chess

from ..game.position import Position

NAMES = (
    "violation",
    "violation_moved_outside_board",
    "violation_moving_invalid_piece",
    "violation_capturing_same_color",
    "violation_incorrect_notation",
)
_NO_MOVE = frozenset(("violation", "violation_incorrect_notation"))
_MOVE_AT_START = re.compile(r"([a-h][1-8])([a-h][1-8])(?:=?[nbrqkNBRQK])?")


@lru_cache(maxsize=16)  # several measures ask for each of them, sample by sample
def violations(reply: str, position: Position) -> frozenset[str]:
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
