"""The command ``cdta estimate``: forecast requests, tokens, cost and time."""

import json
from typing import Any

import click
from rich.box import MARKDOWN
from rich.table import Table

from ...api.functions import estimate
from ...comparison.naming import models_by_name
from ...costs.forecast import ON_COMMON, Forecast
from ...report.notebook import STEP_HEADINGS, assumptions_of, estimate_line, step_cells
from ...task.option_info import COMMON
from ...task.spec import Spec
from ...task.types import Eval
from ..console import console
from ..help import JSON, Command
from ..options import MODELS, several, spec_options

NO_FOLDING = 200  # columns
# Options that end a run early.
NOT_IN_ESTIMATE = ("max_cost", "ask_above", "keep_looking")


@click.command(
    "estimate",
    cls=Command,
    params=[
        *spec_options(*NOT_IN_ESTIMATE, model=MODELS, eval=several("eval", "evals", "all")),
        JSON,
    ],
)
def estimate_command(
    models: tuple[str, ...], evals: tuple[Eval, ...], as_json: bool, **rest: Any
) -> None:
    """Estimate the requests, tokens, cost and time of a run.

    It sends no request and needs no key. Cached answers are not counted; they show how long the
    others will be. To get some, run "cdta run -n 10" first.

    \b
    cdta estimate --model openai/gpt-4o --model anthropic/claude-sonnet-4-5
    cdta estimate --model openai/o4-mini --reasoning-effort low
    """
    titles = models_by_name(models, rest["base_url"]) if models else {"": {}}
    estimated = estimate(
        *(
            Spec(eval=eval_, **rest | options)
            for options in titles.values()
            for eval_ in evals or [Spec.eval]
        )
    )
    if as_json:
        click.echo(json.dumps([planned.to_json() for planned in estimated.plans]))
        return
    terminal, wide = console(), console(NO_FOLDING)
    for planned in estimated.plans:
        if not planned.steps:
            wide.print(estimate_line(planned), highlight=False)
            continue
        wide.print(f"{planned.heading}\n", highlight=False)
        wide.print(_table(planned))
        if cheaper := planned.advice:
            terminal.print(f"- cheaper: {', '.join(cheaper)}", highlight=False)
        if f"--pool {COMMON}" in cheaper:
            terminal.print(f"- {ON_COMMON}", highlight=False)
    for assumption in assumptions_of(estimated.plans):
        terminal.print(f"- {assumption}", highlight=False)


def _table(planned: Forecast) -> Table:
    """Return a Markdown table: a row for each step, and one for a model that does not reason."""
    table = Table(box=MARKDOWN, pad_edge=True)
    for heading in STEP_HEADINGS:
        table.add_column(heading, justify="left" if heading == STEP_HEADINGS[0] else "right")
    for cells in step_cells(planned):
        table.add_row(*cells)
    return table
