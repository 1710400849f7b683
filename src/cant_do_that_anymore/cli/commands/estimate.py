"""The command ``cdta estimate``: forecast requests, tokens, cost and time."""

import json
from dataclasses import asdict, replace
from typing import Any

import click
from rich.box import MARKDOWN
from rich.table import Table

from ...comparison.naming import entrants_by_name
from ...costs.forecast import AnswerMode, Estimate, estimate
from ...costs.tokens import Span
from ...formatting import dollars, duration
from ...task.spec import Spec
from ...task.types import Eval
from ..console import console
from ..help import JSON, Command
from ..options import MODELS, several, spec_options

NO_FOLDING = 200  # columns
NOTHING = "nothing left"
# Options that end a run early.
NOT_IN_ESTIMATE = ("max_error_rate", "max_cost", "ask_above", "keep_looking")


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
    titles = entrants_by_name(models, rest["base_url"]) if models else {"": {}}
    specs = [
        (title, Spec(eval=eval_, **rest | options))
        for title, options in titles.items()
        for eval_ in evals
    ]
    estimates = [_estimated(title, spec) for title, spec in specs]
    if as_json:
        click.echo(json.dumps([asdict(forecast) for forecast in estimates]))
        return
    effort, pool = rest["reasoning_effort"], rest["pool"]
    _print(estimates, [f"{effort} effort" if effort else "", f"pool {pool}" if pool else ""])


def _estimated(title: str, spec: Spec) -> Estimate:
    forecast = estimate(spec)
    return replace(forecast, model=title) if "@" in title else forecast


def _print(estimates: list[Estimate], settings: list[str]) -> None:
    """Print a Markdown table for each estimate, and all assumptions."""
    terminal, wide = console(), console(NO_FOLDING)
    for forecast in estimates:
        title = ", ".join(filter(None, (forecast.model, forecast.eval, *settings)))
        if forecast.total.requests:
            wide.print(f"{title}\n", highlight=False)
            wide.print(_table(forecast))
        else:
            wide.print(f"{title}: {NOTHING} to ask, all answers are kept", highlight=False)
        if forecast.cheaper:
            terminal.print(f"- cheaper: {', '.join(forecast.cheaper)}", highlight=False)
    asking = [forecast for forecast in estimates if forecast.total.requests]
    for assumption in dict.fromkeys(line for forecast in asking for line in forecast.assumptions):
        terminal.print(f"- {assumption}", highlight=False)


def _table(forecast: Estimate) -> Table:
    table = Table(box=MARKDOWN, pad_edge=True)
    table.add_column("step")
    for heading in ("requests", "tokens each", "cost", "time"):
        table.add_column(heading, justify="right")
    steps = {"dataset": forecast.dataset, "measuring": forecast.measuring}
    has_both = all(step.requests for step in steps.values())
    for title, step in (steps | ({"total": forecast.total} if has_both else {})).items():
        if step.requests:
            first, *more_ways = step.ways
            table.add_row(title, f"{step.requests:,}", *_cells(first))
            for way in more_ways:
                table.add_row(way.title, "", *_cells(way))
        elif step.kept:
            table.add_row(title, NOTHING)
    return table


def _cells(way: AnswerMode) -> tuple[str, str, str]:
    return _tokens(way.tokens), _cost(way.cost), _time(way.seconds)


def _tokens(span: Span) -> str:
    return _range(*(f"{count:,.0f}" for count in span))


def _cost(span: Span | None) -> str:
    if not span:
        return "unknown"
    if span.least == span.most:
        return dollars(span.least)
    return "$" + _range(
        *(f"{amount:,.0f}" if amount >= 100 else f"{amount:.2g}" for amount in span)
    )


def _time(span: Span) -> str:
    least, most = (duration(seconds) for seconds in span)
    number, unit = least.split()
    return _range(least if least == most or not most.endswith(unit) else number, most)


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least}–{most}"
