"""A tree of the openings read so far, which saves move generation for moves in it."""

from collections.abc import Iterator

import chess

from ..rules import Rules
from .pgn import Damaged

_MAX_NODES = 100_000
_KINDS = dict(zip(b"PNBRQK", chess.PIECE_TYPES, strict=True))
_TAKES = ord("x")
_SQUARES = {chess.square_name(square).encode(): square for square in chess.SQUARES}
_FILES = dict(zip(b"abcdefgh", chess.BB_FILES, strict=True))
_RANKS = dict(zip(b"12345678", chess.BB_RANKS, strict=True))
_MASKS = {**_FILES, **_RANKS, **dict.fromkeys(b"x-", chess.BB_ALL)}


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
        origins = _origins(board, written, square)
        if origins.bit_count() == 1:
            return chess.Move(chess.msb(origins), square)
    return board.parse_san(written.decode())


def _origins(board: chess.Board, written: bytes, square: chess.Square) -> chess.Bitboard:
    """Return the squares that the piece may come from, or none if only ``parse_san`` can tell."""
    own, target = board.occupied_co[board.turn], chess.BB_SQUARES[square]
    kind = _KINDS.get(written[0])
    if kind is None:
        is_habit_case = target & (chess.BB_BACKRANKS | own)
        return chess.BB_EMPTY if is_habit_case else _pawn_origins(board, written, square) & own
    if own & target:
        return chess.BB_EMPTY
    origins = board.attackers_mask(board.turn, square) & board.pieces_mask(kind, board.turn)
    for mark in written[1:-2]:
        origins &= _MASKS[mark]
    return origins


def _pawn_origins(board: chess.Board, written: bytes, square: chess.Square) -> chess.Bitboard:
    """Return the pawns, of either side, that may make a move such as ``e4`` or ``exd5``."""
    is_capture = bool(chess.BB_SQUARES[square] & board.occupied)
    if len(written) == 2 and not is_capture:
        step = -8 if board.turn else 8
        if chess.square_rank(square) == (3 if board.turn else 4) and not (
            chess.BB_SQUARES[square + step] & board.occupied
        ):
            step *= 2
        return board.pawns & chess.BB_SQUARES[square + step]
    if len(written) == 4 and written[1] == _TAKES and is_capture:
        attackers = chess.BB_PAWN_ATTACKS[not board.turn][square]
        return board.pawns & attackers & _FILES.get(written[0], chess.BB_EMPTY)
    return chess.BB_EMPTY
