"""A tolerant PGN reader: bytes to blocks of whole games to moves.

The start of a game depends on its own lines only, so a damaged game does not affect the others. A
game starts at a tag such as ``[White "N.N."]`` after a line that is not a tag, even inside a
comment. Where there are no tags, it starts at "1." after a blank line.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from reprlib import repr as shortened
from typing import NamedTuple

import chess

from .inputs import Unreadable, read_chunks

MAX_GAME_BYTES = 2**20  # more than any game with its comments; longer ones are cut off

_TAG_LINE = rb'\n[ \t]*+\[\w+[ \t]+"[^\n]*'
_TAGS = re.compile(_TAG_LINE + b"(?:" + _TAG_LINE + b")*")  # fast, as it begins with a literal
_UNTAGGED_START = re.compile(rb"\n(?<![^\n]\n)(?=1\.)")  # after a blank line
_START = re.escape(chess.STARTING_FEN.encode())
# A tag that sets another initial position or another variant.
_SET_UP = re.compile(
    rb'\[(?i:FEN)[ \t]+"(?!%b")|\[(?i:Variant)[ \t]+"(?!(?i:standard|chess|normal)")' % _START
)
_TOKEN = re.compile(
    rb"""\s*+ (?:
      (?: \d++[.\s]*+ )?
      ( [KQRBN]?[a-h]?[1-8]?[x-]?[a-h][1-8] (?: =?[KQRBNkqrbn] )?
      | [O0]-[O0](?:-[O0])? ) [+#!?]*+
    | \{[^}]*+\} | ;[^\n]*+ | (?<=\n)%[^\n]*+ | \$\d++ | e\.?p\.?
    | ( [()] )
    | ( 1-0 | 0-1 | 1/2(?:-1/2)? | \* )
    | \d++[.\s]*+
    | (?!--) [!?+#=/.-]++
    | ( \{[^}]*+ | [^\s(){};]++ | \S )
    | \Z )""",
    re.VERBOSE,
)
_MOVE, _PARENTHESIS, _RESULT = 1, 2, 3


class Damaged(ValueError):
    """A game that cannot be parsed."""


class Game(NamedTuple):
    """Offsets of a game in its block: its start with the tags, its moves, and its end."""

    start: int
    moves: int
    end: int


@dataclass(frozen=True)
class Block:
    """Some consecutive whole games of one input.

    Attributes:
        name: the input.
        line: the number of its lines before this block.
        index: the number of games of all inputs before this block.
        text: the bytes, starting with the line feed before the first line.
        games: the offsets of each game in the text.
        problem: instead of games, why the input could not be read to its end.
    """

    name: str
    line: int
    index: int
    text: bytes = b""
    games: Sequence[Game] = ()
    problem: str | None = None

    def place(self, game: Game) -> str:
        """Return the input and the line where a game starts."""
        line = self.line + self.text.count(b"\n", 0, game.start + 1)
        return f"{self.name}, line {line}"


def read_blocks(names: Sequence[str]) -> Iterator[Block]:
    """Read inputs one after the other, in bounded memory."""
    index = 0
    for name in names:
        line = 0
        try:
            for text, games in _split_input(read_chunks(name)):
                yield Block(name, line, index, text, games)
                line += text.count(b"\n")
                index += len(games)
        except Unreadable as problem:
            yield Block(name, line, index, problem=str(problem))


def find_games(text: bytes) -> list[Game]:
    """Return the offsets of each game in ``text``, which starts with a line feed."""
    starts = list(_TAGS.finditer(text)) or list(_UNTAGGED_START.finditer(text))
    spans = [*(start.span() for start in starts), (len(text), 0)]
    return [Game(start, moves, end) for (start, moves), (end, _) in pairwise(spans)]


def is_standard(text: bytes, game: Game) -> bool:
    """Whether ``game`` is of standard chess, from the initial position."""
    return not _SET_UP.search(text, game.start, game.moves)


def moves_of(text: bytes, game: Game) -> Iterator[bytes]:
    """Yield the moves of ``game`` as written, without check marks and annotations.

    Raises:
        Damaged: at the first token that is invalid in a game.
    """
    depth = 0
    for token in _TOKEN.finditer(text, game.moves, game.end):
        kind = token.lastindex
        if kind == _PARENTHESIS:
            depth += 1 if token[_PARENTHESIS] == b"(" else -1
        elif kind is None or depth:
            continue
        elif kind == _MOVE:
            yield token[_MOVE]
        elif kind == _RESULT:
            return
        else:
            raise Damaged(f"unexpected {shortened(token[0].strip().decode('utf-8', 'replace'))}")


def _split_input(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, list[Game]]]:
    """Split an input where games start; yield texts with the offsets of their games."""
    rest = b"\n"
    for chunk in chunks:
        rest += chunk
        games = find_games(rest)
        # The last game may go on in the next chunk, unless it is too long to be one.
        last = games[-1].start if games else 0
        cut = last if len(rest) <= MAX_GAME_BYTES else len(rest)
        yield rest[:cut], [game for game in games if game.start < cut]
        rest = rest[cut:]
    yield rest, find_games(rest)
