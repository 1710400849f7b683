"""Plot of the thinking curve: the effect of the rule by reasoning tokens."""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, NullLocator

from ...comparison.entries import Entry
from ...metrics.measures import MEASURES, REASONING, SPECIAL_SHARE
from ...providers.base import EFFORTS, Effort
from ...task.types import CHANGED_CONDITION
from .style import (
    HEADLINES,
    INK,
    bounds_handles,
    dashes,
    draw_metric,
    grid,
    legend,
    mark,
    model_handles,
    panels,
    title,
)

# The measures drawn, with the least range of their axes and how to read them.
PANELS = {**HEADLINES, SPECIAL_SHARE[CHANGED_CONDITION]: (0.0, 1.0, "0: never")}
_TICKS = [digit * 10**power for power in range(8) for digit in (1, 3)]
_NONE = "0\n(none)"
_OFFSET = 0.1  # of the way to the first tick, between models without reasoning, to avoid overlap
# Where efforts are written beside their points, by model; there is no room for more models.
_SIDES: tuple[tuple[int, int, Literal["left", "right"]], ...]
_SIDES = ((-6, 4, "right"), (6, -11, "left"))
_ORDER: tuple[Effort | None, ...] = (None, *EFFORTS)  # the greater the effort, the larger the mark

Line = list[Entry]


def has_curve(group: Sequence[Entry]) -> bool:
    """Whether a model was measured at two efforts on the same positions."""
    return any(len(line) > 1 for of_model in _lines(group).values() for line in of_model)


def _lines(group: Sequence[Entry]) -> dict[str, list[Line]]:
    """Group entries by model and by set of positions, sorted by reasoning tokens."""
    by_model: dict[str, list[Line]] = {}
    for entry in group:
        lines = by_model.setdefault(entry.model, [])
        line = next((line for line in lines if line[0].positions == entry.positions), None)
        if line is None:
            lines.append([entry])
        else:
            line.append(entry)
    return {
        model: [sorted(line, key=_tokens) for line in lines] for model, lines in by_model.items()
    }


def _tokens(entry: Entry) -> float:
    return entry.mean(REASONING.under(CHANGED_CONDITION)) or 0.0


def curve_chart(group: Sequence[Entry], *, narrow: bool = False) -> Figure:
    """Plot rule uptake, impact factor and special moves by reasoning tokens, a line per model."""
    lines = _lines(group)
    drawn = [entry for of_model in lines.values() for line in of_model for entry in line]
    tokens = [_tokens(entry) for entry in drawn]
    least, most = _ends(tokens)
    figure, drawings = panels(
        11.0, 4.2 + 0.1 * len(lines), len(PANELS), narrow=narrow, shared=False
    )
    labeled = len(lines) <= len(_SIDES)
    for number, of_model in enumerate(lines.values()):
        offset = min(_OFFSET, 0.6 / len(lines)) * least * (number - (len(lines) - 1) / 2)
        for axes, name in zip(drawings, PANELS, strict=True):
            for line in of_model:
                _draw(axes, name, line, number, offset, labeled=labeled)
    for axes, name in zip(drawings, PANELS, strict=True):
        _finish(axes, name)
        _scale(axes, least, most, from_zero=min(tokens) < least)
    title(figure, "Reasoning tokens", drawn)
    sizes = [] if labeled else _sizes({entry.effort for entry in drawn})
    handles = [*model_handles(lines, lines=True), *sizes, *bounds_handles(drawn)]
    legend(figure, handles, drawn)
    return figure


def _draw(axes: Axes, name: str, line: Line, number: int, offset: float, *, labeled: bool) -> None:
    color, marker = mark(number)
    xs, ys = [], []
    for entry in line:
        x, size = _tokens(entry) or offset, _size(entry.effort)
        style = {"color": color, "fmt": marker, "markersize": size}
        value = draw_metric(axes, entry, name, x, "y", 5, **style)
        if value is None:
            continue
        xs.append(x)
        ys.append(value)
        if labeled or entry.is_suspect:
            right, up, side = _SIDES[number % len(_SIDES)]
            axes.annotate(
                _label(entry) if labeled else "(!)",
                (x, value),
                (right, up),
                textcoords="offset points",
                ha=side,
                fontsize=8,
                color=color,
                path_effects=[withStroke(linewidth=2, foreground="white")],
            )
    axes.plot(xs, ys, dashes(number), color=color, linewidth=1.2, zorder=1.5)


def _size(effort: Effort | None) -> float:
    return 3.5 + _ORDER.index(effort)


def _sizes(efforts: Container[Effort | None]) -> list[Line2D]:
    """Return legend entries for the sizes of the marks."""
    return [
        Line2D(
            [], [], linestyle="none", marker="o", color=INK, markersize=_size(effort), label=text
        )
        for effort in _ORDER
        if effort in efforts
        for text in [f"effort: {effort}" if effort else "default effort"]
    ]


def _label(entry: Entry) -> str:
    """Return the effort; without reasoning it is empty, since the axis shows that."""
    mark = " (!)" if entry.is_suspect else ""
    if entry.effort in (None, "none") and not _tokens(entry):
        return mark
    return (entry.effort or "default") + mark


def _finish(axes: Axes, name: str) -> None:
    low, high, reading = PANELS[name]
    bottom, top = axes.get_ylim()
    axes.set_ylim(min(bottom, low - 0.06), max(top, high + 0.06))
    axes.axhline(0, color=INK, linewidth=1)
    axes.set_title(f"{MEASURES[name].title} ({reading})", loc="left", fontsize=10)
    axes.set_xlabel("mean reasoning tokens under the changed rules")
    grid(axes, "y")


def _ends(tokens: Sequence[float]) -> tuple[int, int]:
    """Return the ticks around the entries with reasoning."""
    counts = [count for count in tokens if count >= 1] or [1.0]
    return _TICKS[bisect_right(_TICKS, min(counts)) - 1], _TICKS[bisect_left(_TICKS, max(counts))]


def _scale(axes: Axes, least: int, most: int, *, from_zero: bool) -> None:
    """Set a logarithmic axis, linear between 0 and the first tick."""
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
