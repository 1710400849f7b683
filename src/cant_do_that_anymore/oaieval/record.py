"""Write record files in the format of the original.

One JSON object per line: ``{"spec": {...}}``, then events, then ``{"final_report": {...}}``. The
events of a sample are a ``sampling`` event for each answer and one ``metrics`` event, or an
``error`` event if an answer is missing; the report can be computed from them.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import chess

from ..errors import Interrupted, InvalidInput
from ..files import file_errors
from ..formatting import Number
from ..habits.chess.position import Position
from ..metrics.measures import LENGTHS, ORIGINAL
from ..providers.base import Answer, Usage
from ..providers.request_fields import as_text
from ..runs.run import Run
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Sample

Event = dict[str, Any]

_MOVE_AT_START = re.compile(r"([a-h][1-8])([a-h][1-8])(?:=?[nbrqkNBRQK])?")
# The original's names of the conditions.
_NAMES = {STANDARD_CONDITION: "standard", CHANGED_CONDITION: "variant"}


def events_of(run: Run, spec: dict[str, Any], indices: Sequence[int]) -> Iterator[Event]:
    """Yield all events of a run; ``indices`` are the samples' numbers in the dataset."""
    number = count()
    for index, sample in zip(indices, run.samples, strict=True):
        for kind, data in _sample_events(run, sample):
            yield {
                "run_id": spec["run_id"],
                "event_id": next(number),
                "sample_id": f"{spec['eval_name']}.{index}",
                "type": kind,
                "data": data,
                "created_by": spec["created_by"],
                "created_at": str(datetime.now(UTC)),
            }


def final_report(run: Run) -> dict[str, Number]:
    """Return the metrics in the original's order, followed by those it does not have."""
    results = run.results
    ours = {name: estimate.value for name, estimate in results.estimates.items()}
    originals = (*(measure.name for measure in ORIGINAL), *LENGTHS)
    tokens = _token_counts(results.usage)
    return {
        **{name: ours.get(name) for name in originals},
        **_violation_rates(run.answered),
        **{f"usage_{kind}": count for kind, count in tokens.items()},
        **ours,
        "n_samples": results.n,
        "n_failed": results.failed,
    }


def _violation_rates(samples: Sequence[Sample]) -> dict[str, Number]:
    """Return the share of replies with each violation, by condition."""
    counts: Counter[str] = Counter()
    for sample in samples:
        counts.update(_violations(sample))
    return {f"{name}_rate": n / len(samples) for name, n in counts.items()}


def _violations(sample: Sample) -> dict[str, bool]:
    """Return by condition whether the reply commits each violation."""
    violations: dict[str, bool] = {}
    for condition, prefix in _NAMES.items():
        text, position = sample.answers[condition].text, cast(Position, sample.item)
        committed = original_violations(text, position)
        violations |= {f"{prefix}_{name}": is_so for name, is_so in committed.items()}
    return violations


def _sample_events(run: Run, sample: Sample) -> Iterator[tuple[str, Any]]:
    is_completion, answers = run.identity.get("api") == "completions", sample.answers
    for condition in run.plan.conditions:
        answer = answers[condition.name]
        if answer.stop_reason == "error":
            yield "error", {"type": "NoAnswer", "message": answer.error}
            continue
        messages = condition.question(sample.item).messages
        prompt = as_text(messages) if is_completion else list(map(asdict, messages))
        yield "sampling", {"prompt": prompt, **_sampling_data(answer)}
    if sample.answered:
        yield "metrics", _metrics_data(sample)


def original_violations(reply: str, position: Position) -> dict[str, bool]:
    """Return which of the original eval's violations a reply commits.

    They are weaker than legality: any move of an own piece to a square whose occupant has another
    color passes, even a diagonal bishop move under the changed rules. As in the original, two empty
    squares count as the same color. Every readable move names squares on the board, so none leaves
    it.
    """
    move = _MOVE_AT_START.match(reply.strip())
    is_invalid_piece = is_same_color = False
    if move:
        board = position.board()
        start, target = (board.color_at(chess.parse_square(square)) for square in move.groups())
        is_invalid_piece, is_same_color = start != board.turn, start == target
    return {
        "violation": not move or is_invalid_piece or is_same_color,
        "violation_moved_outside_board": False,
        "violation_moving_invalid_piece": is_invalid_piece,
        "violation_capturing_same_color": is_same_color,
        "violation_incorrect_notation": not move,
    }


def _sampling_data(answer: Answer) -> dict[str, Any]:
    reasoning = {"reasoning": answer.reasoning} if answer.reasoning else {}
    tokens = _token_counts(answer.usage)
    return {"sampled": [answer.text], "model": answer.version, "usage": tokens, **reasoning}


def _token_counts(usage: Usage) -> dict[str, int]:
    """Return the number of tokens under the original's names."""
    sent, received = usage.input_tokens, usage.output_tokens
    total = sent + received
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": total}


def _metrics_data(sample: Sample) -> dict[str, Any]:
    position = cast(Position, sample.item)
    replies = {name: sample.replies[condition] for condition, name in _NAMES.items()}
    return {
        "move": list(position.usual),
        "predicted_move": sample.had_habit,
        "predicted_move_in_variant": sample.kept_habit,
        "num_previous_moves": len(position.moves),
        "previous_moves": list(position.moves),
        **_violations(sample),
        **{f"{name}_outcome": reply.outcome for name, reply in replies.items()},
        **{f"{name}_under_change": reply.under_change for name, reply in replies.items()},
        "game_idx": position.game,
    }


def begin_record(path: Path, spec: dict[str, Any]) -> None:
    """Write the first row of a record.

    Raises:
        InvalidInput: if the file cannot be written.
    """
    advice = "give --record_path another file"
    with file_errors("write the record to", path, advice, error=InvalidInput):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_line({"spec": spec}))


def append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows to a record.

    Raises:
        Interrupted: if they cannot be written.
    """
    resume = "Run the same command again with another --record_path"
    error = partial(Interrupted, resume=resume)
    with file_errors("write the record to", path, error=error), path.open("a") as file:
        file.writelines(map(_line, rows))


def _line(row: Mapping[str, Any]) -> str:
    """Return a row as JSON in ASCII, since a reply may contain what is no text for a file."""
    return json.dumps(row) + "\n"
