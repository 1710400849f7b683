"""The games to learn from: their file format and the vocabulary of moves."""

import lzma
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PLIES = 50
"""Where the games are cut off."""


def vocabulary() -> dict[int, str]:
    """Every move a queen, a knight or a promoting pawn could make, by its code in the files.

    A code is ``from | to << 6 | promotion << 12``, squares counted a1, b1, ... h8.
    """
    squares = [file + rank for rank in "12345678" for file in "abcdefgh"]
    moves = {}
    for start, end in product(range(64), repeat=2):
        across, up = abs(end % 8 - start % 8), end // 8 - start // 8
        like_queen = start != end and (across == 0 or up == 0 or across == abs(up))
        if like_queen or {across, abs(up)} == {1, 2}:
            moves[start | end << 6] = squares[start] + squares[end]
        if across <= 1 and (start // 8, end // 8) in ((6, 7), (1, 0)):
            for promotion, piece in enumerate("nbrq", 1):
                code = start | end << 6 | promotion << 12
                moves[code] = squares[start] + squares[end] + piece
    return moves


def read_games(path: Path) -> NDArray[np.int16]:
    """Games as rows of tokens: the begin token, the moves, and begin tokens up to the full width.

    The file is xz-compressed, a little-endian uint16 a move; 0xFFFF ends a game.
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
        raise ValueError(f"{path} holds a move that no piece can make")
    return games
