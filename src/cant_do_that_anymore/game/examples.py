"""An example of what a change of the rules forbids: a move of one famous game."""

import chess

from .position import Position
from .rules import Rules

GAME = "Morphy's opera game, Paris 1858"
_MOVES = """
e2e4 e7e5 g1f3 d7d6 d2d4 c8g4 d4e5 g4f3 d1f3 d6e5 f1c4 g8f6 f3b3 d8e7 b1c3 c7c6 c1g5 b7b5
c3b5 c6b5 c4b5 b8d7 e1c1 a8d8 d1d7 d8d7 h1d1 e7e6 b5d7 f6d7 b3b8 d7b8 d1d8
"""


def example_of(rules: Rules) -> Position | None:
    """A position of the game with a special move, if there is one.

    Of several, the one where the same piece has the most moves now.
    """
    board, moves = chess.Board(), _MOVES.split()
    found: list[tuple[int, Position]] = []
    for ply, uci in enumerate(moves):
        move = chess.Move.from_uci(uci)
        if rules.is_special(board, move):
            others = (m for m in rules.legal_moves(board) if m.from_square == move.from_square)
            found.append((len(list(others)), Position(0, tuple(moves[:ply]), (uci,))))
        board.push(move)
    return max(found, key=lambda one: one[0])[1] if found else None
