"""Read record files of the original eval."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, error_reason
from ..game.position import Position
from ..game.rules import BISHOPS_AS_KNIGHTS, Rules, board_after
from ..metrics.bounds import interval_of
from ..metrics.measures import HABIT
from ..metrics.types import Results
from ..providers.base import Answer
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Eval, Outcome, Sample, ScoredAnswer

# The only rule change of the original.
CHANGE: Rules = BISHOPS_AS_KNIGHTS
# All that a record tells: the special move, or anything else.
_OUTCOMES: tuple[Outcome, Outcome] = ("special", "illegal")


@dataclass(frozen=True)
class Record:
    """One run of the original eval.

    Attributes:
        model: the model's name.
        eval: the eval.
        samples: with answers that are either the special move or, as far as known, anything else,
            so only measures of special moves can be computed.
    """

    model: str
    eval: Eval
    samples: list[Sample]


def records_in(paths: Sequence[Path]) -> list[Record]:
    """Read the records in these files; copies count once.

    Raises:
        InvalidInput: naming the file and the problem, if one is not a record.
    """
    read: list[tuple[object, Record]] = []
    for path in paths:
        if (spec_and_record := _read(path)) not in read:
            read.append(spec_and_record)
    records = [record for _, record in read]
    games = iter(_games([s.position.moves for record in records for s in record.samples]))
    for record in records:
        record.samples[:] = [
            replace(sample, position=replace(sample.position, game=next(games)))
            for sample in record.samples
        ]
    return records


def _read(path: Path) -> tuple[object, Record]:
    """Return the spec, which distinguishes runs, and the record, whose samples have no game yet."""
    lines = list(_objects(path))
    try:
        spec = next(line["spec"] for line in lines if "spec" in line)
        samples = [_sample(line["data"]) for line in lines if line.get("type") == "metrics"]
        model = spec["completion_fns"][0]
        diagonal = spec["run_config"]["eval_spec"]["args"].get("diagonal_variation")
        if not isinstance(model, str):
            raise TypeError(f"not a model name: {model!r}")
    except StopIteration:
        raise InvalidInput(f"{path} is not a record file: no line has the key 'spec'") from None
    except (AttributeError, InvalidInput, LookupError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path} is not a record file of this eval ({error!r})") from None
    if not samples:
        raise InvalidInput(f"{path} contains no samples")
    return spec, Record(model, "all_diagonal" if diagonal else "all", samples)


def results_of_records(runs: Sequence[Sequence[Sample]]) -> Results:
    """Compute the measures of special moves, the only ones that records allow."""
    samples = [sample for samples in runs for sample in samples]
    values = {measure.name: measure.value(samples) for measure in HABIT}
    intervals = {measure.name: interval_of(measure, samples) for measure in HABIT}
    known = {name: interval for name, interval in intervals.items() if interval}
    return Results({**values, "n_samples": len(samples)}, known, {}, {}, {})


def _sample(data: dict[str, Any]) -> Sample:
    moves = tuple(data["previous_moves"])
    board_after(moves)
    hits = {
        STANDARD_CONDITION: data["predicted_move"],
        CHANGED_CONDITION: data["predicted_move_in_variant"],
    }
    special, other = (ScoredAnswer(name, None, name) for name in _OUTCOMES)
    replies = {name: special if hit else other for name, hit in hits.items()}
    return Sample(Position(0, moves, ()), 0, replies, dict.fromkeys(replies, Answer()))


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, skipping lines that an interrupted run left incomplete."""
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    data = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(data, dict):
                    yield data
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error_reason(error)}") from None


def _games(moves: Sequence[tuple[str, ...]]) -> list[int]:
    """Number the games: records do not name them, but positions of one game extend each other."""
    games = [0] * len(moves)
    game, last = 0, None
    for index in sorted(range(len(moves)), key=moves.__getitem__):
        if last is None or moves[index][: len(last)] != last:
            game += 1
        games[index], last = game, moves[index]
    return games
