"""The samples of a run as the JSON that the page's sample browser reads."""

import json
from collections.abc import Iterator
from typing import Any

import chess
from markupsafe import Markup

from ..evaluation.results import Run
from ..evaluation.vocabulary import Reply
from ..game.notation import numbered, written, written_game
from .markup import visible

LONGEST_REPLY = 20_000
_SHORTEST_CUT = 200
_MOST_BYTES = 8_000_000


def samples_json(run: Run) -> tuple[Markup, int]:
    """All samples, safe inside a script element, and the length that longer replies are cut to.

    That length is shorter for runs of many long replies, so that the page stays small enough to
    open on any machine.
    """
    samples = list(_entries(run))
    longest = LONGEST_REPLY
    while True:
        text = _safe_json([_with_cut_replies(sample, longest) for sample in samples])
        if len(text.encode()) <= _MOST_BYTES or longest <= _SHORTEST_CUT:
            return text, longest
        longest //= 2


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
    for sample in run.samples:
        position = sample.position
        board = position.board()
        repeated = f"-{sample.draw + 1}" if sample.draw else ""
        yield {
            "id": position.id + repeated,
            "game": position.game,
            "source": position.source or "",
            "fen": board.fen(),
            "last": position.moves[-1] if position.moves else "",
            "moves": numbered(written_game(position.moves)),
            "special": [_move(board, uci) for uci in position.special_moves],
            "replies": {
                condition.name: _reply(sample.replies[condition.name], board)
                for condition in run.plan.conditions
            },
        }


def _reply(reply: Reply, board: chess.Board) -> dict[str, Any]:
    answer = reply.answer
    return {
        "outcome": reply.outcome,
        "move": _move(board, reply.move) if reply.move else None,
        "text": answer.text,
        "stop": answer.stop_reason,
        "tokens": [answer.usage.input_tokens, answer.usage.output_tokens],
        "error": answer.error,
    }


def _move(board: chess.Board, uci: str) -> dict[str, str]:
    return {"uci": uci, "text": written(board, uci)}


def _with_cut_replies(sample: dict[str, Any], longest: int) -> dict[str, Any]:
    return sample | {
        "replies": {
            name: reply | {"text": _cut(reply["text"], longest)}
            for name, reply in sample["replies"].items()
        }
    }


def _cut(reply: str, longest: int) -> str | list[str | int]:
    """The reply, or its beginning, how much is left out, and its end, where the move often is."""
    if len(reply) <= longest:
        return reply
    half = longest // 2
    return [reply[:half], len(reply) - 2 * half, reply[-half:]]
