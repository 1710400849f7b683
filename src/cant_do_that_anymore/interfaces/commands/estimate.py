"""The command that says what a run will take: ``cdta estimate``."""

import json
import sys
from typing import Any

import click
from rich.box import MARKDOWN
from rich.table import Table

from ...evaluation.estimate import Estimate, Step, estimate
from ...evaluation.spec import Spec
from ...evaluation.vocabulary import Eval
from ...report.words import dollars
from ..options import THINKING, Command, several, several_models, shared
from ..printing import console


@click.command(
    "estimate",
    cls=Command,
    params=[
        several_models(),
        *shared("base_url", "temperature", "max_tokens", *THINKING),
        several("eval", "evals", "all"),
        *shared("rules", "pool", "dataset", "wording", "reading", "n", "seed"),
        *shared("max_connections", "as_json"),
    ],
)
def estimate_command(
    models: tuple[str, ...], evals: tuple[Eval, ...], as_json: bool, **rest: Any
) -> None:
    """Say what a run will take: questions, tokens, cost and time.

    Nothing is asked and no key is needed. Answers kept from before are not asked again, so they
    are not counted.

    \b
    cdta estimate --model openai/gpt-4o --model anthropic/claude-sonnet-4-5
    """
    found = [
        estimate(Spec(model=model, eval=eval_, **rest))
        for model in models or (None,)
        for eval_ in evals
    ]
    if as_json:
        click.echo(json.dumps([_facts(one) for one in found]))
        return
    # Out of a terminal, say into a README, no line is broken.
    terminal = console(width=None if sys.stdout.isatty() else 200)
    table = _table(found)
    if not table.row_count:
        terminal.print("nothing left to ask: every answer is kept from before", highlight=False)
        return
    terminal.print(table)
    for assumption in dict.fromkeys(a for one in found for a in one.assumptions):
        terminal.print(f"- {assumption}", highlight=False)


def _steps(found: Estimate) -> dict[str, Step]:
    return {"dataset": found.dataset, "measuring": found.measuring}


def _facts(found: Estimate) -> dict[str, Any]:
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


def _table(estimates: list[Estimate]) -> Table:
    """A table that is readable as it is, and as Markdown."""
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
