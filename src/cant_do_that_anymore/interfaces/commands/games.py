"""Commands about the game alone: rules and legal moves."""

import sys

import click
from rich.box import MARKDOWN
from rich.table import Table

from ...game.examples import GAME, example_of
from ...game.notation import turn_of, written
from ...game.rules import CATALOGUE, STANDARD, Rules, board_after, rules_named
from ..printing import console


@click.command("rules")
def list_rules() -> None:
    """List the rule changes, each with a position and a move that is illegal there now."""
    table = Table(box=MARKDOWN, pad_edge=True)
    for heading in ("rules", "title", "illegal then", "in the position"):
        table.add_column(heading, overflow="fold")
    for rules in CATALOGUE.values():
        table.add_row(rules.key, rules.title, *_example(rules))
    # Out of a terminal, say into a README, no line is broken.
    terminal = console(width=None if sys.stdout.isatty() else 200)
    terminal.print(table)
    terminal.print(f"The positions are those of {GAME}.", highlight=False)


def _example(rules: Rules) -> tuple[str, str]:
    example = example_of(rules)
    if not example:
        return "nothing", ""
    board = example.board()
    return turn_of(board) + written(board, example.special_moves[0]), board.fen()


@click.command()
@click.option("--rules", "key", default=STANDARD.key, metavar="KEY", help="Rules (see cdta rules).")
@click.argument("moves", nargs=-1)
def legal(key: str, moves: tuple[str, ...]) -> None:
    """Print the legal moves of a position.

    It is the one after MOVES, which may be legal under the standard rules or under those of
    --rules. All moves are in UCI; one a line is printed, sorted.
    """
    rules = rules_named(key)
    board = board_after(moves, STANDARD, rules)
    for uci in sorted(move.uci() for move in rules.legal_moves(board)):
        click.echo(uci)
