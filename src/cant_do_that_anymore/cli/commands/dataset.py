"""The commands ``cdta dataset``: list, show, build, export, union."""

import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from ...datasets.pools import positions_named, union
from ...datasets.storage import all_datasets, dataset_named
from ...files import atomic_write_text, file_errors
from ...formatting import pluralize, visible
from ...game.notation import move_number_prefix, notate, notate_game
from ...game.position import Position, write_positions
from ...game.rules import Rules, rules_named
from ...runs.evaluate import select
from ...task.conditions import question
from ...task.spec import Spec
from ...task.types import CHANGED_CONDITION, STANDARD_CONDITION
from ..help import JSON, OUTPUT, QUIET, Command, Option, output_option
from ..options import CLICK_OPTIONS, spec_options

POSITIONS_SHOWN = 5
# Options of the measurement alone.
NOT_IN_BUILD = (
    *("temperature", "eval", "dataset", "diagnose", "seed"),
    "fresh",
)


@click.command("list", cls=Command, params=[JSON])
def list_command(as_json: bool) -> None:
    """List all datasets."""
    rows = [
        {
            "dataset": name,
            "positions": len(d.positions),
            "origin": d.origin,
            "rules": facts["rules"],
        }
        for name, (d, facts) in all_datasets().items()
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    width = max(len(row["dataset"]) for row in rows)
    click.echo(f"{'dataset':<{width}}  positions  origin    rules")
    for row in rows:
        name, count = f"{row['dataset']:<{width}}", f"{row['positions']:>9,}"
        click.echo(f"{name}  {count}  {row['origin']:<8}  {row['rules']}")


@click.command("show", cls=Command, params=[JSON])
@click.argument("name")
def show_command(name: str, as_json: bool) -> None:
    """Show a dataset and its first positions."""
    dataset, facts = dataset_named(name)
    facts = facts | {"positions": len(dataset.positions)}
    first = dataset.positions[:POSITIONS_SHOWN]
    if as_json:
        positions = [{"id": position.id, **position.to_json()} for position in first]
        click.echo(json.dumps({"dataset": name, **facts, "first": positions}))
        return
    summary = f"{name}: {pluralize(len(dataset.positions), 'position')}, {dataset.provenance}"
    click.echo(visible(summary) + "\n")
    _show(facts)
    click.echo(f"\nThe first {pluralize(len(first), 'position')}, with what the model plays there:")
    for position in first:
        click.echo(f"\n{position.id}")
        _show(_position_facts(position))


def _position_facts(position: Position) -> dict[str, str]:
    board = position.board()
    special = [
        f"{move_number_prefix(board)}{notate(board, uci)} ({uci})" for uci in position.special_moves
    ]
    return {
        "moves": notate_game(position.moves) or "none",
        "in UCI": " ".join(position.moves) or "none",
        "FEN": board.fen(),
        "special move": ", ".join(special),
    }


def _show(facts: Mapping[str, object]) -> None:
    """Print a line for each fact, except empty ones."""
    for name, value in facts.items():
        if (text := _as_text(value)) and name != "built_now":
            lines = text.splitlines()
            click.echo(f"  {name.replace('_', ' '):<17}{lines[0]}")
            for line in lines[1:]:
                click.echo(f"{'':<19}{line}".rstrip())


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        items = ((name.replace("_", " "), _as_text(item)) for name, item in value.items())
        return ", ".join(f"{name} {text}" for name, text in items if text)
    if isinstance(value, list | tuple):
        return ", ".join(map(repr, value))
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else visible(str(value))


@click.command(
    "export",
    cls=Command,
    params=[
        CLICK_OPTIONS["rules"],
        Option(
            "--format form F",
            OUTPUT,
            "plain, or chat with the FEN and the messages.",
            type=click.Choice(["plain", "chat"]),
            default="plain",
        ),
        output_option("Output file.  [default: stdout]"),
    ],
)
@click.argument("name", metavar="NAME")
def export_command(name: str, form: str, output: Path | None, rules: str) -> None:
    """Write a dataset or a pool as JSON lines.

    NAME is a dataset of `cdta dataset list`, a file, or a pool: pool (of the rules), diagonal,
    games or common. The keys are the original's; --format chat adds the messages for a model.
    """
    change, chat = rules_named(rules), form == "chat"
    positions = positions_named(name, change, any_rules=not chat)
    as_json = partial(_as_chat, change=change) if chat else Position.to_json
    text = "".join(json.dumps(as_json(position)) + "\n" for position in positions)
    if not output:
        sys.stdout.write(text)
        return
    with file_errors("write", output):
        atomic_write_text(output, text)
    click.echo(f"{pluralize(len(positions), 'position')} in {output}", err=True)


def _as_chat(position: Position, change: Rules) -> dict[str, object]:
    """Return a position with the messages of both conditions."""
    facts = {"id": position.id, "fen": position.board().fen(), "rules": change.key}
    chats = {
        name: [vars(message) for message in question(position, change, name).messages]
        for name in (STANDARD_CONDITION, CHANGED_CONDITION)
    }
    return position.to_json() | facts | chats


@click.command(
    "union",
    cls=Command,
    params=[CLICK_OPTIONS["rules"], output_option("Output file.", required=True)],
)
@click.argument("names", metavar="DATASET DATASET...", nargs=-1, required=True)
def union_command(names: tuple[str, ...], output: Path, rules: str) -> None:
    """Merge datasets into one that is fair to all their models.

    A DATASET is a name from `cdta dataset list` or a file. Every position is written once; the
    order is a fixed shuffle.
    """
    positions, summary = union(names, rules_named(rules))
    with file_errors("write", output):
        write_positions(output, positions)
    click.echo(f"{summary}; in {output}")


@click.command("build", cls=Command, params=[*spec_options(*NOT_IN_BUILD), QUIET])
def build_command(quiet: bool, **options: Any) -> None:
    """Build a model's dataset, or extend it.

    It contains the positions where the model plays the special move at temperature 0. `cdta run`
    builds it when needed.
    """
    spec = Spec(**options)
    built = select(spec, quiet=quiet).dataset
    line = f"{built.version}: {pluralize(len(built.positions), 'position')}, {built.provenance}"
    if built.pool_ended and built.asked:
        line += ", all that the pool contains"
    if built.failed:
        failed = pluralize(built.failed, "request")
        line += f"; not saved because {failed} got no answer. Run the same command again"
    click.echo(visible(line))
