"""What every command does first: read ``.env``, start the log, report errors in one sentence."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO, cast

import click

from .errors import InvalidInput, UserError, error_reason, is_out_of_memory
from .formatting import visible


def read_env_file() -> None:
    """Load the nearest ``.env`` in this folder or above; variables that are set stay as they are.

    Raises:
        UserError: if the current folder does not exist any more.
        InvalidInput: if the file cannot be read.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise UserError(
            "the current folder was deleted; change to another one and run the command again"
        ) from None
    files = (folder / ".env" for folder in (here, *here.parents))
    if file := next(filter(Path.is_file, files), None):
        from dotenv import load_dotenv  # imported late, since few users have such a file

        try:
            load_dotenv(file)
        except (OSError, ValueError) as problem:
            raise InvalidInput(f"cannot read {str(file)!r} ({error_reason(problem)})") from None


class VisibleFormatter(logging.Formatter):
    """Log formatter that makes control characters visible."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        return visible(super().format(record))


def log_to(handler: logging.Handler, line: str) -> None:
    """Send all log messages from warnings up to a handler, in the format ``line``."""
    handler.setFormatter(VisibleFormatter(line))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


@contextmanager
def report_errors(name: str) -> Iterator[None]:
    """Print a ``UserError`` as one sentence and exit, without a stack trace."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # any text can be printed
    try:
        yield
    except UserError as problem:
        _exit(f"{name}: {problem}", problem.exit_code)
    except OSError as problem:  # such as a closed pipe; errors about files are UserErrors
        sys.stdout = cast(TextIO, None)  # or Python would flush it again at exit
        _exit(f"{name}: cannot continue: {problem.strerror or problem}", UserError.exit_code)
    except Exception as problem:
        if not is_out_of_memory(problem):
            raise
        _exit(
            f"{name}: not enough memory; close other programs or raise the memory limit, and run "
            "the same command again",
            UserError.exit_code,
        )


def _exit(sentence: str, code: int) -> None:
    with suppress(OSError):
        click.echo(visible(sentence), err=True)
    sys.exit(code)
