"""A tree of the openings read so far, which saves move generation for moves in it."""

from collections.abc import Iterator

import chess

from ..rules import Rules
from .pgn import Damaged

_MAX_NODES = 100_000


Played = tuple[str, bool]


class _Node(dict[bytes, "_Node"]):
    """The position after a move, and its child nodes by the move as written in the PGN."""

    __slots__ = ("board", "played")

    def __init__(self, board: chess.Board, played: Played = ("", False)) -> None:
        self.board, self.played = board, played


class Openings:
    """A tree of openings that stores for each move whether it is usual under ``rules``.

    Each game adds at most one move, so the tree keeps to common openings. A full tree is cleared,
    since a file may be sorted by opening.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._root = _Node(chess.Board())
        self._nodes = 0

    def follow(self, moves: Iterator[bytes]) -> Iterator[Played]:
        """Play through a game, and yield each move in UCI and whether it is usual.

        Raises:
            Damaged: on reaching an illegal move.
        """
        node = self._root
        for written in moves:
            child = node.get(written)
            if child is None:
                yield from self._leave(node, written, moves)
                return
            yield child.played
            node = child

    def _leave(self, node: _Node, written: bytes, moves: Iterator[bytes]) -> Iterator[Played]:
        """Play the rest of a game, and add its first move to a node."""
        board = node.board.copy(stack=False)
        played = self._play(board, written)
        if self._nodes == _MAX_NODES:
            self._root.clear()
            self._nodes = 0
        node[written] = _Node(board, played)
        self._nodes += 1
        yield played
        board = board.copy(stack=False)
        for written in moves:
            yield self._play(board, written)

    def _play(self, board: chess.Board, written: bytes) -> Played:
        try:
            move = board.parse_san(written.decode())
        except ValueError:
            raise Damaged(f"illegal or ambiguous move {written.decode()!r}") from None
        usual = self._rules.is_habit(board, move)
        board.push(move)
        return move.uci(), usual
