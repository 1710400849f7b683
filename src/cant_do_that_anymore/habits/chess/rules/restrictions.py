"""Rules that forbid moves and allow no new ones.

The first two are among those of "Assessing Game Balance with AlphaZero" (arXiv 2009.04374).
"""

from collections.abc import Iterator

import chess

from .base import Rules, copy_as


class PawnsOneStep(Rules):
    """Pawns never move two squares, so there is no en passant capture either."""

    key = "pawns-one-step"
    title = "Pawns move one square at a time"
    statement = (
        "All pawns now move one square at a time, also from where they start, so no pawn can be "
        "captured en passant. Pawns can no longer move two squares at once: such a move is now "
        "illegal."
    )

    @property
    def placebo_change(self) -> Rules:
        """Knights that cannot jump."""
        return KnightsCannotJump()

    def view(self, board: chess.Board) -> chess.Board:
        """Return a copy with one-step pawns and without an en passant square."""
        view = copy_as(_OneStep, board)
        view.ep_square = None
        return view

    def affects(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether the move is a pawn's double step."""
        return _is_double_step(board, move)


class NoCastling(Rules):
    """Castling is forbidden."""

    key = "no-castling"
    title = "Castling is forbidden"
    statement = (
        "No king may castle any more, on either side of the board. "
        "Kings can no longer move two squares towards a rook: such a move is now illegal."
    )
    placebo_change = PawnsOneStep()

    def view(self, board: chess.Board) -> chess.Board:
        """Return a copy without castling rights."""
        view = board.copy(stack=False)
        view.castling_rights = chess.BB_EMPTY
        return view

    def affects(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether the move castles."""
        return board.is_castling(move)


class KnightsCannotJump(Rules):
    """A piece next to a knight blocks it, as it blocks the horse of xiangqi."""

    key = "knights-cannot-jump"
    title = "Knights cannot jump"
    statement = (
        "All knights now move one square straight and then one square diagonally onwards, and the "
        "square between must be empty. Knights can no longer jump over a piece there: such a move "
        "is now illegal."
    )
    placebo_change = PawnsOneStep()

    def view(self, board: chess.Board) -> chess.Board:
        """Return a copy with knights that can be blocked."""
        return copy_as(_BlockedKnights, board)

    def affects(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether the move is a knight's."""
        return board.piece_type_at(move.from_square) == chess.KNIGHT


class _OneStep(chess.Board):
    """A board without double steps of pawns."""

    def generate_pseudo_legal_moves(
        self, from_mask: chess.Bitboard = chess.BB_ALL, to_mask: chess.Bitboard = chess.BB_ALL
    ) -> Iterator[chess.Move]:
        moves = super().generate_pseudo_legal_moves(from_mask, to_mask)
        return (move for move in moves if not _is_double_step(self, move))


class _BlockedKnights(chess.Board):
    """A board with knights that can be blocked, in their attacks as well as in their moves."""

    def attacks_mask(self, square: chess.Square) -> chess.Bitboard:
        mask = super().attacks_mask(square)
        if not self.knights & chess.BB_SQUARES[square]:
            return mask
        ends = chess.scan_forward(mask)
        return mask & ~_union(end for end in ends if self.occupied & _first_step(square, end))

    def attackers_mask(
        self, color: chess.Color, square: chess.Square, occupied: chess.Bitboard | None = None
    ) -> chess.Bitboard:
        attackers = super().attackers_mask(color, square, occupied)
        taken = self.occupied if occupied is None else occupied
        knights = chess.scan_forward(attackers & self.knights)
        return attackers & ~_union(start for start in knights if taken & _first_step(start, square))

    def generate_legal_moves(
        self, from_mask: chess.Bitboard = chess.BB_ALL, to_mask: chess.Bitboard = chess.BB_ALL
    ) -> Iterator[chess.Move]:
        moves = list(self.generate_pseudo_legal_moves(from_mask, to_mask))
        return (move for move in moves if not self.is_into_check(move))

    def is_into_check(self, move: chess.Move) -> bool:
        """Test by playing the move: a piece that moves away may unblock a knight."""
        self.push(move)
        try:
            return self.was_into_check()
        finally:
            self.pop()


def _is_double_step(board: chess.Board, move: chess.Move) -> bool:
    is_pawn = bool(board.pawns & chess.BB_SQUARES[move.from_square])
    return is_pawn and abs(move.to_square - move.from_square) == 16


def _first_step(start: chess.Square, end: chess.Square) -> chess.Bitboard:
    """Return the square that can block a knight's move: one straight step along its longer leg."""
    across = chess.square_file(end) - chess.square_file(start)
    up = chess.square_rank(end) - chess.square_rank(start)
    return chess.BB_SQUARES[start + (across // 2 if abs(across) == 2 else 8 * (up // 2))]


def _union(squares: Iterator[chess.Square]) -> chess.Bitboard:
    return sum(chess.BB_SQUARES[square] for square in squares)
