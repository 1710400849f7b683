"""Write record files in the format of the original.

One JSON object per line: ``{"spec": {...}}``, then events, then ``{"final_report": {...}}``. The
events of a sample are a ``sampling`` event for each answer and one ``metrics`` event, or an
``error`` event if an answer is missing; the report can be computed from them.
"""

import base64
import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from ..errors import Interrupted, InvalidInput
from ..formatting import Number
from ..providers.base import Answer
from ..providers.request_variants import as_text
from ..runs.results import Run
from ..task.scorer import VIOLATION_NAMES, original_violations
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Sample

Event = dict[str, Any]

# The original's names of the conditions.
_NAMES = {STANDARD_CONDITION: "standard", CHANGED_CONDITION: "variant"}
_ORIGINAL_METRICS = (
    "variant_impact_factor",
    "delta",
    "predicted_move_proportion",
    "predicted_move_in_variant_proportion",
    "avg_num_previous_moves",
    "std_num_previous_moves",
    *(f"{prefix}_{name}_rate" for prefix in _NAMES.values() for name in VIOLATION_NAMES),
    "usage_prompt_tokens",
    "usage_completion_tokens",
    "usage_total_tokens",
)


@dataclass(frozen=True)
class RecordSpec:
    """The first line of a record: solver, eval and settings of the run."""

    completion_fns: list[str]
    eval_name: str
    base_eval: str
    split: str
    run_config: dict[str, Any]
    created_by: str
    run_id: str
    created_at: str


def record_spec(
    solver: str, eval_name: str, run_config: dict[str, Any], created_by: str
) -> RecordSpec:
    """Create the spec of a run that starts now, with a new run id."""
    now = datetime.now(UTC).replace(tzinfo=None)
    base_eval, split = eval_name.split(".")
    return RecordSpec(
        completion_fns=[solver],
        eval_name=eval_name,
        base_eval=base_eval,
        split=split,
        run_config={"completion_fns": [solver], **run_config},
        created_by=created_by,
        run_id=f"{now:%y%m%d%H%M%S}{base64.b32encode(os.urandom(5)).decode()}",
        created_at=str(now),
    )


def _event(spec: RecordSpec, number: int, sample_id: str, kind: str, data: Any) -> Event:
    """Return an event with the current time."""
    return {
        "run_id": spec.run_id,
        "event_id": number,
        "sample_id": sample_id,
        "type": kind,
        "data": data,
        "created_by": spec.created_by,
        "created_at": str(datetime.now(UTC)),
    }


def events_of(run: Run, spec: RecordSpec, indices: Sequence[int]) -> Iterator[Event]:
    """Yield all events of a run; ``indices`` are the samples' numbers in the dataset."""
    events = (
        (f"{spec.eval_name}.{index}", kind, data)
        for index, sample in zip(indices, run.samples, strict=True)
        for kind, data in _sample_events(run, sample)
    )
    return (_event(spec, number, *event) for number, event in enumerate(events))


def final_report(metrics: dict[str, Number]) -> dict[str, Number]:
    """Return the metrics in the original's order, followed by those it does not have."""
    return {name: metrics[name] for name in _ORIGINAL_METRICS} | metrics


def _sample_events(run: Run, sample: Sample) -> Iterator[tuple[str, Any]]:
    is_completion, answers = run.identity.get("api") == "completions", sample.answers
    for condition in run.plan.conditions:
        answer = answers[condition.name]
        if answer.stop_reason == "error":
            yield "error", {"type": "NoAnswer", "message": answer.error}
        else:
            messages = condition.question(sample.position).messages
            chat = [asdict(message) for message in messages]
            yield (
                "sampling",
                {"prompt": as_text(messages) if is_completion else chat, **_sampling_data(answer)},
            )
    if sample.answered:
        yield "metrics", _metrics_data(sample)


def _sampling_data(answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    sampled: dict[str, Any] = {
        "sampled": [answer.text],
        "model": answer.version,
        "usage": {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
    }
    return sampled | ({"reasoning": answer.reasoning} if answer.reasoning else {})


def _metrics_data(sample: Sample) -> dict[str, Any]:
    position = sample.position
    replies = {name: sample.replies[condition] for condition, name in _NAMES.items()}
    texts = {name: sample.answers[condition].text for condition, name in _NAMES.items()}
    violations = {name: original_violations(text, position) for name, text in texts.items()}
    return {
        "move": list(position.special_moves),
        "predicted_move": sample.had_habit,
        "predicted_move_in_variant": sample.kept_habit,
        "num_previous_moves": len(position.moves),
        "previous_moves": list(position.moves),
        **{
            f"{name}_{violation}": violation in violations[name]
            for name in replies
            for violation in VIOLATION_NAMES
        },
        **{f"{name}_outcome": reply.outcome for name, reply in replies.items()},
        **{f"{name}_under_change": reply.under_change for name, reply in replies.items()},
        "game_idx": position.game,
    }


log = logging.getLogger(__name__)

# Writes lone surrogates as JSON escapes.
SURROGATE_ERRORS = "backslashreplace"


class Recorder(Protocol):
    """Receives the events and the report of a run."""

    def write(self, events: Iterable[Event]) -> None:
        """Record the events."""

    def finish(self, report: dict[str, Number]) -> None:
        """Record the report.

        Raises:
            UserError: if it cannot be written.
        """


class FileRecorder:
    """Writes a record to a file, its first line before the first request."""

    def __init__(self, path: Path, spec: RecordSpec, *, cached: bool = True) -> None:
        self.path = path
        self._spec = spec
        self._cached = cached
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_line({"spec": asdict(spec)}), "utf-8", errors=SURROGATE_ERRORS)
        except OSError as problem:
            raise InvalidInput(
                f"cannot write the record to {str(path)!r} ({problem.strerror}); "
                "give --record_path another file"
            ) from None

    def write(self, events: Iterable[Event]) -> None:
        """Append the events."""
        number = self._append(map(_line, events))
        log.info("Logged %d rows of events to %s", number, self.path)

    def finish(self, report: dict[str, Number]) -> None:
        """Append the report."""
        self._append([_line({"final_report": report, "run_id": self._spec.run_id})])
        log.info("Final report: %s. Logged to %s", report, self.path)

    def _append(self, lines: Iterable[str]) -> int:
        try:
            with self.path.open("a", encoding="utf-8", errors=SURROGATE_ERRORS) as file:
                return sum(1 for line in lines if file.write(line))
        except OSError as problem:
            raise Interrupted(
                f"cannot write the record to {str(self.path)!r} ({problem.strerror})",
                go_on="run the same command again with another --record_path",
                cached=self._cached,
            ) from None


class DryRecorder:
    """Logs events and report instead of recording them (``--dry-run``)."""

    def __init__(self, *, log_events: bool) -> None:
        self._log_events = log_events

    def write(self, events: Iterable[Event]) -> None:
        """Log the events."""
        if self._log_events:
            for event in events:
                log.info("Not recording event: %s", event)

    def finish(self, report: dict[str, Number]) -> None:
        """Log the report."""
        log.info("Final report: %s. Not writing anywhere.", report)


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"
