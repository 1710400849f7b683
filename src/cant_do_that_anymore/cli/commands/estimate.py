"""The command ``cdta estimate``: expected requests, tokens, cost and time."""

import json
from dataclasses import asdict
from typing import Any

import click

from ...api.functions import estimate
from ...client.pricing import DEFAULT_MAX_COST
from ...task.spec import Spec
from ..console import console
from ..help import HELP_ALL, JSON, Command
from ..options import spec_options

# Options that end a run early.
NOT_IN_ESTIMATE = ("max_cost", "keep_looking")


@click.command("estimate", cls=Command, params=[*spec_options(*NOT_IN_ESTIMATE), JSON, HELP_ALL])
def estimate_command(as_json: bool, **options: Any) -> None:
    """Estimate the requests, tokens, cost and time of a run.

    It sends no request and needs no key. Cached answers cost nothing, and show how long the others
    will be. To get some, first start the run with -n 10.

    \b
    cdta estimate --model openai/gpt-4o --eval all_small
    cdta estimate --model openai/o4-mini --reasoning-effort low
    """
    [cost] = estimate(Spec(**options))
    if as_json:
        click.echo(json.dumps(asdict(cost)))
        return
    terminal = console()
    terminal.print(str(cost), style="bold")
    for line in cost.assumptions:
        terminal.print(f"- {line}")
    if (cost.dollars_high or 0) > DEFAULT_MAX_COST:
        limit = f"a run spends at most ${DEFAULT_MAX_COST:g} unless --max-cost allows more"
        terminal.print(f"- {limit}")
