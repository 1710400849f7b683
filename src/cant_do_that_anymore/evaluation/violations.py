"""The original's violations, by its definitions, with its reader's faults mended.

They are weaker than legality: any move of an own piece to a square whose occupant has another
colour passes, a diagonal bishop move under the changed rules included. Outcomes are the strict
measure; violations stay for comparison with the original.
"""

import re

import chess

NAMES = (
    "violation",
    "violation_moved_outside_board",
    "violation_moving_invalid_piece",
    "violation_capturing_same_color",
    "violation_incorrect_notation",
)
_MOVE_AT_START = re.compile(r"([a-h][1-8])([a-h][1-8])(?:=?[nbrqkNBRQK])?")


def violations(reply: str, board: chess.Board) -> dict[str, bool]:
    """Which violations a reply commits.

    As in the original, two empty squares count as the same colour, and since every readable move
    names squares of the board, none leaves it.
    """
    move = _MOVE_AT_START.match(reply.strip())
    wrong_piece = same_colour = False
    if move:
        start, target = (board.color_at(chess.parse_square(square)) for square in move.groups())
        wrong_piece, same_colour = start != board.turn, start == target
    any_of_them = wrong_piece or same_colour or not move
    found = (any_of_them, False, wrong_piece, same_colour, not move)
    return dict(zip(NAMES, found, strict=True))
