"""Errors that users can act on, their exit codes, and helpers for their messages."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

AGAIN = "Run the same command again to continue"


class UserError(Exception):
    """An error shown to the user as one sentence, without a stack trace."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """Return what notebooks show instead of a stack trace."""
        return [f"{type(self).__name__}: {self}"]


class InvalidInput(UserError, ValueError):
    """Invalid input; the message says what would be valid."""

    exit_code = 2


class Incomplete(UserError, RuntimeError):
    """The work could not be finished; the message says why and how to continue."""


class Unmeasurable(Incomplete):
    """The model gives too few usual, or readable, answers to a task; it may suit another one."""


class Interrupted(Incomplete):
    """The work ended early; the same command resumes it, since its answers are cached."""

    def __init__(self, why: str = "stopped", resume: str = AGAIN) -> None:
        super().__init__(f"{why}; all answers so far are saved (except with --fresh). {resume}")


class Stopped(Interrupted):
    """The user interrupted the work."""


@contextmanager
def also_spelled(where: str, options: Mapping[str, str]) -> Iterator[None]:
    """Add to errors how the options of ``cdta`` that they name are spelled elsewhere.

    >>> with also_spelled("Inspect", {"max-cost": "-T max_cost=..."}):
    ...     raise UserError("use --max-cost 8")
    Traceback (most recent call last):
    cant_do_that_anymore.errors.UserError: use --max-cost 8 (in Inspect: -T max_cost=...)
    """
    try:
        yield
    except UserError as problem:
        named = re.findall(r"(?<!\S)--?([a-z][a-z-]*)", str(problem))
        if spelled := ", ".join(text for option, text in options.items() if option in named):
            problem.args = (f"{problem} (in {where}: {spelled})",)
        raise


def unknown_value(kind: str, value: str, valid: Iterable[str]) -> InvalidInput:
    """Return an error that ``value`` is not a valid ``kind``, with the closest valid values.

    >>> str(unknown_value("rules", "bishop-as-knight", ["standard", "bishops-as-knights"]))
    "unknown rules: 'bishop-as-knight' (did you mean 'bishops-as-knights'?)"
    """
    return InvalidInput(f"unknown {kind}: {value!r} ({nearest(value, valid)})")


def nearest(value: str, valid: Iterable[str]) -> str:
    """Suggest the closest valid names, or list some valid names if none is close."""
    names = sorted(valid)
    if close := get_close_matches(value, names, n=3, cutoff=0.5):
        return "did you mean " + " or ".join(map(repr, close)) + "?"
    return f"valid: {shortlist(names)}"


def shortlist(names: Sequence[str]) -> str:
    """Join the first 12 names, with an ellipsis if there are more."""
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def error_reason(error: BaseException) -> str:
    """Return the message of an exception on one line, without an error number.

    >>> error_reason(FileNotFoundError(2, "No such file", "x")), error_reason(EOFError())
    ('No such file', 'EOFError')
    """
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(words.split())
