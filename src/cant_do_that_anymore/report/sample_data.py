"""The samples of a run as the JSON that the page's sample browser reads."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import chess

from ..evaluation.judging import Judgement
from ..evaluation.metrics import Sample
from ..evaluation.run import Run
from ..models.model import Answer
from .markup import Markup, visible
from .notation import numbered, written, written_game

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
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _entries(run: Run) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for sample in run.samples:
        position = sample.position
        board = position.board()
        seen[position.id] += 1
        repeated = f"-{seen[position.id]}" if seen[position.id] > 1 else ""
        yield {
            "id": position.id + repeated,
            "game": position.game,
            "source": visible(position.source or ""),
            "fen": board.fen(),
            "last": position.moves[-1] if position.moves else "",
            "moves": numbered(written_game(position.moves)),
            "special": [_move(board, uci) for uci in position.special_moves],
            **_answers(sample, board),
        }


def _answers(sample: Sample, board: chess.Board) -> dict[str, Any]:
    return {
        "standard": _answer(sample.standard, sample.standard_judgement, board),
        "variant": _answer(sample.variant, sample.variant_judgement, board),
    }


def _answer(answer: Answer, judgement: Judgement, board: chess.Board) -> dict[str, Any]:
    return {
        "outcome": judgement.outcome,
        "move": _move(board, judgement.move) if judgement.move else None,
        "reply": answer.text,
        "stop": answer.stop_reason,
        "tokens": [answer.usage.input_tokens, answer.usage.output_tokens],
        "error": visible(answer.error),
    }


def _move(board: chess.Board, uci: str) -> dict[str, str]:
    return {"uci": uci, "text": written(board, uci)}


def _with_cut_replies(sample: dict[str, Any], longest: int) -> dict[str, Any]:
    return sample | {
        rule_set: sample[rule_set] | {"reply": _cut(sample[rule_set]["reply"], longest)}
        for rule_set in ("standard", "variant")
    }


def _cut(reply: str, longest: int) -> str | list[str | int]:
    """The reply, or its beginning, how much is left out, and its end, where the move often is."""
    if len(reply) <= longest:
        return visible(reply)
    half = longest // 2
    return [visible(reply[:half]), len(reply) - 2 * half, visible(reply[-half:])]
