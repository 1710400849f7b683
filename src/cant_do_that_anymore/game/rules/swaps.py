"""Rules under which all pieces of one kind move as another kind does."""

from dataclasses import dataclass

import chess

from .base import Rules, copy_as

PLURALS = {
    chess.KNIGHT: "knights",
    chess.BISHOP: "bishops",
    chess.ROOK: "rooks",
    chess.QUEEN: "queens",
}
_BITBOARDS = PLURALS  # python-chess keeps a kind's squares in an attribute of the same name
_WAYS = {
    chess.KNIGHT: ("in an L-shape",),
    chess.BISHOP: ("diagonally",),
    chess.ROOK: ("along ranks and files",),
    chess.QUEEN: ("diagonally", "along ranks and files"),
}


@dataclass(frozen=True)
class PieceSwap(Rules):
    """All pieces of one kind move as another kind does."""

    piece: chess.PieceType
    moves_like: chess.PieceType

    @property
    def key(self) -> str:
        """Such as ``bishops-as-knights``."""
        return f"{PLURALS[self.piece]}-as-{PLURALS[self.moves_like]}"

    @property
    def title(self) -> str:
        """Such as "Bishops move as knights do"."""
        return f"{PLURALS[self.piece].capitalize()} move as {PLURALS[self.moves_like]} do"

    @property
    def statement(self) -> str:
        """What they do now, and what they can no longer do."""
        pieces, others = PLURALS[self.piece], PLURALS[self.moves_like]
        consequence = f"Every move that {pieces} could make before is still legal."
        if self._lost:
            lost = f"{pieces.capitalize()} can no longer move {self._lost}"
            consequence = f"{lost}: such a move is now illegal."
        return f"All {pieces} now move exactly as {others} do. {consequence}"

    @property
    def placebo(self) -> Rules:
        """Another piece moves like the same one, or where that takes nothing away, like another.

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
    def affected_moves_label(self) -> str:
        """Such as "moves of bishops"."""
        return f"moves of {PLURALS[self.piece]}"

    @property
    def habit_label(self) -> str:
        """Such as "moves a bishop diagonally"."""
        return f"moves a {chess.piece_name(self.piece)} {self._lost}".strip()

    @property
    def forbids_something(self) -> bool:
        """Not if they move as queens do and did so in part before."""
        return bool(self._lost)

    @property
    def _lost(self) -> str:
        """How the piece can no longer move."""
        ways = [way for way in _WAYS[self.piece] if way not in _WAYS[self.moves_like]]
        return " or ".join(ways)

    def view(self, board: chess.Board) -> chess.Board:
        """The position with every piece labelled as what it moves like, for standard rules."""
        view = copy_as(_Relabelled, board)
        old, new = _BITBOARDS[self.piece], _BITBOARDS[self.moves_like]
        setattr(view, new, getattr(board, new) | getattr(board, old))
        setattr(view, old, chess.BB_EMPTY)
        return view

    def affects(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether it is made with the changed piece."""
        return board.piece_type_at(move.from_square) == self.piece


class _Relabelled(chess.Board):
    """A position whose labels say how pieces move, with the castling rights of the real one."""

    def clean_castling_rights(self) -> chess.Bitboard:
        return self.castling_rights  # cleaned before relabelling; a relabelled rook still castles
