"""The shipped games, pools made from them for any rules, and one example per rule.

The games are the first moves of 50,000 sorted games by masters (docs/files.md). Their file is
xz-compressed UTF-16 text: one character, two bytes, per move and a null character between games.
``tools/make_games.py`` writes it.
"""

import lzma
from collections.abc import Iterable, Iterator
from functools import cache
from random import Random

import chess

from ...files import DATA
from .position import Position, played
from .rules import Rules

FILE = DATA / "games.xz"
POOL_VERSION = 1  # raised whenever the pool of the same rules would change
POOL_SIZE = 20_000
_SEED = 0


@cache
def shipped_games() -> tuple[str, ...]:
    """Return the games, one character per move."""
    return tuple(lzma.decompress(FILE.read_bytes()).decode("utf-16-le").split("\0"))


def character_of(move: chess.Move) -> str:
    """Encode a move: six bits each for origin and target, then the promotion piece.

    >>> move_of(character_of(chess.Move.from_uci("e7e8q"))).uci()
    'e7e8q'
    """
    return chr(move.from_square | move.to_square << 6 | (move.promotion or 0) << 12)


@cache
def move_of(character: str) -> chess.Move:
    """Decode a character to its move."""
    code = ord(character)
    return chess.Move(code & 63, code >> 6 & 63, code >> 12 or None)


def positions_in_games(rules: Rules) -> Iterator[Position]:
    """Yield a pool of at most `POOL_SIZE` distinct positions, the same on every machine.

    Each game, in seeded order, gives at most one position: a random usual move, since the first
    one would often be one of the first moves of the game. Each game has its own random numbers, so
    similar rules have similar pools.
    """
    games = shipped_games()
    taken: set[str] = set()
    for number in Random(_SEED).sample(range(len(games)), len(games)):
        game = games[number]
        boards = {
            ply: board
            for ply, board in _usual_plies(map(move_of, game), rules)
            if game[:ply] not in taken
        }
        for ply in Random(f"{_SEED} {number}").sample(list(boards), len(boards)):
            # It may be mate already under the changed rules; then no move is legal.
            if any(rules.legal_moves(boards[ply])):
                taken.add(game[:ply])
                *before, usual = (move_of(code).uci() for code in game[: ply + 1])
                yield Position(number, tuple(before), (usual,))
                break
        if len(taken) == POOL_SIZE:
            return


def _usual_plies(moves: Iterable[chess.Move], rules: Rules) -> Iterator[tuple[int, chess.Board]]:
    """Yield the ply of each usual move, and the board before it."""
    for ply, (board, move) in enumerate(played(moves)):
        if rules.is_habit(board, move):
            yield ply, board.copy(stack=False)


# Morphy's opera game, Paris 1858.
_MOVES = """
e2e4 e7e5 g1f3 d7d6 d2d4 c8g4 d4e5 g4f3 d1f3 d6e5 f1c4 g8f6 f3b3 d8e7 b1c3 c7c6 c1g5 b7b5
c3b5 c6b5 c4b5 b8d7 e1c1 a8d8 d1d7 d8d7 h1d1 e7e6 b5d7 f6d7 b3b8 d7b8 d1d8
"""
EXAMPLE_MOVES = _MOVES.split()


def example_of(rules: Rules) -> Position | None:
    """Return a position of the example game with a usual move, if there is one.

    Of several, it is the one in which the same piece has the most legal moves.
    """
    examples = {}
    for ply, board in _usual_plies(map(chess.Move.from_uci, EXAMPLE_MOVES), rules):
        usual = EXAMPLE_MOVES[ply]
        legal = sum(move.uci()[:2] == usual[:2] for move in rules.legal_moves(board))
        examples[Position(0, tuple(EXAMPLE_MOVES[:ply]), (usual,))] = legal
    return max(examples, key=examples.__getitem__, default=None)
