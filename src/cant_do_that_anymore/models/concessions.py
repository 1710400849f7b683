"""What a model may refuse about a question, and the other forms it is then asked in.

A form is the list of concessions made: names of what is left out or put in another way, how many
tokens of room there are to think, and the way in which the effort is told.
"""

import re
from collections.abc import Iterable, Iterator

from .efforts import ways_of
from .layout import user_first, without_system
from .model import ROOM_TO_THINK, Form, Message, Settings

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


def remedies(words: str, form: Form, settings: Settings) -> Iterator[Form]:
    """The other forms that a refusal in these words may call for, the likeliest first."""
    told = " ".join(words.lower().split())
    for concession, sign in _SIGNS.items():
        if concession not in form and sign.search(told):
            yield (*form, concession)
    room = room_in(form, settings)
    if room and _MORE_ROOM.search(told):
        yield with_room(form, MORE * room)
    elif room // 2 >= LEAST_ROOM and _OF_LIMIT.search(told):
        yield with_room(form, room // 2)
    effort = settings.reasoning_effort
    if effort and (_OF_EFFORT.search(told) or f"'{effort}'" in told):
        yield from other_efforts(form, settings)


def other_efforts(form: Form, settings: Settings) -> Iterator[Form]:
    """The forms that tell the effort in ways that come after the one of this form."""
    if settings.reasoning_effort:
        ways = list(ways_of(settings.reasoning_effort))
        for way in ways[ways.index(effort_way(form, settings)) + 1 :]:
            yield (*(each for each in form if not each.startswith(_EFFORT)), _EFFORT + way)


def effort_way(form: Form, settings: Settings) -> str:
    """In which way the effort is told."""
    told = [each.removeprefix(_EFFORT) for each in form if each.startswith(_EFFORT)]
    return told[0] if told else next(iter(ways_of(settings.reasoning_effort or "none")))


def room_in(form: Form, settings: Settings) -> int:
    """How many tokens there are for thoughts, beside the reply's."""
    rooms = [int(each.removeprefix(_ROOM)) for each in form if each.startswith(_ROOM)]
    if rooms:
        return rooms[0]
    if settings.reasoning_tokens is not None:
        return settings.reasoning_tokens
    return 0 if settings.reasoning_effort in (None, "none") else ROOM_TO_THINK


def with_room(form: Form, tokens: int) -> Form:
    """The same form with so many tokens for thoughts."""
    return (*(each for each in form if not each.startswith(_ROOM)), f"{_ROOM}{tokens}")


def laid_out(messages: tuple[Message, ...], form: Form) -> tuple[Message, ...]:
    """The conversation as that form wants it."""
    if NO_SYSTEM in form:
        return without_system(messages)
    return user_first(messages) if USER_FIRST in form else messages


def limit_of(form: Form, settings: Settings) -> int:
    """The token limit that is sent: the reply's, and what there is for thoughts."""
    return settings.max_tokens + room_in(form, settings)


def notes_on(made: Iterable[str]) -> list[str]:
    """What a reader of the answers should know, one sentence a concession."""
    known = set(made)
    notes = [note for concession, note in _NOTES.items() if concession in known]
    rooms = sorted(int(each.removeprefix(_ROOM)) for each in known if each.startswith(_ROOM))
    if rooms:
        told = " and then ".join(f"{room:,}" for room in rooms)
        notes.append(f"the model thinks before it replies: it was given {told} tokens for that")
    ways = sorted(each.removeprefix(_EFFORT) for each in known if each.startswith(_EFFORT))
    return notes + [f"the effort was told by {way}" for way in ways]
