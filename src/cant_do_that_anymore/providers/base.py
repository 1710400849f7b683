"""The provider protocol: settings, question, answer, usage, and the errors of a request."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from operator import add, attrgetter
from typing import Any, ClassVar, Literal, get_args

import chess

from ..game.rules import Rules, board_after, identity_of
from ..validation import parse

CHAT_TOKENS = 16  # enough for any move in any tokenizer, promotions included
BASE_MODEL_TOKENS = 4
MAX_PLAUSIBLE_TOKENS = 10**15  # a server that reports more is wrong
DEFAULT_REASONING_TOKENS = 16_000  # limit for a reasoning model, unless the user sets one

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)  # lowest first
# How a request differs from the default one; see `request_variants`.
RequestVariant = tuple[str, ...]
Api = Literal["chat", "completions"]
Role = Literal["system", "user", "assistant"]
StopReason = Literal["stop", "length", "refused", "error"]


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True)
class Question:
    """The prompt for one position under one rule set in one wording.

    Language models see only ``messages``. ``rules``, ``moves`` and ``about`` hold the same
    information for models that cannot read. ``about`` is the move whose legality is in question,
    or "" if the prompt asks for a move.
    """

    rules: Rules
    moves: tuple[str, ...]
    messages: tuple[Message, ...]
    about: str = ""

    @property
    def is_legal(self) -> bool:
        """Whether the move in question is legal under the rules."""
        return self.rules.is_legal(board_after(self.moves), chess.Move.from_uci(self.about))


@dataclass(frozen=True)
class Settings:
    """Sampling settings as requested, before any fallback.

    Attributes:
        temperature: 0 for the most likely answer; None for models that do not support it.
        max_tokens: the token limit of a reply, reasoning not included.
        seed: makes the built-in models repeatable; it is sent to a server only with
            ``server_seed``, and then differs from request to request.
        reasoning_effort: the effort to request; None for the model's default.
        reasoning_tokens: the token limit of the reasoning; None for as many as needed.
        extra_body: further fields of the request body, as JSON.
        server_seed: whether requests to a server contain a seed.
    """

    # Files with a setting that is unknown here are refused: it may change answers.
    __pydantic_config__: ClassVar[Mapping[str, object]] = {
        "extra": "forbid",
        "allow_inf_nan": False,
    }

    temperature: float | None = 1.0
    max_tokens: int = CHAT_TOKENS
    seed: int = field(default=0, metadata={"incidental": True})
    reasoning_effort: Effort | None = None
    reasoning_tokens: int | None = None
    extra_body: str = ""
    server_seed: bool = False

    @cached_property
    def non_defaults(self) -> dict[str, object]:
        """The settings that differ from their defaults, for cache keys, digests, files and reports.

        >>> Settings(temperature=0.0).non_defaults
        {'temperature': 0.0}
        """
        values = ((setting, getattr(self, setting.name)) for setting in fields(self))
        return {setting.name: value for setting, value in values if value != setting.default}


@dataclass(frozen=True, slots=True)
class Usage:
    """Billed tokens of one or more answers; reasoning counts as output, cached tokens as input."""

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0

    def __post_init__(self) -> None:
        if not all(0 <= tokens < MAX_PLAUSIBLE_TOKENS for tokens in _counts(self)):
            raise ValueError("no token counts")  # servers may report anything

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(add, _counts(self), _counts(other)))


_counts: Callable[[Usage], tuple[int, ...]] = attrgetter(*Usage.__slots__)


@dataclass(frozen=True)
class Answer:
    """A model's answer to one request.

    Attributes:
        text: the reply as received, without the reasoning.
        stop_reason: why the reply ended; "error" if all retries failed.
        usage: tokens, as the provider counted them.
        version: the exact model version that the provider reports.
        reasoning: the reasoning before the reply, as far as the provider returns it.
        conceded: the request variant that was sent (see `request_variants`).
        error: the error message, if the request failed.
        cost: what it cost in US dollars when it arrived, with earlier attempts at the same request
            that were lost or discarded; None if unknown.
        seconds: the time since the answer before it, or since the first request in flight; those of
            all answers add up to the time that they took together.
    """

    text: str = ""
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    version: str = ""
    reasoning: str = ""
    conceded: RequestVariant = ()
    error: str = ""
    cost: float | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def has_reasoning(self) -> bool:
        """Whether the answer has reasoning, shown or only counted."""
        return bool(self.reasoning or self.usage.thinking_tokens)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values, without the attempts and the time it took."""
        values = {name: getattr(self, name) for name in _SAVED_FIELDS}
        if self.cost is None:
            del values["cost"]
        return values | {"usage": dict(zip(Usage.__slots__, _counts(self.usage), strict=True))}

    @classmethod
    def from_json(cls, data: str | Mapping[str, Any]) -> "Answer":
        """Parse a saved answer, as text or as JSON values; unknown fields are ignored.

        Raises:
            InvalidInput: if it is not an answer.
        """
        return parse(cls, data, "an answer")


_SAVED_FIELDS = tuple(field.name for field in fields(Answer) if field.compare)


def add_costs(*costs: float | None) -> float | None:
    """Add up costs; None if any of them is unknown."""
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs) if len(known_costs) == len(costs) else None


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What is known about a model before the first request.

    Attributes:
        name: the name that the user gave.
        identity: everything about the model that can change an answer, by name; part of the cache
            key.
        endpoint: its address, or "" if it has none.
        provider: the provider in the model's name, or "" for the user's own server.
        connections: the default concurrency limit.
        max_tokens: the default token limit of a reply.
        may_reason: whether it may turn out to be a reasoning model.
        thinking_tokens: the token limit of a chain of thought, which takes a request of its own; 0
            for none.
        is_local: whether it answers on this machine and for nothing.
        price_query: how the price list finds it, as arguments of ``genai_prices.calc_price``.
    """

    name: str
    identity: Mapping[str, object]
    endpoint: str = ""
    provider: str = ""
    connections: int = 16
    max_tokens: int = CHAT_TOKENS
    may_reason: bool = True
    thinking_tokens: int = 0
    is_local: bool = False
    price_query: Mapping[str, str] = field(default_factory=dict)

    @property
    def requests_per_answer(self) -> int:
        """How many requests one answer takes."""
        return 2 if self.thinking_tokens else 1


def local_info(name: str, connections: int, **identity: object) -> ModelInfo:
    """Return what is known about a model that answers on this machine."""
    return ModelInfo(
        name=name,
        identity={"name": name, **identity},
        connections=connections,
        may_reason=False,
        is_local=True,
    )


class Model(ABC):
    """A model that answers requests."""

    info: ModelInfo

    @abstractmethod
    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        """Answer one question, sent as a request variant.

        Raises:
            RequestRejected: if the model does not accept this request variant.
            TransientError: if a retry may succeed.
            UserError: if no retry can succeed.
        """

    async def fingerprints(self) -> dict[str, str]:
        """Return what identifies the weights behind the name, as far as the provider reports it."""
        return {}

    async def warnings(self) -> list[str]:
        """Return what the user should know before the first request."""
        return []

    async def close(self) -> None:
        """Close the connections, if there are any; the model cannot answer afterwards."""
        return


class RequestRejected(Exception):
    """The server rejected a request variant.

    Attributes:
        server_message: what the server said, from which `request_variants` picks fallbacks.
    """

    def __init__(self, message: str, server_message: str) -> None:
        super().__init__(message)
        self.server_message = server_message


class TransientError(Exception):
    """A failed request that is worth a retry.

    Attributes:
        retry_after: seconds to wait, if the server said so.
        overloaded: whether less concurrency would help.
        maybe_billed: whether the answer may have been generated and billed without arriving.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        overloaded: bool = False,
        maybe_billed: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.overloaded = overloaded
        self.maybe_billed = maybe_billed


Purpose = Literal["selection", "measuring"]


@dataclass(frozen=True)
class Request:
    """A question with its purpose and condition, as the client sends it.

    Attributes:
        draw: the number of the repetition, for several samples of the same question.
        same_limit_only: whether a cached answer must have the same token limit.
        tokens: the token limit of its reply, if that is more than the run's.
    """

    question: Question
    purpose: Purpose
    condition: str
    draw: int = 0
    same_limit_only: bool = False
    tokens: int = 0

    def settings(self, of_run: Settings) -> Settings:
        """Return the settings of the request: those of its run, with its own token limit."""
        if self.tokens <= of_run.max_tokens:
            return of_run
        return replace(of_run, max_tokens=self.tokens)

    @cached_property
    def id(self) -> str:
        """A digest that identifies the request and its repetition in the cache.

        It includes the rules in force, for models that cannot read, but not the rule change under
        test: a question under the standard rules has one answer for all changes.
        """
        rules = identity_of(self.question.rules)
        return digest([prompt_texts(self), rules, self.purpose, self.condition, self.draw])


def prompt_texts(request: Request) -> list[tuple[str, str]]:
    """Return the role and the content of each message."""
    return [(message.role, message.content) for message in request.question.messages]


def digest(value: object) -> str:
    """Return the SHA-256 digest of a JSON value."""
    return sha256(json.dumps(value).encode()).hexdigest()
