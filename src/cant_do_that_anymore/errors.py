"""Errors that users can act on, their exit codes, and helpers for their messages."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from unicodedata import category

_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_UNUSUAL = re.compile(r"[^\n\t -~]")


def visible(text: str) -> str:
    """The text with control characters spelled out: none steers a terminal or hides other text.

    >>> visible("e2" + chr(0x202E) + "e4")
    'e2⟨U+202E⟩e4'
    """
    return _UNUSUAL.sub(lambda found: _shown(found[0]), text)


def _shown(character: str) -> str:
    return spelled(character) if category(character) in _INVISIBLE else character


def spelled(character: str) -> str:
    """A character by its number."""
    return f"⟨U+{ord(character):04X}⟩"


class UserError(Exception):
    """Something the user should read in one sentence instead of a stack trace."""

    exit_code = 1


class InvalidInput(UserError, ValueError):
    """What was given cannot work; the sentence says what would."""

    exit_code = 2


class Incomplete(UserError, RuntimeError):
    """The work could not be finished; the sentence says why and how to go on."""


class NoHabit(Incomplete):
    """The model does not play the special moves, so there is nothing that it could drop."""


class Interrupted(Incomplete):
    """The work ended early, and the same command goes on with it if its answers are kept.

    Attributes:
        kept: whether they are; a fresh run keeps none.
    """

    def __init__(
        self,
        why: str = "stopped",
        left: str = "all answers so far are saved",
        go_on: str = "run the same command again to go on",
        *,
        kept: bool = True,
    ) -> None:
        super().__init__(why, left, go_on)
        self.kept = kept

    def __str__(self) -> str:
        why, left, go_on = self.args
        if not self.kept:
            return f"{why}; a fresh run keeps no answers, so it can only begin anew"
        return f"{why}; {left}, {go_on}"


class Stopped(Interrupted):
    """The user stopped the work."""


def unknown_value(what: str, given: str, valid: Iterable[str]) -> InvalidInput:
    """Say that ``given`` is no valid ``what``, naming the nearest valid ones.

    >>> str(unknown_value("rules", "bishop-as-knight", ["standard", "bishops-as-knights"]))
    "unknown rules: 'bishop-as-knight' (did you mean 'bishops-as-knights'?)"
    """
    return InvalidInput(f"unknown {what}: {given!r} ({nearest(given, valid)})")


def nearest(given: str, valid: Iterable[str]) -> str:
    """The names that were likely meant, or else some of those that there are."""
    names = sorted(valid)
    if near := get_close_matches(given, names, n=3, cutoff=0.5):
        return "did you mean " + " or ".join(map(repr, near)) + "?"
    return f"valid: {shortlist(names)}"


def shortlist(names: Sequence[str]) -> str:
    """The first of them, and a sign that there are more."""
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def error_reason(fault: BaseException) -> str:
    """Why something went wrong, on one line: what an operating system numbers, in words alone.

    >>> error_reason(FileNotFoundError(2, "No such file", "x")), error_reason(EOFError())
    ('No such file', 'EOFError')
    """
    words = getattr(fault, "strerror", None) or str(fault) or type(fault).__name__
    return " ".join(words.split())


def pluralize(n: int, what: str) -> str:
    """So many of them.

    >>> pluralize(1, "sample"), pluralize(1200, "sample")
    ('1 sample', '1,200 samples')
    """
    return f"{n:,} {what}" + ("" if n == 1 else "s")
