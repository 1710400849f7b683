"""The commands ``cdta dataset``: list, build, export."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from ...datasets.pools import given_dataset
from ...datasets.storage import all_datasets
from ...formatting import pluralize, visible
from ...habits.catalog import resolve_change
from ...habits.words import ANY_HABIT
from ...report.html import write_text
from ...runs.evaluate import select
from ...task.spec import Spec
from ..help import HELP_ALL, JSON, QUIET, Command, output_option
from ..options import CLICK_OPTIONS, spec_options

# Options of the measurement alone.
NOT_IN_BUILD = ("temperature", "eval", "dataset", "diagnose", "seed", "fresh")


@click.group("dataset")
def dataset_command() -> None:
    """List and build datasets: positions where a model has the habit."""


@dataset_command.command("list", cls=Command, params=[JSON])
def list_command(as_json: bool) -> None:
    """List all datasets."""
    rows = [
        {"dataset": name, "items": len(d.items), "origin": d.origin, "rules": d.rules}
        for name, d in all_datasets().items()
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    click.echo(f"{'items':>6}  {'origin':<8}  {'rules':<20}  dataset")
    for row in rows:
        facts = f"{row['items']:>6,}  {row['origin']:<8}  {row['rules']:<20}"
        click.echo(visible(f"{facts}  {row['dataset']}"))


@dataset_command.command(
    "export",
    cls=Command,
    params=[CLICK_OPTIONS["rules"], output_option("Output file.  [default: stdout]")],
)
@click.argument("name")
def export_command(name: str, output: Path | None, rules: str) -> None:
    """Write a dataset as JSON lines.

    NAME is a dataset of `cdta dataset list` for these rules, or a file. The keys are the
    original's.
    """
    items = given_dataset(name, resolve_change(rules)).items
    lines = "".join(json.dumps(item.to_json()) + "\n" for item in items)
    if not output:
        sys.stdout.write(lines)
        return
    write_text(lines, output)
    click.echo(f"{pluralize(len(items), ANY_HABIT.item)} in {output}", err=True)


@dataset_command.command(
    "build", cls=Command, params=[*spec_options(*NOT_IN_BUILD), QUIET, HELP_ALL]
)
def build_command(quiet: bool, **options: Any) -> None:
    """Build a model's dataset, or extend it.

    It contains the items to which the model gives the usual answer at temperature 0. `cdta run`
    builds it when needed.
    """
    spec = Spec(**options)
    built = select(spec, quiet=quiet).dataset
    n = pluralize(len(built.items), spec.change.its_habit.words.item)
    line = f"{built.version}: {n}, {built.provenance}"
    if built.failed:
        line += "; not saved for that reason. Run the same command again"
    click.echo(visible(line))
