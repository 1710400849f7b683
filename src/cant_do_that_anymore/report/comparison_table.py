"""A comparison as tables a person can read in a terminal."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..evaluation.comparison import Comparison, differences_in_plan, labels
from ..evaluation.measures import IMPACT, MEASURES, SHARES
from ..evaluation.results import Run
from .words import interval, number, p_value


def comparison_table(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> RenderableType:
    """Every run on its own dataset, every pair on the positions it shares, and what that says."""
    pairs = groupby(comparisons, key=lambda c: (c.first, c.second))
    return Group(
        Text("Each on its own dataset", style="bold"),
        _own(runs),
        *(_pair(list(measures)) for _, measures in pairs),
        Text(),
        *(Text(f"- {comparison.sentence}") for comparison in comparisons),
        *(Text(f"note: {note}", style="yellow") for note in differences_in_plan(runs)),
    )


def _own(runs: Sequence[Run]) -> Table:
    impact = MEASURES[IMPACT].title.lower()
    table = _table("model", "samples", *SHARES, impact, "95 % interval")
    for label, run in zip(labels(runs), runs, strict=True):
        metrics = run.results.metrics
        table.add_row(
            Text(label),
            number(metrics["n_samples"]),
            *(number(metrics[name]) for name in SHARES.values()),
            number(metrics[IMPACT]),
            interval(run.results.intervals.get(IMPACT)),
        )
    return table


def _pair(comparisons: Sequence[Comparison]) -> RenderableType:
    pair = comparisons[0]
    table = _table("share of", "first", "second", "difference", "95 % interval", "p")
    for comparison in comparisons:
        table.add_row(
            comparison.measure.short or comparison.measure.title,
            *(number(share) for share in comparison.shares or (None, None)),
            number(comparison.difference),
            interval(comparison.interval),
            p_value(comparison.corrected_p if comparison.shares else None),
        )
    title = (
        f"{pair.first} (first) and {pair.second} (second): "
        f"{pair.n_samples:,} shared samples of {pair.n_games:,} games"
    )
    return Group(Text(), Text(title, style="bold"), table)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
