"""Rules that are in no catalogue."""

import chess

from cant_do_that_anymore import Rules


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
