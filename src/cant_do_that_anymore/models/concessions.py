"""What a server may refuse about a request, and the other form it is then asked in."""

import re
from collections.abc import Iterable

RENAMED_LIMIT = "max_completion_tokens"
NO_TEMPERATURE = "no temperature"
USER_FIRST = "user first"
NO_SYSTEM = "no system"

_NOT = r"unsupported|not support|does not|only the default|deprecated|not allowed|removed"
_SIGNS = {
    RENAMED_LIMIT: re.compile(r"max_completion_tokens"),
    NO_TEMPERATURE: re.compile(rf"({_NOT}).*temperature|temperature.*({_NOT})"),
    USER_FIRST: re.compile(r"alternat|first.*user|user.*first|must (start|begin).*user"),
    # Some templates count the system message among the turns that must alternate.
    NO_SYSTEM: re.compile(rf"({_NOT}).*system|system.*({_NOT})|alternat|only user"),
}
_NOTES = {
    RENAMED_LIMIT: "the server takes the token limit as max_completion_tokens",
    NO_TEMPERATURE: "the model takes no temperature and was asked without one",
    USER_FIRST: "the server wants a user turn first: one was put before White's first move",
    NO_SYSTEM: "the server takes no system message: the task stands in the first user turn",
}


def concessions_to(message: str, made: tuple[str, ...]) -> list[str]:
    """The concessions that a server's refusal may call for and that were not made already."""
    return [
        concession
        for concession, sign in _SIGNS.items()
        if concession not in made and sign.search(message.lower())
    ]


def notes_on(made: Iterable[str]) -> list[str]:
    """What a reader of the answers should know, one sentence a concession."""
    known = set(made)
    return [note for concession, note in _NOTES.items() if concession in known]
