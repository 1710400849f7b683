"""What rules are: a board as python-chess is to see it, and the texts that go with it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import chess

from ...errors import InvalidInput

_Board = TypeVar("_Board", bound=chess.Board)


@dataclass(frozen=True)
class Rules(ABC):
    """How pieces move. Equal rules are equal values, in every process.

    >>> STANDARD.is_legal(chess.Board(), chess.Move.from_uci("f1g3"))
    False
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
        """What a model is told of them: what is changed, and then what is illegal by it."""

    @property
    def placebo(self) -> "Rules | None":
        """A change of the same form that leaves legal what this one forbids; None for a default."""
        return None

    @property
    def affected_moves_label(self) -> str:
        """What the moves that the change concerns are called, such as "moves of bishops"."""
        return "moves that the change forbids"

    @property
    def habit_label(self) -> str:
        """What one does who plays as if nothing had changed."""
        return "plays a move that the change forbids"

    @property
    def forbids_something(self) -> bool:
        """Whether a kind of move is lost by them, so that there is a habit to break."""
        return True

    @abstractmethod
    def view(self, board: chess.Board) -> chess.Board:
        """A new board, perhaps of a subclass, whose legal moves are those of these rules."""

    def affects(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether ``move`` is of the kind that the change is about."""
        return self.forbids(board, move)

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

    def is_special(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether ``move`` is a special move, one of the habit that these rules are to break.

        That is a move that they forbid and that is of the kind that the change is about. A king's
        move to a square that the changed piece attacks now is forbidden as well, but is no such
        habit.
        """
        return self.affects(board, move) and self.forbids(board, move)

    def _look(self, board: chess.Board) -> chess.Board:
        """The view, for reading only."""
        return self.view(board)


class Standard(Rules):
    """The rules of chess, which forbid nothing of their own."""

    key = "standard"
    title = "Standard chess"
    statement = "All pieces move as in standard chess."
    affected_moves_label = "changed moves"
    forbids_something = False

    def view(self, board: chess.Board) -> chess.Board:
        """A copy without the moves played so far."""
        return board.copy(stack=False)

    def affects(self, board: chess.Board, move: chess.Move) -> bool:
        """Never: nothing is changed."""
        return False

    def _look(self, board: chess.Board) -> chess.Board:
        return board  # a copy would cost half as much as the answer


STANDARD = Standard()


def check_forbids_something(rules: Rules) -> None:
    """Refuse rules under which there is nothing to look for.

    Raises:
        InvalidInput: if they forbid nothing.
    """
    if not rules.forbids_something:
        raise InvalidInput(
            f"{rules.key} forbids no move that was legal before, so there is no habit to break: "
            "choose other rules (see cdta rules)"
        )


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


def board_after(moves: tuple[str, ...] | list[str], *playable: Rules) -> chess.Board:
    """The board after ``moves`` in UCI from the initial position.

    Args:
        moves: the moves played so far.
        playable: if given, the history must be legal throughout under one of these rules.

    Raises:
        InvalidInput: if a move is no UCI move, moves nothing, or is legal under none of
            ``playable``.
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
    """The move in UCI, which is the one of that number in a game.

    Raises:
        InvalidInput: if it is none, or moves nothing.
    """
    try:
        move = chess.Move.from_uci(uci)
    except (chess.InvalidMoveError, TypeError):
        raise InvalidInput(f"move {number} is no UCI move such as 'e2e4': {uci!r}") from None
    if not move or board.color_at(move.from_square) != board.turn:
        raise InvalidInput(f"move {number}, {uci!r}, moves no piece of the side to move")
    return move
