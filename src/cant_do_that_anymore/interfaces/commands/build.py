"""The command that builds a dataset: ``cdta dataset build``."""

from dataclasses import replace
from typing import Any

import click

from ...errors import pluralize, visible
from ...runs.evaluate import select
from ...task.spec import Spec
from ..agreeing import agreed
from ..options import THINKING, Command, shared


@click.command(
    cls=Command,
    params=shared(
        *("model", "base_url", "tag", "header", "max_tokens", *THINKING),
        *("rules", "pool", "wording", "reading", "n"),
        *("max_connections", "price", "max_cost", "ask_above", "batch", "keep_looking", "quiet"),
    ),
)
def build(quiet: bool, **options: Any) -> None:
    """Build a model's dataset, or enlarge it from where it stopped.

    The positions are those where the model plays the special move at temperature 0. `cdta run`
    does this by itself where it has to.
    """
    spec = Spec(**options)
    chosen = agreed(
        spec.ask_above, lambda above: select(replace(spec, ask_above=above), quiet=quiet)
    )
    built = chosen.dataset
    line = f"{built.version}: {pluralize(len(built.positions), 'position')}, {built.provenance}"
    ended = ", the pool holds no more" if built.pool_ended and built.asked else ""
    failed = pluralize(built.failed, "question")
    lost = f"; not kept, as {failed} had no answer: the same command asks again" * bool(
        built.failed
    )
    click.echo(visible(line + ended + lost))
