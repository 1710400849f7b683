"""Estimate the tokens of requests and answers before they are sent."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple

from ..providers.base import (
    DEFAULT_REASONING_TOKENS,
    Answer,
    Effort,
    ModelInfo,
    Question,
    Request,
    RequestVariant,
    Settings,
    Usage,
)
from ..providers.chain_of_thought import Thinker
from ..providers.request_variants import reasoning_budget
from ..task.spec import Spec

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
        return Span(min(high), DEFAULT_REASONING_TOKENS), "no less than models think at high effort"
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


FEW_KEPT = 20
"""With fewer kept answers of one step, those of the other are taken as well."""
AT_ONCE, THINKING, MEASURED = "if it replies at once", "if it thinks first", "as it did so far"


class Assumptions(NamedTuple):
    """What lengths rest on, in words."""

    input: str
    answer: str


_Kept = Sequence[tuple[Question, Usage]]


class Lengths(NamedTuple):
    """What the questions of a step take, and their answers by the way in which they are made.

    Attributes:
        input_tokens: of all questions together.
        answer: of one answer in the mean, by the title of the way.
        bases: what these rest on.
    """

    input_tokens: int
    answer: dict[str, Span]
    bases: Assumptions


def _measured(kept: _Kept) -> tuple[dict[str, Span], str]:
    tokens = [usage.output_tokens for _, usage in kept]
    thoughts = mean(usage.thinking_tokens for _, usage in kept)
    error = f" ± {1.96 * stdev(tokens) / sqrt(len(tokens)):,.0f}" if len(tokens) > 1 else ""
    of_thoughts = f", {thoughts:,.0f} of them thoughts" if thoughts else ""
    number = f"{len(tokens):,} kept answers" if len(tokens) > 1 else "1 kept answer"
    told = f"{mean(tokens):,.0f}{error} tokens{of_thoughts}, measured on {number}"
    return {MEASURED: Span(mean(tokens), mean(tokens))}, told


@dataclass
class RequestStep:
    """The questions of one step of a run.

    Attributes:
        settings: what they are asked with.
        form: the form in which the model wants them, as far as known.
        to_ask: those that have no answer.
        answered: how many of those that were looked at have one.
        kept: those among them whose tokens were counted, and the tokens.
    """

    settings: Settings
    form: RequestVariant
    to_ask: list[Request] = field(default_factory=list)
    answered: int = 0
    kept: list[tuple[Question, Usage]] = field(default_factory=list)

    @property
    def thinks(self) -> bool:
        """Whether there is room to think: the model is known to, or it is asked to."""
        return reasoning_budget(self.form, self.settings) > 0

    def add(self, ask: Request, answer: Answer | None) -> None:
        """Count a question and its answer, if there is one."""
        if not answer:
            self.to_ask.append(ask)
            return
        self.answered += 1
        if answer.usage.output_tokens:
            self.kept.append((ask.question, answer.usage))


def lengths_of(spec: Spec, known: ModelInfo, part: RequestStep, other: RequestStep) -> Lengths:
    """What a step of a run takes; the other step may tell what this one does not."""
    kept = part.kept
    if len(kept) < FEW_KEPT and part.settings.reasoning_effort == other.settings.reasoning_effort:
        kept = [*kept, *other.kept]
    tokens, on_input = _input(known, part, kept)
    answer, on_answer = _measured(kept) if kept else _expected(spec, known, part)
    return Lengths(tokens, answer, Assumptions(on_input, on_answer))


def _input(known: ModelInfo, part: RequestStep, kept: _Kept) -> tuple[int, str]:
    count, exact = counter_for(known.name)
    tokens = sum(count(ask.question) for ask in part.to_ask)
    used = sum(usage.input_tokens for _, usage in kept)
    if used:
        by_our_count = sum(count(question) for question, _ in kept)
        return round(tokens * used / by_our_count), "as many tokens as in the kept answers"
    if isinstance(known, Thinker):  # asked twice, the second time with what it thought
        tokens = 2 * tokens + len(part.to_ask) * known.thinking_tokens
    if exact:
        return tokens, "tokens counted with the model's tokenizer"
    return tokens, "tokens estimated from characters, without its tokenizer, so only roughly"


def _expected(spec: Spec, known: ModelInfo, part: RequestStep) -> tuple[dict[str, Span], str]:
    reply = spec.max_tokens or MOVE_ANSWER_TOKENS
    move = f"all {reply:,} tokens allowed" if spec.max_tokens else f"a bare move, {reply} tokens"
    if isinstance(known, Thinker):
        reply += known.thinking_tokens
        return {AT_ONCE: Span(reply, reply)}, (
            f"taken to be all {known.thinking_tokens:,} tokens for thinking aloud, and {move}"
        )
    effort, room = part.settings.reasoning_effort, part.settings.reasoning_tokens
    at_once = {AT_ONCE: Span(reply, reply)}
    if not known.may_think or effort == "none" or room == 0:
        return at_once, f"taken to be {move}"
    thought, as_whom = thought_at(effort)
    if room:
        thought = Span(min(thought.least, room), min(thought.most, room))
    told = (
        f"{thought.least:,} to {thought.most:,} tokens if it thinks first, {as_whom} ({SOURCE}); "
        "after cdta run -n 10 its own answers are used"
    )
    if part.thinks:
        return {THINKING: thought}, told
    return {**at_once, THINKING: thought}, f"{move}, if it replies at once; {told}"
