"""Algebraic notation of moves, also under changed rules, and boards as text."""

from collections.abc import Iterable

import chess

from .position import played
from .rules import STANDARD


def notate(board: chess.Board, uci: str) -> str:
    """Return a move in SAN, or with both squares if the standard rules forbid it.

    Check marks are left out, since the rules decide what gives check. A move that does not move a
    piece of the side to move stays in UCI.

    >>> [notate(chess.Board(), uci) for uci in ("g1f3", "f1g3", "e4e5")]
    ['Nf3', 'Bf1-g3', 'e4e5']
    """
    move = chess.Move.from_uci(uci)
    if STANDARD.is_legal(board, move):
        return board.san(move).rstrip("+#")
    if board.color_at(move.from_square) != board.turn:
        return uci
    return board.lan(move).rstrip("+#")


def move_number_prefix(board: chess.Board) -> str:
    """Return the move number before the next move.

    >>> move_number_prefix(chess.Board())
    '1. '
    """
    return f"{board.fullmove_number}. " if board.turn else f"{board.fullmove_number}... "


def notate_game(moves: Iterable[str]) -> str:
    """Return a game from the initial position in the notation of `notate`, with move numbers.

    >>> notate_game(["e2e4", "e7e5", "g1f3"])
    '1. e4 e5 2. Nf3'
    """
    game = [notate(board, move.uci()) for board, move in played(map(chess.Move.from_uci, moves))]
    return " ".join(
        f"{ply // 2 + 1}. {move}" if ply % 2 == 0 else move for ply, move in enumerate(game)
    )


def draw_board(board: chess.Board) -> str:
    """Draw the board in Unicode, seen from the side to move.

    >>> print(draw_board(chess.Board()).splitlines()[-1])
      a b c d e f g h
    """
    drawing = board.unicode(orientation=board.turn, empty_square="·")
    return with_coordinates(drawing, board.turn)


def with_coordinates(drawing: str, side: chess.Color = chess.WHITE) -> str:
    """Add ranks and files to a drawing of a board, seen from a side."""
    ranks, files = ("87654321", "abcdefgh") if side else ("12345678", "hgfedcba")
    lines = [f"{rank} {row}" for rank, row in zip(ranks, drawing.splitlines(), strict=True)]
    return "\n".join([*lines, "  " + " ".join(files)])
