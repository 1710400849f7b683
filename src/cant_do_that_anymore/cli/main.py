"""The command ``cdta``: its table of commands."""

from importlib import import_module

import click

from ..errors import unknown_value

# The help of the commands, by heading and name.
COMMANDS = {
    "Evaluate": {
        "run": "Evaluate a model: does it drop a habit when the rules change?",
        "estimate": "Estimate the requests, tokens, cost and time of a run.",
        "experiment": "Evaluate several models, rules, forms or efforts side by side.",
    },
    "Results": {
        "runs": "List runs, newest first.",
        "show": "Show samples of a run: the items, the prompts and the replies.",
        "view": "Open the report of a run in the browser.",
        "compare": "Compare models and test whether differences are significant.",
        "export": "Export runs for Every Eval Ever or the Hugging Face Hub.",
    },
    "Data": {
        "dataset": "List and build datasets: positions where a model has the habit.",
        "mine": "Find positions with a usual move in games.",
        "rules": "List the changes by habit, or show one with examples.",
        "prompt": "Print the messages that are sent to a model.",
    },
    "OpenAI Evals": {"oaieval": "Evaluate SOLVER on EVAL, as OpenAI Evals does."},
}
# The modules of commands that are not in a module of their name.
MODULES = {"view": ".runs", "prompt": ".show", "oaieval": "...oaieval.command"}


class LazyGroup(click.Group):
    """The group of all commands, which imports each on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the table."""
        return [name for commands in COMMANDS.values() for name in commands]

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        """Import a command by its name; an unknown name gets a suggestion."""
        if name not in self.list_commands(ctx):
            raise unknown_value("command", name, self.list_commands(ctx))
        module = import_module(MODULES.get(name, f".{name}"), f"{__package__}.commands")
        command: click.Command = getattr(module, f"{name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by heading, in aligned columns."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, commands in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.version_option(package_name="cant-do-that-anymore")
def cdta() -> None:
    """Can a language model drop a habit when the rules change?

    Chess with one rule changed: bishops move like knights. `cdta run` evaluates the bundled model,
    `cdta run --model openai/gpt-4o` another one.
    """
