"""Base class of rules: a view of the board for python-chess, and texts for prompts and reports."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from sys import intern
from typing import TYPE_CHECKING, TypeVar

import chess

from ....errors import InvalidInput
from ...base import Change

if TYPE_CHECKING:
    from ..habit import Chess
    from ..position import Position

_Board = TypeVar("_Board", bound=chess.Board)


@dataclass(frozen=True)
class Rules(Change):
    """A set of rules; equal rules compare equal, in every process.

    Subclasses have a ``key``, a ``title`` (of reports) and a ``statement`` (of the prompt).

    >>> STANDARD.is_legal(chess.Board(), chess.Move.from_uci("f1g3"))
    False
    """

    @property
    def its_habit(self) -> "Chess":
        """Chess."""
        from ..habit import CHESS  # the habit imports its rules

        return CHESS

    @property
    def standard(self) -> "Rules":
        """The standard rules of chess."""
        return STANDARD

    @property
    def placebo_change(self) -> "Rules":
        """Similar rules that allow what these forbid, for placebos; by default no castling."""
        from .restrictions import NoCastling

        return NoCastling()

    @property
    def identity(self) -> str:
        """The key; with a digest, if the rules are the user's own: those may change."""
        from . import CATALOG
        from .custom import digest_of

        in_catalog = CATALOG.get(self.key) == self
        return self.key if in_catalog else f"{self.key}-{digest_of(self)}"

    @abstractmethod
    def view(self, board: chess.Board) -> chess.Board:
        """Return a new board, or one of a subclass, with the legal moves of these rules.

        Callers do not change it.
        """

    def affects(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether ``move`` is of the kind that the change affects."""
        return self.forbids(board, move)

    def legal_moves(self, board: chess.Board) -> Iterator[chess.Move]:
        """Yield the legal moves of the side to move.

        The position may come from a game under other rules, so the opponent's king may be in
        check; no move captures it.
        """
        return self.view(board).generate_legal_moves(to_mask=chess.BB_ALL & ~board.kings)

    def is_legal(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether the side to move may play ``move``."""
        uncapturable = board.kings | board.occupied_co[board.turn]
        if chess.BB_SQUARES[move.to_square] & uncapturable:
            return False  # python-chess reads "king takes own rook" as castling
        return self.view(board).is_legal(move)

    def allows(self, answer: str, item: "Position") -> bool:
        """Whether a move in UCI is legal in a position."""
        return self.is_legal(item.board(), chess.Move.from_uci(answer))

    def read(self, reply: str, item: "Position", *, exact: bool, cut_off: bool) -> str | None:
        """Return the move that a reply plays, in UCI; exact reading accepts only a bare move."""
        from ..move_names import bare_move
        from ..reader import move_in

        said = reply.strip()
        if said in item.usual:
            return intern(said)  # replaying the game for a board takes longest
        move = bare_move(said) if exact else move_in(reply, item.board(), self, cut_off=cut_off)
        return intern(move.uci()) if move else None

    def examples(self, item: "Position") -> Sequence[str]:
        """Return legal moves that were illegal before, or else all legal ones."""
        board = item.board()
        legal, before = list(self.legal_moves(board)), set(STANDARD.legal_moves(board))
        newly_legal = [move for move in legal if move not in before]
        return [move.uci() for move in newly_legal or legal]

    def guesses(self, item: "Position") -> Sequence[str]:
        """Return all legal moves, in order."""
        return sorted(move.uci() for move in self.legal_moves(item.board()))

    def checked(self, item: "Position") -> "Position":
        """Return a position whose moves are possible and whose usual moves are usual."""
        if not item.where:
            return item
        try:
            board = board_after(item.moves, STANDARD, self)
            for uci in item.usual:
                self._check_usual(board, uci, len(item.moves) + 1)
        except InvalidInput as problem:
            raise InvalidInput(f"{item.where}: {problem}") from None
        return replace(item, where="")

    def _check_usual(self, board: chess.Board, uci: str, number: int) -> None:
        """Check that a move is like one of `is_habit`, except that the king may stay in check.

        The original's file of diagonal moves includes such moves (320 of 11,366).
        """
        move = move_on(board, uci, number)
        is_forbidden = board.is_pseudo_legal(move) and not self.is_legal(board, move)
        if not is_forbidden or not self.affects(board, move):
            raise InvalidInput(f"{uci!r} is not a usual move that {self.key} forbids")

    def forbids(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether ``move`` is legal under the standard rules and illegal under these."""
        return STANDARD.is_legal(board, move) and not self.is_legal(board, move)

    def is_habit(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether ``move`` is a usual move: a habit that these rules forbid.

        The rules forbid it and it is of the kind that the change affects. A king's move to a square
        that the changed piece now attacks is forbidden as well, but is not such a habit.
        """
        return self.affects(board, move) and self.forbids(board, move)


class Standard(Rules):
    """The standard rules of chess."""

    key = "standard"
    title = "Standard chess"
    statement = "All pieces move as in standard chess."
    forbids_something = False

    def view(self, board: chess.Board) -> chess.Board:
        """Return the board itself: a copy would take half as long as a query."""
        return board


STANDARD = Standard()


def copy_as(kind: type[_Board], board: chess.Board) -> _Board:
    """Copy a position to a new board of another class, with an empty move stack."""
    new = kind(None)
    new.pawns, new.knights, new.bishops = board.pawns, board.knights, board.bishops
    new.rooks, new.queens, new.kings = board.rooks, board.queens, board.kings
    new.occupied, new.occupied_co = board.occupied, board.occupied_co.copy()
    new.promoted, new.turn, new.ep_square = board.promoted, board.turn, board.ep_square
    new.castling_rights = board.clean_castling_rights()
    new.halfmove_clock, new.fullmove_number = board.halfmove_clock, board.fullmove_number
    return new


def board_after(moves: Iterable[str], *playable: Rules) -> chess.Board:
    """Return the board after ``moves`` in UCI from the initial position.

    Args:
        moves: the moves played so far.
        playable: if given, all moves must be legal under one of these rules.

    Raises:
        InvalidInput: if a move is not in UCI, moves no piece of the side to move, or is legal under
            none of ``playable``.
    """
    board = chess.Board()
    remaining = list(dict.fromkeys(playable))
    for number, uci in enumerate(moves, 1):
        move = move_on(board, uci, number)
        remaining = [rules for rules in remaining if rules.is_legal(board, move)]
        if playable and not remaining:
            names = " or ".join(dict.fromkeys(rules.key for rules in playable))
            raise InvalidInput(f"move {number}, {uci!r}, is not legal there under {names}")
        board.push(move)
    return board


def move_on(board: chess.Board, uci: str, number: int) -> chess.Move:
    """Parse a move in UCI on a board; ``number`` is for the error message.

    Raises:
        InvalidInput: if it is not in UCI, or moves no piece of the side to move.
    """
    try:
        move = chess.Move.from_uci(uci)
    except (chess.InvalidMoveError, TypeError):
        raise InvalidInput(f"move {number} is not a UCI move such as 'e2e4': {uci!r}") from None
    if not move or board.color_at(move.from_square) != board.turn:
        raise InvalidInput(f"move {number}, {uci!r}, does not move a piece of the side to move")
    return move
