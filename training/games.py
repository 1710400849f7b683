"""Reads the training games, and defines the vocabulary of moves."""

import lzma
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PLIES = 50
"""Games are truncated to this length."""
HELD_OUT_RULES = ("bishops-as-rooks", "knights-as-queens", "rooks-as-bishops", "pawns-one-step")
"""Rules that no training text states and no training game uses."""


def vocabulary() -> dict[int, str]:
    """Return all moves of a queen, a knight or a promoting pawn, by their codes in the files.

    A code is ``from | to << 6 | promotion << 12``, squares counted a1, b1, ... h8.
    """
    squares = [file + rank for rank in "12345678" for file in "abcdefgh"]
    moves = {}
    for start, end in product(range(64), repeat=2):
        files, ranks = abs(end % 8 - start % 8), abs(end // 8 - start // 8)
        is_queen_move = start != end and (files == 0 or ranks == 0 or files == ranks)
        if is_queen_move or {files, ranks} == {1, 2}:
            moves[start | end << 6] = squares[start] + squares[end]
        if files <= 1 and (start // 8, end // 8) in ((6, 7), (1, 0)):
            for promotion, piece in enumerate("nbrq", 1):
                code = start | end << 6 | promotion << 12
                moves[code] = squares[start] + squares[end] + piece
    return moves


def read_games(path: Path) -> NDArray[np.int16]:
    """Return games as rows of tokens: the begin token, the moves, and begin tokens as padding.

    The file is xz-compressed, with one little-endian uint16 per move; 0xFFFF ends a game.
    """
    codes = np.frombuffer(lzma.decompress(path.read_bytes()), dtype="<u2")
    token = np.full(2**16, -1, dtype=np.int16)
    token[list(vocabulary())] = np.arange(len(vocabulary()))
    ends = codes == 0xFFFF
    game = np.cumsum(ends) - ends
    first = np.flatnonzero(np.r_[True, ends[:-1]])
    place = np.arange(len(codes)) - first[game] + 1
    games = np.full((ends.sum(), PLIES + 1), len(vocabulary()), dtype=np.int16)
    games[game[~ends], place[~ends]] = token[codes[~ends]]
    if games.min() < 0:
        raise ValueError(f"{path} contains a move that no piece can make")
    return games
