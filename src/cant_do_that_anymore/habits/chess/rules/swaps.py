"""Rules under which all pieces of one type move like another type."""

from dataclasses import dataclass
from functools import cache

import chess

from .base import Rules, copy_as

# How the pieces that can be swapped move.
DIRECTIONS = {
    chess.KNIGHT: ("in an L-shape",),
    chess.BISHOP: ("diagonally",),
    chess.ROOK: ("along ranks and files",),
    chess.QUEEN: ("diagonally", "along ranks and files"),
}


@cache
def _plural(piece: chess.PieceType) -> str:
    """Return for example "knights", also the attribute of a board that has their squares."""
    return f"{chess.piece_name(piece)}s"


@dataclass(frozen=True)
class PieceSwap(Rules):
    """All pieces of one type move like another type."""

    piece: chess.PieceType
    moves_like: chess.PieceType

    @property
    def key(self) -> str:
        """For example ``bishops-as-knights``."""
        return f"{_plural(self.piece)}-as-{_plural(self.moves_like)}"

    @property
    def title(self) -> str:
        """For example "Bishops move like knights"."""
        return f"{_plural(self.piece).capitalize()} move like {_plural(self.moves_like)}"

    @property
    def statement(self) -> str:
        """How the pieces move now, and how they can no longer move."""
        pieces, others = _plural(self.piece), _plural(self.moves_like)
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
            for like in (self.moves_like, *DIRECTIONS)
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
        old, new = DIRECTIONS[self.piece], DIRECTIONS[self.moves_like]
        return " or ".join(way for way in old if way not in new)

    def view(self, board: chess.Board) -> chess.Board:
        """Return a copy with the pieces replaced by the type they move like."""
        view = copy_as(_Relabeled, board)
        old, new = _plural(self.piece), _plural(self.moves_like)
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
