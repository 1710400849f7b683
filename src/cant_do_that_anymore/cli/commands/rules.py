"""The command ``cdta rules``: the changes, by habit."""

from collections.abc import Iterable
from itertools import groupby, islice

import click
from rich.console import Console

from ...errors import InvalidInput
from ...formatting import pluralize
from ...habits.base import Change
from ...habits.catalog import ALL, changes_named, resolve_change
from ..console import console
from ..help import Command

EXAMPLES = 3


@click.command("rules", cls=Command)
@click.argument("name", metavar="[RULES]", default=ALL)
def rules_command(name: str) -> None:
    """List the changes by habit, or show one with examples.

    \b
    cdta rules                 all changes, with what the model is told
    cdta rules arithmetic      those of one habit
    cdta rules base-9          one, with its placebo and three items
    cdta rules own.toml        one of your own

    RULES is the key of a change, a TOML file, or the name of a habit.
    """
    if changes := changes_named(name):
        _print_list(changes.values(), console())
        return
    change = resolve_change(name)
    change.check_forbids_something()
    _print_one(change, console())


def _print_list(changes: Iterable[Change], screen: Console) -> None:
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
    if (controls := habit.controls(change)) is not None:
        n_items, own = len(habit.pool(change).items), pluralize(len(controls), "control")
        facts["items"] = f"{n_items:,}, and {own} whose usual answer stays right"
    screen.print(change.key, style="bold")
    for name, text in facts.items():
        screen.print(f"{name}: {text}")
    for item in islice(habit.examples(change), EXAMPLES):
        usual = " or ".join(habit.label(item, answer) for answer in item.usual)
        screen.print(f"\n{habit.show(item)}")
        screen.print(f"Usual {habit.words.answer}: {usual}")
