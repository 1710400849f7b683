"""Rules under which all pieces of one type move like another type."""

from dataclasses import dataclass

import chess

from .base import Rules, copy_as

PLURALS = {
    chess.KNIGHT: "knights",
    chess.BISHOP: "bishops",
    chess.ROOK: "rooks",
    chess.QUEEN: "queens",
}
_BITBOARDS = PLURALS  # python-chess stores a piece type's squares in an attribute of this name
_DIRECTIONS = {
    chess.KNIGHT: ("in an L-shape",),
    chess.BISHOP: ("diagonally",),
    chess.ROOK: ("along ranks and files",),
    chess.QUEEN: ("diagonally", "along ranks and files"),
}


@dataclass(frozen=True)
class PieceSwap(Rules):
    """All pieces of one type move like another type."""

    piece: chess.PieceType
    moves_like: chess.PieceType

    @property
    def key(self) -> str:
        """For example ``bishops-as-knights``."""
        return f"{PLURALS[self.piece]}-as-{PLURALS[self.moves_like]}"

    @property
    def title(self) -> str:
        """For example "Bishops move like knights"."""
        return f"{PLURALS[self.piece].capitalize()} move like {PLURALS[self.moves_like]}"

    @property
    def statement(self) -> str:
        """How the pieces move now, and how they can no longer move."""
        pieces, others = PLURALS[self.piece], PLURALS[self.moves_like]
        consequence = f"Every move that {pieces} could make before is still legal."
        if self._lost:
            lost = f"{pieces.capitalize()} can no longer move {self._lost}"
            consequence = f"{lost}: such a move is now illegal."
        return f"All {pieces} now move exactly as {others} do. {consequence}"

    @property
    def placebo_change(self) -> Rules:
        """A swap of another piece to the same moves, or to others if that would forbid nothing.

        Pieces that move least in openings come first, so that few habits become illegal.
        """
        changes = (
            PieceSwap(piece, like)
            for like in (self.moves_like, *PLURALS)
            for piece in (chess.ROOK, chess.QUEEN, chess.BISHOP, chess.KNIGHT)
            if piece != like and self.piece not in (piece, like)
        )
        return next(change for change in changes if change.forbids_something)

    @property
    def forbids_something(self) -> bool:
        """False if the pieces keep all their moves, as rooks that move like queens do."""
        return bool(self._lost)

    @property
    def _lost(self) -> str:
        """The directions in which the piece can no longer move."""
        lost = [way for way in _DIRECTIONS[self.piece] if way not in _DIRECTIONS[self.moves_like]]
        return " or ".join(lost)

    def view(self, board: chess.Board) -> chess.Board:
        """Return a copy with the pieces replaced by the type they move like."""
        view = copy_as(_Relabeled, board)
        old, new = _BITBOARDS[self.piece], _BITBOARDS[self.moves_like]
        setattr(view, new, getattr(board, new) | getattr(board, old))
        setattr(view, old, chess.BB_EMPTY)
        return view

    def affects(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether the move is made with the changed piece."""
        return board.piece_type_at(move.from_square) == self.piece


class _Relabeled(chess.Board):
    """A board whose piece types say how pieces move, with the real castling rights."""

    def clean_castling_rights(self) -> chess.Bitboard:
        return self.castling_rights  # cleaned before relabeling; a relabeled rook still castles
