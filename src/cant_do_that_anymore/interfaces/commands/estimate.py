"""The command that says what a run will take: ``cdta estimate``."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...evaluation.spec import DEFAULT_MODEL, SAMPLES, Eval, Spec
from ...game.rules import BISHOPS_AS_KNIGHTS

if TYPE_CHECKING:
    from rich.table import Table

    from ...evaluation.estimate import Estimate, Step

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--model", "models", multiple=True, metavar="M", help="Whom to measure; give it repeatedly."
)
@click.option("--base-url", metavar="URL", help="An OpenAI-compatible server, with its /v1.")
@click.option(
    "--eval",
    "evals",
    multiple=True,
    type=click.Choice(list(SAMPLES)),
    default=("all",),
    show_default=True,
)
@click.option("--pool", type=_FILE, help="Choose the positions from this file.")
@click.option(
    "--dataset", metavar="D", help="Take a file's positions as they are, or a dataset by name."
)
@click.option("--rules", metavar="KEY", default=BISHOPS_AS_KNIGHTS.key, show_default=True)
@click.option("--wording", metavar="W", default="default", show_default=True)
@click.option("-n", type=click.IntRange(1), metavar="N", help="Samples.")
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="K", help="Where replies are cut off."
)
@click.option("--max-connections", type=click.IntRange(1), metavar="C", help="Questions at once.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list and nothing else.")
def estimate(
    models: tuple[str, ...],
    evals: tuple[Eval, ...],
    base_url: str | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Say what a run will take: questions, tokens, cost and time.

    Nothing is asked and no key is needed. Answers kept from before are not asked again, so they
    are not counted.

    \b
    cdta estimate --model openai/gpt-4o --model anthropic/claude-sonnet-4-5
    """
    from ...evaluation.estimate import estimate as estimated

    found = [
        estimated(Spec(model=model, base_url=base_url, eval=eval_, **rest))
        for model in models or ((None,) if base_url else (DEFAULT_MODEL,))
        for eval_ in evals
    ]
    if as_json:
        click.echo(json.dumps([_facts(one) for one in found]))
        return
    from rich.console import Console

    # Out of a terminal, say into a README, no line is broken.
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(_table(found))
    for assumption in dict.fromkeys(a for one in found for a in one.assumptions):
        console.print(f"- {assumption}", highlight=False)


def _steps(found: "Estimate") -> "dict[str, Step]":
    return {"dataset": found.dataset, "measuring": found.measuring}


def _facts(found: "Estimate") -> dict[str, Any]:
    steps = {
        name: {
            "requests": step.requests,
            "input_tokens": step.usage.input_tokens,
            "output_tokens": step.usage.output_tokens,
            "cost": step.cost(found.price),
            "seconds": step.seconds,
        }
        for name, step in _steps(found).items()
    }
    return {
        "model": found.model,
        "eval": found.eval,
        **steps,
        "assumptions": found.assumptions,
    }


def _table(estimates: "list[Estimate]") -> "Table":
    """A table that is readable as it is, and as Markdown."""
    from rich.box import MARKDOWN
    from rich.table import Table

    from ...report.words import dollars

    table = Table(box=MARKDOWN, pad_edge=True)
    table.add_column("model", overflow="fold")
    table.add_column("eval", no_wrap=True)
    for heading in ("requests", "input", "output", "cost", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in estimates:
        for name, step in _steps(one).items():
            if step.requests:
                table.add_row(
                    one.model,
                    f"{one.eval}: {name}",
                    f"{step.requests:,}",
                    _thousands(step.usage.input_tokens),
                    _thousands(step.usage.output_tokens),
                    dollars(step.cost(one.price)),
                    _time(step.seconds),
                )
    return table


def _thousands(tokens: int) -> str:
    return f"{tokens / 1000:,.0f} k" if tokens >= 10_000 else f"{tokens:,}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
