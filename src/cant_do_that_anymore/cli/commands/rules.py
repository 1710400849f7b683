"""The command ``cdta rules``: the changes, by habit."""

from itertools import groupby, islice

import click
from rich.console import Console

from ...errors import InvalidInput
from ...habits.base import Change
from ...habits.catalog import changes_named, resolve_change
from ..console import console
from ..help import Command

EXAMPLES = 3


@click.command("rules", cls=Command)
@click.argument("name", metavar="[RULES]", required=False)
def rules_command(name: str | None) -> None:
    """List the changes by habit, or show one with examples.

    \b
    cdta rules                 all changes, with what the model is told
    cdta rules arithmetic      those of one habit
    cdta rules base-9          one, with its placebo and three items
    cdta rules own.toml        one of your own

    RULES is the key of a change, a TOML file, or the name of a habit.
    """
    several = changes_named(name) if name else changes_named("all")
    changes = list(several.values()) or [resolve_change(name)]
    changes[0].check_forbids_something()
    if several:
        _print_list(changes, console())
    else:
        _print_one(changes[0], console())


def _print_list(changes: list[Change], screen: Console) -> None:
    for name, group in groupby(changes, lambda change: change.its_habit.name):
        screen.print(f"== {name} ==", style="bold")
        for change in group:
            screen.print(change.key, style="bold")
            screen.print(f"{change.statement}\n")
    screen.print("Examples: cdta rules KEY", style="dim")


def _print_one(change: Change, screen: Console) -> None:
    """Print the statement and the placebo of a change, and some of its items."""
    habit = change.its_habit
    facts = {"habit": habit.name, "when": change.title, "statement": change.statement}
    try:
        facts["placebo"] = change.placebo_change.statement
    except InvalidInput:
        facts["placebo"] = "none, so this change has no diagnosis"
    controls = habit.controls(change)
    if controls is not None:
        n_items, n_controls = len(habit.pool(change).items), len(controls)
        more = (
            f"{n_controls:,} controls, whose usual answer stays right"
            if n_controls
            else "no control"
        )
        facts["items"] = f"{n_items:,}, and {more}"
    screen.print(change.key, style="bold")
    for name, text in facts.items():
        screen.print(f"{name}: {text}")
    for item in islice(habit.examples(change), EXAMPLES):
        usual = " or ".join(habit.label(item, answer) for answer in item.usual)
        screen.print(f"\n{habit.show(item)}")
        screen.print(f"Usual {habit.words.answer}: {usual}")
