"""The samples of a run as a file: one JSON object a line, and no line believed unseen."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isclose
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from ..errors import InvalidInput, error_reason
from ..game.position import Position
from ..game.rules import board_after
from ..metrics.types import Results
from ..providers.base import Answer
from ..task.samples import interned, rescore
from ..task.spill import SpillFile, spill_file
from ..task.types import OUTCOMES, Number, Plan, Sample, ScoredAnswer

DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading may raise where a file is not what it should be."""
AGAIN = "the run's command makes it anew, and asks nothing twice"
CHANGED = f"the file was changed; {AGAIN}"


def line_of(sample: Sample) -> str:
    """The sample as a line of the file."""
    said = sample.answers
    facts = {
        "id": sample.position.id,
        **sample.position.to_json(),
        "draw": sample.draw,
        "replies": {
            name: {**said[name].to_json(), **asdict(reply)}
            for name, reply in sample.replies.items()
        },
    }
    return json.dumps(facts) + "\n"


def read_samples(path: Path) -> list[Sample]:
    """The samples in a file, each once.

    Raises:
        InvalidInput: naming the line that is no sample, or one that came before.
    """
    lines: dict[tuple[str, int], int] = {}
    samples = []
    for number, sample in enumerate(_samples_in(path), 1):
        first = lines.setdefault((sample.position.id, sample.draw), number)
        if first != number:
            raise InvalidInput(
                f"{path}, line {number}: the same sample as in line {first}; {CHANGED}"
            )
        samples.append(sample)
    return samples


def check_judgements(samples: Sequence[Sample], plan: Plan, path: Path) -> None:
    """Judge the kept answers again.

    Raises:
        InvalidInput: naming the first line of the file that says something else.
    """
    again = rescore(samples, plan, plan.reading)
    for number, (kept, now) in enumerate(zip(samples, again, strict=True), 1):
        for name, reply in now.replies.items():
            if kept.replies[name] != reply:
                raise InvalidInput(
                    f"{path}, line {number}: the {name} reply "
                    f"{shortened(kept.answers[name].text)} is "
                    f"{_told(reply)}, not {_told(kept.replies[name])}; {CHANGED}"
                )


def check_numbers(facts: dict[str, Any], results: Results, path: Path) -> None:
    """Refuse numbers that the samples do not give."""
    kept, outcomes = facts["metrics"], facts["outcomes"]
    if outcomes != results.outcomes:
        raise InvalidInput(f"{path} has other outcomes than samples.jsonl gives; {CHANGED}")
    for name in kept.keys() & results.metrics.keys():
        if not _same(kept[name], results.metrics[name]):
            raise InvalidInput(
                f"{path} says that {name} is {kept[name]!r}, and samples.jsonl gives "
                f"{results.metrics[name]!r}: one of the two was changed; {AGAIN}"
            )


def _same(kept: object, now: Number) -> bool:
    if isinstance(kept, float) and isinstance(now, float):
        return isclose(kept, now)  # another machine may round otherwise
    return kept == now


def _told(reply: ScoredAnswer) -> str:
    return f"{reply.outcome} ({reply.move or 'no move'}, {reply.under_change} under the change)"


def _samples_in(path: Path) -> Iterator[Sample]:
    aside = spill_file()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield _sample_in(line, aside, f"{path}, line {number}")
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {error_reason(problem)}") from None


def _sample_in(line: bytes, aside: SpillFile, where: str) -> Sample:
    try:
        fields = json.loads(line)
        position = Position.from_json(fields)
        board_after(position.moves)
        replies = {name: _reply_in(told) for name, told in fields["replies"].items()}
        said = {name: Answer.from_json(told) for name, told in fields["replies"].items()}
        sample = Sample(position, int(fields["draw"]), replies, aside.spill(said))
        named = fields["id"]
    except DAMAGE as problem:
        raise InvalidInput(f"{where}: not a sample of a run ({shortened(problem)})") from None
    if named != position.id:
        raise InvalidInput(f"{where}: the id is not that of the position; {CHANGED}")
    return sample


def _reply_in(fields: dict[str, Any]) -> ScoredAnswer:
    outcome, move, changed = fields["outcome"], fields["move"], fields["under_change"]
    if {outcome, changed} - set(OUTCOMES) or not isinstance(move, str | None):
        raise ValueError(f"no outcome and move: {outcome!r}, {changed!r}, {move!r}")
    if not isinstance(tempted := fields["thought_of_special"], bool):
        raise ValueError(f"neither true nor false: {tempted!r}")
    return interned(outcome, move, changed, tempted)
