"""A run as tables a person can read in a terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..evaluation.judging import OUTCOMES
from ..evaluation.run import Run
from .words import dollars, headline, interval, number, percentage

_REMARKS = {
    "variant_impact_factor": "perfect is -1",
    "delta": "",
    "predicted_move_proportion": "standard rules",
    "predicted_move_in_variant_proportion": "changed rules",
    "adaptation_rate": "perfect is 1",
    "variant_legal_proportion": "changed rules",
}


def summary(run: Run) -> RenderableType:
    """Headline, metrics with intervals, outcomes under each rule set, tokens and notes."""
    return Group(
        Text(headline(run), style="bold"),
        Text(),
        _metrics(run),
        Text(),
        _outcomes(run),
        Text(),
        Text(_footer(run), style="dim"),
        *(Text(f"note: {note}", style="yellow") for note in run.notes),
    )


def _metrics(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("metric", "value", "95 % interval", ""):
        table.add_column(heading, justify="right" if heading == "value" else "left", no_wrap=True)
    for name, remark in _REMARKS.items():
        value, bounds = run.results.metrics[name], run.results.intervals.get(name)
        table.add_row(name, number(value), interval(bounds), Text(remark, style="dim"))
    return table


def _outcomes(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("outcome")
    for rule_set in ("standard", run.plan.rules.key):
        table.add_column(rule_set, justify="right")
        table.add_column("")
    standard, variant = run.results.outcomes["standard"], run.results.outcomes["variant"]
    for outcome in OUTCOMES:
        if standard[outcome] or variant[outcome]:
            cells = [
                text
                for counts in (standard, variant)
                for text in (
                    number(counts[outcome]),
                    percentage(counts[outcome] / len(run.samples)),
                )
            ]
            table.add_row(outcome, *cells)
    return table


def _footer(run: Run) -> str:
    metrics, settings = run.results.metrics, run.plan.settings
    dataset = f"dataset: {run.dataset.provenance}"
    sampling = f"temperature {settings.temperature:g}, at most {settings.max_tokens} tokens"
    sampling += f", seed {settings.seed}"
    tokens_in, tokens_out = metrics["usage_prompt_tokens"], metrics["usage_completion_tokens"]
    tokens = f"{tokens_in:,} tokens in, {tokens_out:,} out"
    parts = [dataset, sampling, tokens, _cost(run), f"{run.seconds:.0f} s"]
    return "; ".join(filter(None, parts))


def _cost(run: Run) -> str:
    """What the answers cost, and apart from that what was spent now: kept answers are free."""
    if run.cost.measuring == 0:
        return ""
    text = dollars(run.cost.measuring)
    if run.cost.dataset is not None:
        text += f", the dataset {dollars(run.cost.dataset)}"
    if run.cost.spent is not None:
        text += f", spent now {dollars(run.cost.spent)}"
    return text
