"""What a server may refuse about a request, and the other form it is then asked in."""

import re

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


def concession_to(message: str, made: tuple[str, ...]) -> str | None:
    """The concession that a server's refusal calls for, if it was not made already."""
    for concession, sign in _SIGNS.items():
        if concession not in made and sign.search(message.lower()):
            return concession
    return None


def notes_on(made: tuple[str, ...]) -> tuple[str, ...]:
    """What a reader of the answers should know, one sentence a concession."""
    return tuple(_NOTES[concession] for concession in made)
