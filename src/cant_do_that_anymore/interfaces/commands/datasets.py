"""Commands about the datasets that are there: list, show, export, import, union."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ...errors import Problem, counted, plain
from ...evaluation.datasets import all_datasets, dataset_named, import_dataset
from ...evaluation.union import union
from ...game.notation import numbered, turn_of, written, written_game
from ...game.position import Position, write_positions
from ...game.rules import rules_named
from ..options import shared

SHOWN = 5
"""So many positions of a dataset are shown."""
_PATH = click.Path(path_type=Path)


@click.command("list")
def list_command() -> None:
    """List all datasets."""
    datasets = all_datasets()
    width = max(map(len, datasets))
    rows = [("dataset", "positions", "origin", "rules")] + [
        (name, f"{len(found.positions):,}", found.origin, facts["rules"])
        for name, (found, facts) in datasets.items()
    ]
    for name, positions, origin, rules in rows:
        click.echo(f"{name:<{width}}  {positions:>9}  {origin:<8}  {rules}")


@click.command()
@click.argument("name")
def show(name: str) -> None:
    """Show what is known of a dataset, and its first positions.

    Moves and FEN are what `cdta legal` takes.
    """
    found, facts = dataset_named(name)
    first = found.positions[:SHOWN]
    known = f"{name}: {counted(len(found.positions), 'position')}, {found.provenance}"
    click.echo(plain(known) + "\n")
    _show(facts | {"positions": len(found.positions)})
    click.echo(f"\nThe first {counted(len(first), 'position')}, with what the model plays there:")
    for position in first:
        click.echo(f"\n{position.id}")
        _show(_told(position))


def _told(position: Position) -> dict[str, str]:
    board = position.board()
    special = [f"{turn_of(board)}{written(board, uci)} ({uci})" for uci in position.special_moves]
    return {
        "moves": numbered(written_game(position.moves)) or "none",
        "in UCI": " ".join(position.moves) or "none",
        "FEN": board.fen(),
        "special move": ", ".join(special),
    }


def _show(facts: Mapping[str, object]) -> None:
    """A line for each fact; those that say nothing are left out."""
    for name, value in facts.items():
        if (text := _in_words(value)) and name != "built_now":
            lines = text.splitlines()
            click.echo(f"  {name.replace('_', ' '):<17}{lines[0]}")
            for line in lines[1:]:
                click.echo(f"{'':<19}{line}".rstrip())


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        told = ((name.replace("_", " "), _in_words(each)) for name, each in value.items())
        return ", ".join(f"{name} {text}" for name, text in told if text)
    if isinstance(value, list | tuple):
        return ", ".join(map(repr, value))
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else plain(str(value))


@click.command()
@click.argument("name")
@click.option("-o", "--output", type=_PATH, help="Where to.  [default: standard output]")
def export(name: str, output: Path | None) -> None:
    """Write a dataset as JSON lines under the original's names."""
    found, _ = dataset_named(name)
    if output:
        _write(output, found.positions)
        click.echo(f"{counted(len(found.positions), 'position')} in {output}", err=True)
    else:
        for position in found.positions:
            sys.stdout.write(json.dumps(position.to_json()) + "\n")


@click.command("import", params=shared("rules"))
@click.argument("version", metavar="MODEL")
@click.argument("file", type=_PATH)
def import_command(version: str, file: Path, rules: str) -> None:
    """Take the positions of FILE as a model's dataset.

    MODEL is its name, as its API answers.
    """
    imported = import_dataset(version, file, rules_named(rules))
    click.echo(f"{version}: {counted(len(imported.positions), 'position')}, imported")


@click.command("union", params=shared("rules"))
@click.argument("names", metavar="DATASET DATASET...", nargs=-1, required=True)
@click.option("-o", "--output", type=_PATH, required=True, help="Where to.")
def union_command(names: tuple[str, ...], output: Path, rules: str) -> None:
    """Join datasets into one that is fair to all their models.

    A DATASET is a name from `cdta dataset list` or a file. Every position is written once; the
    order is a fixed shuffle.
    """
    together = union(names, rules_named(rules))
    _write(output, together.positions)
    click.echo(f"{together.sentence}; in {output}")


def _write(path: Path, positions: Sequence[Position]) -> None:
    try:
        write_positions(path, positions)
    except OSError as problem:
        raise Problem(f"cannot write {str(path)!r} ({problem.strerror})") from None
