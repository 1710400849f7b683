"""What commands say beside their results: one sentence where something is wrong, and the log."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

import click

from ..errors import Problem, plain


class Plain(logging.Formatter):
    """Log lines that may quote anybody."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return plain(super().format(record))


def log_to(handler: logging.Handler, line: str) -> None:
    """Log there from now on, warnings and what is worse."""
    handler.setFormatter(Plain(line))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


@contextmanager
def sentences(name: str) -> Iterator[None]:
    """A problem that the user can act on ends the command in one sentence, not a stack trace."""
    _open_streams()
    try:
        yield
    except Problem as problem:
        _end(f"{name}: {problem}", problem.exit_code)
    except OSError as problem:  # files have sentences of their own
        sys.stdout = cast(TextIO, None)  # or it is written to once more at the end
        _end(f"{name}: cannot go on: {problem.strerror or problem}", Problem.exit_code)


def _end(sentence: str, code: int) -> None:
    with suppress(OSError):
        click.echo(plain(sentence), err=True)
    sys.exit(code)


def _open_streams() -> None:
    """Streams that take any text; one that was closed takes it nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name) or open(os.devnull, mode)  # noqa: PTH123, SIM115
        setattr(sys, name, stream)
        if mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
