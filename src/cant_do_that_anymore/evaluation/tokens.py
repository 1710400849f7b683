"""How many tokens a question and its answer take, before it is asked."""

import os
from collections.abc import Callable
from typing import NamedTuple

from ..providers.base import ROOM_TO_THINK, Effort, Question

TURN_TOKENS = 4
"""What a chat layout adds to each message: two marks, the role, a line end."""
REPLY_TOKENS = 3
"""What it adds to begin the reply."""
LETTERS_A_TOKEN = 4
"""In English prose, by the rule of thumb of the providers."""
MOVE_ANSWER_TOKENS = 5
"""A move in UCI and the mark that ends the reply."""

THOUGHT: dict[str, dict[str, int]] = {
    "low": {"o3-mini": 647, "o4-mini": 668, "grok-3-mini": 1_767, "o3": 1_863},
    "medium": {"o4-mini": 2_101, "o3-mini": 2_147},
    "high": {"grok-3-mini": 5_215, "o4-mini": 5_965, "o3-mini": 6_537},
    "by itself or within a budget": {
        "claude-3.7, 1,024": 369,
        "claude-3.7, 10,000": 671,
        "claude-sonnet-4, 16,000": 937,
        "deepseek-r1": 4_585,
    },
}
"""Mean tokens that models took to think of a chess move and name it, by effort.

From the tables that llm_chess publishes, github.com/maxim-saplin/llm_chess.
"""
SOURCE = "llm_chess's published tables, 2026-11-15"

Counter = Callable[[Question], int]
_Encode = Callable[[str], int]


class Span(NamedTuple):
    """From one number to another, which may be the same."""

    least: float
    most: float


def thought_at(effort: Effort | None) -> tuple[Span, str]:
    """How many tokens an answer may take that was thought about first, and what says so.

    What is not in the table lies beyond the next effort that is: below it, or above it and up to
    the room that there is.
    """
    low, high = THOUGHT["low"].values(), THOUGHT["high"].values()
    if effort == "minimal":
        return Span(MOVE_ANSWER_TOKENS, max(low)), "no more than models think at low effort"
    if effort in ("xhigh", "max"):
        return Span(min(high), ROOM_TO_THINK), "no less than models think at high effort"
    rows = [THOUGHT[effort]] if effort else THOUGHT.values()
    tokens = [count for row in rows for count in row.values()]
    models = {name.split(",")[0] for row in rows for name in row}
    at = f"{effort} effort" if effort else "all efforts"
    return Span(min(tokens), max(tokens)), f"as {len(models)} models did at {at}"


def counter_for(model: str) -> tuple[Counter, bool]:
    """A function that counts the tokens of a question, and whether it has the model's tokenizer.

    OpenAI's tokenizers need files that ``tiktoken`` downloads. They are used where the user has
    given them a place by setting ``TIKTOKEN_CACHE_DIR``, and nothing is downloaded otherwise.
    """
    encode = _openai_tokenizer(model) if os.environ.get("TIKTOKEN_CACHE_DIR") else None
    if encode:
        exact = encode
        return lambda question: _chat(question, exact, exact), True
    # A tokenizer parts letters from digits, so that every character of a move is a token.
    return lambda question: _chat(question, _of_prose, len), False


def _chat(question: Question, prose: _Encode, move: _Encode) -> int:
    system, *turns = question.messages
    content = prose(system.content) + sum(move(turn.content) for turn in turns)
    return content + TURN_TOKENS * len(question.messages) + REPLY_TOKENS


def _of_prose(text: str) -> int:
    return round(len(text) / LETTERS_A_TOKEN)


def _openai_tokenizer(model: str) -> _Encode | None:
    try:
        import tiktoken

        encoding = tiktoken.encoding_for_model(model)
    except (ImportError, KeyError, OSError, ValueError):  # not there, not OpenAI's, or no file
        return None
    return lambda text: len(encoding.encode_ordinary(text))
