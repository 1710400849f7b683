"""Servers of reasoning models, each behaving like one family of providers.

Their reasoning has a known number of tokens of four characters each. Their error messages are
those of the real services.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from loopback import Body, Loopback, is_changed, moves_in
from planted_models import adapting, checksum, habit

CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 2
REASONING = "Let me see what the rules say and what I would play now. "
TokenCount = Callable[[Body], int]
Rejections = dict[str, Callable[[Body], bool]]


def default_reasoning_tokens(request: Body) -> int:
    """From 500 to 8,000 by the moves so far, as most models reason longer at some positions."""
    return 500 + checksum(moves_in(request)) * 37 % 7_501


def longer_when_changed(request: Body) -> int:
    """The default, plus 1,000 when the rules change, except in every fourth position."""
    more = is_changed(request) and checksum(moves_in(request)) % 4 > 0
    return default_reasoning_tokens(request) + 1_000 * more


@dataclass
class ReasoningServer(Loopback):
    """Sends its reasoning in a field, accepts everything, counts reasoning as completion tokens.

    Attributes:
        reasoning_tokens: the number of reasoning tokens for a request.
        reasoning_field: the field of the message with the reasoning; "" if it is hidden.
        counts_reasoning: whether it says how many of its completion tokens are reasoning.
        cut_off_content: the content of a message if the reasoning uses up the limit.
        cut_off_reason: the finish reason of such a message.
        max_limit: the largest token limit that it accepts.
        rejections: error messages, each with a condition for requests that it rejects.
        limits: the token limits of the requests it answered.
    """

    reasoning_tokens: TokenCount = default_reasoning_tokens
    reasoning_field: str = "reasoning"
    counts_reasoning: bool = False
    cut_off_content: str | None = None
    cut_off_reason: str = "length"
    max_limit: int = 100_000
    rejections: Rejections = field(default_factory=dict)
    limits: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fault = self._answer

    async def _answer(self, request: Body, _: int) -> web.StreamResponse:
        if message := self.rejection_of(request):
            return web.json_response({"error": {"message": message}}, status=400)
        self.limits.append(self.limit(request))
        return web.json_response(self.completion_with_reasoning(request))

    def limit(self, request: Body) -> int:
        return int(request.get("max_tokens") or request["max_completion_tokens"])

    def rejection_of(self, request: Body) -> str:
        """The error message if the request is rejected, else ""."""
        limit = self.limit(request)
        too_large = (
            f"max_tokens is too large: {limit}. This model supports at most {self.max_limit} "
            f"completion tokens, whereas you provided {limit}."
        )
        rejections = self.rejections | {too_large: lambda _: limit > self.max_limit}
        return next((text for text, rejects in rejections.items() if rejects(request)), "")

    def completion_with_reasoning(self, request: Body) -> dict[str, Any]:
        tokens, limit = self.reasoning_tokens(request), self.limit(request)
        is_cut_off = tokens + REPLY_TOKENS > limit
        spent = min(tokens, limit)
        completion = self.completion(request)
        (choice,) = completion["choices"]
        if is_cut_off:
            choice["message"]["content"] = self.cut_off_content
            choice["finish_reason"] = self.cut_off_reason
        if self.reasoning_field and spent:
            characters = CHARACTERS_PER_TOKEN * spent
            choice["message"][self.reasoning_field] = (REASONING * spent)[:characters]
        usage = completion["usage"]
        usage["completion_tokens"] = spent if is_cut_off else spent + REPLY_TOKENS
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        if self.counts_reasoning:
            usage["completion_tokens_details"] = {"reasoning_tokens": spent}
        return completion


OPENAI_REJECTIONS: Rejections = {
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.": lambda request: "max_tokens" in request,
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) "
    "value is supported.": lambda request: request.get("temperature", 1) != 1,
}


@dataclass
class OpenAI(ReasoningServer):
    """Strict about parameters and temperature; hides its reasoning but counts it."""

    reasoning_field: str = ""
    counts_reasoning: bool = True
    cut_off_content: str | None = ""
    rejections: Rejections = field(default_factory=OPENAI_REJECTIONS.copy)


@dataclass
class CountedInTotal(ReasoningServer):
    """Counts its reasoning only in the total, as xAI does."""

    counts_reasoning: bool = True

    def completion_with_reasoning(self, request: Body) -> dict[str, Any]:
        completion = super().completion_with_reasoning(request)
        usage = completion["usage"]
        usage["completion_tokens"] -= usage["completion_tokens_details"]["reasoning_tokens"]
        return completion


class TemplateSwitch(ReasoningServer):
    """Reasons unless a template argument turns that off; ignores other options."""

    def completion_with_reasoning(self, request: Body) -> dict[str, Any]:
        if request.get("chat_template_kwargs", {}).get("enable_thinking", True):
            return super().completion_with_reasoning(request)
        return self.completion(request)


@dataclass
class Tagged(ReasoningServer):
    """Writes its reasoning into the content, between these tags."""

    tags: tuple[str, str] = ("<think>", "</think>")

    def completion_with_reasoning(self, request: Body) -> dict[str, Any]:
        completion = super().completion_with_reasoning(request)
        (choice,) = completion["choices"]
        opening, closing = self.tags
        text = opening + choice["message"].pop(self.reasoning_field)
        if choice["finish_reason"] != "length":
            text += closing + choice["message"]["content"]
        choice["message"]["content"] = text
        return completion


HABITS_KEPT = {
    "yielding": {"none": 9, "low": 6, "medium": 4, "high": 1},
    "stubborn": {"none": 9, "low": 9, "medium": 8, "high": 7},
}
"""In how many of ten positions a model keeps its habit when the rules change, by effort."""
MIN_REASONING_TOKENS = {"none": 0, "low": 500, "medium": 1_500, "high": 4_000}
"""The fewest reasoning tokens, by effort."""


def keeps_habit_at(effort: str, moves: tuple[str, ...], model: str = "yielding") -> bool:
    """Whether a model keeps its habit under the changed rules."""
    return checksum(moves) % 10 < HABITS_KEPT[model][effort]


def reasoning_tokens_at(effort: str, moves: tuple[str, ...], *, changed: bool) -> int:
    """The number of reasoning tokens, about 1.5 times as many when the rules change."""
    tokens = MIN_REASONING_TOKENS[effort]
    return tokens and (tokens * 3 // 2 if changed else tokens) + checksum(moves) % 100


def habit_by_effort(request: Body) -> str:
    """The habit, replaced by a legal move in more positions with more effort."""
    kept = keeps_habit_at(request["reasoning_effort"], moves_in(request), request["model"])
    return habit(request) if kept or not is_changed(request) else adapting(request)


def effort_server() -> OpenAI:
    """A server whose models follow the rule more with more effort, by a known function."""
    return OpenAI(
        habit_by_effort,
        reasoning_tokens=lambda request: reasoning_tokens_at(
            request["reasoning_effort"], moves_in(request), changed=is_changed(request)
        ),
        rejections={},
    )
