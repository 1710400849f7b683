"""The commands ``cdta dataset``: list, show, build, export, union."""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import click

from ...datasets.pools import items_named, union
from ...datasets.storage import all_datasets, dataset_named
from ...files import atomic_write_text, file_errors
from ...formatting import format_setting, pluralize, visible
from ...habits.base import Item
from ...habits.catalog import KINDS, resolve_change
from ...habits.words import ANY_HABIT
from ...runs.evaluate import select
from ...task.spec import Spec
from ..help import HELP_ALL, JSON, QUIET, Command, output_option
from ..options import CLICK_OPTIONS, spec_options

ITEMS_SHOWN = 5
# Options of the measurement alone.
NOT_IN_BUILD = ("temperature", "eval", "dataset", "diagnose", "seed", "fresh")


@click.command("list", cls=Command, params=[JSON])
def list_command(as_json: bool) -> None:
    """List all datasets."""
    rows = [
        {"dataset": name, "items": len(d.items), "origin": d.origin, "rules": facts["rules"]}
        for name, (d, facts) in all_datasets().items()
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    width = max(len(row["dataset"]) for row in rows)
    click.echo(f"{'dataset':<{width}}      items  origin    rules")
    for row in rows:
        name, count = f"{row['dataset']:<{width}}", f"{row['items']:>9,}"
        click.echo(f"{name}  {count}  {row['origin']:<8}  {row['rules']}")


@click.command("show", cls=Command, params=[JSON])
@click.argument("name")
def show_command(name: str, as_json: bool) -> None:
    """Show a dataset and its first items."""
    dataset, facts = dataset_named(name)
    habit = KINDS[facts.get("kind", "chess")]
    facts = facts | {"items": len(dataset.items)}
    first = dataset.items[:ITEMS_SHOWN]
    if as_json:
        items = [{"id": item.id, **item.to_json()} for item in first]
        click.echo(json.dumps({"dataset": name, **facts, "first": items}))
        return
    words = habit.words
    summary = f"{name}: {pluralize(len(dataset.items), words.item)}, {dataset.provenance}"
    click.echo(visible(summary) + "\n")
    _show(facts)
    answers = f"the model's usual {words.answer}s"
    click.echo(f"\nThe first {pluralize(len(first), words.item)}, with {answers}:")
    for item in first:
        click.echo(f"\n{item.id}")
        usual = ", ".join(f"{habit.label(item, answer)} ({answer})" for answer in item.usual)
        _show({**habit.details(item), f"usual {words.answer}": usual})


def _show(facts: Mapping[str, object]) -> None:
    """Print the facts that there are, each below its name if it has several lines."""
    for name, value in facts.items():
        if value in (None, "") or name == "built_now":
            continue
        text = visible(format_setting(value))
        several = "\n" in text
        click.echo(f"  {name.replace('_', ' ')}:" + ("" if several else f" {text}"))
        if several:
            click.echo(indent(text, "    "))


@click.command(
    "export",
    cls=Command,
    params=[
        CLICK_OPTIONS["rules"],
        output_option("Output file.  [default: stdout]"),
    ],
)
@click.argument("name", metavar="NAME")
def export_command(name: str, output: Path | None, rules: str) -> None:
    """Write a dataset or a pool as JSON lines.

    NAME is a dataset of `cdta dataset list`, a file, or a pool: pool (of the rules), diagonal,
    games or common. The keys are the original's.
    """
    change = resolve_change(rules)
    items = items_named(name, change, any_rules=True)
    if not output:
        sys.stdout.write(_lines(items))
        return
    _write(items, output)
    click.echo(f"{pluralize(len(items), ANY_HABIT.item)} in {output}", err=True)


def _lines(items: Iterable[Item]) -> str:
    return "".join(json.dumps(item.to_json()) + "\n" for item in items)


def _write(items: Iterable[Item], output: Path) -> None:
    with file_errors("write", output):
        atomic_write_text(output, _lines(items))


@click.command(
    "union",
    cls=Command,
    params=[CLICK_OPTIONS["rules"], output_option("Output file.", required=True)],
)
@click.argument("names", metavar="DATASET DATASET...", nargs=-1, required=True)
def union_command(names: tuple[str, ...], output: Path, rules: str) -> None:
    """Merge datasets into one that is fair to all their models.

    A DATASET is a name from `cdta dataset list` or a file. Every item is written once; the
    order is a fixed shuffle.
    """
    items, summary = union(names, resolve_change(rules))
    _write(items, output)
    click.echo(f"{summary}; in {output}")


@click.command("build", cls=Command, params=[*spec_options(*NOT_IN_BUILD), QUIET, HELP_ALL])
def build_command(quiet: bool, **options: Any) -> None:
    """Build a model's dataset, or extend it.

    It contains the items to which the model gives the usual answer at temperature 0. `cdta run`
    builds it when needed.
    """
    spec = Spec(**options)
    built = select(spec, quiet=quiet).dataset
    n = pluralize(len(built.items), spec.change.its_habit.words.item)
    line = f"{built.version}: {n}, {built.provenance}"
    if built.pool_ended and built.asked:
        line += ", all that the pool contains"
    if built.failed:
        failed = pluralize(built.failed, "request")
        line += f"; not saved because {failed} got no answer. Run the same command again"
    click.echo(visible(line))
