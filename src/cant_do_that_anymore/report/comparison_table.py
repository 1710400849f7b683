"""A comparison as tables a person can read in a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..errors import counted
from ..evaluation.comparison import Comparison, models_in, of_measure
from ..evaluation.contenders import Contender
from ..evaluation.measures import FORBIDDEN, GAIN, IMPACT, SHARES, UNUSABLE
from ..evaluation.points import in_points, range_in_points
from ..evaluation.verdicts import advice, heading, verdict
from .comparison_words import all_notes, better, by_pair, measures_in, sentences, value
from .words import interval, number, p_value, percentage

WIDE = 100
"""Columns that every table fits into; narrower ones go without some."""


def comparison_table(comparisons: Sequence[Comparison], width: int = WIDE) -> RenderableType:
    """The verdict, every pair, every model on its own, what that says, and what to keep in mind."""
    models = models_in(comparisons)
    few, wide = len(models) == 2, width >= WIDE
    hint = advice(models)
    return Group(
        Text(verdict(comparisons), style="bold"),
        Text(),
        Text(heading(models), style="bold"),
        *(_pair(comparisons) if few else _pairs(comparisons, wide=wide)),
        Text(),
        Text("Each model alone, on all its positions", style="bold"),
        _own(models, wide=wide),
        Text(),
        *(Text(f"- {sentence}") for sentence in sentences(comparisons)),
        *([Text(hint)] if hint else []),
        *(Text(f"note: {note}", style="yellow") for note in all_notes(models)),
    )


def _pair(comparisons: Sequence[Comparison]) -> Iterator[RenderableType]:
    pair = comparisons[0]
    yield Text(
        f"{pair.first.label} (first) and {pair.second.label} (second): "
        f"{counted(pair.n_samples, 'shared sample')} of {counted(pair.n_games, 'game')}"
    )
    table = _table("", "first", "second", "difference, points", "95 % interval, points", "p")
    for comparison in comparisons:
        table.add_row(
            comparison.measure.title,
            *(value(comparison.measure, each) for each in comparison.values),
            in_points(comparison.difference),
            _range(comparison),
            p_value(comparison.corrected_p),
        )
    yield table


def _pairs(comparisons: Sequence[Comparison], *, wide: bool) -> Iterator[RenderableType]:
    others = [m for m in measures_in(comparisons) if m.name != IMPACT] if wide else []
    table = _table("first, second", "shared", "impact factor", "95 % interval", "p", "ahead")
    for measure in others:
        table.add_column(measure.title.lower(), justify="right")
    for pair in by_pair(comparisons):
        impact = of_measure(pair, IMPACT)[0]
        table.add_row(
            Text(f"{impact.first.label}, {impact.second.label}"),
            number(impact.n_samples),
            in_points(impact.difference),
            _range(impact),
            p_value(impact.corrected_p),
            better(impact),
            *(_marked(of_measure(pair, measure.name)[0]) for measure in others),
        )
    yield table
    yield Text(
        "Differences are the second minus the first, in points; below 0 in the impact factor the "
        f"second drops more.{' * sure, after correcting for all comparisons.' if wide else ''}",
        style="dim",
    )


def _range(comparison: Comparison) -> str:
    found = comparison.interval
    return f"[{range_in_points(found.low, found.high, ', ')}]" if found else "–"


def _marked(comparison: Comparison) -> str:
    sure = comparison.verdict == "different"
    return in_points(comparison.difference) + ("*" if sure else " ")


def _own(models: Sequence[Contender], *, wide: bool) -> Table:
    table = _table(
        *("model", "rules", "special", "any forbidden", "no move", "impact factor", "legal gain"),
        no_wrap=wide,
    )
    for model in models:
        metrics, bounds = model.results.metrics, model.results.bounds.get(IMPACT)
        ends = f"bounds [{number(bounds.low)}, {number(bounds.high)}]" if bounds else ""
        samples = counted(int(metrics["n_samples"] or 0), "sample")
        size = f"{samples}, {counted(len(model.seeds), 'seed')}"
        shares = [
            [percentage(metrics[by_rules[rules]]) for rules in SHARES]
            for by_rules in (SHARES, FORBIDDEN, UNUSABLE)
        ]
        table.add_row(
            Text(f"{model.label}\n{size}"),
            "\n".join(SHARES),
            *map("\n".join, shares),
            f"{number(metrics[IMPACT])} {interval(model.results.intervals.get(IMPACT))}\n{ends}",
            number(metrics[GAIN]),
        )
    return table


def _table(first: str, *others: str, no_wrap: bool = False) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, overflow="fold", min_width=12)
    for title in others:
        table.add_column(title, justify="right", no_wrap=no_wrap)
    return table
