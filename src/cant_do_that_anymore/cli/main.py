"""The command ``cdta``: its groups, its log, and errors as one sentence."""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

import click

from ..errors import InvalidInput, UserError, error_reason, visible


class Entry(NamedTuple):
    """Where a command is, as ``module:name`` in this room, and its line in the help."""

    place: str
    line: str


class LazyGroup(click.Group):
    """A group that knows its commands by a table, by heading and by name."""

    def __init__(self, *args: Any, table: Mapping[str, Mapping[str, Entry]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        return [name for entries in self.table.values() for name in entries]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command of that name."""
        for entries in self.table.values():
            if name in entries:
                module, _, attribute = entries[name].place.partition(":")
                found: click.Command = getattr(import_module(f".{module}", __package__), attribute)
                return found
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table, all of it in the same columns."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, entries in self.table.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), e.line) for name, e in entries.items()])


def read_env_file() -> None:
    """Set what the nearest ``.env`` of this folder and those above says, and nobody else does.

    Raises:
        InvalidInput: if it cannot be read.
    """
    here = Path.cwd()
    files = (folder / ".env" for folder in (here, *here.parents))
    if found := next(filter(Path.is_file, files), None):
        from dotenv import load_dotenv  # few have such a file

        try:
            load_dotenv(found)
        except (OSError, ValueError) as problem:
            raise InvalidInput(f"cannot read {str(found)!r} ({error_reason(problem)})") from None


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
def report_errors(name: str) -> Iterator[None]:
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


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
COMMANDS = {
    "Measure": {
        "run": Entry(
            "commands.run:run_command",
            "Measure a model: does it drop a habit when the rules change?",
        ),
        "estimate": Entry(
            "commands.estimate:estimate_command",
            "Say what a run will take: questions, tokens, cost and time.",
        ),
        "experiment": Entry(
            "commands.experiment:experiment",
            "Measure several models several times, and draw the results.",
        ),
    },
    "Look at results": {
        "runs": Entry("commands.report:list_runs", "List runs, the newest first."),
        "view": Entry("commands.report:view", "Open the page of a run in the browser."),
        "report": Entry("commands.report:report", "Write the page of each run again."),
        "compare": Entry(
            "commands.compare:compare_command",
            "Compare models and test whether differences are significant.",
        ),
        "rescore": Entry(
            "commands.run:rescore", "Read a run's replies in another way, without asking anything."
        ),
    },
    "Data": {
        "dataset": Entry("main:dataset", "Datasets: the positions where a model has the habit."),
        "mine": Entry("commands.mine:mine", "Find positions with a special move in games."),
        "selfplay": Entry(
            "commands.selfplay:selfplay", "Make a pool from games that an engine plays."
        ),
        "rules": Entry(
            "commands.rules:list_rules",
            "List the rule changes, each with a move that is illegal now.",
        ),
        "legal": Entry("commands.legal:legal", "Print the legal moves of a position."),
    },
    "The original's command": {
        "oaieval": Entry(".oaieval.command:oaieval", "Measure SOLVER by EVAL."),
    },
}

DATASET_COMMANDS = {
    "Commands": {
        "list": Entry("commands.dataset:list_command", "List all datasets."),
        "show": Entry(
            "commands.dataset:show", "Show what is known of a dataset, and its first positions."
        ),
        "build": Entry(
            "commands.dataset:build",
            "Build a model's dataset, or enlarge it from where it stopped.",
        ),
        "export": Entry("commands.dataset:export", "Write a dataset or a pool as JSON lines."),
        "import": Entry(
            "commands.dataset:import_command", "Take the positions of FILE as a model's dataset."
        ),
        "union": Entry(
            "commands.dataset:union_command",
            "Join datasets into one that is fair to all their models.",
        ),
    }
}


@click.group(cls=LazyGroup, table=COMMANDS, context_settings=CONTEXT)
@click.version_option(package_name="cant-do-that-anymore")
def cdta() -> None:
    """Can a language model drop a habit when the rules change?

    Chess with one rule changed: bishops move as knights do. `cdta run` measures the small model
    inside this package; `cdta run --model openai/gpt-4o` measures another.
    """


@click.group(cls=LazyGroup, table=DATASET_COMMANDS)
def dataset() -> None:
    """Datasets: the positions where a model has the habit."""


def main() -> None:
    """Run the command; a problem the user can act on ends in one sentence, not a stack trace."""
    with report_errors("cdta"):
        log_to(logging.StreamHandler(), "cdta: %(message)s")
        read_env_file()
        cdta(prog_name="cdta")
