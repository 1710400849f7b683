"""Where the models of an experiment stand, as tables a person can read in a terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..evaluation.measures import FORBIDDEN, GAIN, IMPACT, SHARES, UNUSABLE
from ..evaluation.standings import Standing
from ..evaluation.vocabulary import AFTER
from .drawing import JUNK, marked
from .experiment import by_rules

LEGEND = (
    "Highest legal gain first. habit and kept: special moves under the standard and the "
    "changed rules; below them, any forbidden moves. [95 % interval], all runs together. "
    "adapts: adaptation rate."
)
BOUNDS = (
    "; where they name no move, numbers are given from the least to the greatest that they could "
    "have made."
)


def experiment_table(found: Sequence[Standing]) -> RenderableType:
    """A table for each eval and rules, and what should be known about the models."""
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
    """Two lines a model, so that it fits 80 columns."""
    # One space between columns: names of models are long.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("model", overflow="fold")
    for heading in ("runs", "n", "habit\nany", "kept\nany"):
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
            *(_special(standing, condition) for condition in SHARES),
            _range(standing, IMPACT),
            _range(standing, GAIN),
            _number(metrics.get("adaptation_rate")),
            _percent(metrics.get(UNUSABLE[AFTER])),
            style="yellow" if standing.is_junk else "",
        )
    return table


def _special(standing: Standing, condition: str) -> Text:
    """The share of special moves, and below it that of any forbidden ones."""
    metrics = standing.results.metrics
    any_forbidden = _number(metrics.get(FORBIDDEN[condition]))
    return _stacked(_number(metrics[SHARES[condition]]), any_forbidden)


def _range(standing: Standing, name: str) -> Text:
    """The value and below it its interval, or between what bounds it lies."""
    if bounds := standing.results.bounds.get(name):
        return Text(f"{_number(bounds.low)} to {_number(bounds.high)}")
    interval = standing.results.intervals.get(name)
    around = f"[{_number(interval.low)}, {_number(interval.high)}]" if interval else ""
    return _stacked(_number(standing.results.metrics.get(name)), around)


def _stacked(value: str, below: str) -> Text:
    return Text.assemble(value, "\n", (below, "dim"))


def _number(value: float | None) -> str:
    """Two places: a line has no room for more, and few samples do not tell more.

    >>> _number(-0.001), _number(-0.984), _number(None)
    ('0.00', '-0.98', '–')
    """
    return "–" if value is None else f"{round(value, 2) + 0:.2f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
