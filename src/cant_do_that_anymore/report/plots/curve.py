"""The thinking curve: effect of the rule by reasoning tokens."""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, NullLocator

from ...comparison.entries import Standing
from ...metrics.measures import MEASURES, SHARES
from ...providers.base import EFFORTS, Effort
from ...task.types import CHANGED_CONDITION
from .style import (
    BAND,
    HEADLINES,
    INK,
    STYLE,
    bounds_handles,
    dashes,
    grid,
    in_lines,
    legend,
    mark,
    measured,
    saved,
    title,
)

PANELS = {**HEADLINES, SHARES[CHANGED_CONDITION]: (0.0, 1.0, "0: never")}
"""What is drawn, between which values at least, and how to read it."""
_TICKS = [digit * 10**power for power in range(8) for digit in (1, 3)]
_NONE = "0\n(none)"
_ASIDE = 0.1
"""Of the way to the first tick: between models that do not think, or they would hide each other."""
_SIDES: tuple[tuple[int, int, Literal["left", "right"]], ...]
_SIDES = ((-6, 4, "right"), (6, -11, "left"))
"""Where efforts stand beside their points, by model; for more models there is no room."""
_ORDER: tuple[Effort | None, ...] = (None, *EFFORTS)
"""The larger the mark, the greater the effort."""

Line = list[Standing]


def has_curve(group: Sequence[Standing]) -> bool:
    """Whether a model was measured at two efforts on the same positions."""
    return any(len(line) > 1 for of_model in _lines(group).values() for line in of_model)


def _lines(group: Sequence[Standing]) -> dict[str, list[Line]]:
    """By model, those that were measured on the same positions, who thinks least first."""
    found: dict[str, list[Line]] = {}
    for standing in group:
        if standing.is_of_runs:
            lines = found.setdefault(standing.model, [])
            line = next((line for line in lines if _are_alike(line[0], standing)), None)
            if line is None:
                lines.append([standing])
            else:
                line.append(standing)
    return {model: [sorted(line, key=_tokens) for line in lines] for model, lines in found.items()}


def _are_alike(one: Standing, other: Standing) -> bool:
    """Whether they have the same positions; who stops by itself has the first of them."""
    fewer, more = sorted((one.positions, other.positions), key=len)
    return fewer <= more if one.stops or other.stops else fewer == more


def _tokens(standing: Standing) -> float:
    return standing.thinking_tokens(CHANGED_CONDITION) or 0.0


def curve_chart(group: Sequence[Standing], stem: Path) -> list[Path]:
    """Rule uptake, impact factor and special moves by thinking tokens: a line a model."""
    with mpl.rc_context(STYLE):
        return saved(curve_figure(group), stem)


def curve_figure(group: Sequence[Standing]) -> Figure:
    """The same before it is written."""
    lines = _lines(group)
    drawn = [standing for of_model in lines.values() for line in of_model for standing in line]
    tokens = [_tokens(standing) for standing in drawn]
    least, most = _ends(tokens)
    figure = Figure(figsize=(11.0, 4.2 + 0.1 * len(lines)), layout="constrained")
    panels = figure.subplots(1, len(PANELS))
    handles, labelled = [], len(lines) <= len(_SIDES)
    for number, (model, of_model) in enumerate(lines.items()):
        aside = min(_ASIDE, 0.6 / len(lines)) * least * (number - (len(lines) - 1) / 2)
        for axes, name in zip(panels, PANELS, strict=True):
            for line in of_model:
                _draw(axes, name, line, number, aside, labelled=labelled)
        colour, marker = mark(number)
        handles.append(Line2D([], [], marker=marker, color=colour, linestyle=dashes(number)))
        handles[-1].set_label(in_lines(model))
    for axes, name in zip(panels, PANELS, strict=True):
        _finish(axes, name)
        _scale(axes, least, most, from_zero=min(tokens) < least)
    title(figure, "The thinking curve", drawn)
    sizes = [] if labelled else _sizes({each.effort for each in drawn})
    legend(figure, [*handles, *sizes, *bounds_handles(drawn)], drawn)
    return figure


def _draw(axes: Axes, name: str, line: Line, number: int, aside: float, *, labelled: bool) -> None:
    colour, marker = mark(number)
    places, values = [], []
    for standing in line:
        value, interval = measured(standing, name)
        if value is None or interval is None:
            continue
        place = _tokens(standing) or aside
        places.append(place)
        values.append(value)
        bounds = standing.results.bounds.get(name)
        if bounds and bounds.low is not None and bounds.high is not None:
            axes.vlines(place, bounds.low, bounds.high, BAND["facecolor"], linewidth=5, zorder=1)
        axes.vlines(place, interval.low, interval.high, colour, linewidth=1)
        face = "white" if standing.is_suspect else colour
        size = _size(standing.effort) ** 2  # here an area
        axes.scatter(place, value, size, face, marker=marker, edgecolors=colour, zorder=3)
        if labelled or standing.is_suspect:
            right, up, side = _SIDES[number % len(_SIDES)]
            axes.annotate(
                _label(standing) if labelled else "(!)",
                (place, value),
                (right, up),
                textcoords="offset points",
                ha=side,
                fontsize=8,
                color=colour,
                path_effects=[withStroke(linewidth=2, foreground="white")],
            )
    axes.plot(places, values, dashes(number), color=colour, linewidth=1.2, zorder=1.5)


def _size(effort: Effort | None) -> float:
    return 3.5 + _ORDER.index(effort)


def _sizes(efforts: Container[Effort | None]) -> list[Line2D]:
    """What the sizes of marks mean."""
    return [
        Line2D([], [], linestyle="none", marker="o", color=INK, markersize=_size(each), label=told)
        for each in _ORDER
        if each in efforts
        for told in [f"effort: {each}" if each else "its own effort"]
    ]


def _label(standing: Standing) -> str:
    """The effort; where nothing was thought, the axis says so."""
    mark = " (!)" if standing.is_suspect else ""
    if standing.effort in (None, "none") and not _tokens(standing):
        return mark
    return (standing.effort or "its own") + mark


def _finish(axes: Axes, name: str) -> None:
    low, high, reading = PANELS[name]
    bottom, top = axes.get_ylim()
    axes.set_ylim(min(bottom, low - 0.06), max(top, high + 0.06))
    axes.axhline(0, color=INK, linewidth=1)
    axes.set_title(f"{MEASURES[name].title} ({reading})", loc="left", fontsize=10)
    axes.set_xlabel("thinking tokens under the changed rules, mean")
    grid(axes, "y")


def _ends(tokens: Sequence[float]) -> tuple[int, int]:
    """The ticks between which all lie who think."""
    some = [each for each in tokens if each >= 1] or [1.0]
    return _TICKS[bisect_right(_TICKS, min(some)) - 1], _TICKS[bisect_left(_TICKS, max(some))]


def _scale(axes: Axes, least: int, most: int, *, from_zero: bool) -> None:
    """A logarithmic axis; the way from no thoughts at all to the first tick is linear."""
    ticks = [tick for tick in _TICKS if least <= tick <= most]
    if from_zero:
        axes.set_xscale("symlog", linthresh=least, linscale=0.5)
        axes.set_xlim(-0.4 * least, 1.3 * most)
        ticks.insert(0, 0)
    else:
        axes.set_xscale("log")
        axes.set_xlim(0.8 * least, 1.3 * most)
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:,.0f}" if tick else _NONE))
    axes.xaxis.set_minor_locator(NullLocator())
