"""Rules of chess with one change: pieces of one kind move as another kind does."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

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


class _Relabelled(chess.Board):
    """A position whose labels say how pieces move, with the castling rights of the real one."""

    def clean_castling_rights(self) -> chess.Bitboard:
        return self.castling_rights  # cleaned before relabelling; a relabelled rook still castles


@dataclass(frozen=True)
class Rules:
    """How pieces move: the standard way, except that ``piece`` moves as ``moves_like`` does.

    >>> BISHOPS_AS_KNIGHTS.is_legal(chess.Board(), chess.Move.from_uci("f1g3"))
    True
    """

    key: str
    title: str
    statement: str
    piece: chess.PieceType | None = None
    moves_like: chess.PieceType | None = None

    def legal_moves(self, board: chess.Board) -> Iterator[chess.Move]:
        """All legal moves of the side to move.

        The position may come from play under other rules, so the other king may stand in check;
        it can never be captured.
        """
        return self.relabelled(board).generate_legal_moves(to_mask=chess.BB_ALL & ~board.kings)

    def is_legal(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether the side to move may play ``move``."""
        uncapturable = board.kings | board.occupied_co[board.turn]
        if chess.BB_SQUARES[move.to_square] & uncapturable:
            return False  # python-chess takes a king onto its own rook for castling
        return self.relabelled(board).is_legal(move)

    def forbids(self, board: chess.Board, move: chess.Move) -> bool:
        """Whether ``move`` is legal under the standard rules and illegal under these."""
        return STANDARD.is_legal(board, move) and not self.is_legal(board, move)

    def relabelled(self, board: chess.Board) -> chess.Board:
        """The position with every piece labelled as what it moves like, for standard rules."""
        if self.piece is None or self.moves_like is None:
            return board
        relabelled = _Relabelled(None)
        for name in ("pawns", "knights", "bishops", "rooks", "queens", "kings", "occupied"):
            setattr(relabelled, name, getattr(board, name))
        old, new = _BITBOARDS[self.piece], _BITBOARDS[self.moves_like]
        setattr(relabelled, new, getattr(board, new) | getattr(board, old))
        setattr(relabelled, old, chess.BB_EMPTY)
        relabelled.occupied_co = board.occupied_co.copy()
        relabelled.turn = board.turn
        relabelled.castling_rights = board.clean_castling_rights()
        relabelled.ep_square = board.ep_square
        return relabelled


STANDARD = Rules("standard", "Standard chess", "All pieces move as in standard chess.")


def _change(piece: chess.PieceType, like: chess.PieceType) -> Rules:
    pieces, others = PLURALS[piece], PLURALS[like]
    lost = " or ".join(way for way in _WAYS[piece] if way not in _WAYS[like])
    consequence = (
        f"{pieces.capitalize()} can no longer move {lost}: such a move is now illegal."
        if lost
        else f"Every move that {pieces} could make before is still legal."
    )
    return Rules(
        key=f"{pieces}-as-{others}",
        title=f"{pieces.capitalize()} move as {others} do",
        statement=f"All {pieces} now move exactly as {others} do. {consequence}",
        piece=piece,
        moves_like=like,
    )


CATALOGUE: dict[str, Rules] = {
    rules.key: rules
    for rules in (STANDARD, *(_change(piece, like) for piece, like in permutations(PLURALS, 2)))
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
