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


def violations(reply: str, position: Position) -> frozenset[str]:
    """Which violations a reply to that position commits.

    As in the original, two empty squares count as the same colour, and since every readable move
    names squares of the board, none leaves it.
    """
    move = _MOVE_AT_START.match(reply.strip())
    if not move:
        return _NO_MOVE
    return _of_move(*move.groups(), position)


@lru_cache(maxsize=8192)  # asked once for each of the names
def _of_move(start_at: str, to: str, position: Position) -> frozenset[str]:
    board = position.board()
    start, target = (board.color_at(chess.parse_square(square)) for square in (start_at, to))
    found = {
        "violation_moving_invalid_piece": start != board.turn,
        "violation_capturing_same_color": start == target,
        "violation": start != board.turn or start == target,
    }
    return frozenset(name for name, is_so in found.items() if is_so)
