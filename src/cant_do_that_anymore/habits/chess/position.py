"""Positions and their files: JSON lines with the key names of the original eval.

An example; the original's older key names can be read as well::

    {"game_idx": 4, "previous_moves": ["e2e4", "b7b6", "d2d4"], "next_filtered_moves": ["c8b7"]}
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import chess

from ...errors import InvalidInput
from ...files import DATA, atomic_write
from ...validation import parse
from ..base import numbered_lines
from .rules import Rules, board_after, resolve_rules


@dataclass(frozen=True)
class Position:
    """The moves played so far, in UCI, from the initial position, and the usual moves there.

    Attributes:
        game: the number of its game; positions of one game are not independent.
        moves: the moves played so far.
        usual: the usual moves there (`Rules.is_habit`), or some of them.
        source: where to find the game, if known.
        where: the file and line of a position whose moves are not yet checked.
    """

    game: int
    moves: tuple[str, ...]
    usual: tuple[str, ...]
    source: str | None = None
    where: str = field(default="", compare=False)

    @cached_property
    def id(self) -> str:
        """A digest of the moves and usual moves, the same on every machine."""
        text = " ".join(self.moves) + "|" + " ".join(sorted(self.usual))
        return sha256(text.encode()).hexdigest()[:12]

    @property
    def group(self) -> int:
        """The game: its positions are not independent."""
        return self.game

    @property
    def subject(self) -> tuple[str, ...]:
        """The moves so far."""
        return self.moves

    @property
    def facts(self) -> dict[str, float]:
        """The number of moves so far."""
        return {"num_previous_moves": len(self.moves)}

    def board(self) -> chess.Board:
        """Return a new board after the moves played so far, with an empty move stack."""
        return _board_after(self.moves).copy(stack=False)

    def to_json(self) -> dict[str, Any]:
        """Return the position as a JSON object for one line of a file."""
        line: dict[str, Any] = {
            "game_idx": self.game,
            "previous_moves": list(self.moves),
            "next_filtered_moves": list(self.usual),
        }
        if self.source:
            line["source"] = self.source
        return line


@dataclass(frozen=True)
class _Line:
    """The keys of a position in a file; ``special_move`` is an older one of the original."""

    game_idx: int
    previous_moves: list[str]
    next_filtered_moves: list[str] = field(default_factory=list)
    special_move: str = ""
    source: str | None = None


def parse_position(values: str | Mapping[str, Any], where: str = "") -> Position:
    """Return the position of a JSON text or object, without checking the moves.

    Raises:
        InvalidInput: naming the place and the key, if it is none.
    """
    line = parse(_Line, values, where or "the position")
    usual = line.next_filtered_moves or [line.special_move]
    if not all(usual):
        raise InvalidInput(f"{where or 'the position'} has no usual move ('next_filtered_moves')")
    return Position(line.game_idx, tuple(line.previous_moves), tuple(usual), line.source, where)


@lru_cache(maxsize=2048)
def _board_after(moves: tuple[str, ...]) -> chess.Board:
    """Cached, since a run uses its positions several times and playing the moves takes longest."""
    return board_after(moves).copy(stack=False)


def read_positions(path: Path, rules: Rules) -> list[Position]:
    """Read and check a file of positions, plain or gzip-compressed.

    Raises:
        InvalidInput: with file, line and reason, at the first line that is not a position with a
            usual move under ``rules``; or if the rules cannot work.
    """
    change = resolve_rules(rules)
    return [change.checked(position) for position in parse_positions(path)]


def parse_positions(path: Path) -> list[Position]:
    """Read a file of positions without checking the moves.

    Checking takes most of the time, so callers check the positions they use (`Rules.checked`).

    Raises:
        InvalidInput: with file, line and reason, at the first line that is not a position.
    """
    if ".pgn" in path.suffixes:
        raise InvalidInput(
            f"{path} holds games, not positions; use cdta mine {path} -o positions.jsonl"
        )
    return [parse_position(line, where) for line, where in numbered_lines(path)]


def write_positions(path: Path, positions: Iterable[Position]) -> None:
    """Write a file of positions, gzip-compressed if its name ends in ``.gz``.

    The write is atomic.
    """
    with atomic_write(path) as file, gzip_if_named(path, file) as out:
        out.writelines(json.dumps(p.to_json()).encode() + b"\n" for p in positions)


@cache
def shipped_pool(name: str) -> tuple[Position, ...]:
    """Return a bundled pool: ``pool`` (human games) or ``diagonal`` (games under the new rule)."""
    return tuple(trusted_positions(Path(str(DATA / f"{name}.jsonl.gz"))))


def trusted_positions(path: Path) -> list[Position]:
    """Read a file that this package has written: the moves of its positions are never checked.

    Raises:
        InvalidInput: if it is not such a file.
    """
    return [parse_position(line) for line, _ in numbered_lines(path)]


def played(moves: Iterable[chess.Move]) -> Iterator[tuple[chess.Board, chess.Move]]:
    """Yield each move of a game with the board before it, always the same object."""
    board = chess.Board()
    for move in moves:
        yield board, move
        board.push(move)


def gzip_if_named(path: Path, file: BinaryIO) -> AbstractContextManager[BinaryIO | gzip.GzipFile]:
    """Wrap ``file`` in a gzip writer if ``path`` ends in ``.gz``."""
    if path.suffix != ".gz":
        return nullcontext(file)
    # Without name and time in the header, equal positions give equal bytes.
    return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
