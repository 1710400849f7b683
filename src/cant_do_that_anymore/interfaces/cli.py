"""The command ``cdta``."""

import logging

import click

from .env_file import read_env_file
from .lazy import Entry, LazyGroup
from .sentences import log_to, sentences

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
        "runs": Entry("commands.runs:list_runs", "List runs, the newest first."),
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
        "dataset": Entry("cli:dataset", "Datasets: the positions where a model has the habit."),
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
        "list": Entry("commands.datasets:list_command", "List all datasets."),
        "show": Entry(
            "commands.datasets:show", "Show what is known of a dataset, and its first positions."
        ),
        "build": Entry(
            "commands.build:build", "Build a model's dataset, or enlarge it from where it stopped."
        ),
        "export": Entry("commands.datasets:export", "Write a dataset or a pool as JSON lines."),
        "import": Entry(
            "commands.datasets:import_command", "Take the positions of FILE as a model's dataset."
        ),
        "union": Entry(
            "commands.datasets:union_command",
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
    with sentences("cdta"):
        log_to(logging.StreamHandler(), "cdta: %(message)s")
        read_env_file()
        cdta(prog_name="cdta")
