"""Commands about the datasets that are there: list, show, export, import, union."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ...errors import Problem, counted
from ...evaluation.datasets import all_datasets, dataset_named, import_dataset
from ...evaluation.union import union
from ...game.position import Position, write_positions
from ...game.rules import rules_named
from ..options import shared

_PATH = click.Path(path_type=Path)


@click.command("list")
def list_command() -> None:
    """List all datasets."""
    datasets = all_datasets()
    width = max(map(len, datasets))
    for name, (found, facts) in datasets.items():
        click.echo(
            f"{name:<{width}}  {len(found.positions):>6,}  {found.origin:<8}  {facts['rules']}"
        )


@click.command()
@click.argument("name")
def show(name: str) -> None:
    """Show what is known of a dataset, and its first positions."""
    found, facts = dataset_named(name)
    facts = {
        "model": found.version,
        "origin": found.origin,
        "positions": len(found.positions),
    } | facts
    for key, value in facts.items():
        click.echo(f"{key}: {value if isinstance(value, str | int) else json.dumps(value)}")
    for position in found.positions[:5]:
        moves = " ".join(position.moves) or "(initial position)"
        click.echo(f"{position.id}  {moves} -> {', '.join(position.special_moves)}")


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
