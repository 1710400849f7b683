"""Moves as chess players write them, also where the rules were changed."""

from collections.abc import Iterable, Sequence

import chess

from .rules import STANDARD


def written(board: chess.Board, uci: str) -> str:
    """A move in standard notation, or with both squares where the standard rules forbid it.

    Check marks are left out: what gives check depends on the rules. What is no move of a piece of
    the side to move stays as it is.

    >>> [written(chess.Board(), uci) for uci in ("g1f3", "f1g3", "e4e5")]
    ['Nf3', 'Bf1-g3', 'e4e5']
    """
    move = chess.Move.from_uci(uci)
    if STANDARD.is_legal(board, move):
        return board.san(move).rstrip("+#")
    if board.color_at(move.from_square) != board.turn:
        return uci
    return board.lan(move).rstrip("+#")


def turn_of(board: chess.Board) -> str:
    """What stands before the next move.

    >>> turn_of(chess.Board())
    '1. '
    """
    return f"{board.fullmove_number}. " if board.turn else f"{board.fullmove_number}... "


def written_game(moves: Iterable[str]) -> list[str]:
    """The moves of a game from the initial position, as `written`."""
    board = chess.Board()
    game = []
    for uci in moves:
        move = chess.Move.from_uci(uci)
        if STANDARD.is_legal(board, move):  # to push takes longest, and notation must push anyway
            game.append(board.san_and_push(move).rstrip("+#"))
        else:
            game.append(written(board, uci))
            board.push(move)
    return game


def numbered(game: Sequence[str]) -> str:
    """Written moves with their numbers.

    >>> numbered(["e4", "e5", "Nf3"])
    '1. e4 e5 2. Nf3'
    """
    return " ".join(
        f"{ply // 2 + 1}. {move}" if ply % 2 == 0 else move for ply, move in enumerate(game)
    )
