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
from ..providers.request_variants import reasoning_budget
from ..task.spec import Spec

# Tokens that a chat template adds per message: two markers, the role, a line break.
TURN_TOKENS = 4
# Tokens that it adds to begin the reply.
REPLY_TOKENS = 3
# In English prose, by the providers' rule of thumb.
CHARACTERS_PER_TOKEN = 4
# A move in UCI notation and the end-of-reply token.
MOVE_ANSWER_TOKENS = 5

# Mean tokens that models took to reason about a chess move and name it, by effort.
# From the tables that llm_chess publishes, github.com/maxim-saplin/llm_chess.
REASONING_TOKENS: dict[str, dict[str, int]] = {
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
SOURCE = "llm_chess's published tables, 2026-11-15"

Counter = Callable[[Question], int]
_Encode = Callable[[str], int]


class Span(NamedTuple):
    """A range of numbers; both ends may be equal."""

    least: float
    most: float


def reasoning_tokens_at(effort: Effort | None) -> tuple[Span, str]:
    """Return the expected tokens of a reasoning model's answer, and the source of the figure.

    An effort that is not in the table is bounded by the nearest one that is: below the lowest, or
    above the highest up to the reasoning limit.
    """
    low, high = REASONING_TOKENS["low"].values(), REASONING_TOKENS["high"].values()
    if effort == "minimal":
        return Span(MOVE_ANSWER_TOKENS, max(low)), "no more than models think at low effort"
    if effort in ("xhigh", "max"):
        return Span(min(high), DEFAULT_REASONING_TOKENS), "no less than models think at high effort"
    rows = [REASONING_TOKENS[effort]] if effort else REASONING_TOKENS.values()
    tokens = [count for row in rows for count in row.values()]
    models = {name.split(",")[0] for row in rows for name in row}
    level = f"{effort} effort" if effort else "all efforts"
    return Span(min(tokens), max(tokens)), f"as {len(models)} models did at {level}"


def counter_for(model: str) -> tuple[Counter, bool]:
    """Return a token counter for questions, and whether it uses the model's tokenizer.

    OpenAI's tokenizers need files that ``tiktoken`` downloads. They are used only if the user has
    set ``TIKTOKEN_CACHE_DIR``; otherwise nothing is downloaded.
    """
    encode = _openai_tokenizer(model) if os.environ.get("TIKTOKEN_CACHE_DIR") else None
    if encode:
        exact = encode
        return lambda question: _chat(question, exact, exact), True
    # Tokenizers separate letters and digits, so every character of a move is a token.
    return lambda question: _chat(question, _prose_tokens, len), False


def _chat(question: Question, count_prose: _Encode, count_move: _Encode) -> int:
    system, *turns = question.messages
    content = count_prose(system.content) + sum(count_move(turn.content) for turn in turns)
    return content + TURN_TOKENS * len(question.messages) + REPLY_TOKENS


def _prose_tokens(text: str) -> int:
    return round(len(text) / CHARACTERS_PER_TOKEN)


def _openai_tokenizer(model: str) -> _Encode | None:
    try:
        import tiktoken

        encoding = tiktoken.encoding_for_model(model)
    except (ImportError, KeyError, OSError, ValueError):  # not installed, not OpenAI's, or no file
        return None
    return lambda text: len(encoding.encode_ordinary(text))


# With fewer cached answers than this in a step, those of the other step are used as well.
MIN_CACHED = 20
AT_ONCE, THINKING, MEASURED = "if it replies at once", "if it thinks first", "as it did so far"


_Cached = Sequence[tuple[Question, Usage]]


class Lengths(NamedTuple):
    """Token counts of a step: of its requests, and of its answers by answering mode.

    Attributes:
        input_tokens: of all requests together.
        answer: mean tokens per answer, by the title of the mode.
        input_basis: what the tokens of requests are based on, as text.
        answer_basis: and those of answers.
    """

    input_tokens: int
    answer: dict[str, Span]
    input_basis: str
    answer_basis: str


def _measured(cached: _Cached) -> tuple[dict[str, Span], str]:
    tokens = [usage.output_tokens for _, usage in cached]
    reasoning = mean(usage.thinking_tokens for _, usage in cached)
    error = f" ± {1.96 * stdev(tokens) / sqrt(len(tokens)):,.0f}" if len(tokens) > 1 else ""
    of_reasoning = f", {reasoning:,.0f} of them reasoning" if reasoning else ""
    number = f"{len(tokens):,} cached answers" if len(tokens) > 1 else "1 cached answer"
    text = f"{mean(tokens):,.0f}{error} tokens{of_reasoning}, measured on {number}"
    return {MEASURED: Span(mean(tokens), mean(tokens))}, text


@dataclass
class RequestStep:
    """The requests of one step of a run.

    Attributes:
        settings: the settings of the requests.
        variant: the request variant that the model accepts, as far as known.
        to_ask: the requests without an answer.
        answered: how many of the requests looked up have a cached answer.
        kept: the cached ones whose tokens were counted, with the tokens.
    """

    settings: Settings
    variant: RequestVariant
    to_ask: list[Request] = field(default_factory=list)
    answered: int = 0
    kept: list[tuple[Question, Usage]] = field(default_factory=list)

    @property
    def thinks(self) -> bool:
        """Whether the requests allow for reasoning."""
        return reasoning_budget(self.variant, self.settings) > 0

    def add(self, request: Request, answer: Answer | None) -> None:
        """Add a request and its answer, if there is one."""
        if not answer:
            self.to_ask.append(request)
            return
        self.answered += 1
        if answer.usage.output_tokens:
            self.kept.append((request.question, answer.usage))


def lengths_of(spec: Spec, info: ModelInfo, step: RequestStep, other: RequestStep) -> Lengths:
    """Return the token counts of a step, using answers of the other step where this one has few."""
    cached = step.kept
    if (
        len(cached) < MIN_CACHED
        and step.settings.reasoning_effort == other.settings.reasoning_effort
    ):
        cached = [*cached, *other.kept]
    tokens, on_input = _input(info, step, cached)
    answer, on_answer = _measured(cached) if cached else _expected(spec, info, step)
    return Lengths(tokens, answer, on_input, on_answer)


def _input(info: ModelInfo, step: RequestStep, cached: _Cached) -> tuple[int, str]:
    count, exact = counter_for(info.name)
    tokens = sum(count(request.question) for request in step.to_ask)
    used_tokens = sum(usage.input_tokens for _, usage in cached)
    if used_tokens:
        counted_tokens = sum(count(question) for question, _ in cached)
        return round(
            tokens * used_tokens / counted_tokens
        ), "as many tokens as in the cached answers"
    if info.thinking_tokens:  # two requests per answer, the second with the reasoning
        tokens = 2 * tokens + len(step.to_ask) * info.thinking_tokens
    if exact:
        return tokens, "tokens counted with the model's tokenizer"
    return tokens, "tokens estimated from characters, without its tokenizer, so only roughly"


def _expected(spec: Spec, info: ModelInfo, step: RequestStep) -> tuple[dict[str, Span], str]:
    reply = spec.max_tokens or MOVE_ANSWER_TOKENS
    move_text = (
        f"all {reply:,} tokens allowed" if spec.max_tokens else f"a bare move, {reply} tokens"
    )
    if info.thinking_tokens:
        reply += info.thinking_tokens
        return {AT_ONCE: Span(reply, reply)}, (
            f"taken to be all {info.thinking_tokens:,} tokens for thinking aloud, and {move_text}"
        )
    effort, limit = step.settings.reasoning_effort, step.settings.reasoning_tokens
    at_once = {AT_ONCE: Span(reply, reply)}
    if not info.may_think or effort == "none" or limit == 0:
        return at_once, f"taken to be {move_text}"
    span, source = reasoning_tokens_at(effort)
    if limit:
        span = Span(min(span.least, limit), min(span.most, limit))
    text = (
        f"{span.least:,} to {span.most:,} tokens if it thinks first, {source} ({SOURCE}); "
        "after cdta run -n 10 its own answers are used"
    )
    if step.thinks:
        return {THINKING: span}, text
    return {**at_once, THINKING: span}, f"{move_text}, if it replies at once; {text}"
