"""Read record files of the original eval."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, error_reason
from ..game.position import Position
from ..game.rules import BISHOPS_AS_KNIGHTS, Rules, board_after
from ..providers.base import Answer
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Eval, Outcome, Sample, ScoredAnswer

CHANGE: Rules = BISHOPS_AS_KNIGHTS
"""The only change of rules that the original knows."""


@dataclass(frozen=True)
class Record:
    """One run of the original.

    Attributes:
        model: its name.
        eval: the eval that it was.
        samples: with replies that were the special move or, as far as is known, any other answer:
            only what looks at special moves alone can be measured on them.
    """

    model: str
    eval: Eval
    samples: list[Sample]


def records_in(paths: Sequence[Path]) -> list[Record]:
    """What the files record; a copy of one that came before counts once.

    Raises:
        InvalidInput: naming the file and the fault, if one is no record.
    """
    read: list[tuple[object, Record]] = []
    for path in paths:
        if (found := _read(path)) not in read:
            read.append(found)
    records = [record for _, record in read]
    games = iter(_games([s.position.moves for record in records for s in record.samples]))
    return [
        replace(record, samples=[_of_game(next(games), sample) for sample in record.samples])
        for record in records
    ]


def _read(path: Path) -> tuple[object, Record]:
    """The spec, which tells runs apart, and the record, whose samples are still of no game."""
    lines = list(_objects(path))
    try:
        spec = next(line["spec"] for line in lines if "spec" in line)
        samples = [_sample(line["data"]) for line in lines if line.get("type") == "metrics"]
        model = spec["completion_fns"][0]
        diagonal = spec["run_config"]["eval_spec"]["args"].get("diagonal_variation")
        if not isinstance(model, str):
            raise TypeError(f"no name of a model: {model!r}")
    except StopIteration:
        raise InvalidInput(f"{path} is no record file: no line has the key 'spec'") from None
    except (AttributeError, InvalidInput, LookupError, TypeError, ValueError) as problem:
        raise InvalidInput(f"{path} is no record file of this eval ({problem!r})") from None
    if not samples:
        raise InvalidInput(f"{path} records no samples")
    return spec, Record(model, "all_diagonal" if diagonal else "all", samples)


def _sample(data: dict[str, Any]) -> Sample:
    moves = tuple(data["previous_moves"])
    board_after(moves)
    hits = {
        STANDARD_CONDITION: data["predicted_move"],
        CHANGED_CONDITION: data["predicted_move_in_variant"],
    }
    replies = {name: _reply(hit) for name, hit in hits.items()}
    return Sample(Position(0, moves, ()), 0, replies, dict.fromkeys(replies, Answer()))


def _reply(hit: object) -> ScoredAnswer:
    outcome: Outcome = "special" if hit else "illegal"
    return ScoredAnswer(outcome, None, outcome)


def _of_game(game: int, sample: Sample) -> Sample:
    return replace(sample, position=replace(sample.position, game=game))


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, skipping lines that a stopped run left half written."""
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    found = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(found, dict):
                    yield found
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {error_reason(problem)}") from None


def _games(moves: Sequence[tuple[str, ...]]) -> list[int]:
    """Which samples are of one game: no record says it, but positions of one extend each other."""
    games = [0] * len(moves)
    game, last = 0, None
    for index in sorted(range(len(moves)), key=moves.__getitem__):
        if last is None or moves[index][: len(last)] != last:
            game += 1
        games[index], last = game, moves[index]
    return games
