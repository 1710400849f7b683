"""Request variants: what a model may reject in a request, and the fallbacks tried then.

There are several ways, and which one a server understands is learnt by trying: some refuse what
they do not know, others pass over it, and the answer then shows thoughts although none were wanted.

A form is the list of concessions made: names of what is left out or put in another way, how many
tokens of room there are to think, and the way in which the effort is told.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .base import ROOM_TO_THINK, Effort, Message, RequestVariant, Settings

BY_EFFORT = "reasoning_effort"
_SWITCHES: dict[str, dict[str, Any]] = {
    "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
    "thinking": {"type": "disabled"},
    "reasoning": {"enabled": False},
}
"""What turns thinking off, by the field of a request: in vLLM and SGLang, by DeepSeek and Kimi, by
OpenRouter and Together."""
NOTHING = "nothing"
"""A model that thinks only when told to."""


def ways_of(effort: Effort) -> Mapping[str, dict[str, Any]]:
    """The ways to ask for that effort, by name: what each adds to a request."""
    ways: dict[str, dict[str, Any]] = {BY_EFFORT: {BY_EFFORT: effort}}
    if effort == "none":
        return ways | {name: {name: switch} for name, switch in _SWITCHES.items()} | {NOTHING: {}}
    return ways | {"reasoning": {"reasoning": {"effort": effort}}}


OPENING_TURN = Message("user", "The game begins. You play White.")

STOP_SEQUENCES = ("System:", "User:", "Assistant:", "-----")
"""Where a base model starts to write the next turn itself."""


def user_first(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The same conversation for providers that insist on a user turn first.

    White's first move is the assistant's when White is to move, and only then is a turn added.
    """
    system, *turns = messages
    if turns and turns[0].role == "user":
        return messages
    return (system, OPENING_TURN, *turns)


def without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The same conversation for models that take no system message: the user states the task."""
    system, *turns = messages
    if turns and turns[0].role == "user":
        first, *rest = turns
        return (Message("user", f"{system.content}\n\n{first.content}"), *rest)
    return (Message("user", system.content), *turns)


def with_user_turn(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Add to the user's last turn, or add a turn: many models insist that turns alternate."""
    *before, last = messages
    if last.role == "user":
        return (*before, Message("user", f"{last.content}\n\n{text}"))
    return (*messages, Message("user", text))


def as_text(messages: tuple[Message, ...]) -> str:
    """The conversation as a single text for base models, ready for the assistant's next turn."""
    turns = [f"{message.role.capitalize()}: {message.content}" for message in messages]
    return "\n".join([*turns, "Assistant:"])


RENAMED_LIMIT = "max_completion_tokens"
NO_TEMPERATURE = "no temperature"
USER_FIRST = "user first"
NO_SYSTEM = "no system"
ASKED_ONCE = "asked once"
_ROOM = "room to think: "
_EFFORT = "effort as "

LEAST_ROOM = 1_000
MORE = 4
"""Where the room to think was too small, it is made so many times as large."""

_NOT = r"unsupported|not support|does not|deprecated|not allowed|not permitted|removed|unexpected"
_OUT_OF_RANGE = r"above|below|between|range|less than|greater than|maximum|minimum|[<>]"
_SIGNS = {
    RENAMED_LIMIT: re.compile(r"max_tokens|max_completion_tokens"),
    NO_TEMPERATURE: re.compile(rf"^(?!.*({_OUT_OF_RANGE})).*temperature"),
    USER_FIRST: re.compile(r"alternat|first.*user|user.*first|must (start|begin).*user"),
    # Some templates count the system message among the turns that must alternate.
    NO_SYSTEM: re.compile(rf"({_NOT}).*system|system.*({_NOT})|alternat|only user"),
}
_OF_LIMIT = re.compile(r"token|context")
_MORE_ROOM = re.compile(r"greater than.*(budget|thinking)|budget.*(less|smaller) than")
_OF_EFFORT = re.compile(r"effort|reason|thinking|unrecogni[sz]ed|unknown|extra |not permitted")
_NOTES = {
    RENAMED_LIMIT: "the server takes the token limit as max_completion_tokens",
    NO_TEMPERATURE: "the model takes no temperature and was asked without one",
    USER_FIRST: "the server wants a user turn first: one was put before White's first move",
    NO_SYSTEM: "the server takes no system message: the task stands in the first user turn",
    ASKED_ONCE: (
        "the model thinks by itself, so it was asked once and not told to think aloud; "
        "--reasoning-effort says how much it thinks"
    ),
}


def fallbacks(words: str, form: RequestVariant, settings: Settings) -> Iterator[RequestVariant]:
    """The other forms that a refusal in these words may call for, the likeliest first."""
    told = " ".join(words.lower().split())
    for concession, sign in _SIGNS.items():
        if concession not in form and sign.search(told):
            yield (*form, concession)
    room = reasoning_budget(form, settings)
    if room and _MORE_ROOM.search(told):
        yield with_reasoning_budget(form, MORE * room)
    elif room // 2 >= LEAST_ROOM and _OF_LIMIT.search(told):
        yield with_reasoning_budget(form, room // 2)
    effort = settings.reasoning_effort
    if effort and (_OF_EFFORT.search(told) or f"'{effort}'" in told):
        yield from other_efforts(form, settings)


def other_efforts(form: RequestVariant, settings: Settings) -> Iterator[RequestVariant]:
    """The forms that tell the effort in ways that come after the one of this form."""
    if settings.reasoning_effort:
        ways = list(ways_of(settings.reasoning_effort))
        for way in ways[ways.index(effort_way(form, settings)) + 1 :]:
            yield (*(each for each in form if not each.startswith(_EFFORT)), _EFFORT + way)


def effort_way(form: RequestVariant, settings: Settings) -> str:
    """In which way the effort is told."""
    told = [each.removeprefix(_EFFORT) for each in form if each.startswith(_EFFORT)]
    return told[0] if told else next(iter(ways_of(settings.reasoning_effort or "none")))


def reasoning_budget(form: RequestVariant, settings: Settings) -> int:
    """How many tokens there are for thoughts, beside the reply's."""
    rooms = [int(each.removeprefix(_ROOM)) for each in form if each.startswith(_ROOM)]
    if rooms:
        return rooms[0]
    if settings.reasoning_tokens is not None:
        return settings.reasoning_tokens
    return 0 if settings.reasoning_effort in (None, "none") else ROOM_TO_THINK


def with_reasoning_budget(form: RequestVariant, tokens: int) -> RequestVariant:
    """The same form with so many tokens for thoughts."""
    return (*(each for each in form if not each.startswith(_ROOM)), f"{_ROOM}{tokens}")


def arrange_messages(messages: tuple[Message, ...], form: RequestVariant) -> tuple[Message, ...]:
    """The conversation as that form wants it."""
    if NO_SYSTEM in form:
        return without_system(messages)
    return user_first(messages) if USER_FIRST in form else messages


def limit_of(form: RequestVariant, settings: Settings) -> int:
    """The token limit that is sent: the reply's, and what there is for thoughts."""
    return settings.max_tokens + reasoning_budget(form, settings)


def variant_notes(made: Iterable[str]) -> list[str]:
    """What a reader of the answers should know, one sentence a concession."""
    known = set(made)
    notes = [note for concession, note in _NOTES.items() if concession in known]
    rooms = sorted(int(each.removeprefix(_ROOM)) for each in known if each.startswith(_ROOM))
    if rooms:
        told = " and then ".join(f"{room:,}" for room in rooms)
        notes.append(f"the model thinks before it replies: it was given {told} tokens for that")
    ways = sorted(each.removeprefix(_EFFORT) for each in known if each.startswith(_EFFORT))
    return notes + [f"the effort was told by {way}" for way in ways]
