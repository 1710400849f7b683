"""The samples of a run as JSON for the report's sample browser."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import chess
from markupsafe import Markup

from ..formatting import map_texts, visible
from ..game.move_names import named_moves
from ..game.notation import notate, notate_game
from ..game.rules import Rules
from ..metrics.diagnosis import KNOWLEDGE, knowledge_group_of
from ..metrics.measures import REASONING
from ..providers.base import Answer
from ..runs.results import Run
from ..task.conditions import KNOWS_FORBIDDEN
from ..task.types import CHANGED_CONDITION, Sample, ScoredAnswer

# Characters of a reply or of its reasoning in the report, half of them from its end (often the
# move). So the report of 1,000 samples with long reasoning stays below 10 MB.
LONGEST_TEXT = 3_000


def samples_json(run: Run) -> Iterator[Markup]:
    """Yield each sample as JSON that cannot close the script element around it."""
    for entry in _entries(run):
        shown = map_texts(visible, entry)  # before JSON escapes control characters
        text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
        yield Markup(text.replace("<", "\\u003c"))


def _entries(run: Run) -> Iterator[dict[str, Any]]:
    diagnosed = KNOWLEDGE in run.results.metrics
    conditions = {condition.name: condition for condition in run.plan.conditions}
    for sample in (*run.samples, *run.controls):
        position = sample.position
        board, answers = position.board(), sample.answers
        repeated = f"-{sample.draw + 1}" if sample.draw else ""
        yield {
            "id": position.id + repeated,
            "game": position.game,
            "source": position.source or "",
            "fen": board.fen(),
            "last": position.moves[-1] if position.moves else "",
            "moves": notate_game(position.moves),
            "special": [_move(board, uci) for uci in position.special_moves],
            "remarkable": [name for name, (_, holds) in REASONING_FILTERS.items() if holds(sample)],
            "replies": {
                name: _reply(sample.replies[name], answers[name], board, condition.rules)
                | ({"asked": asked} if (asked := condition.suffix(position)) else {})
                for name, condition in conditions.items()
                if name in answers
            },
            **({"knowing": _group(sample)} if diagnosed else {}),
        }


def _group(sample: Sample) -> str:
    """Return the group of the diagnosis that a sample belongs to, or why it has none."""
    if KNOWS_FORBIDDEN not in sample.replies:
        return CONTROL
    return (knowledge_group_of(sample) or NO_HABIT) if sample.answered else NO_ANSWER


def _reply(reply: ScoredAnswer, answer: Answer, board: chess.Board, rules: Rules) -> dict[str, Any]:
    usage = answer.usage
    fields = {
        "outcome": reply.outcome,
        "move": _move(board, reply.move) if reply.move else None,
        "text": _cut(answer.text),
        "stop": answer.stop_reason,
        "tokens": [
            *(usage.input_tokens, usage.output_tokens),
            *(usage.thinking_tokens, usage.cached_tokens),
        ],
        "error": answer.error,
    }
    if not answer.reasoning:
        return fields
    shown = _cut(answer.reasoning)
    named = named_moves(shown if isinstance(shown, str) else f"{shown[0]} {shown[2]}", board, rules)
    return fields | {
        "thoughts": shown,
        "named": {written: move.uci() for written, move in named.items() if move},
        "tempted": reply.thought_of_special,
    }


def _move(board: chess.Board, uci: str) -> dict[str, str]:
    return {"uci": uci, "text": notate(board, uci)}


def _cut(text: str) -> str | list[Any]:
    """Return the text, or its beginning, the length left out, and its end."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return [text[:half], len(text) - LONGEST_TEXT, text[-half:]]


# Groups of samples besides the six of a diagnosis.
CONTROL, NO_HABIT, NO_ANSWER = "control", "no habit", "no answer"


# Filters for samples by their reasoning under the changed rules: a title and a predicate.
REASONING_FILTERS: dict[str, tuple[str, Callable[[Sample], bool]]] = {
    "special": (
        "mentions the special move",
        lambda sample: sample.replies[CHANGED_CONDITION].thought_of_special,
    ),
    "longer": (
        "longer reasoning",
        lambda sample: sample.answered and REASONING.increase(sample) > 0,
    ),
}
