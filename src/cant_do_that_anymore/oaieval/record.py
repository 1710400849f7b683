"""Record files of a run in the original's format.

One JSON object a line: ``{"spec": {...}}``, then events, then ``{"final_report": {...}}``. The
events of a sample are a ``sampling`` event for each answer and one ``metrics`` event, or an
``error`` event if an answer is missing; every number of the report follows from them.
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

_NAMES = {STANDARD_CONDITION: "standard", CHANGED_CONDITION: "variant"}
"""What the original calls the conditions."""
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
    """The first line of a record: what was asked of whom."""

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
    """The spec of a run that begins now, with a new run id."""
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
    """One event, happening now."""
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
    """All events of a run; ``indices`` is the number of each sample among those drawn."""
    happened = (
        (f"{spec.eval_name}.{index}", kind, data)
        for index, sample in zip(indices, run.samples, strict=True)
        for kind, data in _happened(run, sample)
    )
    return (_event(spec, number, *what) for number, what in enumerate(happened))


def final_report(metrics: dict[str, Number]) -> dict[str, Number]:
    """The metrics in the original's order, and after them those it does not have."""
    return {name: metrics[name] for name in _ORIGINAL_METRICS} | metrics


def _happened(run: Run, sample: Sample) -> Iterator[tuple[str, Any]]:
    as_one_text, said = run.identity.get("api") == "completions", sample.answers
    for condition in run.plan.conditions:
        answer = said[condition.name]
        if answer.stop_reason == "error":
            yield "error", {"type": "NoAnswer", "message": answer.error}
        else:
            messages = condition.question(sample.position).messages
            chat = [asdict(message) for message in messages]
            yield (
                "sampling",
                {"prompt": as_text(messages) if as_one_text else chat, **_sampled(answer)},
            )
    if sample.answered:
        yield "metrics", _metrics(sample)


def _sampled(answer: Answer) -> dict[str, Any]:
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


def _metrics(sample: Sample) -> dict[str, Any]:
    position = sample.position
    replies = {name: sample.replies[condition] for condition, name in _NAMES.items()}
    said = {name: sample.answers[condition].text for condition, name in _NAMES.items()}
    found = {name: original_violations(text, position) for name, text in said.items()}
    return {
        "move": list(position.special_moves),
        "predicted_move": sample.had_habit,
        "predicted_move_in_variant": sample.kept_habit,
        "num_previous_moves": len(position.moves),
        "previous_moves": list(position.moves),
        **{
            f"{name}_{violation}": violation in found[name]
            for name in replies
            for violation in VIOLATION_NAMES
        },
        **{f"{name}_outcome": reply.outcome for name, reply in replies.items()},
        **{f"{name}_under_change": reply.under_change for name, reply in replies.items()},
        "game_idx": position.game,
    }


log = logging.getLogger(__name__)

AS_IN_JSON = "backslashreplace"
"""What is half of a character is written as JSON writes it."""


class Recorder(Protocol):
    """Takes the events of a run and its report."""

    def write(self, events: Iterable[Event]) -> None:
        """Take the events."""

    def finish(self, report: dict[str, Number]) -> None:
        """Take the report.

        Raises:
            UserError: if the record is not where it should be.
        """


class FileRecorder:
    """Writes a record to a file, whose first line is there before anything is asked."""

    def __init__(self, path: Path, spec: RecordSpec, *, kept: bool = True) -> None:
        self.path = path
        self._spec = spec
        self._kept = kept
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_line({"spec": asdict(spec)}), "utf-8", errors=AS_IN_JSON)
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
            with self.path.open("a", encoding="utf-8", errors=AS_IN_JSON) as file:
                return sum(1 for line in lines if file.write(line))
        except OSError as problem:
            raise Interrupted(
                f"cannot write the record to {str(self.path)!r} ({problem.strerror})",
                go_on="run the same command again with another --record_path",
                kept=self._kept,
            ) from None


class DryRecorder:
    """Records nothing and says so."""

    def __init__(self, *, talkative: bool) -> None:
        self._talkative = talkative

    def write(self, events: Iterable[Event]) -> None:
        """Show the events."""
        if self._talkative:
            for each in events:
                log.info("Not recording event: %s", each)

    def finish(self, report: dict[str, Number]) -> None:
        """Show the report."""
        log.info("Final report: %s. Not writing anywhere.", report)


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"
