"""A tolerant PGN reader: bytes to blocks of whole games to moves.

The start of a game depends on its own lines only, so a damaged game does not affect the others. A
game starts at a tag such as ``[White "N.N."]`` after a line that is not a tag, even inside a
comment; a game without tags starts at a move number 1 after a blank line.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from reprlib import repr as shortened
from typing import NamedTuple

from .inputs import Unreadable, open_input, read_chunks

MAX_GAME_BYTES = 2**20  # more than any game with its comments; longer ones are skipped
TOO_LONG = f"longer than {MAX_GAME_BYTES:,} bytes"
CUT_OFF = "cut off"

_MAX_TAG_START = 200  # from the line feed to the quotation mark
_TAGS = re.compile(
    rb"""\n[ \t]*+\[ \w+ [ \t]+ "[^\n]*
    (?: \n[ \t]*+\[[^\n]*                            # the next tag
      | \n[ \t]*+(?= \n[ \t]*+\[ (?!(?i:Event)\ ))   # a blank line among the tags
      | \n[%;][^\n]*(?= \n[ \t]*+\[ )                # a comment among the tags
    )*""",
    re.VERBOSE,
)
_TAG = re.compile(r'[\n\]][ \t]*+\[(\w+)[ \t]+"(.*?)"[ \t]*(?=\])')
_BLANK = re.compile(rb"\s*")
_NOT_PLAIN_TAG = re.compile(rb"\[(?:FEN|SetUp|Variant)[ \t]", re.IGNORECASE)
_UNTAGGED_START = re.compile(rb"\n[ \t]*(?=\n[ \t]*1\s*+\.?+\s*+[a-hN{;])")
_NO_MOVES = re.compile(rb"(?: \s++ | \{[^}]*+\} | (?<=\n)[%;][^\n]*+ )*+", re.VERBOSE)
# A piece symbol in UTF-8, with an optional variation selector.
_FIGURINE = rb"\xe2\x99[\x94-\x9f](?:\xef\xb8[\x8e\x8f])?"
_LETTERS = (b"K", b"Q", b"R", b"B", b"N", b"")
_TOKEN = re.compile(
    rb"""\s*+ (?:
      (?: \d++[.\s]*+ )?
      ( (?: [KQRBN] | FIGURINE )? [a-h]?[1-8]?[x-]?[a-h][1-8] (?: =?(?:[KQRBNkqrbn]|FIGURINE) )?
      | [O0]-[O0](?:-[O0])? ) [+#!?]*+
    | \{[^}]*+\} | ;[^\n]*+ | (?<=\n)%[^\n]*+ | \$\d++ | e\.?p\.?
    | ( [()] )
    | ( 1-0 | 0-1 | 1/2(?:-1/2)? | \* )
    | \d++[.\s]*+
    | ( -- | \{[^}]*+ | [\xc3-\xdf][\x80-\xbf][^\s(){};]*+ )  # a piece in another alphabet
    | (?: (?!FIGURINE) [!?+#=/.\x80-\xff-] )++
    | ( [^\s(){};]++ | \S )
    | \Z )""".replace(b"FIGURINE", _FIGURINE),
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
        text: the bytes, starting with the line feed before the first line.
        games: the offsets of each game in the text.
        lost: instead of games, why the game that starts here was skipped.
        problem: instead of games, why the input could not be read to its end.
        name: the input.
        line: the number of its lines before this block.
        index: the number of games of all inputs before this block.
        share: the share of all inputs read so far, if known.
    """

    text: bytes = b""
    games: Sequence[Game] = ()
    lost: str | None = None
    problem: str | None = None
    name: str = ""
    line: int = 0
    index: int = 0
    share: float | None = None

    def place(self, start: int) -> str:
        """Return the input and line of the game that starts at an offset."""
        first = _BLANK.match(self.text, start).end()  # type: ignore[union-attr]
        line = self.line + self.text.count(b"\n", 0, first)
        return f"{self.name}, line {line}"


def read_blocks(names: Sequence[str]) -> Iterator[Block]:
    """Read inputs one after the other, in bounded memory."""
    index = 0
    for number, name in enumerate(names):
        line = 0
        try:
            with open_input(name) as source:
                for block in _split_input(read_chunks(source)):
                    share = None if source.share is None else (number + source.share) / len(names)
                    if block.games or block.lost:
                        yield replace(block, name=name, line=line, index=index, share=share)
                    line += block.text.count(b"\n")
                    index += len(block.games) + bool(block.lost)
        except Unreadable as problem:
            yield Block(problem=str(problem), name=name, line=line, index=index)


def find_games(text: bytes) -> list[Game]:
    """Return the offsets of each game in ``text``, which starts with a line feed."""
    tags = [match.span() for match in _TAGS.finditer(text)]
    games: list[Game] = []
    for (start, moves), (end, _) in pairwise([(0, 0), *tags, (len(text), 0)]):
        games += _split_untagged(text, Game(start, moves, end))
    if _NO_MOVES.fullmatch(text, 0, games[0].end):
        del games[0]
    return games


def is_plain(text: bytes, game: Game) -> bool:
    """Whether no tag sets another initial position or variant; faster than ``tags_of``."""
    return not _NOT_PLAIN_TAG.search(text, game.start, game.moves)


def tags_of(text: bytes, game: Game) -> dict[str, str]:
    """Return the tags of ``game`` by name in lower case, decoded as UTF-8 or else as Latin-1."""
    written = text[game.start : game.moves]
    try:
        tags = written.decode("utf-8")
    except UnicodeDecodeError:
        tags = written.decode("latin-1")
    pairs = _TAG.findall(tags.replace(r"\"", '"'))
    return {name.lower(): value for name, value in pairs}


def moves_of(text: bytes, game: Game) -> Iterator[bytes]:
    """Yield the moves of ``game`` as written, without check marks and annotations.

    Raises:
        Damaged: at the first token that is invalid in a game.
    """
    depth, over = 0, False
    for token in _TOKEN.finditer(text, game.moves, game.end):
        kind = token.lastindex
        if kind == _MOVE and not (depth or over):
            move = token[_MOVE]
            yield move if move.isascii() else re.sub(_FIGURINE, _letter, move)
        elif kind == _PARENTHESIS:
            depth += 1 if token[_PARENTHESIS] == b"(" else -1
            if depth < 0:
                raise Damaged("a closing parenthesis without an opening one")
        elif kind is None or depth:
            continue
        elif kind == _RESULT:
            over = True
        else:
            raise Damaged(f"unexpected {shortened(token[0].strip().decode('utf-8', 'replace'))}")
    if depth:
        raise Damaged("a variation that is never closed")


def _letter(figurine: "re.Match[bytes]") -> bytes:
    return _LETTERS[(figurine[0][2] - 0x94) % len(_LETTERS)]


def _split_input(chunks: Iterator[bytes]) -> Iterator[Block]:
    """Split an input where games start, and skip text that is too long to be a game."""
    rest, skipping = b"\n", False
    try:
        for chunk in chunks:
            rest += chunk
            if skipping:
                tags = _TAGS.search(rest)
                cut = tags.start() if tags else max(0, len(rest) - _MAX_TAG_START)
                yield Block(rest[:cut])
                rest = rest[cut:]
                if not tags:
                    continue
                skipping = False
            games = find_games(rest)
            if len(games) > 1:
                cut = games[-1].start  # it may continue in the next chunk
                yield Block(rest[:cut], games[:-1])
                rest = rest[cut:]
            if len(rest) > MAX_GAME_BYTES:
                cut = len(rest) - _MAX_TAG_START
                skipping = bool(games)
                yield Block(rest[:cut], lost=TOO_LONG if games else None)
                rest = rest[cut:]
    except Unreadable:
        if not skipping and find_games(rest):
            yield Block(rest, lost=CUT_OFF)
        raise
    if not skipping:
        yield Block(rest, find_games(rest))


def _split_untagged(text: bytes, game: Game) -> Iterator[Game]:
    start, moves, end = game
    in_comment, seen = False, moves
    for first_move in _UNTAGGED_START.finditer(text, moves, end):
        cut = first_move.start()
        opening, closing = text.rfind(b"{", seen, cut), text.rfind(b"}", seen, cut)
        if opening != closing:
            in_comment = opening > closing
        seen = cut
        if not in_comment and not _NO_MOVES.fullmatch(text, moves, cut):
            yield Game(start, moves, cut)
            start = moves = cut
    yield Game(start, moves, end)
