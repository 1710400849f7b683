"""The command ``cdta``: its table of commands."""

import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from ..errors import unknown_value
from ..startup import log_to, read_env_file, report_errors


class Entry(NamedTuple):
    """The location of a command, as ``module:name`` in ``commands``, and its line in the help."""

    place: str
    line: str


class LazyGroup(click.Group):
    """A group that imports its commands on first use, from a table by heading and name."""

    def __init__(self, *args: Any, table: Mapping[str, Mapping[str, Entry]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the table."""
        return [name for entries in self.table.values() for name in entries]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command by its name."""
        for entries in self.table.values():
            if name in entries:
                module, _, attribute = entries[name].place.partition(":")
                command: click.Command = getattr(
                    import_module(module, f"{__package__}.commands"), attribute
                )
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; an unknown one gets a suggestion."""
        if args and args[0] not in self.list_commands(ctx):
            raise unknown_value("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by heading, in aligned columns."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, entries in self.table.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), e.line) for name, e in entries.items()])


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
COMMANDS = {
    "Evaluate": {
        "run": Entry(
            ".run:run_command", "Evaluate a model: does it drop a habit when the rules change?"
        ),
        "estimate": Entry(
            ".estimate:estimate_command",
            "Estimate the requests, tokens, cost and time of a run.",
        ),
        "experiment": Entry(
            ".experiment:experiment",
            "Evaluate several models, rules or efforts, with a report and plots.",
        ),
    },
    "Results": {
        "runs": Entry(".report:list_runs", "List runs, the newest first."),
        "show": Entry(
            ".show:show", "Show samples of a run: the board, the prompts and the replies."
        ),
        "view": Entry(".report:view", "Open the report of a run in the browser."),
        "report": Entry(".report:report", "Regenerate HTML reports."),
        "compare": Entry(
            ".compare:compare_command",
            "Compare models and test whether differences are significant.",
        ),
        "rescore": Entry(
            ".run:rescore", "Score the replies of a run again, without sending requests."
        ),
    },
    "Data": {
        "dataset": Entry("..main:dataset", "Datasets: the positions where a model has the habit."),
        "mine": Entry(".mine:mine", "Find positions with a special move in games."),
        "selfplay": Entry(
            ".selfplay:selfplay", "Make a pool from games that an engine plays under the rules."
        ),
        "rules": Entry(".rules:list_rules", "List the rule changes and what the model is told."),
        "legal": Entry(".legal:legal", "Print the legal moves of a position."),
        "prompt": Entry(".show:prompt", "Print the messages that a model gets."),
    },
    "The original's command": {
        "oaieval": Entry(
            "...oaieval.command:oaieval", "Evaluate SOLVER on EVAL, as OpenAI Evals does."
        )
    },
}

DATASET_COMMANDS = {
    "Commands": {
        "list": Entry(".dataset:list_command", "List all datasets."),
        "show": Entry(".dataset:show", "Show a dataset and its first positions."),
        "build": Entry(".dataset:build", "Build a model's dataset, or extend it."),
        "export": Entry(".dataset:export", "Write a dataset or a pool as JSON lines."),
        "import": Entry(
            ".dataset:import_command", "Import the positions of FILE as a model's dataset."
        ),
        "union": Entry(
            ".dataset:union_command", "Join datasets into one that is fair to all their models."
        ),
    }
}


@click.group(cls=LazyGroup, table=COMMANDS, context_settings=CONTEXT)
@click.version_option(package_name="cant-do-that-anymore")
def cdta() -> None:
    """Can a language model drop a habit when the rules change?

    Chess with one rule changed: bishops move like knights. `cdta run` evaluates the bundled model,
    `cdta run --model openai/gpt-4o` another one.
    """


@click.group(cls=LazyGroup, table=DATASET_COMMANDS)
def dataset() -> None:
    """Datasets: the positions where a model has the habit."""


def main() -> None:
    """Run ``cdta``; a ``UserError`` ends it in one sentence, without a stack trace."""
    with report_errors("cdta"):
        log_to(logging.StreamHandler(), "cdta: %(message)s")
        read_env_file()
        cdta(prog_name="cdta")
