"""The samples of a run as JSON for the report's sample browser."""

import json
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from ..formatting import map_texts, visible
from ..habits.base import Habit, Item
from ..runs.run import Run
from ..task.conditions import KNOWS_FORBIDDEN
from ..task.types import Condition, Sample

# Characters of a reply or of its reasoning in the report, half of them from its end (often the
# move). So the report of 1,000 samples with long reasoning stays below 10 MB.
LONGEST_TEXT = 3_000


def samples_json(run: Run) -> Iterator[Markup]:
    """Yield each sample as JSON that cannot close the script element around it."""
    for sample in (*run.samples, *run.controls):
        shown = map_texts(visible, _entry(run, sample))  # before JSON escapes control characters
        text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
        yield Markup(text.replace("<", "\\u003c"))


def _entry(run: Run, sample: Sample) -> dict[str, Any]:
    item, habit = sample.item, run.plan.change.its_habit
    group = "sample" if KNOWS_FORBIDDEN in sample.replies else "control"
    return {
        "id": f"{item.id}-{sample.draw + 1}" if sample.draw else item.id,
        "source": item.source or "",
        **habit.details(item),
        "usual": [_named(item, answer, habit) for answer in item.usual],
        "replies": {
            condition.name: _reply(sample, condition)
            for condition in run.plan.conditions
            if condition.name in sample.replies
        },
        "group": group if run.results.diagnosis else None,
    }


def _reply(sample: Sample, condition: Condition) -> dict[str, Any]:
    item, habit = sample.item, condition.rules.its_habit
    reply, answer = sample.replies[condition.name], sample.answers[condition.name]
    usage, reasoning = answer.usage, _cut(answer.reasoning or "")
    text = reasoning if isinstance(reasoning, str) else f"{reasoning[0]} {reasoning[2]}"
    return {
        "asked": condition.suffix(item),
        "outcome": reply.outcome,
        "move": _named(item, reply.answer, habit) if reply.answer else None,
        "text": _cut(answer.text),
        "stop": answer.stop_reason,
        "tokens": [usage.input_tokens, usage.output_tokens, usage.thinking_tokens],
        "error": answer.error,
        "thoughts": reasoning,
        "named": habit.named_answers(text, item, condition.rules) if text else {},
    }


def _named(item: Item, answer: str, habit: Habit) -> dict[str, str]:
    return {"uci": answer, "text": habit.label(item, answer)}


def _cut(text: str) -> str | list[Any]:
    """Return the text, or its beginning, the length left out, and its end."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return [text[:half], len(text) - LONGEST_TEXT, text[-half:]]
