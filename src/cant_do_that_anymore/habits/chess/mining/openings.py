"""A tree of the openings read so far, which saves move generation for moves in it."""

from collections.abc import Iterator

import chess

from ..rules import Rules
from .pgn import Damaged

_MAX_NODES = 100_000


class _Node(dict[bytes, "_Node"]):
    """The position after a move, and its child nodes by the move as written in the PGN."""

    __slots__ = ("board", "uci", "usual")

    def __init__(self, board: chess.Board, uci: str = "", usual: bool = False) -> None:
        self.board = board
        self.uci = uci
        self.usual = usual


class Openings:
    """A tree of openings that stores for each move whether it is usual under ``rules``.

    Each game adds at most one move, so the tree keeps to common openings. A full tree is cleared,
    since a file may be sorted by opening.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._root = _Node(chess.Board())
        self._nodes = 0

    def follow(self, moves: Iterator[bytes]) -> Iterator[tuple[str, bool]]:
        """Play through a game, and yield each move in UCI and whether it is usual.

        Raises:
            Damaged: on reaching an illegal move.
        """
        node = self._root
        for written in moves:
            child = node.get(written)
            if child is None:
                break
            yield child.uci, child.usual
            node = child
        else:
            return
        board = node.board.copy(stack=False)
        uci, usual = self._play(board, written)
        if self._nodes == _MAX_NODES:
            self._root.clear()
            self._nodes = 0
        else:
            node[written] = _Node(board, uci, usual)
            self._nodes += 1
        yield uci, usual
        board = board.copy(stack=False)
        for written in moves:
            yield self._play(board, written)

    def _play(self, board: chess.Board, written: bytes) -> tuple[str, bool]:
        try:
            move = board.parse_san(written.decode())
        except ValueError:
            raise Damaged(f"illegal or ambiguous move {written.decode()!r}") from None
        usual = self._rules.is_habit(board, move)
        board.push(move)
        return move.uci(), usual
