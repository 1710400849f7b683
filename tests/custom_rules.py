"""Rules that are not in the catalog."""

import chess

from cant_do_that_anymore import Rules
from cant_do_that_anymore.habits.chess.rules import copy_as


class NoEnPassant(Rules):
    key = "no-en-passant"
    title = "Nobody captures en passant"
    statement = "Pawns can no longer capture en passant: such a move is now illegal."

    def view(self, board: chess.Board) -> chess.Board:
        view = board.copy(stack=False)
        view.ep_square = None
        return view

    def affects(self, board: chess.Board, move: chess.Move) -> bool:
        return board.is_en_passant(move)


class _LongKnightBoard(chess.Board):
    def attacks_mask(self, square: chess.Square) -> chess.Bitboard:
        if not self.knights & chess.BB_SQUARES[square]:
            return super().attacks_mask(square)
        steps = {(file, rank) for file in (-3, -1, 1, 3) for rank in (-3, -1, 1, 3)}
        file, rank = chess.square_file(square), chess.square_rank(square)
        return sum(
            chess.BB_SQUARES[chess.square(file + x, rank + y)]
            for x, y in steps
            if abs(x) != abs(y) and 0 <= file + x < 8 and 0 <= rank + y < 8
        )


class KnightsJumpFurther(Rules):
    """Knights move as no chess piece does."""

    key = "knights-jump-further"
    title = "Knights jump three squares and one"
    statement = "Knights now jump three squares straight and one aside, and no longer as usual."

    def view(self, board: chess.Board) -> chess.Board:
        return copy_as(_LongKnightBoard, board)
