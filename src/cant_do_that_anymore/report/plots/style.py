"""Style of all plots: colors, markers, axes, legends, files."""

from collections.abc import Iterable, Sequence
from functools import cache
from io import BytesIO, StringIO
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, Protocol

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ...comparison.entries import Entry
from ...files import atomic_write, file_errors
from ...formatting import minus, spelled, visible
from ...metrics.measures import IMPACT, SCALE_HINTS, UPTAKE
from ...metrics.stats.intervals import Interval
from ..columns import SUSPECT_LEGEND

# Distinguishable for color-blind readers.
COLORS = ("#0072b2", "#c44f00", "#009e73", "#b5588c", "#e69f00", "#56b4e9", "#1c1d1f")
MARKERS = "osD^vP"  # fewer than colors, so that a pair of both repeats only after 42 models
DASHES: tuple[Literal["-", "--", "-."], ...] = ("-", "--", "-.")
FONT = "DejaVu Sans"
INK, GRID = "#1c1d1f", "#dedbd2"
HATCH = "////"
NARROW = 4.8  # inches: the width of a phone's screen
_LETTERS_PER_INCH = 11.5  # of a title
BAND: dict[str, Any] = {"facecolor": GRID, "edgecolor": "white", "hatch": HATCH}
STYLE: dict[Any, Any] = {  # versions of matplotlib differ in the type of the keys
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.family": FONT,
    "font.size": 10.0,
    "hatch.linewidth": 0.6,
    "savefig.dpi": 160,
    "svg.hashsalt": "cdta",  # reproducible files
    "text.parse_math": False,  # model names may contain dollar signs
}
# The headline measures, with the least range of their axes and how to read them.
HEADLINES = {
    UPTAKE: (0.0, 1.0, SCALE_HINTS[UPTAKE]),
    IMPACT: (-1.0, 0.0, minus(SCALE_HINTS[IMPACT])),
}


def mark(number: int) -> tuple[str, str]:
    """Return the color and the marker of a model by its index."""
    return COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]


def dashes(number: int) -> Literal["-", "--", "-."]:
    """Return the line style of a model by its index; it changes when the colors repeat."""
    return DASHES[number // len(COLORS) % len(DASHES)]


def wrap_label(name: str, width: int = 36) -> str:
    """Wrap a name to fit a plot, with characters that the font lacks as code points."""
    return fill(
        "".join(letter if _has(letter) else spelled(letter) for letter in visible(name)), width
    )


@cache
def _has(letter: str) -> bool:
    """Whether the font has this character; matplotlib draws all missing ones alike."""
    return bool(get_font(findfont(FONT)).get_char_index(ord(letter)))


def end_of_axis(highest: float) -> tuple[float, str]:
    """Return the end of an axis of shares, and a remark if that is below 1.

    >>> end_of_axis(0.25), end_of_axis(0.9)
    ((0.4, ' (the axis ends at 0.4)'), (1.0, ''))
    """
    end = min(1.0, round(ceil(max(0.2, highest) / 0.2 - 1e-9) * 0.2, 1))  # -inf without a share
    return end, "" if end == 1 else f" (the axis ends at {end})"


def value_and_interval(entry: Entry, name: str) -> tuple[float, Interval] | None:
    """Return a metric and its interval, or None if either is missing."""
    value, interval = entry.results.metrics.get(name), entry.results.intervals.get(name)
    return None if value is None or interval is None else (value, interval)


def draw_interval(
    axes: Axes, x: float, y: float, interval: Interval, along: Literal["x", "y"], **style: Any
) -> None:
    """Draw the interval of the value at (x, y), and the value itself if a marker is given."""
    value = x if along == "x" else y
    lengths = [[max(0.0, value - interval.low)], [max(0.0, interval.high - value)]]
    usual: dict[str, Any] = {"fmt": "none", "capsize": 3 if along == "x" else 0, "linewidth": 1}
    axes.errorbar(x, y, **usual | {f"{along}err": lengths} | style)


def draw_metric(
    axes: Axes,
    entry: Entry,
    name: str,
    place: float,
    along: Literal["x", "y"],
    thickness: float,
    **style: Any,
) -> float | None:
    """Draw a metric of an entry: its bounds, its interval, and a mark; return its value.

    Nothing is drawn, and None returned, if it has no interval.

    Args:
        place: where it is drawn on the other axis.
        thickness: that of the bounds: in points along the y-axis, else in rows.
        style: of the interval and the mark.
    """
    if not (found := value_and_interval(entry, name)):
        return None
    value, interval = found
    bounds = entry.results.bounds.get(name)
    if bounds and bounds.low is not None and bounds.high is not None:
        if along == "x":
            axes.barh(place, bounds.high - bounds.low, thickness, bounds.low, **BAND)
        else:
            axes.vlines(place, bounds.low, bounds.high, GRID, linewidth=thickness, zorder=1)
    face = "white" if entry.is_suspect else style["color"]
    x, y = (value, place) if along == "x" else (place, value)
    draw_interval(axes, x, y, interval, along, markerfacecolor=face, **style)
    return value


class Plot(Figure):
    """A figure that notebooks show as an image."""

    @mpl.rc_context(STYLE)
    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def panels(
    width: float, height: float, n: int, *, narrow: bool, shared: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side, or one above the other on a narrow screen.

    Panels side by side have a ``shared`` y-axis.
    """
    size = (NARROW, 1 + n * (height - 1)) if narrow else (width, height)
    figure = Plot(figsize=size, layout="constrained")
    rows, columns = (n, 1) if narrow else (1, n)
    axes = figure.subplots(rows, columns, sharey=shared and not narrow, squeeze=False)
    return figure, list(axes.flat)


def label_rows(axes: Axes, names: Sequence[str], *, narrow: bool = False) -> None:
    """Label the rows of a plot, the first on top."""
    axes.set_yticks(range(len(names)), [wrap_label(name, 18 if narrow else 36) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)


def grid(axes: Axes, across: Literal["x", "y"]) -> None:
    """Draw grid lines behind everything else."""
    axes.grid(axis=across, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def title(figure: Figure, subject: str, group: Sequence[Entry]) -> None:
    """Set the title: the subject, the rules if they are the same, and the number of samples."""
    changes = {entry.change.key: entry.change.title for entry in group}
    numbers = sorted({int(entry.results.metrics["n_samples"] or 0) for entry in group})
    n = f"{numbers[0]:,}" + (f" to {numbers[-1]:,}" if len(numbers) > 1 else "")
    (change,) = changes.values() if len(changes) == 1 else ("",)
    condition = f" when {change[0].lower()}{change[1:]}" if change else ""
    (pool,) = {entry.pool for entry in group} if len(changes) == 1 else ("",)
    chosen = f", pool {pool}" if pool else ""
    eval_ = "" if group[0].eval == "all" else f"{group[0].eval}, "
    text = f"{subject}{condition} ({eval_}n = {n}{chosen}; 95% intervals)"
    wrapped = fill(text, round(_LETTERS_PER_INCH * figure.get_figwidth()))
    figure.suptitle(wrapped, fontsize=11, x=0.01, ha="left")


def legend(figure: Figure, handles: Sequence[Artist], group: Sequence[Entry]) -> None:
    """Draw the legend below the plot."""
    if any(entry.is_suspect for entry in group):
        handles = [*handles, Patch(fill=False, linewidth=0, label=SUSPECT_LEGEND)]
    if handles:
        columns = 1 if figure.get_figwidth() <= NARROW else 2 if len(handles) == 4 else 3
        style: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": 9}
        figure.legend(handles=handles, loc="outside lower center", **style)


def model_handles(models: Iterable[str], *, lines: bool) -> list[Artist]:
    """Return the legend entries of models: their marks, on their lines if these are drawn."""
    handles: list[Artist] = []
    for number, model in enumerate(models):
        (color, marker), label = mark(number), wrap_label(model)
        dash = dashes(number) if lines else "none"
        handles.append(Line2D([], [], marker=marker, color=color, linestyle=dash, label=label))
    return handles


def bounds_handles(group: Sequence[Entry]) -> list[Artist]:
    """Return the legend entry of the bounds, if any are drawn."""
    if not any(IMPACT in entry.results.bounds for entry in group):
        return []
    return [Patch(**BAND, label="bounds: any reading of answers without a move")]


class Chart(Protocol):
    """Draws a figure of some entries; on a narrow one, panels stand one above the other."""

    def __call__(self, group: Sequence[Entry], *, narrow: bool = False) -> Figure:
        """Draw the figure."""


@mpl.rc_context(STYLE)
def figure_of(chart: Chart, entries: Sequence[Entry]) -> Figure:
    """Draw a figure in our style."""
    return chart(entries)


@mpl.rc_context(STYLE)
def svg_of(chart: Chart, entries: Sequence[Entry], *, narrow: bool) -> str:
    """Draw a figure as SVG text."""
    text = StringIO()
    chart(entries, narrow=narrow).savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def save_chart(chart: Chart, entries: Sequence[Entry], stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG.

    Raises:
        UserError: if it cannot be written.
    """
    files = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")]
    with file_errors("write the plots to", stem.parent), mpl.rc_context(STYLE):
        figure = chart(entries)
        for file, metadata in zip(files, (None, {"Date": None}), strict=True):
            with atomic_write(file) as output:
                figure.savefig(output, format=file.suffix[1:], metadata=metadata)
            figure.set_layout_engine("none")  # the layout is fixed after the first file
    return files
