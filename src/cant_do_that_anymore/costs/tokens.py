"""Estimate the tokens of requests and answers before they are sent."""

from collections.abc import Sequence
from math import exp, sqrt
from statistics import mean, stdev
from typing import NamedTuple

from ..client.budget import LATEST_ANSWERS
from ..formatting import pluralize
from ..providers.base import DEFAULT_REASONING_TOKENS, Effort, ModelInfo, Question, Usage
from ..providers.request_variants import limit_of, reasoning_budget
from ..task.spec import Spec
from .dry_run import Step

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
REASONING_SOURCE = "tables published by llm_chess, 2026-11-15"


class AnswerLength(NamedTuple):
    """Expected tokens per answer: anything between two numbers, on a logarithmic scale.

    Attributes:
        low: the fewest expected.
        high: the most expected.
        reply: tokens of the reply itself; the others are reasoning.
        basis: what the numbers are based on, as text.
        at_once: whether it may also reply without reasoning; nothing tells yet.
    """

    low: float
    high: float
    reply: float
    basis: str
    at_once: bool = False


def reasoning_tokens_at(effort: Effort | None) -> tuple[float, float, str]:
    """Return the least and most expected tokens of a reasoning model's answer, and their source.

    An effort that is not in the table is bounded by the nearest one that is: below the lowest, or
    above the highest up to the reasoning limit.
    """
    low, high = REASONING_TOKENS["low"].values(), REASONING_TOKENS["high"].values()
    if effort == "minimal":
        return MOVE_ANSWER_TOKENS, max(low), "at most as many as models use at low effort"
    if effort in ("xhigh", "max"):
        return min(high), DEFAULT_REASONING_TOKENS, "at least as many as models use at high effort"
    rows = [REASONING_TOKENS[effort]] if effort else REASONING_TOKENS.values()
    tokens = [count for row in rows for count in row.values()]
    models = {name.split(",")[0] for row in rows for name in row}
    level = f"{effort} effort" if effort else "all efforts"
    return min(tokens), max(tokens), f"the range of {len(models)} models at {level}"


def is_known_to_reason(model: str) -> bool:
    """Whether the published tables list a model, or an earlier version, as one that reasons.

    Models that reason within a budget reply at once without one.
    """
    listed = {name for row in REASONING_TOKENS.values() for name in row if "," not in name}
    name = model.rpartition("/")[2]
    return any(name == known or name.startswith(f"{known}-") for known in listed)


def _count(question: Question) -> int:
    """Count the tokens of a question, roughly."""
    system, *turns = question.messages
    content = _prose_tokens(system.content) + sum(_turn_tokens(turn.content) for turn in turns)
    return content + TURN_TOKENS * len(question.messages) + REPLY_TOKENS


def _prose_tokens(text: str) -> int:
    return round(len(text) / CHARACTERS_PER_TOKEN)


def _turn_tokens(text: str) -> int:
    """Count the tokens of a move, or of a text with moves.

    Tokenizers separate letters and digits, so every character of a move is a token.
    """
    words = text.split()
    moves = [word for word in words if len(word) == 1 or any(map(str.isdigit, word))]
    prose = [word for word in words if word not in moves]
    return sum(map(len, moves)) + _prose_tokens(" ".join(prose))


# With fewer cached answers than this in a step, those of the other step are used as well.
MIN_CACHED = 4
# Standard deviation, on a logarithmic scale, of the mean length of later answers around that of
# the cached ones: for replies alone and with reasoning, in the same step of a run and in the other.
DRIFT = {(False, True): 0.03, (True, True): 0.15, (False, False): 0.1, (True, False): 0.5}
# Standard deviations on either side of the mean.
WIDTH = 2.0

Cached = Sequence[tuple[Question, Usage]]


def input_tokens(
    info: ModelInfo, questions: Sequence[Question], cached: Cached
) -> tuple[float, float, str]:
    """Return the mean tokens of the questions, its relative error, and what it is based on."""
    if not questions:
        return 0.0, 0.0, ""
    tokens = mean(map(_count, questions))
    if used := sum(usage.input_tokens for _, usage in cached):
        factor = used / sum(_count(question) for question, _ in cached)
        return tokens * factor, 0.02, "scaled to the tokens of the cached answers"
    if info.thinking_tokens:  # two requests per answer, the second with the reasoning
        tokens = 2 * tokens + info.thinking_tokens
    basis = "rough estimate from the number of characters, without the tokenizer of the model"
    return tokens, 0.25, basis


def answer_length(spec: Spec, info: ModelInfo, step: Step, both: Cached) -> AnswerLength:
    """Return the expected tokens per answer of a step.

    Args:
        spec: the run.
        info: its model.
        step: the step.
        both: the cached answers of both steps, if their settings allow for as much reasoning.
    """
    cached = step.used if len(step.used) >= MIN_CACHED else both
    # Tokens that replies have for more than a move, on average.
    room = mean([request.tokens for request in step.unanswered] or [0])
    own = bool(step.used)
    length = _measured(cached, same_step=own) if cached else _assumed(spec, info, step)
    if own and cached is not step.used:  # too few to tell, but they may differ from the others
        few = _measured(step.used, same_step=True)
        length = length._replace(low=min(length.low, few.low), high=max(length.high, few.high))
    if room and cached is not step.used:
        low, basis = room / 10, f"and {room / 10:,.0f} to {room:,.0f} for reasons in the reply"
        length = length._replace(
            low=length.low + low,
            high=length.high + room,
            reply=length.reply + (low + room) / 2,
            basis=f"{length.basis}; {basis}, on average",
        )
    if step.answered and not both:  # the server counts no tokens, so the limit has to do
        limit = limit_of(step.variant, step.settings) + room
        return length._replace(low=length.reply, high=limit)
    return length


def _assumed(spec: Spec, info: ModelInfo, step: Step) -> AnswerLength:
    """Return the expected tokens per answer of a model without cached answers."""
    reply = spec.max_tokens or MOVE_ANSWER_TOKENS
    text = f"all {reply:,} tokens allowed" if spec.max_tokens else f"a bare move of {reply} tokens"
    if info.thinking_tokens:
        most = info.thinking_tokens
        basis = f"{most // 10:,} to {most:,} tokens for reasoning aloud, and {text}"
        return AnswerLength(reply + most / 10, reply + most, reply, f"assumed: {basis}")
    effort, limit = step.settings.reasoning_effort, step.settings.reasoning_tokens
    if not info.may_reason or effort == "none" or limit == 0:
        return AnswerLength(reply, reply, reply, f"assumed: {text}")
    low, high, source = reasoning_tokens_at(effort)
    if limit:
        low, high = min(low, limit), min(high, limit)
    reasoning = (
        f"{low:,} to {high:,} tokens with reasoning, {source} ({REASONING_SOURCE}); to estimate "
        "from its own answers, run cdta run -n 10 first"
    )
    if reasoning_budget(step.variant, step.settings) or is_known_to_reason(info.name):
        return AnswerLength(low, high, reply, reasoning)
    basis = f"{text}, without reasoning; {reasoning}"
    return AnswerLength(low, high, reply, basis, at_once=True)


def _measured(cached: Cached, *, same_step: bool) -> AnswerLength:
    tokens = [usage.output_tokens for _, usage in cached]
    # If so many of the latest answers, or twice or four times as many, and so on, are significantly
    # longer than all together, only they count, and the lengths of later answers may differ from
    # theirs as much as in the other step.
    latest = LATEST_ANSWERS
    while latest < len(tokens):
        change = mean(tokens[-latest:]) - mean(tokens)
        if change > WIDTH * stdev(tokens) / sqrt(latest):
            cached, tokens, same_step = cached[-latest:], tokens[-latest:], False
        latest *= 2
    average, reasoning = mean(tokens), mean(usage.thinking_tokens for _, usage in cached)
    error = stdev(tokens) / sqrt(len(tokens)) if len(tokens) > 1 else 0.0
    spread = WIDTH * sqrt((error / average) ** 2 + DRIFT[reasoning > 0, same_step] ** 2)
    of_reasoning = f", {reasoning:,.0f} of them reasoning" if reasoning else ""
    basis = (
        f"{average:,.0f} ± {WIDTH * error:,.0f} tokens{of_reasoning}, measured on "
        f"{pluralize(len(tokens), 'cached answer')}"
    )
    return AnswerLength(average * exp(-spread), average * exp(spread), average - reasoning, basis)
