"""The command ``cdta estimate``: expected requests, tokens, cost and time."""

import json
from dataclasses import asdict, replace
from typing import Any

import click

from ...api.functions import estimate
from ...client.pricing import DEFAULT_MAX_COST
from ...comparison.naming import models_by_name
from ...task.spec import Spec
from ...task.types import Eval
from ..console import console
from ..help import HELP_ALL, JSON, Command
from ..options import MODELS, several, spec_options

# Options that end a run early.
NOT_IN_ESTIMATE = ("max_cost", "keep_looking")


@click.command(
    "estimate",
    cls=Command,
    params=[
        *spec_options(*NOT_IN_ESTIMATE, model=MODELS, eval=several("eval", "evals", "all")),
        JSON,
        HELP_ALL,
    ],
)
def estimate_command(
    models: tuple[str, ...], evals: tuple[Eval, ...], as_json: bool, **rest: Any
) -> None:
    """Estimate the requests, tokens, cost and time of a run.

    It sends no request and needs no key. Cached answers cost nothing, and show how long the others
    will be. To get some, first start the run with -n 10.

    \b
    cdta estimate --model openai/gpt-4o --model anthropic/claude-sonnet-4-5
    cdta estimate --model openai/o4-mini --reasoning-effort low
    """
    titles = models_by_name(models, rest["base_url"]) if models else {"": {}}
    runs = [(name, eval_) for name in titles for eval_ in evals or [Spec.eval]]
    costs = estimate(*(Spec(eval=eval_, **rest | titles[name]) for name, eval_ in runs))
    named = [
        replace(cost, model=name or cost.model) for (name, _), cost in zip(runs, costs, strict=True)
    ]
    if as_json:
        click.echo(json.dumps([asdict(cost) for cost in named]))
        return
    terminal = console()
    for cost in named:
        terminal.print(str(cost), style="bold")
    for line in dict.fromkeys(line for cost in named for line in cost.assumptions):
        terminal.print(f"- {line}")
    if any((cost.dollars_high or 0) > DEFAULT_MAX_COST for cost in named):
        limit = f"a run spends at most ${DEFAULT_MAX_COST:g} unless --max-cost allows more"
        terminal.print(f"- {limit}")
