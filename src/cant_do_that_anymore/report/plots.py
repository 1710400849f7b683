"""Plots with matplotlib: values with intervals, shares of outcomes, curves by reasoning tokens."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO, StringIO
from math import floor, log10
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter, SymmetricalLogLocator

from ..comparison.entries import Entry
from ..files import atomic_write, file_errors
from ..formatting import minus, spelled, visible
from ..metrics.measures import IMPACT, MEASURES, REASONING, SCALE_HINTS, UPTAKE, USUAL_SHARE
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, UNUSABLE_OUTCOMES, Outcome
from .columns import marked

# Distinguishable for color-blind readers.
COLORS = ("#0072b2", "#c44f00", "#009e73", "#b5588c", "#e69f00", "#56b4e9", "#1c1d1f")
MARKERS = "osD^vP"  # fewer than colors, so that a pair of both repeats only after 42 models
INK, GRID = "#1c1d1f", "#dedbd2"
FONT = "DejaVu Sans"
NO_ANSWER = "no answer"
OUTCOME_COLORS = {
    "usual": "#e69f00",
    "forbidden": "#8c6100",
    "adapted": "#009e73",
    "legal": "#56b4e9",
    "illegal": "#b5588c",
    NO_ANSWER: GRID,
}
VALUES = {UPTAKE: (0.0, 1.0), IMPACT: (-1.0, 0.0)}  # with the least ranges of their axes
CURVES = (UPTAKE, IMPACT, USUAL_SHARE[CHANGED_CONDITION])
SUSPECT = "hollow, (!): most dropped habits may be unusable or missing answers"
NARROW = 4.8  # inches: the width of a phone's screen
STYLE: dict[Any, Any] = {  # versions of matplotlib differ in the type of the keys
    "axes.axisbelow": True,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "font.family": FONT,
    "grid.color": GRID,
    "legend.fontsize": 9,
    "savefig.dpi": 160,
    "svg.hashsalt": "cdta",  # reproducible files
    "text.parse_math": False,  # model names may contain dollar signs
}


# Draws a figure of some entries. If ``narrow``, for a phone, its panels stand one above the other.
Chart = Callable[..., Figure]


class Plot(Figure):
    """A figure that notebooks show as an image."""

    @mpl.rc_context(STYLE)
    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def value_chart(group: Sequence[Entry], *, narrow: bool = False) -> Figure:
    """Plot rule uptake and impact factor: a row per model, or per rules if there are several."""
    by_rules = len({entry.change.key for entry in group}) > 1
    row_of = _rules if by_rules else marked
    rows, models = _unique(map(row_of, group)), _unique(entry.label for entry in group)
    per_row = len(models) if by_rules else 1
    figure, panels = _panels(len(rows) * (0.3 + 0.12 * per_row), len(VALUES), narrow=narrow)
    for axes, (measure, ends) in zip(panels, VALUES.items(), strict=True):
        axes.update_datalim([(end, 0) for end in ends])
        for entry in group:
            number = models.index(entry.label) % per_row
            offset = 0.7 * ((number + 0.5) / per_row - 0.5)
            _draw_value(axes, entry, measure, number, y=rows.index(row_of(entry)) + offset)
        axes.axvline(0, color=INK, linewidth=1, zorder=0)
        axes.set(title=MEASURES[measure].title, xlabel=minus(SCALE_HINTS[measure]))
        axes.grid(axis="x")
        _label_rows(axes, rows, narrow=narrow)
    _finish(figure, "Rule uptake and impact factor", group, _marks(models) if by_rules else [])
    return figure


def outcome_chart(group: Sequence[Entry], *, narrow: bool = False) -> Figure:
    """Plot the shares of the outcomes under the standard and the changed rules, a row per model."""
    figure, panels = _panels(0.45 * len(group), 2, narrow=narrow)
    for axes, condition in zip(panels, (STANDARD_CONDITION, CHANGED_CONDITION), strict=True):
        for row, entry in enumerate(group):
            end = 0.0
            for outcome, share in _shares(entry.results.outcomes[condition]).items():
                axes.barh(row, share, 0.7, end, color=OUTCOME_COLORS[outcome])
                end += share
        axes.set(title=f"{condition.title()} rules", xlabel="share of answers", xlim=(0, 1))
        _label_rows(axes, list(map(marked, group)), narrow=narrow)
    label = group[0].words.label
    patches = [Patch(color=color, label=label(name)) for name, color in OUTCOME_COLORS.items()]
    _finish(figure, "Outcomes", group, patches)
    return figure


def curve_chart(group: Sequence[Entry], *, narrow: bool = False) -> Figure:
    """Plot rule uptake, impact factor and usual moves by reasoning tokens, a line per model."""
    models = _unique(entry.model for entry in group)
    least = min((tokens for tokens in map(_tokens, group) if tokens >= 1), default=1.0)
    decade = 10.0 ** floor(log10(least))  # the axis is linear below it, since models may have 0
    figure, panels = _panels(2.6, len(CURVES), narrow=narrow)
    for axes, measure in zip(panels, CURVES, strict=True):
        for line in _lines(group):
            number = models.index(line[0].model)
            _draw_line(axes, line, measure, number, with_efforts=len(models) <= 2)
        axes.set_xscale("symlog", linthresh=decade, linscale=0.5)
        ticks = SymmetricalLogLocator(base=10, linthresh=decade, subs=[1, 3])
        axes.xaxis.set_major_locator(ticks)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        title = group[0].words.fill(MEASURES[measure].title)
        axes.set(title=title, xlabel="mean reasoning tokens, changed rules")
        axes.grid(axis="y")
    _finish(figure, "Reasoning tokens", group, _marks(models))
    return figure


def has_curve(group: Sequence[Entry]) -> bool:
    """Whether a model was measured at two efforts on the same items."""
    return any(len(line) > 1 for line in _lines(group))


def _lines(group: Sequence[Entry]) -> list[list[Entry]]:
    """Group entries by model and by set of items, each sorted by reasoning tokens."""
    lines: dict[object, list[Entry]] = {}
    for entry in group:
        lines.setdefault((entry.model, entry.items), []).append(entry)
    return [sorted(line, key=_tokens) for line in lines.values()]


def _tokens(entry: Entry) -> float:
    return entry.mean(REASONING.under(CHANGED_CONDITION)) or 0.0


def _draw_line(
    axes: Axes, line: Sequence[Entry], measure: str, number: int, *, with_efforts: bool
) -> None:
    """Draw a measure of a model by its reasoning tokens."""
    points = []
    for entry in line:
        tokens = _tokens(entry)
        value = _draw_value(axes, entry, measure, number, x=tokens)
        if value is None:
            continue
        points.append((tokens, value))
        if with_efforts:
            place: Any = {"xytext": (6, 4 - 15 * number), "textcoords": "offset points"}
            axes.annotate(
                entry.effort or "default", points[-1], color=_color(number), size=8, **place
            )
    axes.plot([x for x, _ in points], [y for _, y in points], color=_color(number), linewidth=1)


def _draw_value(
    axes: Axes, entry: Entry, measure: str, number: int, **place: float
) -> float | None:
    """Draw a value with its interval, and return it; None if it has no interval.

    Args:
        number: the index of its color and marker.
        place: ``y`` if values are on the x-axis, else ``x``.
    """
    value, interval = entry.results.metrics.get(measure), entry.results.intervals.get(measure)
    if value is None or interval is None:
        return None
    lengths = [[max(0.0, value - interval.low)], [max(0.0, interval.high - value)]]
    style: Any = {"yerr" if "x" in place else "xerr": lengths, "linewidth": 1}
    style |= {"x": value, "y": value} | place
    color, marker = _color(number), MARKERS[number % len(MARKERS)]
    face = "white" if entry.is_suspect else color
    axes.errorbar(fmt=marker, color=color, markerfacecolor=face, **style)
    return value


def _color(number: int) -> str:
    return COLORS[number % len(COLORS)]


def _marks(models: Sequence[str]) -> list[Artist]:
    """Return the legend entries of models."""
    return [
        Line2D([], [], color=_color(n), marker=MARKERS[n % len(MARKERS)], label=_wrapped(model))
        for n, model in enumerate(models)
    ]


def _shares(counts: Mapping[Outcome, int]) -> dict[str, float]:
    """Return the shares of the outcomes; those without an answer are one."""
    shares = dict.fromkeys(OUTCOME_COLORS, 0.0)
    for outcome, count in counts.items():
        name = NO_ANSWER if outcome in UNUSABLE_OUTCOMES else outcome
        shares[name] += count / sum(counts.values())
    return shares


def _rules(entry: Entry) -> str:
    """Return the title of the rules, and the pool if it is not the default."""
    return entry.change.title + (f" (pool {entry.pool})" if entry.pool else "")


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _wrapped(name: str, width: int = 36) -> str:
    """Wrap a name, with characters that the font lacks as code points."""
    font = get_font(findfont(FONT))
    letters = [c if font.get_char_index(ord(c)) else spelled(c) for c in visible(name)]
    return fill("".join(letters), width)


def _panels(height: float, n: int, *, narrow: bool) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels of this height in inches: side by side, or stacked if narrow."""
    size = (NARROW, n * (height + 0.9) + 1) if narrow else (3 * n + 3, height + 1.3)
    rows, columns = (n, 1) if narrow else (1, n)
    figure = Plot(figsize=size, layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _label_rows(axes: Axes, names: Sequence[str], *, narrow: bool) -> None:
    """Label the rows of a panel, the first on top."""
    axes.set_yticks(range(len(names)), [_wrapped(name, 18 if narrow else 36) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    if not narrow:
        axes.label_outer()  # panels side by side share their labels


def _finish(
    figure: Figure, subject: str, group: Sequence[Entry], handles: Sequence[Artist]
) -> None:
    """Add the title, the legend, and what a hollow mark means."""
    rules = _unique(map(_rules, group))
    subject = f"{subject} by rules" if len(rules) > 1 else f"{rules[0]}: {subject.lower()}"
    counts = sorted({int(entry.results.metrics["n_samples"] or 0) for entry in group})
    n = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
    title = f"{subject} ({group[0].eval}, n = {n}; 95% intervals)"
    figure.suptitle(fill(title, round(11 * figure.get_figwidth())), size=11, x=0.01, ha="left")
    if any(entry.is_suspect for entry in group):
        figure.supxlabel(SUSPECT, size=9)
    if handles:
        place: Any = "outside right upper"
        if figure.get_figwidth() == NARROW:
            place = "outside lower center"
        figure.legend(handles=handles, loc=place, frameon=False)


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
    return files
