"""Servers of reasoning models, each behaving like one family of providers.

What they think takes a known number of tokens, and a token is four letters. The words of their
refusals are those of the services.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from aiohttp import web

from cant_do_that_anymore.game.rules import board_after
from loopback import Body, Loopback, is_changed, moves_in
from planted_models import adapting, habit, number_of

LETTERS = 4
REPLY_TOKENS = 2
Thinks = Callable[[Body], int]
Rejections = dict[str, Callable[[Body], bool]]
Thoughts = Callable[[Body, int], str]


def tokens_of(request: Body) -> int:
    """From 500 to 8,000, by the moves so far: most models think longer about some positions."""
    return 500 + number_of(moves_in(request)) * 37 % 7_501


def thoughts_of(request: Body, tokens: int) -> str:
    """So many tokens of thinking, without a move in them."""
    return ("Let me see what the rules say and what I would play now. " * tokens)[
        : LETTERS * tokens
    ]


def longer_when_changed(request: Body) -> int:
    """The same, and 1,000 more when the rules change, but for every fourth position."""
    more = is_changed(request) and number_of(moves_in(request)) % 4 > 0
    return tokens_of(request) + 1_000 * more


def is_tempted(moves: tuple[str, ...]) -> bool:
    """In six positions of ten."""
    return number_of(moves) % 10 < 6


def gives_in(moves: tuple[str, ...]) -> bool:
    """In two of these six, and in one of the other four."""
    return number_of(moves) % 10 in (0, 1, 9)


def tempted_thoughts(request: Body, tokens: int) -> str:
    """Thoughts of some moves, and where it is tempted of the special one, in either notation."""
    moves = moves_in(request)
    special = habit(request)
    if number_of(moves) % 2:
        board = board_after(moves)
        special = f"**{board.san(board.parse_uci(special))}**"
    tempting = f"I would play {special}, " if is_tempted(moves) or not is_changed(request) else ""
    words = f"Castling (O-O) or h7h5, and on {special[-2:]} there is nothing. {tempting}or Na3. "
    return words + thoughts_of(request, tokens)


def tempted(request: Body) -> str:
    """The habit, dropped when the rules change for a legal move, where it does not give in."""
    kept = gives_in(moves_in(request)) or not is_changed(request)
    return habit(request) if kept else adapting(request)


@dataclass
class Thinker(Loopback):
    """Thinks in a field of the message, takes everything, counts thoughts among the completion.

    Attributes:
        thinks: how many tokens.
        thoughts: what it thinks in so many.
        place: where the thoughts stand in a message; "" if they are not shown.
        empty: what a reply is whose limit the thoughts have spent.
        most: the largest limit that it takes.
        rejections: its messages for requests that it does not take.
    """

    rejections: ClassVar[Rejections] = {}

    thinks: Thinks = tokens_of
    thoughts: Thoughts = thoughts_of
    place: str = "reasoning"
    empty: str | None = None
    most: int = 100_000
    limits: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fault = self._answer

    async def _answer(self, request: Body, _: int) -> web.StreamResponse:
        words = self.refuses(request)
        if words:
            return web.json_response({"error": {"message": words}}, status=400)
        self.limits.append(self.limit(request))
        return web.json_response(self.thoughtful(request))

    def limit(self, request: Body) -> int:
        return int(request.get("max_tokens") or request["max_completion_tokens"])

    def refuses(self, request: Body) -> str:
        """What it says to a request that it does not take."""
        for message, is_rejected in self.rejections.items():
            if is_rejected(request):
                return message
        if self.limit(request) > self.most:
            return (
                f"max_tokens is too large: {self.limit(request)}. This model supports at most "
                f"{self.most} completion tokens, whereas you provided {self.limit(request)}."
            )
        return ""

    def thoughtful(self, request: Body) -> dict[str, Any]:
        tokens, limit = self.thinks(request), self.limit(request)
        cut_off = tokens + REPLY_TOKENS > limit
        spent = min(tokens, limit)
        completion = self.completion(request)
        (choice,) = completion["choices"]
        if cut_off:
            choice["message"]["content"], choice["finish_reason"] = self.empty, "length"
        thoughts = self.thoughts(request, spent)
        if self.place and thoughts:
            choice["message"][self.place] = thoughts
        usage = completion["usage"]
        usage["completion_tokens"] = spent if cut_off else spent + REPLY_TOKENS
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        return completion


@dataclass
class OpenAI(Thinker):
    """Strict about names and temperature, shows no thoughts but counts them."""

    rejections: ClassVar[Rejections] = {
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.": lambda request: "max_tokens" in request,
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) "
        "value is supported.": lambda request: request.get("temperature", 1) != 1,
    }
    place: str = ""
    empty: str | None = ""

    def thoughtful(self, request: Body) -> dict[str, Any]:
        completion = super().thoughtful(request)
        spent = min(self.thinks(request), self.limit(request))
        completion["usage"]["completion_tokens_details"] = {"reasoning_tokens": spent}
        return completion


class Unfinished(OpenAI):
    """The same, but says with HTTP 400 that it could not finish."""

    def refuses(self, request: Body) -> str:
        refused = super().refuses(request)
        if not refused and self.thinks(request) + REPLY_TOKENS > self.limit(request):
            return (
                "Could not finish the message because max_tokens or model output limit was "
                "reached. Please try again with higher max_tokens."
            )
        return refused


@dataclass
class Kimi(Thinker):
    """Takes no temperature but 1, and thinks in ``reasoning_content``."""

    rejections: ClassVar[Rejections] = {
        "invalid temperature: only 1 is allowed for this model": lambda request: (
            request.get("temperature", 1) != 1
        )
    }
    place: str = "reasoning_content"
    empty: str | None = ""


class Untaking(Thinker):
    """Knows no temperature at all."""

    rejections: ClassVar[Rejections] = {
        "temperature: Extra inputs are not permitted": lambda request: "temperature" in request
    }


class Outside(Thinker):
    """Counts its thoughts in the total alone, as xAI does."""

    def thoughtful(self, request: Body) -> dict[str, Any]:
        completion = super().thoughtful(request)
        usage, spent = completion["usage"], min(self.thinks(request), self.limit(request))
        usage["completion_tokens"] -= spent
        usage["completion_tokens_details"] = {"reasoning_tokens": spent}
        return completion


class Template(Thinker):
    """Thinks unless a template argument turns that off, and passes over all else."""

    def thoughtful(self, request: Body) -> dict[str, Any]:
        if request.get("chat_template_kwargs", {}).get("enable_thinking", True):
            return super().thoughtful(request)
        return self.completion(request)


@dataclass
class Tagged(Thinker):
    """Writes its thoughts into the text, between these tags."""

    tags: tuple[str, str] = ("<think>", "</think>")

    def thoughtful(self, request: Body) -> dict[str, Any]:
        completion = super().thoughtful(request)
        (choice,) = completion["choices"]
        opening, closing = self.tags
        thoughts = choice["message"].pop(self.place)
        text = opening + thoughts
        if choice["finish_reason"] != "length":
            text += closing + choice["message"]["content"]
        choice["message"]["content"] = text
        return completion


class Obedient(OpenAI):
    """Thinks as much as ``reasoning_effort`` says, and takes any temperature and limit."""

    rejections: ClassVar[Rejections] = {}


KEPT = {
    "yielding": {"none": 9, "low": 6, "medium": 4, "high": 1},
    "stubborn": {"none": 9, "low": 9, "medium": 8, "high": 7},
}
"""In how many of ten positions a planted model keeps its habit when the rules change, by effort."""
THOUGHT = {"none": 0, "low": 500, "medium": 1_500, "high": 4_000}
"""How many tokens it thinks at least."""


def keeps_at(effort: str, moves: tuple[str, ...], model: str = "yielding") -> bool:
    """Whether a planted model keeps its habit under the changed rules."""
    return number_of(moves) % 10 < KEPT[model][effort]


def thinks_at(effort: str, moves: tuple[str, ...], *, changed: bool) -> int:
    """How many tokens a planted model thinks: half as many again when the rules change."""
    least = THOUGHT[effort]
    return least and (least * 3 // 2 if changed else least) + number_of(moves) % 100


def planted(request: Body) -> str:
    """The habit, and under the changed rules a legal move in more positions with more effort."""
    kept = keeps_at(request["reasoning_effort"], moves_in(request), request["model"])
    return habit(request) if kept or not is_changed(request) else adapting(request)


def planted_thinker() -> Obedient:
    """A server whose models yield with effort by a known function."""
    return Obedient(
        planted,
        thinks=lambda request: thinks_at(
            request["reasoning_effort"], moves_in(request), changed=is_changed(request)
        ),
    )
