"""Request variants: what a model may reject in a request, and the fallbacks to try then.

A variant is a tuple of changes to the default request: names of what is left out or sent
differently, the token limit of the reasoning, and the encoding of the reasoning effort.

Servers encode the effort in several ways, and only trying shows which one works: some reject
fields that they do not know, others ignore them and return reasoning although none was requested.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .base import DEFAULT_REASONING_TOKENS, Effort, Message, RequestVariant, Settings

EFFORT_FIELD = "reasoning_effort"
# The fields that turn reasoning off: vLLM and SGLang; DeepSeek and Kimi; OpenRouter and Together.
_REASONING_OFF: dict[str, dict[str, Any]] = {
    "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
    "thinking": {"type": "disabled"},
    "reasoning": {"enabled": False},
}
NO_FIELD = "nothing"  # for a model that does not reason by default


def effort_encodings(effort: Effort) -> Mapping[str, dict[str, Any]]:
    """Return the encodings of an effort by name: the fields that each adds to a request."""
    encodings: dict[str, dict[str, Any]] = {EFFORT_FIELD: {EFFORT_FIELD: effort}}
    if effort != "none":
        return encodings | {"reasoning": {"reasoning": {"effort": effort}}}
    switches = {name: {name: switch} for name, switch in _REASONING_OFF.items()}
    return encodings | switches | {NO_FIELD: {}}


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
    system, *turns = messages
    if system.role == "user":
        return messages
    if turns and turns[0].role == "user":
        first, *rest = turns
        return (Message("user", f"{system.content}\n\n{first.content}"), *rest)
    return (Message("user", system.content), *turns)


def with_user_turn(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Add a text to a final user turn, or as a new one: many models require alternating turns."""
    *before, last = messages
    if last.role == "user":
        return (*before, Message("user", f"{last.content}\n\n{text}"))
    return (*messages, Message("user", text))


def as_text(messages: tuple[Message, ...]) -> str:
    """Render the conversation as one text for base models, up to the assistant's next turn."""
    turns = [f"{message.role.capitalize()}: {message.content}" for message in messages]
    return "\n".join([*turns, "Assistant:"])


RENAMED_LIMIT = "max_completion_tokens"
NO_TEMPERATURE = "no temperature"
NO_SEED = "no seed"
USER_FIRST = "user first"
NO_SYSTEM = "no system"
ASKED_ONCE = "asked once"
_BUDGET = "room to think: "
_EFFORT = "effort as "

MIN_REASONING_TOKENS = 1_000
REASONING_GROWTH = 4  # factor by which a too small token limit of the reasoning is raised

_NOT = r"unsupported|not support|does not|deprecated|not allowed|not permitted|removed|unexpected"
_OUT_OF_RANGE = r"above|below|between|range|less than|greater than|maximum|minimum|[<>]"
_REJECTION_PATTERNS = {
    RENAMED_LIMIT: re.compile(r"max_tokens|max_completion_tokens"),
    NO_TEMPERATURE: re.compile(rf"^(?!.*({_OUT_OF_RANGE})).*temperature"),
    NO_SEED: re.compile(r"\bseed\b"),
    USER_FIRST: re.compile(r"alternat|first.*user|user.*first|must (start|begin).*user"),
    # Some templates count the system message among the turns that must alternate.
    NO_SYSTEM: re.compile(rf"({_NOT}).*system|system.*({_NOT})|alternat|only user"),
}
_ABOUT_LIMIT = re.compile(r"token|context")
_LARGER_BUDGET = re.compile(r"greater than.*(budget|thinking)|budget.*(less|smaller) than")
_ABOUT_EFFORT = re.compile(r"effort|reason|thinking|unrecogni[sz]ed|unknown|extra |not permitted")
_NOTES = {
    RENAMED_LIMIT: "the server expects the token limit as max_completion_tokens",
    NO_TEMPERATURE: "the model does not support a temperature, so none was sent",
    NO_SEED: "the model does not support a seed, so none was sent",
    USER_FIRST: "the server requires a user turn first, so one was added before White's first move",
    NO_SYSTEM: "the server supports no system message, so the task is in the first user turn",
    ASKED_ONCE: (
        "reasoning model: it was not asked to reason aloud; use --reasoning-effort instead of cot/"
    ),
}


def fallbacks(words: str, variant: RequestVariant, settings: Settings) -> Iterator[RequestVariant]:
    """Yield the request variants that a rejection with this message calls for, likeliest first."""
    message = " ".join(words.lower().split())
    for change, pattern in _REJECTION_PATTERNS.items():
        if change not in variant and pattern.search(message):
            yield (*variant, change)
    budget = reasoning_budget(variant, settings)
    if budget and _LARGER_BUDGET.search(message):
        yield with_reasoning_budget(variant, REASONING_GROWTH * budget)
    elif budget // 2 >= MIN_REASONING_TOKENS and _ABOUT_LIMIT.search(message):
        yield with_reasoning_budget(variant, budget // 2)
    effort = settings.reasoning_effort
    if effort and (_ABOUT_EFFORT.search(message) or f"'{effort}'" in message):
        yield from later_effort_encodings(variant, settings)


def later_effort_encodings(variant: RequestVariant, settings: Settings) -> Iterator[RequestVariant]:
    """Yield the request variants with the effort encodings that come after the current one."""
    if settings.reasoning_effort:
        encodings = list(effort_encodings(settings.reasoning_effort))
        for encoding in encodings[encodings.index(_effort_encoding(variant)) + 1 :]:
            yield _with_value(variant, _EFFORT, encoding)


def effort_fields(variant: RequestVariant, settings: Settings) -> dict[str, Any]:
    """Return the fields of a request that set the effort, in the encoding of its variant."""
    effort = settings.reasoning_effort
    return dict(effort_encodings(effort)[_effort_encoding(variant)]) if effort else {}


def _effort_encoding(variant: RequestVariant) -> str:
    return next(_values(variant, _EFFORT), EFFORT_FIELD)


def reasoning_budget(variant: RequestVariant, settings: Settings) -> int:
    """Return the token limit of the reasoning, which is added to that of the reply."""
    if budget := next(_values(variant, _BUDGET), ""):
        return int(budget)
    if settings.reasoning_tokens is not None:
        return settings.reasoning_tokens
    return 0 if settings.reasoning_effort in (None, "none") else DEFAULT_REASONING_TOKENS


def with_reasoning_budget(variant: RequestVariant, tokens: int) -> RequestVariant:
    """Return the request variant with another token limit of the reasoning."""
    return _with_value(variant, _BUDGET, tokens)


def _values(variant: Iterable[str], prefix: str) -> Iterator[str]:
    return (change.removeprefix(prefix) for change in variant if change.startswith(prefix))


def _with_value(variant: RequestVariant, prefix: str, value: object) -> RequestVariant:
    others = (change for change in variant if not change.startswith(prefix))
    return (*others, f"{prefix}{value}")


def arrange_messages(messages: tuple[Message, ...], variant: RequestVariant) -> tuple[Message, ...]:
    """Arrange the messages for a request variant."""
    if NO_SYSTEM in variant:
        return without_system(messages)
    return user_first(messages) if USER_FIRST in variant else messages


def limit_of(variant: RequestVariant, settings: Settings) -> int:
    """Return the token limit to send: reply plus reasoning."""
    return settings.max_tokens + reasoning_budget(variant, settings)


def variant_notes(variant: Iterable[str]) -> list[str]:
    """Return one note for the report per change to the default request."""
    changes = set(variant)
    notes = [note for change, note in _NOTES.items() if change in changes]
    if budgets := sorted(map(int, _values(changes, _BUDGET))):
        limits = " and then ".join(f"{budget:,}" for budget in budgets)
        notes.append(f"reasoning model: allowed up to {limits} reasoning tokens")
    efforts = sorted(_values(changes, _EFFORT))
    return notes + [f"the effort was sent as {encoding}" for encoding in efforts]
