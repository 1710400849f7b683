"""The provider protocol: settings, question, answer, usage, and the faults of a request."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from hashlib import sha256
from operator import add, attrgetter
from typing import Any, Literal, Protocol, get_args

import chess

from ..game.rules import Rules, board_after, identity_of

CHAT_TOKENS = 16
"""Enough for any move in any tokenizer, promotions included."""
MOST_TOKENS = 10**15
"""Whoever counts more of them is wrong."""
ROOM_TO_THINK = 16_000
"""How many tokens a model that thinks first may think, unless the user says otherwise."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model is asked to think before it replies."""
EFFORTS: tuple[Effort, ...] = get_args(Effort)
"""The least first."""
RequestVariant = tuple[str, ...]
"""In what other form than the usual one a question is put; see `request_variants`."""
Role = Literal["system", "user", "assistant"]
StopReason = Literal["stop", "length", "refused", "error"]


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True)
class Question:
    """A position under one rule set in one wording, as messages.

    Language models see only ``messages``; ``rules``, ``moves`` and ``about`` say the same to models
    that cannot read. ``about`` is the move whose legality is asked, "" where a move is asked for.
    """

    rules: Rules
    moves: tuple[str, ...]
    messages: tuple[Message, ...]
    about: str = ""

    @property
    def is_legal(self) -> bool:
        """Whether the move that it is about is legal under its rules."""
        return self.rules.is_legal(board_after(self.moves), chess.Move.from_uci(self.about))


@dataclass(frozen=True)
class Settings:
    """How to answer: what was asked for, not what a provider made of it.

    Attributes:
        temperature: 0 for the most likely answer; None for models that take no temperature.
        max_tokens: where a reply is cut off.
        seed: makes our own models repeatable; servers and providers never see it.
        reasoning_effort: how much to think first; None for as much as the model does by itself.
        reasoning_tokens: room for thoughts beside the reply; None for as much as is needed.
        extra_body: what no other setting names, as JSON that the API takes.
    """

    temperature: float | None = 1.0
    max_tokens: int = CHAT_TOKENS
    seed: int = field(default=0, metadata={"incidental": True})
    reasoning_effort: Effort | None = None
    reasoning_tokens: int | None = None
    extra_body: str = ""

    @cached_property
    def non_defaults(self) -> dict[str, object]:
        """All that differs from the defaults, by name: for keys, digests, files and pages.

        >>> Settings(temperature=0.0).asked
        {'temperature': 0.0}
        """
        values = ((each, getattr(self, each.name)) for each in fields(self))
        return {each.name: value for each, value in values if value != each.default}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more answers, as paid; thoughts are output, too, what is cached is input."""

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0

    def __post_init__(self) -> None:
        if not all(0 <= tokens < MOST_TOKENS for tokens in _counts(self)):
            raise ValueError("no numbers of tokens")  # servers may say anything

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(add, _counts(self), _counts(other)))

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Usage":
        """Read it back; what a newer version may have added is left out.

        Raises:
            KeyError: if a field is missing, but for the cache's, which paid answers may lack.
            ValueError: if one is no number.
        """
        counted = {"cached_tokens": 0} | dict(fields)
        return cls(**{name: int(counted[name]) for name in cls.__dataclass_fields__})


_counts: Callable[[Usage], tuple[int, ...]] = attrgetter(*Usage.__slots__)


@dataclass(frozen=True)
class Answer:
    """What the model said.

    Attributes:
        text: the reply as it came, without the thoughts.
        stop_reason: why it ended there; "error" when there was no reply after all tries.
        usage: tokens, as the provider counted them.
        version: the exact model that answered, as it names itself.
        reasoning: what it thought before it replied, as far as it is shown.
        conceded: in what other form than the usual one it was asked (see `request_variants`).
        error: what went wrong, if anything did.
    """

    text: str = ""
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    version: str = ""
    reasoning: str = ""
    conceded: RequestVariant = ()
    error: str = ""

    @property
    def is_thoughtful(self) -> bool:
        """Whether the model thought first, by its thoughts or by their number."""
        return bool(self.reasoning or self.usage.thinking_tokens)

    def to_json(self) -> dict[str, Any]:
        """The answer as plain values."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        return told | {"usage": dict(zip(Usage.__slots__, _counts(self.usage), strict=True))}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Answer":
        """Read it back; what a newer version may have added is left out.

        Raises:
            KeyError: if a field is missing.
            ValueError: if one is not of its kind.
        """
        conceded = tuple(fields["conceded"])
        names = ("text", "stop_reason", "version", "reasoning", "error")
        texts = {name: fields[name] for name in names}
        for text in (*texts.values(), *conceded):
            if not isinstance(text, str):
                raise ValueError(f"expected a text, got {text!r}")
        if texts["stop_reason"] not in get_args(StopReason):
            raise ValueError(f"no reason to stop: {texts['stop_reason']!r}")
        return cls(usage=Usage.from_json(fields["usage"]), conceded=conceded, **texts)


class ModelInfo(Protocol):
    """What is known of a model before it is asked anything.

    Attributes:
        name: the name it was asked for by.
        endpoint: where it answers, if it has an address.
        connections: how many questions at once suit it.
        may_think: whether it may turn out to think by itself before it replies.
    """

    name: str
    endpoint: str
    connections: int
    may_think: bool

    @property
    def max_tokens(self) -> int:
        """Where its replies are cut off unless the user says otherwise."""

    @property
    def provider(self) -> str:
        """Whose model it is, where its name says so; "" for a server of the user's own."""

    @property
    def identity(self) -> Mapping[str, object]:
        """Everything about the model that can change an answer, by name."""


class Model(ModelInfo, Protocol):
    """Whoever answers."""

    async def answer(
        self, question: Question, settings: Settings, form: RequestVariant = ()
    ) -> Answer:
        """Answer one question, put in that form.

        Raises:
            RequestRejected: if it does not take the question in this form.
            TransientError: a fault that may be gone on the next try.
            UserError: a fault that no further try will mend.
        """

    async def close(self) -> None:
        """Let go of connections; the model answers no more."""


class RequestRejected(Exception):
    """A question was not taken in the form it was put in.

    Attributes:
        words: what the other side said, untouched, to find out what it wants.
    """

    def __init__(self, message: str, words: str) -> None:
        super().__init__(message)
        self.words = words


class TransientError(Exception):
    """A fault that may be gone on the next try.

    Attributes:
        retry_after: seconds the other side asked to wait, if it did.
        overloaded: whether fewer questions at once would help.
        given_up: whether the answer may have been made, and paid, and only did not arrive.
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
    """A question to be asked for a purpose under a condition.

    Attributes:
        draw: tells repeated askings apart.
        anew: whether only an answer under the same token limit will do.
    """

    question: Question
    purpose: Purpose
    condition: str
    draw: int = 0
    same_limit_only: bool = False

    @cached_property
    def id(self) -> str:
        """A name for what is asked, and for which of its answers is meant.

        The rules in force belong to it for models that cannot read; the change itself does not, so
        that a question under the standard rules has one answer, whatever change it is asked for.
        """
        rules = identity_of(self.question.rules)
        return digest([_texts(self), rules, self.purpose, self.condition, self.draw])


def _texts(ask: Request) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in ask.question.messages]


def digest(value: object) -> str:
    """A name for any plain value."""
    return sha256(json.dumps(value).encode()).hexdigest()
