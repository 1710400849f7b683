"""SVG charts of a report.

Colors come from the style sheet. Charts stretch to the width they are given; their text keeps its
size.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, floor
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from ..formatting import percentage
from ..metrics.stats.intervals import Interval, ends_of
from ..svg_tags import tag
from ..task.types import OUTCOMES, Outcome, Sample

_ROW = 14
# An axis has at most 4 steps, of the smallest size that covers all values.
_STEPS = (0.1, 0.25, 0.5, 1.0)
_MOST_STEPS = 4


@dataclass(frozen=True)
class Axis:
    """A scale for all rows of a table; it always contains 0.

    Attributes:
        low: the lower end.
        high: the upper end.
        factor: multiplies the values in the labels.
        unit: the unit of the labels.
    """

    low: float
    high: float
    factor: float = 1
    unit: str = ""

    def at(self, value: float) -> str:
        """Return the position of a value on the axis, in percent."""
        inside = min(max(value, self.low), self.high)
        return f"{100 * (inside - self.low) / (self.high - self.low):.2f}%"

    @property
    def ticks(self) -> dict[float, str]:
        """The labels of both ends and of 0."""
        ends = dict.fromkeys((self.low, 0.0, self.high))
        return {end: f"{self.factor * end:g}".replace("-", "−") for end in ends}


def axis_over(values: Iterable[float | None], factor: float = 1, unit: str = "") -> Axis:
    """Return an axis that covers all values.

    >>> axis_over([-0.66, 0.02, None])
    Axis(low=-0.75, high=0.25, factor=1, unit='')
    """
    numbers = [0.0, *(value for value in values if value is not None)]
    for step in _STEPS:
        low, high = floor(min(numbers) / step), ceil(max(numbers) / step)
        if high - low <= _MOST_STEPS:
            break
    return Axis(low * step, max(high, low + 1) * step, factor, unit)


def scale(axis: Axis) -> Markup:
    """Draw the labels of an axis."""
    parts = []
    for value, label in axis.ticks.items():
        anchor = "start" if value == axis.low else "end" if value == axis.high else "middle"
        text = f"{label} {axis.unit}" if value == axis.high and axis.unit else label
        parts.append(tag("text", text, x=axis.at(value), y=11, text_anchor=anchor))
    return tag("svg", *parts, class_="scale", width="100%", height=_ROW, aria_hidden="true")


# The ends of an interval.
Ends = tuple[float | None, float | None]


class Mark(NamedTuple):
    """A value, its interval, the CSS class of their color, and the bounds of the value."""

    value: float | None
    interval: Ends | Interval | None
    style: str = "plain"
    bounds: Ends | None = None


def intervals(
    marks: Sequence[Mark], low: float, high: float, ticks: Iterable[str] = ("0%", "50%", "100%")
) -> Markup:
    """Draw values as dots, intervals as lines and bounds as bands behind them, one below the other.

    Thin lines mark the ticks. An interval that exceeds the scale ends in an arrow.
    """
    axis, height = Axis(low, high), _ROW * len(marks)
    parts = [tag("line", x1=x, x2=x, y1=0, y2=height, class_="axis") for x in ticks]
    for number, mark in enumerate(marks):
        y = _ROW * number + _ROW / 2
        for ends, style in ((mark.bounds, "bounds"), (mark.interval, f"whisker {mark.style}")):
            start, end = ends_of(ends) if isinstance(ends, Interval) else ends or (None, None)
            if start is None or end is None:
                continue
            place = {"x1": axis.at(start), "x2": axis.at(end)}
            parts.append(tag("line", **place, y1=y, y2=y, class_=style))
            beyond = f"beyond {mark.style}"
            if start < low:
                parts.append(tag("text", "‹", x="0%", dx=-7, y=y + 5, class_=beyond))
            if end > high:
                parts.append(tag("text", "›", x="100%", y=y + 5, class_=beyond))
        if mark.value is not None:
            style = f"dot {mark.style}"
            parts.append(tag("circle", cx=axis.at(mark.value), cy=y, r=4, class_=style))
    return tag("svg", *parts, class_="intervals", width="100%", height=height, aria_hidden="true")


def dot(
    axis: Axis, value: float | None, interval: Ends | None = None, bounds: Ends | None = None
) -> Markup:
    """Draw one value on an axis that covers it."""
    mark = Mark(value, interval, bounds=bounds)
    return intervals([mark], axis.low, axis.high, map(axis.at, axis.ticks))


def stack(counts: Mapping[str, int]) -> Markup:
    """Draw the shares of the outcomes as a stacked bar."""
    total, start, parts = sum(counts.values()), 0, []
    for name, count in counts.items():
        if count:
            x, width = (f"{100 * amount / total:.2f}%" for amount in (start, count))
            tooltip = tag("title", f"{name}: {count:,} of {total:,}, {percentage(count / total)}")
            parts.append(tag("rect", tooltip, x=x, width=width, height=_ROW, class_=f"is-{name}"))
            start += count
    label = ", ".join(f"{name} {100 * n / total:.0f}%" for name, n in counts.items() if n)
    return tag(
        "svg", *parts, class_="stack", width="100%", height=_ROW, role="img", aria_label=label
    )


_FLOW_HEIGHT = 240.0
_GAP = 38.0  # between outcomes, for two lines of text beside even the thinnest
_EDGE = 22.0
_LABELS = 108
_NODE = 6.0


class _Side(NamedTuple):
    """The outcomes under one condition: numbers of samples, and the height where each begins."""

    condition: str
    totals: dict[Outcome, int]
    tops: dict[Outcome, float]


def flow(
    samples: Sequence[Sample], before: str, after: str, label: Callable[[str], str] = str
) -> Markup:
    """Draw a flow chart of outcomes from ``before`` on the left to ``after`` on the right.

    It is three drawings side by side: labels, bands, labels. The bands stretch; the labels keep
    their size. Every band and label links to its samples. ``label`` names an outcome.
    """
    pairs = Counter(
        (sample.replies[before].outcome, sample.replies[after].outcome) for sample in samples
    )
    scale = _FLOW_HEIGHT / max(1, len(samples))
    left, right = (_side(samples, condition, scale) for condition in (before, after))
    most = max(len(side.totals) for side in (left, right))
    height = 2 * _EDGE + _FLOW_HEIGHT + _GAP * (most - 1)
    bands = tag(
        "svg",
        *_bands(pairs, left, right, scale, label),
        class_="bands",
        viewBox=f"0 0 100 {height:g}",
        preserveAspectRatio="none",
        width="100%",
        height=height,
    )
    starts = _labels(left, "left", (_LABELS - 12, _LABELS - _NODE), scale, height, label)
    return starts + bands + _labels(right, "right", (12.0, 0.0), scale, height, label)


def _side(samples: Sequence[Sample], condition: str, scale: float) -> _Side:
    counts = Counter(sample.replies[condition].outcome for sample in samples)
    side = _Side(condition, {name: counts[name] for name in OUTCOMES if counts[name]}, {})
    y = _EDGE
    for outcome, count in side.totals.items():
        side.tops[outcome] = y
        y += count * scale + _GAP
    return side


def _bands(
    pairs: Counter[tuple[Outcome, Outcome]],
    before: _Side,
    after: _Side,
    scale: float,
    label: Callable[[str], str],
) -> list[Markup]:
    left, right, bands = dict(before.tops), dict(after.tops), []
    for start, end in product(before.tops, after.tops):
        count = pairs[start, end]
        if not count:
            continue
        y, z, thick = left[start], right[end], count * scale
        left[start] += thick
        right[end] += thick
        path = tag("path", d=_band(y, z, max(thick, 1.0)))
        words = f"{count:,} of {pairs.total():,}: {label(start)}, then {label(end)}"
        link = "#" + urlencode({before.condition: start, after.condition: end})
        bands.append(
            tag("a", tag("title", words), path, href=link, class_=f"is-{end}", aria_label=words)
        )
    return bands


def _band(y: float, z: float, thick: float) -> str:
    """Return the path of a band from height ``y`` on the left to ``z`` on the right."""
    return (
        f"M0 {y:.2f}C50 {y:.2f} 50 {z:.2f} 100 {z:.2f}v{thick:.2f}"
        f"C50 {z + thick:.2f} 50 {y + thick:.2f} 0 {y + thick:.2f}z"
    )


def _labels(
    side: _Side,
    place: str,
    at: tuple[float, float],
    scale: float,
    height: float,
    label: Callable[[str], str],
) -> Markup:
    total, labels = sum(side.totals.values()), []
    text_x, node_x = at
    for outcome, count in side.totals.items():
        y, thick = side.tops[outcome], max(count * scale, 1.0)
        middle = y + thick / 2
        node = tag("rect", x=node_x, y=y, width=_NODE, height=thick)
        name = tag("text", label(outcome), x=text_x, y=middle - 3, class_="name")
        share = f"{count:,} · {percentage(count / total)}"
        amount = tag("text", share, x=text_x, y=middle + 13, class_="amount")
        link = "#" + urlencode({side.condition: outcome})
        labels.append(tag("a", node, name, amount, href=link, class_=f"is-{outcome}"))
    return tag("svg", *labels, class_=f"labels {place}", width=_LABELS, height=height)
