"""A tree of the openings read so far, which saves move generation for moves in it."""

from collections.abc import Iterator

import chess

from ..rules import Rules
from .pgn import Damaged

_MAX_NODES = 100_000
_PIECES = dict(zip(b"NBRQK", chess.PIECE_TYPES[1:], strict=True))
_SQUARES = {chess.square_name(square).encode(): square for square in chess.SQUARES}
_MASKS = {
    **dict(zip(b"abcdefgh", chess.BB_FILES, strict=True)),
    **dict(zip(b"12345678", chess.BB_RANKS, strict=True)),
    **dict.fromkeys(b"x-", chess.BB_ALL),
}


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
            move = _find_move(board, written)
        except ValueError:
            raise Damaged(f"illegal or ambiguous move {written.decode()!r}") from None
        usual = self._rules.is_habit(board, move)
        board.push(move)
        if board.was_into_check():
            raise Damaged(f"illegal move {written.decode()!r}")
        return move.uci(), usual


def _find_move(board: chess.Board, written: bytes) -> chess.Move:
    """Like ``board.parse_san``, but faster if only one piece can go to the square.

    The move may leave the king in check.
    """
    square = _SQUARES.get(written[-2:])
    if square is not None:
        piece = _PIECES.get(written[0])
        origins = board.pieces_mask(piece or chess.PAWN, board.turn)
        # A pawn's first character is its file.
        for mark in written[1:-2] if piece else written[:-2] or written[:1]:
            origins &= _MASKS[mark]
        moves = list(board.generate_pseudo_legal_moves(origins, chess.BB_SQUARES[square]))
        if len(moves) == 1:
            return moves[0]
    return board.parse_san(written.decode())
