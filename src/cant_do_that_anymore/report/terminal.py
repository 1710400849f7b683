"""A run as tables a person can read in a terminal."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..metrics.diagnosis import Contrast, unclaimed
from ..metrics.measures import FORBIDDEN, SHARES
from ..metrics.types import Measure, Results
from ..progress import duration
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, OUTCOMES
from .diagnosis import Why, why
from .words import dollars, headline, interval, main_measures, number, percentage, plain, thinking

_ELSEWHERE = {*FORBIDDEN.values(), "variant_legal_proportion"}
"""These stand beside other numbers, or follow from the table of outcomes."""
MOST_WITH_SHARES = 3
"""So many conditions fit into a line with their shares; of more, only counts."""


def summary(run: Run) -> RenderableType:
    """Headline, metrics with intervals, outcomes under each rule set, tokens and notes."""
    return Group(
        Text(headline(run), style="bold"),
        Text(),
        _metrics(run),
        *_thinking(run),
        Text(),
        *(_why(found) if (found := why(run)) else ()),
        _outcomes(run),
        Text(),
        Text(_footer(run), style="dim"),
        *(Text(f"note: {note}", style="yellow") for note in run.notes),
    )


def _thinking(run: Run) -> list[Text]:
    sentence = thinking(run.results)
    return [Text(), Text(sentence)] if sentence else []


def _metrics(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", no_wrap=True)
    table.add_column("value", no_wrap=True, justify="right")
    table.add_column("95% interval", no_wrap=True)
    table.add_column("")
    for measure in main_measures(run):
        if measure.name not in _ELSEWHERE:
            value = run.results.metrics[measure.name]
            around = interval(run.results.intervals.get(measure.name))
            remark = Text(_remark(measure, run.results), style="dim")
            table.add_row(measure.name, number(value), around, remark)
            if found := run.results.bounds.get(measure.name):
                ends = f"[{number(found.low)}, {number(found.high)}]"
                complete = Text(f"complete: {number(found.complete)}", style="dim")
                table.add_row("  bounds, without sampling error", "", ends, complete)
    return table


def _remark(measure: Measure | Contrast, results: Results) -> str:
    if measure.name in unclaimed(results):
        return "see the note"
    perfect = "" if measure.perfect is None else f"perfect is {measure.perfect:g}"
    remark = measure.remark or perfect
    for condition, name in SHARES.items():
        if name == measure.name:
            remark = f"forbidden: {number(results.metrics[FORBIDDEN[condition]])}"
    return remark


def _why(found: Why) -> Iterator[RenderableType]:
    """Who knows the rule, and who drops the habit; and how the controls fared."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(f"of {number(found.habits)} with the habit", no_wrap=True)
    for does in ("drop it", "keep it"):
        table.add_column(does, justify="right", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
    for row in found.rows:
        cells = (text for p in row.parts for text in (number(p.count), percentage(p.share)))
        table.add_row(f"{row.title}: {number(row.count)}", *cells)
    yield table
    if found.controls:
        shares = ", ".join(f"{percentage(share)} {name}" for name, share in found.controls.items())
        yield Text(f"habits at controls: {shares}", style="dim")
    yield Text()


def _outcomes(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("outcome")
    roomy = len(run.plan.conditions) <= MOST_WITH_SHARES
    for condition in run.plan.conditions:
        heading = condition.name.replace("_", "\n")
        if condition.name == CHANGED_CONDITION and roomy:
            heading = condition.rules.key
        table.add_column(heading, justify="right")
        if roomy:
            table.add_column("", justify="right")
    counts = run.results.outcomes.values()
    for outcome in OUTCOMES:
        if any(count.get(outcome) for count in counts):
            cells = [_cells(count.get(outcome), len(run.samples)) for count in counts]
            table.add_row(outcome, *(c for each in cells for c in each[: 1 + roomy]))
    return table


def _cells(count: int | None, n: int) -> tuple[str, str]:
    """How many, and what share that is; nothing of what cannot be."""
    return ("", "") if count is None else (number(count), percentage(count / n))


def _footer(run: Run) -> str:
    metrics, dataset = run.results.metrics, f"dataset: {run.dataset.provenance}"
    tokens_in, tokens_out = metrics["usage_prompt_tokens"], metrics["usage_completion_tokens"]
    cached = metrics.get("usage_cached_tokens")
    share = f" ({percentage(cached / tokens_in)} cached)" if cached and tokens_in else ""
    tokens = f"{tokens_in:,} tokens in{share}, {tokens_out:,} out"
    parts = [dataset, _sampling(run), tokens, _cost(run), duration(run.seconds)]
    return "; ".join(filter(None, parts))


def _sampling(run: Run) -> str:
    """The usual settings always, any other where it is not left at its default."""
    settings = run.plan.settings
    own = "the provider's own" if run.own_temperature else plain(settings.temperature)
    usual = {
        "temperature": f"temperature {own}",
        "max_tokens": f"at most {settings.max_tokens} tokens",
        "seed": f"seed {settings.seed}",
    }
    others = [
        f"{name.replace('_', ' ')} {plain(value)}"
        for name, value in settings.non_defaults.items()
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
