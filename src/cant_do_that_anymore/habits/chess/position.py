"""Positions and their files: JSON lines with the key names of the original eval.

An example; the original's older key names can be read as well::

    {"game_idx": 4, "previous_moves": ["e2e4", "b7b6", "d2d4"], "next_filtered_moves": ["c8b7"]}
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, BinaryIO, Self, cast

import chess

from ...errors import InvalidInput
from ...files import DATA, atomic_write, file_errors
from .rules import STANDARD, Rules, board_after, move_on, resolve_rules


@dataclass(frozen=True)
class Position:
    """The moves played so far, in UCI, from the initial position, and the usual moves there.

    Attributes:
        game: the number of its game; positions of one game are not independent.
        moves: the moves played so far.
        usual: the usual moves there (`Rules.is_habit`), or some of them.
        source: where to find the game, if known.
        where: the file and line of a position whose moves are not yet `checked`.
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

    @classmethod
    def from_json(cls, fields: Any) -> Self:
        """Create a position from a JSON object, also with the original's older key names.

        Raises:
            KeyError: if a key is missing.
            ValueError: if a value has the wrong type, or there is no usual move.
        """
        if not isinstance(fields, dict):
            raise ValueError("not a JSON object")
        usual = fields.get("next_filtered_moves") or fields.get("special_move") or []
        usuals = [usual] if isinstance(usual, str) else usual
        game, moves, source = fields["game_idx"], fields["previous_moves"], fields.get("source")
        if type(game) is not int or not isinstance(source, str | None):
            raise ValueError("not the number of a game and a text")
        if not (_are_texts(moves) and _are_texts(usuals) and usuals):
            raise ValueError("not lists of moves")
        return cls(game, tuple(moves), tuple(usuals), source)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


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
    return [checked(position, change) for position in parse_positions(path)]


def parse_positions(path: Path) -> list[Position]:
    """Read a file of positions without checking the moves.

    Checking takes most of the time, so callers do that for the positions they use (`checked`).

    Raises:
        InvalidInput: with file, line and reason, at the first line that is not a position.
    """
    if ".pgn" in path.suffixes:
        raise InvalidInput(
            f"{path} holds games, not positions; find positions in them with "
            f"cdta mine {path} -o positions.jsonl"
        )
    opener = gzip.open if path.suffix == ".gz" else open
    problems = (OSError, EOFError, zlib.error)
    with file_errors("read", path, error=InvalidInput, caught=problems), opener(path, "rb") as file:
        lines = cast(BinaryIO, file).readlines()
    return [
        _parse_line(line, f"{path}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]


def checked(position: Position, rules: Rules) -> Position:
    """Check that a position's moves are possible and its usual moves usual.

    Raises:
        InvalidInput: with file, line and reason, if they are not under ``rules``.
    """
    if not position.where:
        return position
    try:
        _check_moves(position, rules)
    except InvalidInput as problem:
        raise InvalidInput(f"{position.where}: {problem}") from None
    return replace(position, where="")


def write_positions(path: Path, positions: Iterable[Position]) -> None:
    """Write a file of positions, gzip-compressed if its name ends in ``.gz``.

    The write is atomic.
    """
    with atomic_write(path) as file, gzip_if_named(path, file) as out:
        out.writelines(json.dumps(p.to_json()).encode() + b"\n" for p in positions)


@cache
def shipped_pool(name: str) -> tuple[Position, ...]:
    """Return a bundled pool: ``pool`` (human games) or ``diagonal`` (games under the new rule)."""
    return tuple(trusted_positions(gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes())))


def trusted_positions(lines: bytes) -> list[Position]:
    """Parse a file of positions that this package has written, without checking the moves.

    Raises:
        KeyError, ValueError: if it is not such a file.
    """
    objects = json.loads(b"[%s]" % b",".join(lines.splitlines()))
    return [Position.from_json(fields) for fields in objects]


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


def _parse_line(line: bytes, where: str) -> Position:
    try:
        return replace(Position.from_json(json.loads(line)), where=where)
    except (KeyError, ValueError):
        text = shortened(line.decode("utf-8", "replace").strip())
        raise InvalidInput(
            f"{where}: not a position as a JSON object with 'game_idx' (a number), "
            f"'previous_moves' and 'next_filtered_moves' (lists of moves): {text}"
        ) from None


def _check_moves(position: Position, rules: Rules) -> None:
    board = board_after(position.moves, STANDARD, rules)
    for uci in position.usual:
        move = move_on(board, uci, len(position.moves) + 1)
        # Like `Rules.is_habit`, except that the original's file of diagonal moves includes moves
        # that leave the own king in check (320 of 11,366).
        is_forbidden = board.is_pseudo_legal(move) and not rules.is_legal(board, move)
        if not is_forbidden or not rules.affects(board, move):
            raise InvalidInput(f"{uci!r} is not a usual move that {rules.key} forbids")
