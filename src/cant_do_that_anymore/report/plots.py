"""Pictures of an experiment, as PNG and SVG files."""

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..errors import Problem
from ..evaluation.groups import EARLIER, Group, by_concerned_moves
from ..evaluation.measures import GAIN, IMPACT, MEASURES, SHARES
from ..evaluation.standings import Standing
from ..evaluation.statistics.intervals import Interval
from ..evaluation.vocabulary import AFTER, BEFORE, Number
from ..files import replacing
from .words import minus

_COLOURS = ("#0072b2", "#c44f00", "#009e73", "#b5588c", "#e69f00", "#56b4e9", "#1c1d1f")
"""Told apart by colour-blind readers as well."""
_MARKERS = "osD^vP"
"""Fewer than colours, so that the same pair comes back only after many models."""
_INK, _GRID = "#1c1d1f", "#dedbd2"
_BARS = ((BEFORE, _COLOURS[0], -0.2), (AFTER, _COLOURS[1], 0.2))
_GROUND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
_BAND: dict[str, Any] = {"facecolor": _GRID, "edgecolor": "white", "hatch": "////"}
JUNK = "(!) useless answers look like a dropped habit"
"""What the mark means."""
_STYLE: dict[Any, Any] = {  # versions of matplotlib differ in the type of the keys
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 10.0,
    "hatch.linewidth": 0.6,
    "savefig.dpi": 160,
    "svg.hashsalt": "cdta",  # the same numbers make the same file
    "text.parse_math": False,  # a dollar sign in a model's name is a dollar sign
}


def bar_chart(group: Sequence[Standing], stem: Path) -> list[Path]:
    """Share of special moves under both rule sets, and of answers that name no move."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.0, 2.0 + 0.6 * len(group)), layout="constrained")
        axes = figure.subplots()
        for condition, colour, offset in _BARS:
            for place, standing in enumerate(group):
                _bar(axes, standing, condition, colour, place + offset)
        _rows(axes, group)
        axes.set_xlim(-0.01, 1.12)
        axes.set_xticks(np.linspace(0, 1, 6))
        axes.set_xlabel("share of special moves, with 95 % interval")
        _finish(axes, "x")
        figure.suptitle(_title("Special moves", group), fontsize=11, x=0.01, ha="left")
        handles = [Patch(color=colour, label=f"{name} rules") for name, colour, _ in _BARS]
        if any(_unusable(standing, name) for standing in group for name in (BEFORE, AFTER)):
            handles.append(Patch(fill=False, hatch="////", label="answers that name no move"))
        _legend(figure, handles, group)
        return _saved(figure, stem)


def _bar(axes: Axes, standing: Standing, condition: str, colour: str, place: float) -> None:
    share, interval = _measured(standing, SHARES[condition])
    if share is None or interval is None:
        return
    unusable = _unusable(standing, condition)
    # A border, so that a bar of no length is still seen.
    axes.barh(place, share, 0.34, color=colour, edgecolor=colour, linewidth=2)
    axes.barh(place, unusable, 0.34, share, color="none", edgecolor=colour, hatch="////")
    _whisker(axes, share, interval, place, _INK)
    text = f"{100 * share:.0f} %" + (f" (no move: {100 * unusable:.0f} %)" if unusable else "")
    edge = max(interval.high, share + unusable)
    inside = edge > 0.8 and bool(unusable)  # the text would leave the picture
    axes.annotate(
        text,
        (edge, place),
        (-6 if inside else 5, 0),
        textcoords="offset points",
        ha="right" if inside else "left",
        va="center",
        fontsize=8,
        bbox=_GROUND,
    )


def headline_chart(group: Sequence[Standing], stem: Path) -> list[Path]:
    """Impact factor and legal gain with their intervals, a row a model."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8.0, 1.9 + 0.5 * len(group)), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, name, (low, high) in zip(
            panels, (IMPACT, GAIN), ((-1.0, 0.0), (0.0, 1.0)), strict=True
        ):
            for place, standing in enumerate(group):
                _point(axes, standing, name, place)
            axes.axvline(0, color=_INK, linewidth=1)
            _rows(axes, group)
            left, right = axes.get_xlim()
            axes.set_xlim(min(left, low - 0.14), max(right, high + 0.14))
            axes.set_title(MEASURES[name].title, loc="left", fontsize=10)
            axes.set_xlabel(f"{_toward(name)}, with 95 % interval")
            _finish(axes, "x")
        panels[1].tick_params(labelleft=False)
        figure.suptitle(_title("Headline measures", group), fontsize=11, x=0.01, ha="left")
        handles = []
        if any(standing.results.bounds for standing in group):
            handles.append(Patch(**_BAND, label="bounds: whatever answers without a move had said"))
        _legend(figure, handles, group)
        return _saved(figure, stem)


def _toward(name: str) -> str:
    return f"{minus('-1')}: habit dropped, 0: kept" if name == IMPACT else "0: deaf to rules"


def _point(axes: Axes, standing: Standing, name: str, place: int) -> None:
    value, interval = _measured(standing, name)
    bounds = standing.results.bounds.get(name)
    if value is None or interval is None:
        return
    if bounds and bounds.low is not None and bounds.high is not None:
        width = bounds.high - bounds.low
        axes.barh(place, width, 0.5, bounds.low, **_BAND)
    colour = _COLOURS[1] if standing.is_junk else _COLOURS[0]
    _whisker(axes, value, interval, place, colour)
    face = "white" if standing.is_junk else colour
    axes.plot(value, place, "o", markersize=6, color=colour, markerfacecolor=face)
    axes.annotate(
        minus(f"{round(value, 2) + 0:.2f}"),
        (value, place),
        (0, 6),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        bbox=_GROUND,
    )


def line_chart(group: Sequence[Standing], stem: Path) -> list[Path]:
    """Share of special moves by earlier moves of the changed piece, under both rule sets."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.0, 4.4), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        handles = []
        for number, standing in enumerate(group):
            by_count = by_concerned_moves(standing.samples, standing.change)
            # Side by side, so that equal shares do not hide each other.
            aside = 0.7 * ((number + 0.5) / len(group) - 0.5)
            for axes, condition in zip(panels, (BEFORE, AFTER), strict=True):
                _line(axes, by_count, condition, number, aside)
            handles.append(panels[0].lines[-1])
            handles[-1].set_label(marked(standing))
        for axes, condition in zip(panels, (BEFORE, AFTER), strict=True):
            axes.set_title(f"{condition} rules", loc="left", fontsize=10)
            axes.set_xticks(range(len(EARLIER)), [*EARLIER[:-1], f"{len(EARLIER) - 1}+"])
            axes.set_xlabel(f"earlier {group[0].change.concerned}")
            _finish(axes, "y")
        highest = min(1.0, ceil(max(axes.dataLim.y1 for axes in panels) / 0.2) * 0.2)
        panels[0].set_ylim(-0.03 * highest, 1.03 * highest)
        cut = "" if highest == 1 else f"\n(the axis ends at {highest:.1f})"
        panels[0].set_ylabel(f"share of special moves, with 95 % interval{cut}")
        figure.suptitle(_title("Special moves", group), fontsize=11, x=0.01, ha="left")
        _legend(figure, handles, group)
        return _saved(figure, stem)


def _line(axes: Axes, groups: Sequence[Group], condition: str, number: int, aside: float) -> None:
    colour = _COLOURS[number % len(_COLOURS)]
    shares = [group.standard if condition == BEFORE else group.changed for group in groups]
    places = [EARLIER.index(group.label) + aside for group in groups]
    for place, share in zip(places, shares, strict=True):
        if share.interval:
            low, high = share.interval.low, share.interval.high
            axes.vlines(place, low, high, color=colour, linewidth=1, alpha=0.6)
    values = np.array([share.value for share in shares], dtype=float)
    marker = _MARKERS[number % len(_MARKERS)]
    axes.plot(places, values, "-", marker=marker, markersize=4, linewidth=1, color=colour)


def _measured(standing: Standing, name: str) -> tuple[Number, Interval | None]:
    return standing.results.metrics.get(name), standing.results.intervals.get(name)


def _unusable(standing: Standing, condition: str) -> float:
    return standing.results.metrics.get(f"{condition}_unusable_proportion") or 0.0


def _whisker(axes: Axes, value: float, interval: Interval, place: float, colour: str) -> None:
    reach = [[max(0.0, value - interval.low)], [max(0.0, interval.high - value)]]
    axes.errorbar(value, place, xerr=reach, fmt="none", color=colour, capsize=3, linewidth=1)


def _rows(axes: Axes, group: Sequence[Standing]) -> None:
    axes.set_yticks(range(len(group)), [marked(standing) for standing in group])
    axes.set_ylim(len(group) - 0.4, -0.6)


def marked(standing: Standing) -> str:
    """The model's name, with a mark if its numbers are not to be trusted."""
    return f"{standing.model} (!)" if standing.is_junk else standing.model


def _legend(figure: Figure, handles: Sequence[Artist], group: Sequence[Standing]) -> None:
    if any(standing.is_junk for standing in group):
        junk = Patch(fill=False, linewidth=0, label=JUNK)
        handles = [*handles, junk]
    if handles:
        columns = 2 if len(handles) == 4 else 3
        style: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": 9}
        figure.legend(handles=handles, loc="outside lower center", **style)


def _title(what: str, group: Sequence[Standing]) -> str:
    numbers = sorted({int(standing.results.metrics["n_samples"] or 0) for standing in group})
    n = f"{numbers[0]:,}" + (f" to {numbers[-1]:,}" if len(numbers) > 1 else "")
    title = group[0].change.title
    return f"{what} when {title[0].lower()}{title[1:]} ({group[0].eval}, n = {n})"


def _finish(axes: Axes, grid: Literal["x", "y"]) -> None:
    axes.grid(axis=grid, color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def _saved(figure: Figure, stem: Path) -> list[Path]:
    files = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")]
    try:
        for file in files:
            form = file.suffix[1:]
            with replacing(file) as picture:
                figure.savefig(
                    picture, format=form, metadata={"Date": None} if form == "svg" else None
                )
    except OSError as problem:
        raise Problem(f"cannot write the plots to {str(stem.parent)!r} ({problem})") from None
    return files
