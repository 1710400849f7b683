"""The command ``cdta estimate``: forecast requests, tokens, cost and time."""

import json
from typing import Any

import click
from rich.box import MARKDOWN
from rich.table import Table

from ...client.session import model_info
from ...comparison.naming import entrants_by_name
from ...costs.approval import cheaper_than
from ...costs.forecast import ON_COMMON, Forecast, estimate
from ...formatting import dollars, duration
from ...task.option_info import COMMON
from ...task.spec import Spec
from ...task.types import Eval
from ..console import console
from ..help import JSON, Command
from ..options import MODELS, several, spec_options

NO_FOLDING = 200  # columns
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
    forecasts = [(title or model_info(spec).name, spec, estimate(spec)) for title, spec in specs]
    if as_json:
        click.echo(json.dumps([_as_json(*forecast) for forecast in forecasts]))
        return
    effort, pool = rest["reasoning_effort"], rest["pool"]
    settings = [f"{effort} effort" if effort else "", f"pool {pool}" if pool else ""]
    terminal, wide = console(), console(NO_FOLDING)
    for title, spec, forecast in forecasts:
        heading = ", ".join(filter(None, (title, spec.eval, *settings)))
        if not forecast.total.requests.high:
            reason = forecast.assumptions[0]
            wide.print(f"{heading}: no requests to send, because {reason}", highlight=False)
            continue
        wide.print(f"{heading}\n", highlight=False)
        wide.print(_table(forecast))
        if cheaper := _cheaper(spec, forecast):
            terminal.print(f"- cheaper: {', '.join(cheaper)}", highlight=False)
        if f"--pool {COMMON}" in cheaper:
            terminal.print(f"- {ON_COMMON}", highlight=False)
    pending = (forecast for _, _, forecast in forecasts if forecast.total.requests.high)
    for assumption in dict.fromkeys(line for each in pending for line in each.assumptions):
        terminal.print(f"- {assumption}", highlight=False)


def _cheaper(spec: Spec, forecast: Forecast) -> list[str]:
    """Return options that usually cost less, if the run may need approval."""
    cost = forecast.total.dollars
    if not cost or cost.high <= (Spec.ask_above or 0.0):
        return []
    return cheaper_than(spec, searches=bool(forecast.key))


def _as_json(title: str, spec: Spec, forecast: Forecast) -> dict[str, Any]:
    steps = {name: getattr(forecast, name) for name in ("dataset", "measuring", "total", "at_once")}
    return {
        "model": title,
        "eval": spec.eval,
        **{
            name: figures
            and {key: value and value._asdict() for key, value in figures._asdict().items()}
            for name, figures in steps.items()
        },
        "assumptions": forecast.assumptions,
        "cheaper": _cheaper(spec, forecast),
    }


def _table(forecast: Forecast) -> Table:
    """Return a Markdown table: a row for each step, and one for a model that does not reason."""
    table = Table(box=MARKDOWN, pad_edge=True)
    table.add_column("step")
    for heading in ("requests", "tokens each", "cost", "time"):
        table.add_column(heading, justify="right")
    steps = {"dataset": forecast.dataset, "measuring": forecast.measuring}
    rows = {title: step for title, step in steps.items() if step.requests.high}
    if len(rows) > 1:
        rows["total"] = forecast.total
    if forecast.at_once:
        rows["without reasoning"] = forecast.at_once
    for title, step in rows.items():
        requests, cost = step.requests, step.dollars
        table.add_row(
            title,
            _range(f"{requests.low:,.0f}", f"{requests.high:,.0f}"),
            f"{step.output_tokens.expected / requests.expected:,.0f}",
            _range(_dollars(cost.low), _dollars(cost.high)) if cost else "unknown",
            _range(duration(step.seconds.low), duration(step.seconds.high)),
        )
    return table


def _dollars(amount: float) -> str:
    return f"${amount:,.0f}" if amount >= 100 else dollars(amount)


def _range(low: str, high: str) -> str:
    """Format a range, with the unit or the currency once."""
    if low == high:
        return low
    number, _, unit = low.partition(" ")
    return f"{number if unit and high.endswith(unit) else low}–{high.removeprefix('$')}"
