"""The original's record of a run: what was asked, what happened, and the report.

One JSON object a line: ``{"spec": {...}}``, then events, then ``{"final_report": {...}}``. The
events of a sample are a ``sampling`` event for each answer and one ``metrics`` event, or an
``error`` event if an answer is missing; every number of the report follows from them.
"""

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from ..evaluation import violations
from ..evaluation.metrics import Metrics, Sample
from ..evaluation.run import Run
from ..evaluation.wordings import question
from ..game.rules import STANDARD
from ..models.layout import as_text
from ..models.model import Answer

Event = dict[str, Any]

_RULE_SETS = ("standard", "variant")
_ORIGINAL_METRICS = (
    "variant_impact_factor",
    "delta",
    "predicted_move_proportion",
    "predicted_move_in_variant_proportion",
    "avg_num_previous_moves",
    "std_num_previous_moves",
    *(f"{rule_set}_{name}_rate" for rule_set in _RULE_SETS for name in violations.NAMES),
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


def event(spec: RecordSpec, number: int, sample_id: str | None, kind: str, data: Any) -> Event:
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


def events_of(run: Run, spec: RecordSpec, indices: Sequence[int], *, as_texts: bool) -> list[Event]:
    """All events of a run.

    Args:
        run: the run.
        spec: the record they belong to.
        indices: the number of each sample among those drawn.
        as_texts: whether the questions were asked as one text each instead of a conversation.
    """
    happened = (
        (f"{spec.eval_name}.{index}", kind, data)
        for index, sample in zip(indices, run.samples, strict=True)
        for kind, data in _happened(run, sample, as_texts=as_texts)
    )
    return [event(spec, number, *what) for number, what in enumerate(happened)]


def final_report(metrics: Metrics) -> Metrics:
    """The metrics in the original's order, and after them those it does not have."""
    return {name: metrics[name] for name in _ORIGINAL_METRICS} | metrics


def _happened(run: Run, sample: Sample, *, as_texts: bool) -> Iterator[tuple[str, Any]]:
    for rules, answer in ((STANDARD, sample.standard), (run.plan.rules, sample.variant)):
        if answer.stop_reason == "error":
            yield "error", {"type": "NoAnswer", "message": answer.error}
        else:
            messages = question(sample.position.moves, rules, run.plan.wording).messages
            prompt = as_text(messages) if as_texts else [asdict(message) for message in messages]
            yield "sampling", {"prompt": prompt, **_sampled(answer)}
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
    position, board = sample.position, sample.position.board()
    outcomes = sample.standard_judgement.outcome, sample.variant_judgement.outcome
    replies = sample.standard.text, sample.variant.text
    return {
        "move": list(position.special_moves),
        "predicted_move": outcomes[0] == "special",
        "predicted_move_in_variant": outcomes[1] == "special",
        "num_previous_moves": len(position.moves),
        "previous_moves": list(position.moves),
        **{
            f"{rule_set}_{name}": found
            for rule_set, reply in zip(_RULE_SETS, replies, strict=True)
            for name, found in violations.violations(reply, board).items()
        },
        "standard_outcome": outcomes[0],
        "variant_outcome": outcomes[1],
        "game_idx": position.game,
    }
