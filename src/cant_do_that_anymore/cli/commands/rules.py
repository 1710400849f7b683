"""The command ``cdta rules``: the rule changes."""

import json

import click

from ...game.notation import move_number_prefix, notate
from ...game.rule_pool import EXAMPLE_GAME, example_of
from ...game.rules import CATALOG, Rules
from ..console import console
from ..help import JSON, Command


@click.command("rules", cls=Command, params=[JSON])
def rules_command(as_json: bool) -> None:
    """List the rule changes and what the model is told."""
    entries = [_entry(rules) for rules in CATALOG.values() if rules.forbids_something]
    if as_json:
        click.echo(json.dumps(entries, indent=2))
        return
    terminal = console()
    for entry in entries:
        terminal.print(entry["key"], style="bold", highlight=False)
        terminal.print(f"{entry['statement']} Example: {entry['illegal']}\n", highlight=False)
    terminal.print(f"The examples are from {EXAMPLE_GAME}.", highlight=False)


def _entry(rules: Rules) -> dict[str, str]:
    example = example_of(rules)
    assert example, "every rule in the catalog forbids a move of the example game"
    board = example.board()
    move = move_number_prefix(board) + notate(board, example.special_moves[0])
    facts = {"key": rules.key, "title": rules.title, "statement": rules.statement}
    return facts | {"illegal": move, "fen": board.fen()}
