"""A run as tables a person can read in a terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..evaluation.results import Run
from ..evaluation.vocabulary import AFTER, OUTCOMES, Measure
from ..models.model import Settings
from .words import dollars, headline, interval, main_measures, number, percentage, plain


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
    for measure in main_measures(run):
        value = run.results.metrics[measure.name]
        bounds = interval(run.results.intervals.get(measure.name))
        table.add_row(measure.name, number(value), bounds, Text(_remark(measure), style="dim"))
    return table


def _remark(measure: Measure) -> str:
    perfect = "" if measure.perfect is None else f"perfect is {measure.perfect:g}"
    return measure.remark or perfect


def _outcomes(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("outcome")
    for condition in run.plan.conditions:
        heading = condition.rules.key if condition.name == AFTER else condition.name
        table.add_column(heading, justify="right")
        table.add_column("")
    counts = run.results.outcomes.values()
    for outcome in OUTCOMES:
        if any(count[outcome] for count in counts):
            cells = [
                text
                for count in counts
                for text in (number(count[outcome]), percentage(count[outcome] / len(run.samples)))
            ]
            table.add_row(outcome, *cells)
    return table


def _footer(run: Run) -> str:
    metrics, dataset = run.results.metrics, f"dataset: {run.dataset.provenance}"
    tokens_in, tokens_out = metrics["usage_prompt_tokens"], metrics["usage_completion_tokens"]
    tokens = f"{tokens_in:,} tokens in, {tokens_out:,} out"
    parts = [dataset, _sampling(run.plan.settings), tokens, _cost(run), f"{run.seconds:.0f} s"]
    return "; ".join(filter(None, parts))


def _sampling(settings: Settings) -> str:
    """The usual settings always, any other where it is not left at its default."""
    usual = {
        "temperature": f"temperature {plain(settings.temperature)}",
        "max_tokens": f"at most {settings.max_tokens} tokens",
        "seed": f"seed {settings.seed}",
    }
    others = [
        f"{name.replace('_', ' ')} {plain(value)}"
        for name, value in settings.asked.items()
        if name not in usual
    ]
    return ", ".join((*usual.values(), *others))


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
