"""Rules of chess: a change is a class that shows a board as python-chess is to see it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import TypeVar

import chess

from ..errors import BadInput, unknown

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
_Board = TypeVar("_Board", bound=chess.Board)


@dataclass(frozen=True)
class Rules(ABC):
    """How pieces move. Equal rules are equal values, in every process.

    >>> BISHOPS_AS_KNIGHTS.is_legal(chess.Board(), chess.Move.from_uci("f1g3"))
    True
    """

    @property
    @abstractmethod
    def key(self) -> str:
        """What options and files call them."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What a reader calls them."""

    @property
    @abstractmethod
    def statement(self) -> str:
        """What a model is told of them."""

    @property
    @abstractmethod
    def concerned(self) -> str:
        """What the moves that the change concerns are called, such as "moves of bishops"."""

    @abstractmethod
    def view(self, board: chess.Board) -> chess.Board:
        """A new board, perhaps of a subclass, whose legal moves are those of these rules."""

    @abstractmethod
    def concerns(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether ``move`` is of the kind that the change is about."""

    def may_forbid(self, board: chess.Board, move: chess.Move) -> bool:
        """A quick guess at ``forbids`` of a legal move, never wrong where it says no."""
        return True

    def legal_moves(self, board: chess.Board) -> Iterator[chess.Move]:
        """All legal moves of the side to move.

        The position may come from play under other rules, so the other king may stand in check;
        it can never be captured.
        """
        return self._look(board).generate_legal_moves(to_mask=chess.BB_ALL & ~board.kings)

    def is_legal(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether the side to move may play ``move``."""
        uncapturable = board.kings | board.occupied_co[board.turn]
        if chess.BB_SQUARES[move.to_square] & uncapturable:
            return False  # python-chess takes a king onto its own rook for castling
        return self._look(board).is_legal(move)

    def forbids(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether ``move`` is legal under the standard rules and illegal under these."""
        return STANDARD.is_legal(board, move) and not self.is_legal(board, move)

    def _look(self, board: chess.Board) -> chess.Board:
        """The view, for reading only."""
        return self.view(board)


class Standard(Rules):
    """The rules of chess, which forbid nothing of their own."""

    key = "standard"
    title = "Standard chess"
    statement = "All pieces move as in standard chess."
    concerned = "changed moves"

    def view(self, board: chess.Board) -> chess.Board:
        """A copy without the moves played so far."""
        return board.copy(stack=False)

    def concerns(self, board: chess.Board, move: chess.Move) -> bool:
        """Never: nothing is changed."""
        return False

    def may_forbid(self, board: chess.Board, move: chess.Move) -> bool:
        """Never."""
        return False

    def _look(self, board: chess.Board) -> chess.Board:
        return board  # a copy would cost half as much as the answer


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
        ways = [way for way in _WAYS[self.piece] if way not in _WAYS[self.moves_like]]
        consequence = f"Every move that {pieces} could make before is still legal."
        if ways:
            lost = f"{pieces.capitalize()} can no longer move {' or '.join(ways)}"
            consequence = f"{lost}: such a move is now illegal."
        return f"All {pieces} now move exactly as {others} do. {consequence}"

    @property
    def concerned(self) -> str:
        """Such as "moves of bishops"."""
        return f"moves of {PLURALS[self.piece]}"

    def view(self, board: chess.Board) -> chess.Board:
        """The position with every piece labelled as what it moves like, for standard rules."""
        view = copy_as(_Relabelled, board)
        old, new = _BITBOARDS[self.piece], _BITBOARDS[self.moves_like]
        setattr(view, new, getattr(board, new) | getattr(board, old))
        setattr(view, old, chess.BB_EMPTY)
        return view

    def concerns(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether it is made with the changed piece."""
        return board.piece_type_at(move.from_square) == self.piece

    def may_forbid(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether the changed piece moves, or one of the other side might attack the king."""
        start = chess.BB_SQUARES[move.from_square]
        changed: chess.Bitboard = getattr(board, _BITBOARDS[self.piece])
        if changed & start:
            return True
        own = board.occupied_co[board.turn]
        king = board.kings & own
        if king & start:
            if board.is_castling(move):
                return True
            king = chess.BB_SQUARES[move.to_square]
        return bool(_REACHES[self.moves_like][chess.msb(king)] & changed & ~own)


class _Relabelled(chess.Board):
    """A position whose labels say how pieces move, with the castling rights of the real one."""

    def clean_castling_rights(self) -> chess.Bitboard:
        return self.castling_rights  # cleaned before relabelling; a relabelled rook still castles


def copy_as(kind: type[_Board], board: chess.Board) -> _Board:
    """The position of ``board`` on a new board of that class, without the moves played so far."""
    new = kind(None)
    new.pawns, new.knights, new.bishops = board.pawns, board.knights, board.bishops
    new.rooks, new.queens, new.kings = board.rooks, board.queens, board.kings
    new.occupied, new.occupied_co = board.occupied, board.occupied_co.copy()
    new.promoted, new.turn, new.ep_square = board.promoted, board.turn, board.ep_square
    new.castling_rights = board.clean_castling_rights()
    new.halfmove_clock, new.fullmove_number = board.halfmove_clock, board.fullmove_number
    return new


def reach(kind: chess.PieceType, square: chess.Square) -> chess.Bitboard:
    """The squares a piece of that kind attacks from ``square`` if nothing is in the way."""
    board = chess.BaseBoard.empty()
    board.set_piece_at(square, chess.Piece(kind, chess.WHITE))
    return board.attacks_mask(square)


_REACHES = {kind: [reach(kind, square) for square in chess.SQUARES] for kind in PLURALS}
STANDARD = Standard()
CATALOGUE: dict[str, Rules] = {
    rules.key: rules
    for rules in (STANDARD, *(PieceSwap(piece, like) for piece, like in permutations(PLURALS, 2)))
}
BISHOPS_AS_KNIGHTS = CATALOGUE["bishops-as-knights"]


def rules_named(key: str) -> Rules:
    """Look up rules by key.

    Raises:
        BadInput: if the catalogue has no such key.
    """
    if key not in CATALOGUE:
        raise unknown("rules", key, CATALOGUE)
    return CATALOGUE[key]


def board_after(moves: tuple[str, ...] | list[str], *playable: Rules) -> chess.Board:
    """The board after ``moves`` in UCI from the initial position.

    Args:
        moves: the moves played so far.
        playable: if given, the history must be legal throughout under one of these rules.

    Raises:
        BadInput: if a move is no UCI move, moves nothing, or is legal under none of ``playable``.
    """
    board = chess.Board()
    remaining = list(dict.fromkeys(playable))
    for number, uci in enumerate(moves, 1):
        try:
            move = chess.Move.from_uci(uci)
        except (chess.InvalidMoveError, TypeError):
            raise BadInput(f"move {number} is no UCI move such as 'e2e4': {uci!r}") from None
        remaining = [rules for rules in remaining if rules.is_legal(board, move)]
        if playable and not remaining:
            names = " or ".join(dict.fromkeys(rules.key for rules in playable))
            raise BadInput(f"move {number}, {uci!r}, is not legal there under {names}")
        if not move or board.color_at(move.from_square) != board.turn:
            raise BadInput(f"move {number}, {uci!r}, moves no piece of the side to move")
        board.push(move)
    return board
