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
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import Interrupted, InvalidInput
from ..files import file_errors
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


def record_spec(
    solver: str, eval_name: str, run_config: dict[str, Any], created_by: str
) -> dict[str, Any]:
    """Return the first line of the record of a run that starts now, with a new run id."""
    now = datetime.now(UTC).replace(tzinfo=None)
    base_eval, split = eval_name.split(".")
    return {
        "completion_fns": [solver],
        "eval_name": eval_name,
        "base_eval": base_eval,
        "split": split,
        "run_config": {"completion_fns": [solver], **run_config},
        "created_by": created_by,
        "run_id": f"{now:%y%m%d%H%M%S}{base64.b32encode(os.urandom(5)).decode()}",
        "created_at": str(now),
    }


def events_of(run: Run, spec: dict[str, Any], indices: Sequence[int]) -> Iterator[Event]:
    """Yield all events of a run; ``indices`` are the samples' numbers in the dataset."""
    events = (
        (index, kind, data)
        for index, sample in zip(indices, run.samples, strict=True)
        for kind, data in _sample_events(run, sample)
    )
    for number, (index, kind, data) in enumerate(events):
        yield {
            "run_id": spec["run_id"],
            "event_id": number,
            "sample_id": f"{spec['eval_name']}.{index}",
            "type": kind,
            "data": data,
            "created_by": spec["created_by"],
            "created_at": str(datetime.now(UTC)),
        }


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


class Recorder:
    """Writes a record to a file, its first line before the first request.

    Without a path (``--dry-run``), events and report are logged instead.
    """

    def __init__(
        self,
        path: Path | None,
        spec: dict[str, Any],
        *,
        cached: bool = True,
        log_events: bool = True,
    ) -> None:
        self.path, self._run_id = path, spec["run_id"]
        self._cached, self._log_events = cached, log_events
        if not path:
            return
        advice = "give --record_path another file"
        with file_errors("write the record to", path, advice, error=InvalidInput):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_line({"spec": spec}), "utf-8", errors=SURROGATE_ERRORS)

    def write(self, events: Iterable[Event]) -> None:
        """Record the events.

        Raises:
            Interrupted: if they cannot be written.
        """
        if self.path:
            number = self._append(self.path, map(_line, events))
            log.info("Logged %d rows of events to %s", number, self.path)
        elif self._log_events:
            for event in events:
                log.info("Not recording event: %s", event)

    def finish(self, report: dict[str, Number]) -> None:
        """Record the report.

        Raises:
            Interrupted: if it cannot be written.
        """
        if self.path:
            self._append(self.path, [_line({"final_report": report, "run_id": self._run_id})])
            log.info("Final report: %s. Logged to %s", report, self.path)
        else:
            log.info("Final report: %s. Not writing anywhere.", report)

    def _append(self, path: Path, lines: Iterable[str]) -> int:
        resume = "run the same command again with another --record_path"
        error = partial(Interrupted, resume=resume, cached=self._cached)
        with (
            file_errors("write the record to", path, error=error),
            path.open("a", encoding="utf-8", errors=SURROGATE_ERRORS) as file,
        ):
            return sum(1 for line in lines if file.write(line))


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"
