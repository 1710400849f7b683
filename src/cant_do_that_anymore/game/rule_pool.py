"""The shipped games, pools made from them for any rules, and one example per rule.

They are the first moves of 50,000 games by masters (docs/datasets.md), sorted. The file is a text
in UTF-16, packed by xz: a character a move, two bytes, and a null character between two games.
``tools/make_games.py`` writes it.
"""

import lzma
from collections.abc import Iterator
from functools import cache
from random import Random

import chess

from .position import DATA, Position
from .rules import Rules

FILE = DATA / "games.xz"
EDITION = 1
"""Raised whenever the same rules would get another pool."""
POOL = 20_000
_SEED = 0


@cache
def shipped_games() -> tuple[str, ...]:
    """The games, a character a move."""
    return tuple(lzma.decompress(FILE.read_bytes()).decode("utf-16-le").split("\0"))


def character_of(move: chess.Move) -> str:
    """The move in six bits for the square it leaves, six for where it arrives, and what it becomes.

    >>> move_of(character_of(chess.Move.from_uci("e7e8q"))).uci()
    'e7e8q'
    """
    return chr(move.from_square | move.to_square << 6 | (move.promotion or 0) << 12)


@cache
def move_of(character: str) -> chess.Move:
    """The move that a character stands for."""
    code = ord(character)
    return chess.Move(code & 63, code >> 6 & 63, code >> 12 or None)


def positions_in_games(rules: Rules) -> Iterator[Position]:
    """A pool of at most so many distinct positions, one a game, the same on every machine.

    Games come in seeded order. Of each, the special move is drawn from all that lead to a position
    not yet taken: the first one would often be one of the first moves of the game. Every game has
    draws of its own, so that rules that forbid nearly the same have nearly the same pool.
    """
    games = shipped_games()
    taken: set[str] = set()
    for number in Random(_SEED).sample(range(len(games)), len(games)):
        game = games[number]
        boards = {
            ply: board for ply, board in _special_plies(game, rules) if game[:ply] not in taken
        }
        drawn = Random(f"{_SEED} {number}").sample(list(boards), len(boards))
        # By the changed rules it may be mate already: then there is no way to adapt.
        fitting = (ply for ply in drawn if any(rules.legal_moves(boards[ply])))
        if (ply := next(fitting, None)) is None:
            continue
        before = game[:ply]
        taken.add(before)
        special = move_of(game[ply]).uci()
        yield Position(number, tuple(move_of(each).uci() for each in before), (special,))
        if len(taken) == POOL:
            return


def _special_plies(game: str, rules: Rules) -> Iterator[tuple[int, chess.Board]]:
    """How many moves come before each special one, and the board then."""
    board = chess.Board()
    for ply, move in enumerate(map(move_of, game)):
        if rules.is_special(board, move):
            yield ply, board.copy(stack=False)
        board.push(move)


GAME = "Morphy's opera game, Paris 1858"
_MOVES = """
e2e4 e7e5 g1f3 d7d6 d2d4 c8g4 d4e5 g4f3 d1f3 d6e5 f1c4 g8f6 f3b3 d8e7 b1c3 c7c6 c1g5 b7b5
c3b5 c6b5 c4b5 b8d7 e1c1 a8d8 d1d7 d8d7 h1d1 e7e6 b5d7 f6d7 b3b8 d7b8 d1d8
"""


def example_of(rules: Rules) -> Position | None:
    """A position of the game with a special move, if there is one.

    Of several, the one where the same piece has the most moves now.
    """
    board, moves = chess.Board(), _MOVES.split()
    found: list[tuple[int, Position]] = []
    for ply, uci in enumerate(moves):
        move = chess.Move.from_uci(uci)
        if rules.is_special(board, move):
            others = (m for m in rules.legal_moves(board) if m.from_square == move.from_square)
            found.append((len(list(others)), Position(0, tuple(moves[:ply]), (uci,))))
        board.push(move)
    return max(found, key=lambda one: one[0])[1] if found else None
