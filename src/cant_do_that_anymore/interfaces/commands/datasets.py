"""Commands about datasets: build, list, show, export, import."""

import json
import sys
from pathlib import Path
from typing import Any, get_args

import click

from ...errors import Problem
from ...evaluation.judging import Reading
from ...evaluation.spec import DEFAULT_MODEL, Spec
from ...game.position import write_positions
from ...game.rules import BISHOPS_AS_KNIGHTS, rules_named

_FILE = click.Path(dir_okay=False, path_type=Path)
_RULES = click.option("--rules", metavar="KEY", default=BISHOPS_AS_KNIGHTS.key, show_default=True)


@click.group()
def dataset() -> None:
    """Datasets: the positions whose special move one model plays by itself."""


@dataset.command()
@click.option("--model", metavar="M", help=f"Whose dataset.  [default: {DEFAULT_MODEL}]")
@click.option("--base-url", metavar="URL", help="An OpenAI-compatible server, with its /v1.")
@click.option("-n", type=click.IntRange(1), metavar="N", default=1000, show_default=True)
@click.option("--pool", type=_FILE, help="Choose the positions from this file.")
@_RULES
@click.option("--wording", metavar="W", default="default", show_default=True)
@click.option("--reading", type=click.Choice(get_args(Reading)), default="lenient")
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="K", help="Where replies are cut off."
)
@click.option("--max-connections", type=click.IntRange(1), metavar="C", help="Questions at once.")
@click.option("--quiet", is_flag=True, help="No progress.")
def build(quiet: bool, **options: Any) -> None:
    """Build a model's dataset, or enlarge it from where it stopped."""
    from ...evaluation.run import build_dataset

    built = build_dataset(Spec(**options), quiet=quiet)
    line = f"{built.version}: {len(built.positions):,} positions, {built.provenance}"
    click.echo(line + (", the pool holds no more" if built.pool_ended and built.asked else ""))


@dataset.command("list")
def list_command() -> None:
    """List all datasets."""
    from ...evaluation.datasets import all_datasets

    datasets = all_datasets()
    width = max(map(len, datasets))
    for name, (found, facts) in datasets.items():
        click.echo(
            f"{name:<{width}}  {len(found.positions):>6,}  {found.origin:<8}  {facts['rules']}"
        )


@dataset.command()
@click.argument("name")
def show(name: str) -> None:
    """Show what is known of a dataset, and its first positions."""
    from ...evaluation.datasets import dataset_named

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


@dataset.command()
@click.argument("name")
@click.option("-o", "--output", type=_FILE, help="Where to.  [default: standard output]")
def export(name: str, output: Path | None) -> None:
    """Write a dataset as JSON lines under the original's key names."""
    from ...evaluation.datasets import dataset_named

    found, _ = dataset_named(name)
    if output:
        try:
            write_positions(output, found.positions)
        except OSError as problem:
            raise Problem(f"cannot write {str(output)!r} ({problem.strerror})") from None
        click.echo(f"{len(found.positions):,} positions in {output}", err=True)
    else:
        for position in found.positions:
            sys.stdout.write(json.dumps(position.to_json()) + "\n")


@dataset.command("import")
@click.argument("version", metavar="MODEL")
@click.argument("file", type=_FILE)
@_RULES
def import_command(version: str, file: Path, rules: str) -> None:
    """Take the positions of FILE as the dataset of MODEL, named as its API answers."""
    from ...evaluation.datasets import import_dataset

    imported = import_dataset(version, file, rules_named(rules))
    click.echo(f"{version}: {len(imported.positions):,} positions, imported")
