"""Where the models of an experiment stand, as tables a person can read in a terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..evaluation.measures import GAIN, IMPACT, SHARES
from ..evaluation.standings import Standing
from ..evaluation.vocabulary import AFTER
from .experiment import by_rules
from .plots import JUNK, marked

WIDTH = 100
"""So wide is a line at most."""
LEGEND = (
    "Highest legal gain first. habit and kept: special moves under the standard and the "
    "changed rules. [95 % interval], all runs together. adapts: adaptation rate."
)
BOUNDS = (
    "; where they name no move, numbers are given from the least to the greatest that they could "
    "have made."
)


def experiment_table(found: Sequence[Standing]) -> RenderableType:
    """A table for each eval and rules, a line a model, and what should be known about them."""
    parts = [part for group in by_rules(found) for part in (*_of_group(group), Text())]
    legend = [LEGEND, *([JUNK + BOUNDS] if any(standing.is_junk for standing in found) else [])]
    return Group(*parts, *(Text(line, style="dim") for line in legend))


def _of_group(group: Sequence[Standing]) -> list[RenderableType]:
    title = f"{group[0].eval}: {group[0].change.title}"
    notes = [
        Text(f"note on {marked(standing)}: {note}", style="yellow")
        for standing in group
        for note in standing.notes
    ]
    return [Text(title, style="bold"), _table(group), *notes]


def _table(group: Sequence[Standing]) -> Table:
    # One space between columns: names of models are long.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("model", overflow="fold")
    for heading in ("runs", "n", "habit", "kept"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("impact factor", "legal gain"):
        table.add_column(heading, no_wrap=True)
    for heading in ("adapts", "name no\nmove"):
        table.add_column(heading, justify="right", no_wrap=True)
    for standing in group:
        metrics = standing.results.metrics
        table.add_row(
            Text(marked(standing)),
            str(len(standing.runs)),
            f"{metrics['n_samples']:,}",
            *(_number(metrics[name]) for name in SHARES.values()),
            _range(standing, IMPACT),
            _range(standing, GAIN),
            _number(metrics.get("adaptation_rate")),
            _percent(metrics.get(f"{AFTER}_unusable_proportion")),
            style="yellow" if standing.is_junk else "",
        )
    return table


def _range(standing: Standing, name: str) -> str:
    """The value with its interval, or between what bounds it lies."""
    if bounds := standing.results.bounds.get(name):
        return f"{_number(bounds.low)} to {_number(bounds.high)}"
    interval = standing.results.intervals.get(name)
    around = f" [{_number(interval.low)}, {_number(interval.high)}]" if interval else ""
    return _number(standing.results.metrics.get(name)) + around


def _number(value: float | None) -> str:
    """Two places: a line has no room for more, and few samples do not tell more.

    >>> _number(-0.001), _number(-0.984), _number(None)
    ('0.00', '-0.98', '–')
    """
    return "–" if value is None else f"{round(value, 2) + 0:.2f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
