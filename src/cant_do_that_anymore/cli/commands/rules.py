"""The command ``cdta rules``: list the rule changes."""

import sys

import click
from rich.box import MARKDOWN
from rich.table import Table

from ...game.notation import move_number_prefix, notate
from ...game.rule_pool import EXAMPLE_GAME, example_of
from ...game.rules import CATALOGUE, Rules
from ..console import console


@click.command("rules")
def list_rules() -> None:
    """List the rule changes, each with a move that is illegal now."""
    table = Table(box=MARKDOWN, pad_edge=True)
    for heading in ("rules", "title", "illegal then", "in the position"):
        table.add_column(heading, overflow="fold")
    for rules in CATALOGUE.values():
        table.add_row(rules.key, rules.title, *_example(rules))
    # Lines are not wrapped in files, such as a README.
    terminal = console(width=None if sys.stdout.isatty() else 200)
    terminal.print(table)
    terminal.print(f"The positions are those of {EXAMPLE_GAME}.", highlight=False)


def _example(rules: Rules) -> tuple[str, str]:
    example = example_of(rules)
    if not example:
        return "nothing", ""
    board = example.board()
    return move_number_prefix(board) + notate(board, example.special_moves[0]), board.fen()
