"""Entry points of the commands ``cdta`` (also ``python -m``) and ``oaieval``."""

import gc
import logging
import sys
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn, TextIO, cast

import click

from .errors import InvalidInput, UserError
from .files import file_errors
from .formatting import log_to, visible

# There are few reference cycles: collecting them at the default rate takes 10% of the time.
gc.set_threshold(50_000)


def main() -> None:
    """Run ``cdta``."""
    _run("cdta", ".cli.main", "cdta")


def oaieval() -> None:
    """Run ``oaieval``."""
    _run("oaieval", ".oaieval.command", "oaieval_command")


def _run(name: str, module: str, command: str) -> None:
    """Run a command of a module; errors end it in one sentence, without a stack trace."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # any text can be printed
    log_to(logging.StreamHandler(), f"{name}: %(message)s")
    try:
        _read_env_file()
        run = getattr(import_module(module, __package__), command)
        sys.exit(run(prog_name=name, standalone_mode=False))
    except (KeyboardInterrupt, click.Abort):
        _exit(name, "stopped")
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        _exit(name, _usage_sentence(error), error.exit_code)
    except UserError as error:
        _exit(name, str(error), error.exit_code)
    except OSError as error:  # such as a closed pipe; errors about files are UserErrors
        sys.stdout = cast(TextIO, None)  # or Python would flush it again at exit
        _exit(name, f"cannot continue: {error.strerror or error}")


def _read_env_file() -> None:
    """Load the nearest ``.env`` in this folder or above; variables that are set stay as they are.

    Raises:
        InvalidInput: if the file cannot be read.
    """
    here = Path.cwd()
    files = (folder / ".env" for folder in (here, *here.parents))
    if file := next(filter(Path.is_file, files), None):
        # Imported late, since few users have such a file.
        from dotenv import load_dotenv

        with file_errors("read", file, error=InvalidInput, caught=(OSError, ValueError)):
            load_dotenv(file)


def _usage_sentence(error: click.UsageError) -> str:
    """Return what is wrong with the arguments, as one sentence."""
    sentence = error.format_message().rstrip(".").replace(". Did", "; did")
    sentence = sentence[0].lower() + sentence[1:]
    if sentence.endswith("?") or not error.ctx:
        return sentence
    return f"{sentence}; see `{error.ctx.command_path} --help`"


def _exit(name: str, sentence: str, code: int = 1) -> NoReturn:
    with suppress(OSError):
        print(visible(f"{name}: {sentence}"), file=sys.stderr, flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
