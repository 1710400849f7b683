"""The command that prints legal moves: ``cdta legal``."""

import click

from ...game.rules import STANDARD, board_after, rules_named


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
