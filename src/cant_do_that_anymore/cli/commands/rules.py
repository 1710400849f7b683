"""The commands ``cdta rules`` and ``cdta legal``: rule changes, and the legal moves under them."""

import json

import chess
import click

from ...errors import InvalidInput
from ...game.move_parser import moves_in
from ...game.notation import move_number_prefix, notate
from ...game.rule_pool import EXAMPLE_GAME, example_of
from ...game.rules import CATALOG, STANDARD, Rules, board_after, rules_named
from ...task.option_info import TASK
from ..help import JSON, Command, Option


@click.command("rules", cls=Command, params=[JSON])
def rules_command(as_json: bool) -> None:
    """List the rule changes and what the model is told."""
    entries = [_entry(rules) for rules in CATALOG.values() if rules.forbids_something]
    if as_json:
        click.echo(json.dumps(entries, indent=2))
        return
    from ..console import console  # imports rich, which `cdta legal` does not need

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


@click.command(
    "legal",
    cls=Command,
    params=[Option("--rules KEY", TASK, "Rule change; see cdta rules.", default=STANDARD.key)],
)
@click.argument("position", metavar="[MOVES|FEN]", nargs=-1)
def legal_command(rules: str, position: tuple[str, ...]) -> None:
    """Print the legal moves of a position.

    \b
    cdta legal e2e4 e7e5
    cdta legal --rules bishops-as-knights "1. e4 e5 2. Nf3"
    cdta legal "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"

    The position is given by MOVES from the initial position, legal under the standard rules or
    under --rules, or by a FEN. The command prints one move per line, in UCI, sorted.
    """
    in_force = rules_named(rules)
    board = _board(" ".join(position), in_force)
    for uci in sorted(move.uci() for move in in_force.legal_moves(board)):
        click.echo(uci)


def _board(position: str, rules: Rules) -> chess.Board:
    if "/" not in position:
        return board_after(moves_in(position, rules), STANDARD, rules)
    try:
        board = chess.Board(position)
    except ValueError as problem:
        raise InvalidInput(f"{position!r} is not a valid FEN ({problem})") from None
    if any(len(board.pieces(chess.KING, color)) != 1 for color in chess.COLORS):
        raise InvalidInput(
            f"{position!r} is not a valid position: each side needs exactly one king"
        )
    return board
