"""What commands say beside their results: one sentence where something is wrong, and the log."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TextIO, cast

import click

from ..errors import UserError, visible


class Plain(logging.Formatter):
    """Log lines that may quote anybody."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return visible(super().format(record))


def log_to(handler: logging.Handler, line: str) -> None:
    """Log there from now on, warnings and what is worse."""
    handler.setFormatter(Plain(line))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


@contextmanager
def sentences(name: str) -> Iterator[None]:
    """A problem that the user can act on ends the command in one sentence, not a stack trace."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # any text can be shown
    try:
        yield
    except UserError as problem:
        _end(f"{name}: {problem}", problem.exit_code)
    except OSError as problem:  # files have sentences of their own
        sys.stdout = cast(TextIO, None)  # or it is written to once more at the end
        _end(f"{name}: cannot go on: {problem.strerror or problem}", UserError.exit_code)


def _end(sentence: str, code: int) -> None:
    with suppress(OSError):
        click.echo(visible(sentence), err=True)
    sys.exit(code)
