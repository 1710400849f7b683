"""Plots of the headline measures, by model and by rules."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...comparison.entries import Entry
from ...formatting import brief, minus
from ...metrics.measures import MEASURES
from ..columns import marked
from .style import (
    COLORS,
    HEADLINES,
    INK,
    bounds_handles,
    draw_metric,
    grid,
    label_rows,
    legend,
    mark,
    model_handles,
    panels,
    title,
)

_NUMBER: dict[str, Any] = {
    "textcoords": "offset points",
    "ha": "center",
    "fontsize": 8,
    "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.5},
}
_ROW_HEIGHT = 0.7  # share of the distance between two rules that the marks of the models fill


def headline_chart(group: Sequence[Entry], *, narrow: bool = False) -> Figure:
    """Plot the headline measures, a row for each model."""
    figure, both = panels(8.0, 1.9 + 0.5 * len(group), len(HEADLINES), narrow=narrow)
    for axes, name in zip(both, HEADLINES, strict=True):
        for y, entry in enumerate(group):
            style = {"color": COLORS[1 if entry.is_suspect else 0], "fmt": "o"}
            value = draw_metric(axes, entry, name, y, "x", 0.5, **style)
            if value is not None:
                axes.annotate(minus(brief(value)), (value, y), (0, 6), **_NUMBER)
        label_rows(axes, [marked(entry) for entry in group], narrow=narrow)
        _finish(axes, name)
    title(figure, "Headline measures", group)
    legend(figure, bounds_handles(group), group)
    return figure


def rules_chart(group: Sequence[Entry], *, narrow: bool = False) -> Figure:
    """Plot the headline measures, a row for each rule with a mark for each model."""
    changes = list(dict.fromkeys(map(_rules_label, group)))
    models = list(dict.fromkeys(entry.label for entry in group))
    step = _ROW_HEIGHT / len(models)
    height = len(changes) * (0.2 + 0.12 * len(models))
    figure, both = panels(9.0, 1.9 + height, len(HEADLINES), narrow=narrow)
    for axes, name in zip(both, HEADLINES, strict=True):
        for entry in group:
            number = models.index(entry.label)
            offset = step * (number - (len(models) - 1) / 2)
            y = changes.index(_rules_label(entry)) + offset
            color, marker = mark(number)
            draw_metric(axes, entry, name, y, "x", 0.8 * step, color=color, fmt=marker)
        label_rows(axes, changes, narrow=narrow)
        _finish(axes, name)
    title(figure, "Headline measures by rules", group)
    legend(figure, [*model_handles(models, lines=False), *bounds_handles(group)], group)
    return figure


def _rules_label(entry: Entry) -> str:
    """Return the title of the rules, and the pool if it is not the default."""
    return entry.change.title + (f" (pool {entry.pool})" if entry.pool else "")


def _finish(axes: Axes, name: str) -> None:
    low, high, reading = HEADLINES[name]
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, low - 0.14), max(right, high + 0.14))
    axes.axvline(0, color=INK, linewidth=1, zorder=0)
    axes.set_title(MEASURES[name].title, loc="left", fontsize=10)
    axes.set_xlabel(reading, fontsize=9)
    grid(axes, "x")
