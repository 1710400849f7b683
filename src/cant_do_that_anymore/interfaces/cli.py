"""The command ``cdta``."""

import sys

import click

from ..errors import Problem
from .commands.games import legal, list_rules

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT)
@click.version_option(package_name="cant-do-that-anymore")
def cdta() -> None:
    """Can a language model drop a habit when the rules change?

    Chess with one rule changed: bishops move as knights do. `cdta run` measures the small model
    inside this package; `cdta run --model openai/gpt-4o` measures another.
    """


for command in (list_rules, legal):
    cdta.add_command(command)


def main() -> None:
    """Run the command; a problem the user can act on ends in one sentence, not a stack trace."""
    try:
        cdta()
    except Problem as problem:
        click.echo(f"cdta: {problem}", err=True)
        sys.exit(problem.exit_code)
