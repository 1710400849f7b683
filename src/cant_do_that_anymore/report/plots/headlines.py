"""Plots of the headline measures, by model and by rules."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...comparison.entries import Standing
from ...formatting import minus
from ...metrics.measures import MEASURES
from ..columns import marked
from .style import (
    BAND,
    COLOURS,
    GROUND,
    HEADLINES,
    INK,
    STYLE,
    bounds_handles,
    grid,
    in_lines,
    legend,
    mark,
    measured,
    rows,
    saved,
    title,
    whisker,
)

_TAKEN = 0.7
"""How much of the way from one rule to the next its models take up."""


def headline_chart(group: Sequence[Standing], stem: Path) -> list[Path]:
    """A row a model."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 1.9 + 0.5 * len(group)), layout="constrained")
        for axes, name in _panels(figure):
            for place, standing in enumerate(group):
                _point(axes, standing, name, place, COLOURS[1 if standing.is_suspect else 0])
                _number(axes, standing, name, place)
            rows(axes, [marked(standing) for standing in group])
            _finish(axes, name)
        title(figure, "Headline measures", group)
        legend(figure, bounds_handles(group), group)
        return saved(figure, stem)


def rules_chart(found: Sequence[Standing], stem: Path) -> list[Path]:
    """A row for each change of rules, and in it a mark for each model: is it this rule, or any?"""
    changes = list(dict.fromkeys(map(_under, found)))
    models = list(dict.fromkeys(standing.label for standing in found))
    step = _TAKEN / len(models)
    with mpl.rc_context(STYLE):
        tall = len(changes) * (0.2 + 0.12 * len(models))
        figure = Figure(figsize=(9.0, 1.9 + tall), layout="constrained")
        for axes, name in _panels(figure):
            for standing in found:
                number = models.index(standing.label)
                aside = step * (number - (len(models) - 1) / 2)
                place = changes.index(_under(standing)) + aside
                _point(axes, standing, name, place, *mark(number), thick=0.8 * step)
            rows(axes, changes)
            _finish(axes, name)
        title(figure, "Headline measures by rules", found)
        legend(figure, [*_marks(models), *bounds_handles(found)], found)
        return saved(figure, stem)


def _under(standing: Standing) -> str:
    """The rules, and the pool if it is not the one that they have by default."""
    return standing.change.title + (f" (pool {standing.pool})" if standing.pool else "")


def _panels(figure: Figure) -> list[tuple[Axes, str]]:
    return list(zip(figure.subplots(1, len(HEADLINES), sharey=True), HEADLINES, strict=True))


def _marks(models: Sequence[str]) -> list[Line2D]:
    handles = []
    for number, model in enumerate(models):
        colour, marker = mark(number)
        told = in_lines(model)
        handles.append(Line2D([], [], linestyle="none", marker=marker, color=colour, label=told))
    return handles


def _point(
    axes: Axes,
    standing: Standing,
    name: str,
    place: float,
    colour: str,
    marker: str = "o",
    thick: float = 0.5,
) -> None:
    value, interval = measured(standing, name)
    bounds = standing.results.bounds.get(name)
    if value is None or interval is None:
        return
    if bounds and bounds.low is not None and bounds.high is not None:
        axes.barh(place, bounds.high - bounds.low, thick, bounds.low, **BAND)
    whisker(axes, value, interval, place, colour)
    face = "white" if standing.is_suspect else colour
    axes.plot(value, place, marker, markersize=6, color=colour, markerfacecolor=face)


def _number(axes: Axes, standing: Standing, name: str, place: float) -> None:
    value, interval = measured(standing, name)
    if value is None or interval is None:
        return
    axes.annotate(
        minus(f"{round(value, 2) + 0:.2f}"),
        (value, place),
        (0, 6),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        bbox=GROUND,
    )


def _finish(axes: Axes, name: str) -> None:
    low, high, reading = HEADLINES[name]
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, low - 0.14), max(right, high + 0.14))
    axes.axvline(0, color=INK, linewidth=1, zorder=0)
    axes.set_title(MEASURES[name].title, loc="left", fontsize=10)
    axes.set_xlabel(reading)
    grid(axes, "x")
