"""The command ``cdta``."""

import logging
import sys

import click

from ..errors import Problem
from .commands.compare import compare_command
from .commands.datasets import dataset
from .commands.estimate import estimate
from .commands.experiment import experiment
from .commands.games import legal, list_rules
from .commands.mine import mine
from .commands.report import report, view
from .commands.run import rescore, run_command
from .commands.selfplay import selfplay
from .oaieval import oaieval

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT)
@click.version_option(package_name="cant-do-that-anymore")
def cdta() -> None:
    """Can a language model drop a habit when the rules change?

    Chess with one rule changed: bishops move as knights do. `cdta run` measures the small model
    inside this package; `cdta run --model openai/gpt-4o` measures another.
    """


for command in (
    run_command,
    rescore,
    report,
    view,
    dataset,
    list_rules,
    legal,
    mine,
    selfplay,
    compare_command,
    experiment,
    estimate,
    oaieval,
):
    cdta.add_command(command)


def main() -> None:
    """Run the command; a problem the user can act on ends in one sentence, not a stack trace."""
    logging.basicConfig(level=logging.WARNING, format="cdta: %(message)s")
    try:
        cdta()
    except Problem as problem:
        click.echo(f"cdta: {problem}", err=True)
        sys.exit(problem.exit_code)
