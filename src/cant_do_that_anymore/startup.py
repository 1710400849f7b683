"""What every command does first: read ``.env``, start the log, report errors in one sentence."""

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast

import click

from .errors import InvalidInput, UserError, is_out_of_memory
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
        # Imported late, since few users have such a file.
        from dotenv import load_dotenv

        from .files import file_errors

        with file_errors("read", file, error=InvalidInput, caught=(OSError, ValueError)):
            load_dotenv(file)


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


class StrictCommand(click.Command):
    """A click command with errors of one sentence, where no option silently replaces another."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **more: Any,
    ) -> click.Context:
        """Parse the arguments.

        Raises:
            InvalidInput: if they do not fit the command.
        """
        try:
            return super().make_context(info_name, args, parent, **more)
        except click.UsageError as error:
            if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
                raise
            sentence = error.format_message().rstrip(".").replace(". Did", "; did")
            command = f"{parent.command_path} {info_name}" if parent else info_name
            hint = "" if sentence.endswith("?") else f"; see `{command} --help`"
            raise InvalidInput(f"{sentence[0].lower()}{sentence[1:]}{hint}") from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; click would use the last of several values of one option."""
        *_, given = self.make_parser(ctx).parse_args(list(args))
        for option, times in Counter(given).items():
            if times == 1 or not (isinstance(option, click.Option) and option.expose_value):
                continue
            if not (option.multiple or option.is_flag):
                several = "`cdta experiment` takes several"
                hint = several if option.name == "model" else "run the command once for each"
                raise InvalidInput(
                    f"{ctx.command_path} takes one {option.opts[0]}, and {times} were given; {hint}"
                )
        return super().parse_args(ctx, args)


def _exit(sentence: str, code: int) -> None:
    with suppress(OSError):
        click.echo(visible(sentence), err=True)
    sys.exit(code)
