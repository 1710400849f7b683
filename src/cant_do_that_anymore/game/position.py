"""Positions and the files they live in: JSON lines under the original's key names.

A line looks like this; the original's older key names are read as well::

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
from importlib.resources import files
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, BinaryIO, Self, cast

import chess

from ..errors import InvalidInput, error_reason
from ..files import atomic_write
from .rules import STANDARD, Rules, board_after, move_on

DATA = files("cant_do_that_anymore") / "data"


@dataclass(frozen=True)
class Position:
    """The moves played so far, in UCI, from the initial position, and the special moves there.

    Attributes:
        game: which game it is from; positions of one game are not independent of each other.
        moves: the moves played so far.
        special_moves: those of `Rules.is_special` there, or some of them.
        source: where the game can be found, if known.
        where: the file and line of a position whose moves are still to be `checked`.
    """

    game: int
    moves: tuple[str, ...]
    special_moves: tuple[str, ...]
    source: str | None = None
    where: str = field(default="", compare=False)

    @cached_property
    def id(self) -> str:
        """A name that depends on the moves alone, the same on every machine."""
        text = " ".join(self.moves) + "|" + " ".join(sorted(self.special_moves))
        return sha256(text.encode()).hexdigest()[:12]

    @cached_property
    def choices(self) -> int:
        """How many moves the standard rules allow there."""
        return self.board().legal_moves.count()

    @cached_property
    def occupied(self) -> tuple[chess.Bitboard, chess.Bitboard]:
        """The squares with pieces of the side to move, and of the other side."""
        board = self.board()
        return board.occupied_co[board.turn], board.occupied_co[not board.turn]

    def board(self) -> chess.Board:
        """A board after the moves played so far, without a memory of them."""
        return _board_after(self.moves).copy(stack=False)

    def to_json(self) -> dict[str, Any]:
        """The position as one line of a file."""
        line: dict[str, Any] = {
            "game_idx": self.game,
            "previous_moves": list(self.moves),
            "next_filtered_moves": list(self.special_moves),
        }
        if self.source:
            line["source"] = self.source
        return line

    @classmethod
    def from_json(cls, fields: Any) -> Self:
        """The position in one line of a file, under the original's older key names as well.

        Raises:
            KeyError: if a key is missing.
            ValueError: if anything is not of its kind.
        """
        if not isinstance(fields, dict):
            raise ValueError("no JSON object")
        special = fields.get("next_filtered_moves") or fields.get("special_move") or []
        moves = fields["previous_moves"]
        game, source = fields["game_idx"], fields.get("source")
        if type(game) is not int:
            raise ValueError(f"no number of a game: {shortened(game)}")
        if not isinstance(source, str | None):
            raise ValueError(f"no text: {shortened(source)}")
        specials = [special] if isinstance(special, str) else special
        if not isinstance(moves, list) or not isinstance(specials, list):
            raise ValueError(f"no lists of moves: {shortened(moves)}, {shortened(specials)}")
        for number, uci in enumerate([*moves, *specials], 1):
            if not isinstance(uci, str):
                raise InvalidInput(f"move {number} is no UCI move such as 'e2e4': {shortened(uci)}")
        return cls(game, tuple(moves), tuple(specials), source)


@lru_cache(maxsize=2048)
def _board_after(moves: tuple[str, ...]) -> chess.Board:
    """A run looks at its positions several times, and playing the moves takes longest."""
    board = chess.Board()
    for uci in moves:
        board.push(chess.Move.from_uci(uci))
    return board.copy(stack=False)


def read_positions(path: Path, rules: Rules) -> list[Position]:
    """Read and check a file of positions, plain or gzip-compressed.

    Raises:
        InvalidInput: naming the file, the line and the reason, at the first line that is no
            position with a special move under ``rules``.
    """
    return [checked(position, rules) for position in parsed_positions(path)]


def parsed_positions(path: Path) -> list[Position]:
    """Read a file of positions; to play through all of them takes most of the time, so that is left
    to whoever uses one.

    Raises:
        InvalidInput: naming the file, the line and the reason, at the first line that is no
            position.
    """
    return [
        replace(_parsed(line, where), where=where)
        for where, line in _numbered_lines(path)
        if line.strip()
    ]


def checked(position: Position, rules: Rules) -> Position:
    """The position, once it is known that its moves are possible and the special ones special.

    Raises:
        InvalidInput: naming the file, the line and the reason, if they are not under ``rules``.
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

    The old file is replaced only when the new one is whole.
    """
    with atomic_write(path) as file, packing(path, file) as out:
        out.writelines(position_lines(positions))


def position_lines(positions: Iterable[Position]) -> Iterator[bytes]:
    """What such a file holds."""
    return (json.dumps(position.to_json()).encode() + b"\n" for position in positions)


@cache
def shipped_pool(name: str) -> tuple[Position, ...]:
    """The pool of that name inside the package: positions known to be good (the tests check)."""
    return tuple(trusted_positions(gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes())))


def trusted_positions(lines: bytes) -> list[Position]:
    """The positions of a file that this program has written itself.

    Raises:
        KeyError, ValueError: if it did not.
    """
    at_once = json.loads(b"[%s]" % b",".join(lines.splitlines()))
    return [Position.from_json(fields) for fields in at_once]


def earlier_moves(position: Position, rules: Rules) -> int:
    """How many of the moves played so far, by either side, the change of ``rules`` concerns."""
    board = chess.Board()
    count = 0
    for uci in position.moves:
        move = chess.Move.from_uci(uci)
        count += rules.affects(board, move)
        board.push(move)
    return count


def packing(path: Path, file: BinaryIO) -> AbstractContextManager[BinaryIO | gzip.GzipFile]:
    """The way into ``file`` that packs what is written if ``path`` ends in ``.gz``."""
    if path.suffix != ".gz":
        return nullcontext(file)
    # No name and no time in the header: the same positions make the same bytes.
    return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)


def _numbered_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            for number, line in enumerate(cast(BinaryIO, file), 1):
                yield f"{path}, line {number}", line
    except (OSError, EOFError, zlib.error) as problem:
        raise InvalidInput(f"cannot read {path}: {error_reason(problem)}") from None


def _parsed(line: bytes, where: str) -> Position:
    try:
        position = Position.from_json(json.loads(line))
    except KeyError as missing:
        raise InvalidInput(f"{where}: the key {missing} is missing") from None
    except InvalidInput as problem:
        raise InvalidInput(f"{where}: {problem}") from None
    except ValueError:
        raise InvalidInput(
            f"{where}: not a position as one JSON object: {_excerpt(line)}"
        ) from None
    if not position.special_moves:
        raise InvalidInput(f"{where}: no special move ('next_filtered_moves' is missing or empty)")
    return position


def _check_moves(position: Position, rules: Rules) -> None:
    try:
        board = board_after(position.moves, STANDARD)
    except InvalidInput:
        board = board_after(position.moves, STANDARD, rules)
    for uci in position.special_moves:
        move = move_on(board, uci, len(position.moves) + 1)
        # `Rules.is_special`, but for one thing: the original's file of diagonal moves lists them
        # whether or not they leave the own king in check (320 of 11,366).
        if not board.is_pseudo_legal(move):
            raise InvalidInput(f"{uci!r} is impossible there under the standard rules")
        if rules.is_legal(board, move):
            raise InvalidInput(f"{uci!r} is no special move: {rules.key} allows it")
        if not rules.affects(board, move):
            raise InvalidInput(
                f"{uci!r} is no special move: it is not one of the {rules.affected_moves_label}"
            )


def _excerpt(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else text[:60] + "...")
