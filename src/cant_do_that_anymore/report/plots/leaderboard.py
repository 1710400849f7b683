"""Plots of a leaderboard: headline measures by model and by rules, shares of special moves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ...comparison.entries import Entry
from ...formatting import brief, minus, percentage
from ...metrics.measures import FORBIDDEN_SHARE, MEASURES, SPECIAL_SHARE, UNUSABLE_SHARE
from ...task.types import CHANGED_CONDITION, STANDARD_CONDITION
from ..columns import marked
from .style import (
    COLORS,
    HATCH,
    HEADLINES,
    INK,
    bounds_handles,
    draw_interval,
    draw_metric,
    end_of_axis,
    grid,
    label_rows,
    legend,
    mark,
    model_handles,
    panels,
    title,
    value_and_interval,
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


_BARS = ((STANDARD_CONDITION, COLORS[0], -0.2), (CHANGED_CONDITION, COLORS[1], 0.2))
_PALE = 0.3  # opacity of forbidden moves other than the special move
_COLUMN = 0.2  # width of a column of numbers beside the bars


def bar_chart(group: Sequence[Entry], *, narrow: bool = False) -> Figure:
    """Plot the shares of special, forbidden and unusable answers under both rule sets."""
    columns = {"special": SPECIAL_SHARE, "any\nforbidden": FORBIDDEN_SHARE}
    if any(_share(entry, name) for entry in group for name in UNUSABLE_SHARE.values()):
        columns["no\nmove"] = UNUSABLE_SHARE
    figure, [axes] = panels(8.4, 2.0 + 0.6 * len(group), 1, narrow=narrow)
    for condition, color, offset in _BARS:
        for row, entry in enumerate(group):
            _bar(axes, entry, condition, color, row + offset)
    label_rows(axes, [marked(entry) for entry in group], narrow=narrow)
    end, cut = end_of_axis(axes.dataLim.x1)
    _numbers(axes, group, columns, end)
    axes.set_xlim(-0.01 * end, (1.03 + _COLUMN * len(columns)) * end)
    axes.set_xticks(np.arange(0, end + 0.01, 0.2 if end > 0.4 else 0.1))
    axes.spines["bottom"].set_bounds(-0.01 * end, end)
    axes.set_xlabel(f"share of answers{cut}", loc="left")
    grid(axes, "x")
    title(figure, "Special moves", group)
    handles = [Patch(color=color, label=f"{name} rules") for name, color, _ in _BARS]
    handles.append(Patch(color=INK, alpha=_PALE, label="other forbidden moves"))
    if UNUSABLE_SHARE in columns.values():
        handles.append(Patch(fill=False, hatch=HATCH, label="answers without a move"))
    legend(figure, handles, group)
    return figure


def _bar(axes: Axes, entry: Entry, condition: str, color: str, y: float) -> None:
    if not (found := value_and_interval(entry, SPECIAL_SHARE[condition])):
        return
    share, interval = found
    forbidden = _share(entry, FORBIDDEN_SHARE[condition])
    unusable = _share(entry, UNUSABLE_SHARE[condition])
    # A border, so that a bar of length 0 is visible.
    axes.barh(y, share, 0.34, color=color, edgecolor=color, linewidth=2)
    axes.barh(y, forbidden - share, 0.38, share, color=color, alpha=_PALE, linewidth=0)
    if unusable:
        axes.barh(y, unusable, 0.34, forbidden, color="none", edgecolor=color, hatch=HATCH)
    draw_interval(axes, share, y, interval, "x", color=INK)


def _numbers(
    axes: Axes, group: Sequence[Entry], columns: Mapping[str, Mapping[str, str]], end: float
) -> None:
    """Write the shares in percent, in columns to the right of the axis."""
    for number, (heading, names) in enumerate(columns.items(), 1):
        x = (1.02 + _COLUMN * number) * end
        axes.text(x, -0.6, heading, ha="right", va="bottom", fontsize=8)
        for condition, _, offset in _BARS:
            for row, entry in enumerate(group):
                text = percentage(entry.results.metrics.get(names[condition]), 0)
                axes.text(x, row + offset, text, ha="right", va="center", fontsize=8)


def _share(entry: Entry, name: str) -> float:
    return entry.results.metrics.get(name) or 0.0
