"""The command ``cdta``: its table of commands."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from ..errors import unknown_value

# The commands by heading and name: the module with the function NAME_command, and the help.
Table = Mapping[str, Mapping[str, tuple[str, str]]]


class LazyGroup(click.Group):
    """A group that imports its commands on first use, from a table by heading and name."""

    def __init__(self, *args: Any, table: Table, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the table."""
        return [name for entries in self.table.values() for name in entries]

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        """Import a command by its name; an unknown name gets a suggestion."""
        entries = next((group for group in self.table.values() if name in group), None)
        if not entries:
            raise unknown_value("command", name, self.list_commands(ctx))
        module = import_module(entries[name][0], f"{__package__}.commands")
        command: click.Command = getattr(module, f"{name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by heading, in aligned columns."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, entries in self.table.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(width), line) for name, (_, line) in entries.items()]
                )


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
COMMANDS: Table = {
    "Evaluate": {
        "run": (".run", "Evaluate a model: does it drop a habit when the rules change?"),
        "estimate": (".estimate", "Estimate the requests, tokens, cost and time of a run."),
        "experiment": (
            ".experiment",
            "Evaluate several models, rules, forms or efforts side by side.",
        ),
    },
    "Results": {
        "runs": (".runs", "List runs, newest first."),
        "show": (".show", "Show samples of a run: the items, the prompts and the replies."),
        "view": (".runs", "Open the report of a run in the browser."),
        "compare": (".compare", "Compare models and test whether differences are significant."),
        "export": (".export", "Export runs for Every Eval Ever or the Hugging Face Hub."),
    },
    "Data": {
        "dataset": ("..main", "List and build datasets: positions where a model has the habit."),
        "mine": (".mine", "Find positions with a usual move in games."),
        "rules": (".rules", "List the changes by habit, or show one with examples."),
        "prompt": (".show", "Print the messages that are sent to a model."),
    },
    "OpenAI Evals": {
        "oaieval": ("...oaieval.command", "Evaluate SOLVER on EVAL, as OpenAI Evals does.")
    },
}

DATASET_COMMANDS: Table = {
    "Commands": {
        "list": (".dataset", "List all datasets."),
        "build": (".dataset", "Build a model's dataset, or extend it."),
        "export": (".dataset", "Write a dataset as JSON lines."),
    }
}


@click.group(cls=LazyGroup, table=COMMANDS, context_settings=CONTEXT)
@click.version_option(package_name="cant-do-that-anymore")
def cdta() -> None:
    """Can a language model drop a habit when the rules change?

    Chess with one rule changed: bishops move like knights. `cdta run` evaluates the bundled model,
    `cdta run --model openai/gpt-4o` another one.
    """


@click.group("dataset", cls=LazyGroup, table=DATASET_COMMANDS)
def dataset_command() -> None:
    """List and build datasets: positions where a model has the habit."""
