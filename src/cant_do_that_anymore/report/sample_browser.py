"""The samples of a run as JSON for the report's sample browser."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import chess
from markupsafe import Markup

from ..errors import visible
from ..game.move_parser import named_moves
from ..game.notation import notate, notate_game, with_move_numbers
from ..game.rules import Rules
from ..metrics.diagnosis import (
    KNOWLEDGE,
    knowing_of,
)
from ..metrics.thinking import thought_longer
from ..providers.base import Answer
from ..runs.results import Run
from ..task.conditions import KNOWS_FORBIDDEN, suffix_for
from ..task.types import CHANGED_CONDITION, Sample, ScoredAnswer

LONGEST_REPLY, SHORTEST_CUT = 20_000, 200
ALL_REPLIES = 8_000_000
"""Characters of replies, and as many of thoughts: such a page opens on any machine."""
_CUT = ("text", "thoughts")


def samples_json(run: Run) -> tuple[Iterator[Markup], int]:
    """Each sample, safe inside a script element, and the length that longer texts are cut to.

    The more replies a run has, the shorter is that length.
    """
    replies = sum(len(sample.replies) for sample in (*run.samples, *run.controls))
    longest = max(SHORTEST_CUT, min(LONGEST_REPLY, ALL_REPLIES // max(1, replies)))
    return (_safe_json(_with_cut_replies(entry, longest)) for entry in _entries(run)), longest


def _safe_json(value: Any) -> Markup:
    """JSON in which no text can end the element that holds it."""
    text = json.dumps(_visible(value), ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _visible(value: Any) -> Any:
    """The same with every text in it made visible: escapes in JSON would bring all back."""
    if isinstance(value, dict):
        return {name: _visible(held) for name, held in value.items()}
    if isinstance(value, list):
        return [_visible(held) for held in value]
    return visible(value) if isinstance(value, str) else value


def _entries(run: Run) -> Iterator[dict[str, Any]]:
    diagnosed = KNOWLEDGE in run.results.metrics
    conditions = {condition.name: condition for condition in run.plan.conditions}
    for sample in (*run.samples, *run.controls):
        position = sample.position
        board, said = position.board(), sample.answers
        repeated = f"-{sample.draw + 1}" if sample.draw else ""
        yield {
            "id": position.id + repeated,
            "game": position.game,
            "source": position.source or "",
            "fen": board.fen(),
            "last": position.moves[-1] if position.moves else "",
            "moves": with_move_numbers(notate_game(position.moves)),
            "special": [_move(board, uci) for uci in position.special_moves],
            "remarkable": worth_a_look(sample),
            "replies": {
                name: _reply(sample.replies[name], said[name], board, condition.rules)
                | ({"asked": asked} if (asked := suffix_for(position, condition)) else {})
                for name, condition in conditions.items()
                if name in said
            },
            **({"knowing": _group(sample)} if diagnosed else {}),
        }


def _group(sample: Sample) -> str:
    """Which of the six groups it belongs to, or why to none; controls are asked less."""
    if KNOWS_FORBIDDEN not in sample.replies:
        return CONTROL
    return (knowing_of(sample) or NO_HABIT) if sample.answered else NO_ANSWER


def _reply(reply: ScoredAnswer, answer: Answer, board: chess.Board, rules: Rules) -> dict[str, Any]:
    usage = answer.usage
    shown = {
        "outcome": reply.outcome,
        "move": _move(board, reply.move) if reply.move else None,
        "text": answer.text,
        "stop": answer.stop_reason,
        "tokens": [
            *(usage.input_tokens, usage.output_tokens),
            *(usage.thinking_tokens, usage.cached_tokens),
        ],
        "error": answer.error,
    }
    if not answer.reasoning:
        return shown
    named = named_moves(answer.reasoning, board, rules)
    return shown | {
        "thoughts": answer.reasoning,
        "named": {written: move.uci() for written, move in named.items() if move},
        "tempted": reply.thought_of_special,
    }


def _move(board: chess.Board, uci: str) -> dict[str, str]:
    return {"uci": uci, "text": notate(board, uci)}


def _with_cut_replies(sample: dict[str, Any], longest: int) -> dict[str, Any]:
    replies = sample["replies"].items()
    return sample | {"replies": {name: _with_cut_texts(reply, longest) for name, reply in replies}}


def _with_cut_texts(reply: dict[str, Any], longest: int) -> dict[str, Any]:
    """The reply with its texts cut, and of the moves in them those that are still there."""
    cut = reply | {kind: _cut(reply[kind], longest) for kind in _CUT if kind in reply}
    if "named" in reply:
        still_there = str(cut["thoughts"])
        named = reply["named"].items()
        cut["named"] = {written: uci for written, uci in named if written in still_there}
    return cut


def _cut(text: str, longest: int) -> str | list[Any]:
    """The text, or its beginning, how much is left out, and its end, where the move often is."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return [text[:half], len(text) - 2 * half, text[-half:]]


CONTROL, NO_HABIT, NO_ANSWER = "control", "no habit", "no answer"
"""Groups of samples beside the six."""


def _thought_of_special(sample: Sample) -> bool:
    return sample.replies[CHANGED_CONDITION].thought_of_special


WORTH_A_LOOK: dict[str, tuple[str, Callable[[Sample], bool]]] = {
    "special": ("thought of the special move", _thought_of_special),
    "longer": ("thought longer", thought_longer),
}
"""What samples can be filtered by, under the changed rules: a title, and whether it holds."""


def worth_a_look(sample: Sample) -> list[str]:
    """What the sample can be found by."""
    return [name for name, (_, holds) in WORTH_A_LOOK.items() if holds(sample)]
