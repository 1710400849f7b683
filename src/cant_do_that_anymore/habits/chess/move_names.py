"""Moves by name: in UCI and in algebraic notation, as models write them."""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import chess

from .rules import STANDARD, Rules

_PIECES = {"knight": "N", "bishop": "B", "rook": "R", "queen": "Q", "king": "K", "pawn": ""}
MOVE = re.compile(
    r"(?<![A-Za-z0-9])(?:(?P<castling>(?:O-?O|0-0|o-o)(?:-?[Oo0])?)"
    rf"|P?(?P<piece>[NBRQK]|(?i:{'|'.join(_PIECES)}) (?:from )?)?"
    r"(?P<origin>[a-hA-H][1-8]|[a-h]|[1-8])?(?: ?-?> ?|-|[xX:]| ?(?:to|takes|captures) )?"
    r"(?P<target>[a-hA-H][1-8])(?:(?<=[18])[ =(/]{0,2}(?P<promotion>[NBRQnbrq]"
    r"|(?i:queen|rook|bishop|knight))\)?)?)(?![A-Za-z0-9])"
)
_ONTO_ROOK = {"e1h1": "e1g1", "e1a1": "e1c1", "e8h8": "e8g8", "e8a8": "e8c8"}
Notation = dict[str, chess.Move | None]


def bare_move(text: str) -> chess.Move | None:
    """Parse a text that is a move in UCI, or return None.

    >>> bare_move("e2e4"), bare_move("e4")
    (Move.from_uci('e2e4'), None)
    """
    try:
        return chess.Move.from_uci(text) or None
    except chess.InvalidMoveError:
        return None


def as_castling(move: chess.Move, board: chess.Board) -> chess.Move:
    """Convert "king takes own rook" from the king's first square to castling; keep other moves.

    >>> as_castling(chess.Move.from_uci("e1h1"), chess.Board())
    Move.from_uci('e1g1')
    """
    uci = move.uci()
    return chess.Move.from_uci(_ONTO_ROOK.get(uci, uci)) if board.is_castling(move) else move


def may_promote(move: chess.Move, board: chess.Board) -> bool:
    """Whether a move takes a pawn to the last rank without a promotion piece."""
    pawn = board.piece_type_at(move.from_square) == chess.PAWN
    return bool(pawn and chess.square_rank(move.to_square) in (0, 7) and not move.promotion)


def moves_by_name(board: chess.Board, rules: Rules) -> Notation:
    """Return the legal moves by name; None where several have the same.

    Standard chess comes first, so that a habit is never read as a move of the changed rules.
    """
    notation: Notation = {}
    for legal in (rules.legal_moves(board), STANDARD.legal_moves(board)):
        named = [(name, move) for move in legal for name in _names(move, board)]
        uses = Counter(name for name, _ in named)
        notation |= {name: move if uses[name] == 1 else None for name, move in named}
    return notation


def _names(move: chess.Move, board: chess.Board) -> list[str]:
    if board.is_castling(move):
        return ["OOO" if board.is_queenside_castling(move) else "OO"]
    origin, target = move.uci()[:2], move.uci()[2:]
    piece = str(board.piece_at(move.from_square)).upper()
    if piece == "P":
        return [target if origin[0] == target[0] else origin[0] + target]
    return [piece + part + target for part in ("", *origin)]


def resolve(
    match: "re.Match[str]", board: chess.Board, notation: Callable[[], Notation]
) -> chess.Move | None:
    """Return a move from square to square, legal or not, or the legal one of this name."""
    if match["castling"]:
        return notation().get("O" * len(match["castling"].replace("-", "")))
    promotion = (match["promotion"] or "").lower()
    promotion = "n" if promotion == "knight" else promotion[:1]
    origin, target = (match["origin"] or "").lower(), match["target"].lower()
    if len(origin) == 2:
        move = bare_move(origin + target + promotion)
        return move and as_castling(move, board)
    piece = (match["piece"] or "pawn").split()[0]
    return notation().get(_PIECES.get(piece.lower(), piece) + origin + target + promotion)


def named_moves(text: str, board: chess.Board, rules: Rules) -> dict[str, str]:
    """Find the moves that a text names, in UCI by how it writes them; squares do not count.

    >>> named_moves("Bb5? No, f1b5 is illegal. Nf3!", chess.Board(), STANDARD)
    {'f1b5': 'f1b5', 'Nf3': 'g1f3'}
    """
    notation = cache(lambda: moves_by_name(board, rules))
    words = dict.fromkeys(text.split())  # long texts repeat themselves
    found = (match for word in words for match in MOVE.finditer(word))
    named = {m[0]: resolve(m, board, notation) for m in found if m[0] != m["target"]}
    return {written: move.uci() for written, move in named.items() if move}
