"""The table of request fields that models reject, and the layouts of messages.

Models differ in what they accept, and their names say little. So a rejected request (HTTP 400) is
sent again without what the message names, or with another name or token limit. Every answer records
these adjustments.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from ..habits.base import Message
from .base import REPLY_TOKENS, Adjustments, Question, Settings

RENAMED_LIMIT = "max_completion_tokens"
SMALLER_LIMIT = "smaller token limit"
NO_TEMPERATURE = "no temperature"
USER_FIRST = "user first"
NO_SYSTEM = "no system"
ASKED_ONCE = "asked once"

_NOT = r"unsupported|not support|does not|deprecated|not allowed|not permitted|removed|unexpected"
_OUT_OF_RANGE = r"above|below|between|range|too high|less than|greater than|maximum|minimum|[<>]"
_SYSTEM = r"'system'|system (role|message|prompt|instruction)|(role|roles|message): system"
# What a rejection says, in the order in which the adjustments are tried.
_REJECTIONS = {
    RENAMED_LIMIT: re.compile(r"max_tokens|max_completion_tokens"),
    NO_TEMPERATURE: re.compile(rf"^(?!.*({_OUT_OF_RANGE})).*temperature"),
    USER_FIRST: re.compile(
        r"must alternate|alternat.*(role|user)|first.*user|user.*first|must (start|begin).*user"
    ),
    # Some templates count the system message among the turns that must alternate.
    NO_SYSTEM: re.compile(rf"({_NOT}).*({_SYSTEM})|({_SYSTEM}).*({_NOT})|must alternate|only user"),
}
_NOTES = {
    RENAMED_LIMIT: "the server expects the token limit as max_completion_tokens",
    SMALLER_LIMIT: "the server grants fewer tokens per reply than requested",
    NO_TEMPERATURE: "the model does not support a temperature, so none was sent",
    USER_FIRST: "the server requires a user turn first, so one was added before White's first move",
    NO_SYSTEM: "the server supports no system message, so the task is in the first user turn",
    ASKED_ONCE: (
        "reasoning model: it was not asked to reason aloud; use --reasoning-effort instead of cot/"
    ),
}
LEAST_LIMIT = 256
_ABOUT_TOKENS = re.compile(r"token|context|length|max_model_len")
_TOO_MANY = re.compile(
    r"context|exceed|too (large|long|many|big|high)|maximum|at most|less than|greater than"
)
# A number that is no part of a name, a version or a date.
_NUMBER = re.compile(r"(?<![\w.-])(\d{1,3}(?:,\d{3})+|\d+)(?![\w-]|\.\d)")


def adjusted(message: str, made: Adjustments) -> Adjustments | None:
    """Return the adjustments to send a rejected request with; None if the message names no more."""
    words = " ".join(message.lower().split())
    for adjustment, pattern in _REJECTIONS.items():
        if adjustment not in made and pattern.search(words):
            return (*made, adjustment)
    return None


def named_limit(message: str, limit: int) -> int | None:
    """Return the largest number of tokens below a limit that the rejection of that limit names.

    >>> named_limit("This model's maximum context length is 4096 tokens.", 32_768)
    4096
    """
    if not _ABOUT_TOKENS.search(message.lower()):
        return None
    numbers = (int(number.replace(",", "")) for number in _NUMBER.findall(message))
    # A lower one may be an HTTP status.
    return max((n for n in numbers if REPLY_TOKENS <= n < limit), default=None)


def is_about_limit(message: str) -> bool:
    """Whether a rejection says that the token limit is too large, without a number."""
    words = message.lower()
    return bool(_ABOUT_TOKENS.search(words) and _TOO_MANY.search(words))


def notes_on_adjustments(adjustments: Iterable[str]) -> list[str]:
    """Return one note for the report per adjustment."""
    made = set(adjustments)
    return [note for adjustment, note in _NOTES.items() if adjustment in made]


def advice_on_limit(adjustments: Iterable[str]) -> str:
    """What to do about replies that the token limit cuts off."""
    refused = SMALLER_LIMIT in adjustments
    return "the server refused more" if refused else "raise it with --max-tokens"


OPENING_TURN = Message("user", "The game begins. You play White.")

# A base model that continues with one of these writes the next turn itself.
STOP_SEQUENCES = ("System:", "User:", "Assistant:", "-----")


def user_first(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Add a user turn before the first assistant turn, for providers that require it.

    Only conversations in which the model plays White start with an assistant turn.
    """
    system, *turns = messages
    if system.role == "user" or (turns and turns[0].role == "user"):
        return messages
    return (system, OPENING_TURN, *turns)


def without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Move the system message into the first user turn, for models that do not support it."""
    n_joined = 2 if [turn.role for turn in messages[:2]] == ["system", "user"] else 1
    text = "\n\n".join(turn.content for turn in messages[:n_joined])
    return (Message("user", text), *messages[n_joined:])


def as_text(messages: tuple[Message, ...]) -> str:
    """Render the conversation as one text for base models, up to the assistant's next turn."""
    turns = [f"{message.role.capitalize()}: {message.content}" for message in messages]
    return "\n".join([*turns, "Assistant:"])


def with_adjustments(
    question: Question, settings: Settings, adjustments: Adjustments
) -> tuple[Question, Settings]:
    """Return a question and settings as these adjustments change them.

    Adapters send the token limit under its other name if the extra body has that name.
    """
    if NO_SYSTEM in adjustments:
        question = replace(question, messages=without_system(question.messages))
    elif USER_FIRST in adjustments:
        question = replace(question, messages=user_first(question.messages))
    if NO_TEMPERATURE in adjustments:
        settings = replace(settings, temperature=None)
    if RENAMED_LIMIT in adjustments:
        extra = json.loads(settings.extra_body or "{}") | {RENAMED_LIMIT: settings.max_tokens}
        settings = replace(settings, extra_body=json.dumps(extra))
    return question, settings
