"""The provider protocol: settings, question, answer, usage, and the errors of a request."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field, fields
from functools import cached_property
from hashlib import sha256
from operator import add
from typing import Any, Literal, get_args

from ..habits.base import Change, Item, Message
from ..validation import parse

REPLY_TOKENS = 512  # the limit of a reply, as in the original eval
REASONING_TOKENS = 32_768  # the limit of a reply with reasoning before it
BASE_MODEL_TOKENS = 4

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)  # lowest first
# What is left out of a request or sent differently; see `request_fields`.
Adjustments = tuple[str, ...]
StopReason = Literal["stop", "length", "refused", "error"]


@dataclass(frozen=True)
class Question:
    """The prompt for one item under one rule set in one wording.

    Language models see only ``messages``. ``rules``, ``item`` and ``about`` hold the same
    information for models that cannot read. ``about`` is the answer that is in question, or "" if
    the prompt asks for an answer.
    """

    rules: Change
    item: Item
    messages: tuple[Message, ...]
    about: str = ""


@dataclass(frozen=True)
class Settings:
    """Sampling settings as requested, before any adjustment.

    Attributes:
        temperature: 0 for the most likely answer; None for models that do not support it.
        max_tokens: the token limit of a reply with its reasoning; None for one that the model's
            answers show to be enough.
        seed: makes the bundled models repeatable; it is not sent to servers.
        reasoning_effort: the effort to request; None for the model's default.
        extra_body: further fields of the request body, as JSON.
    """

    temperature: float | None = 1.0
    max_tokens: int | None = None
    seed: int = 0
    reasoning_effort: Effort | None = None
    extra_body: str = ""

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
    """Billed tokens of one or more answers; reasoning counts as output."""

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Answer:
    """A model's answer to one request.

    Attributes:
        text: the reply as received, without the reasoning.
        stop_reason: why the reply ended; "error" if all retries failed.
        usage: tokens, as the provider counted them.
        version: the exact model version that the provider reports.
        reasoning: the reasoning before the reply, as far as the provider returns it.
        adjustments: what was left out of the request or sent differently (see `request_fields`).
        limit: the token limit that was sent.
        error: the error message, if the request failed.
        cost: what it cost in US dollars when it arrived; None if unknown.
    """

    text: str = ""
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    version: str = ""
    reasoning: str = ""
    adjustments: Adjustments = ()
    limit: int = 0
    error: str = ""
    cost: float | None = None

    @property
    def has_reasoning(self) -> bool:
        """Whether the answer has reasoning, shown or only counted."""
        return bool(self.reasoning or self.usage.thinking_tokens)

    @property
    def ended_in_reasoning(self) -> bool:
        """Whether it was cut off while the model reasoned: visibly, or before any text."""
        return self.stop_reason == "length" and (self.has_reasoning or not self.text.strip())

    @property
    def shows_reasoning(self) -> bool:
        """Whether the model reasoned, finished or not."""
        return self.has_reasoning or self.ended_in_reasoning

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        return vars(self) | {"usage": asdict(self.usage)}

    @classmethod
    def from_json(cls, data: str | Mapping[str, Any]) -> "Answer":
        """Parse a saved answer, as text or as JSON values; unknown fields are ignored.

        Raises:
            InvalidInput: if it is not an answer.
        """
        return parse(cls, data, "an answer")


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
        connections: the concurrency limit; None if it is found by trying.
        max_tokens: the token limit of a reply; None if the answers show what is enough.
        thinking_tokens: the token limit of a chain of thought, which takes a request of its own; 0
            for none.
        is_local: whether it answers on this machine and for nothing.
        only_habit: the only habit that it can be asked about; "" for any.
        price_query: how the price list finds it, as arguments of ``genai_prices.calc_price``.
    """

    name: str
    identity: Mapping[str, object]
    endpoint: str = ""
    provider: str = ""
    connections: int | None = None
    max_tokens: int | None = None
    thinking_tokens: int = 0
    is_local: bool = False
    only_habit: str = ""
    price_query: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_base(self) -> bool:
        """Whether it is a base model."""
        return self.max_tokens == BASE_MODEL_TOKENS

    @property
    def may_reason(self) -> bool:
        """Whether it may turn out to be a reasoning model."""
        return not (self.max_tokens or self.thinking_tokens)


def local_info(name: str, connections: int, only_habit: str = "", **identity: object) -> ModelInfo:
    """Return what is known about a model that answers on this machine."""
    return ModelInfo(
        name=name,
        identity={"name": name, **identity},
        connections=connections,
        max_tokens=REPLY_TOKENS,
        is_local=True,
        only_habit=only_habit,
    )


class Model(ABC):
    """A model that answers requests."""

    info: ModelInfo

    @abstractmethod
    async def answer(self, question: Question, settings: Settings) -> Answer:
        """Answer one question; the settings have a token limit.

        Raises:
            RequestRejected: if the model does not accept the request as it was sent.
            TransientError: if a retry may succeed.
            UserError: if no retry can succeed.
        """

    async def warnings(self) -> list[str]:
        """Return what the user should know before the first request."""
        return []

    async def close(self) -> None:
        """Close the connections, if there are any; the model cannot answer afterwards."""
        return


class RequestRejected(Exception):
    """The server rejected a request (HTTP 400).

    Attributes:
        server_message: what the server said, from which `request_fields` picks adjustments.
    """

    def __init__(self, message: str, server_message: str = "") -> None:
        super().__init__(message)
        self.server_message = server_message


@dataclass(eq=False)
class TransientError(Exception):
    """A failed request that is worth a retry.

    Attributes:
        message: what happened.
        retry_after: seconds to wait, if the server said so.
        overloaded: whether less concurrency would help.
        maybe_billed: whether the answer may have been generated and billed without arriving.
    """

    message: str
    retry_after: float | None = None
    overloaded: bool = False
    maybe_billed: bool = False

    def __str__(self) -> str:
        return self.message


Purpose = Literal["selection", "measuring"]


@dataclass(frozen=True)
class Request:
    """A question with its purpose and condition, as the client sends it.

    Attributes:
        question: the prompt.
        purpose: selection and measurement never share an answer.
        condition: the name of the condition.
        draw: the number of the repetition, for several samples of the same question.
        tokens: the token limit of its reply, if that is more than the run's.
    """

    question: Question
    purpose: Purpose
    condition: str
    draw: int = 0
    tokens: int = 0

    @cached_property
    def id(self) -> str:
        """A digest that identifies the request and its repetition in the cache.

        It includes the rules in force, for models that cannot read, but not the rule change under
        test: a question under the standard rules has one answer for all changes.
        """
        rules = self.question.rules.identity
        facts = [prompt_texts(self), rules, self.purpose, self.condition, self.draw, self.tokens]
        return digest(facts)


def prompt_texts(request: Request) -> list[tuple[str, str]]:
    """Return the role and the content of each message."""
    return [(message.role, message.content) for message in request.question.messages]


def digest(value: object) -> str:
    """Return the SHA-256 digest of a JSON value."""
    return sha256(json.dumps(value).encode()).hexdigest()
