"""SVG charts of a report.

Colors come from the style sheet. Charts stretch to the width they are given; their text keeps its
size.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, floor
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from ..formatting import minus, percentage
from ..metrics.estimates import Estimate
from ..svg_tags import tag
from ..task.types import OUTCOMES, Outcome, Sample

Label = Callable[[str], str]
_ROW = 14
# An axis has at most 4 steps, of the smallest size that covers all values.
_STEPS = (0.1, 0.25, 0.5, 1.0)
_MOST_STEPS = 4


@dataclass(frozen=True)
class Axis:
    """A scale in percent or in points for all rows of a table; it always contains 0."""

    low: float
    high: float
    unit: str = "%"

    def at(self, value: float) -> str:
        """Return the position of a value on the axis, in percent."""
        return f"{100 * (value - self.low) / (self.high - self.low):.2f}%"

    @property
    def ticks(self) -> dict[float, str]:
        """The labels of both ends and of 0; the last one has the unit."""
        labels = {end: minus(f"{100 * end:g}") for end in (self.low, 0.0, self.high)}
        return labels | {self.high: labels[self.high] + self.unit}


def axis_over(estimates: Iterable[Estimate | None], unit: str = "%") -> Axis:
    """Return an axis that covers all numbers with their intervals; in percent, it reaches 100.

    >>> axis_over([Estimate(-0.3, -0.66, 0.02, 50), None], " points")
    Axis(low=-0.75, high=0.25, unit=' points')
    """
    ends = [end for e in estimates if e for end in (e.low, e.value, e.high) if end is not None]
    least, most = min([0.0, *ends]), max([1.0 if unit == "%" else 0.0, *ends])
    enough = (s for s in _STEPS if ceil(most / s) - floor(least / s) <= _MOST_STEPS)
    step = next(enough, _STEPS[-1])
    low, high = floor(least / step), ceil(most / step)
    return Axis(low * step, max(high, low + 1) * step, unit)


def scale(axis: Axis) -> Markup:
    """Draw the labels of an axis."""
    parts = []
    for value, label in axis.ticks.items():
        anchor = "start" if value == axis.low else "end" if value == axis.high else "middle"
        parts.append(tag("text", label, x=axis.at(value), y=11, text_anchor=anchor))
    return tag("svg", *parts, class_="scale", width="100%", height=_ROW, aria_hidden="true")


def dot(axis: Axis, estimate: Estimate | None) -> Markup:
    """Draw a number as a dot and its interval as a line; thin lines mark the ticks."""
    ticks = map(axis.at, axis.ticks)
    parts = [tag("line", x1=x, x2=x, y1=0, y2=_ROW, class_="axis") for x in ticks]
    if estimate:
        low, high = (estimate.value if e is None else e for e in (estimate.low, estimate.high))
        ends, y = {"x1": axis.at(low), "x2": axis.at(high)}, _ROW / 2
        parts.append(tag("line", **ends, y1=y, y2=y, class_="whisker"))
        parts.append(tag("circle", cx=axis.at(estimate.value), cy=y, r=4, class_="dot"))
    return tag("svg", *parts, class_="intervals", width="100%", height=_ROW, aria_hidden="true")


def stack(counts: Mapping[Outcome, int], label: Label) -> Markup:
    """Draw the shares of the outcomes as a stacked bar; ``label`` names an outcome."""
    total, start, parts, texts = max(1, sum(counts.values())), 0, [], []
    for name, count in counts.items():
        if count:
            texts.append(f"{label(name)} {percentage(count / total, 0)}")
            place = {"x": f"{100 * start / total:.2f}%", "width": f"{100 * count / total:.2f}%"}
            title = tag("title", texts[-1])
            parts.append(tag("rect", title, **place, height=_ROW, class_=f"is-{name}"))
            start += count
    text = ", ".join(texts)
    return tag(
        "svg", *parts, class_="stack", width="100%", height=_ROW, role="img", aria_label=text
    )


_FLOW_HEIGHT = 240.0
_GAP = 38.0  # between outcomes, for two lines of text beside even the thinnest
_EDGE = 22.0
_LABELS = 124
_NODE = 6.0
# Where labels have their text and their node.
_LABELS_AT = {"left": (_LABELS - 12, _LABELS - _NODE), "right": (12.0, 0.0)}


class _Side(NamedTuple):
    """The outcomes under one condition: their numbers of samples, and where each begins."""

    condition: str
    counts: dict[Outcome, int]
    tops: dict[Outcome, float]


def flow(samples: Sequence[Sample], before: str, after: str, label: Label = str) -> Markup:
    """Draw a flow chart of outcomes from ``before`` on the left to ``after`` on the right.

    It is three drawings side by side: labels, bands, labels. The bands stretch; the labels keep
    their size. Every band and label links to its samples. ``label`` names an outcome.
    """
    pairs = Counter((s.replies[before].outcome, s.replies[after].outcome) for s in samples)
    scale = _FLOW_HEIGHT / max(1, len(samples))
    left = _side(before, Counter(start for start, _ in pairs.elements()), scale)
    right = _side(after, Counter(end for _, end in pairs.elements()), scale)
    height = 2 * _EDGE + _FLOW_HEIGHT + _GAP * (max(len(left.tops), len(right.tops)) - 1)
    bands = tag(
        "svg",
        *_bands(pairs, left, right, scale, label),
        class_="bands",
        viewBox=f"0 0 100 {height:g}",
        preserveAspectRatio="none",
        width="100%",
        height=height,
    )
    starts = _labels(left, "left", scale, height, label)
    return starts + bands + _labels(right, "right", scale, height, label)


def _side(condition: str, counts: Counter[Outcome], scale: float) -> _Side:
    side = _Side(condition, {name: counts[name] for name in OUTCOMES if counts[name]}, {})
    y = _EDGE
    for outcome, count in side.counts.items():
        side.tops[outcome] = y
        y += count * scale + _GAP
    return side


def _bands(
    pairs: Counter[tuple[Outcome, Outcome]], before: _Side, after: _Side, scale: float, label: Label
) -> Iterator[Markup]:
    left, right = dict(before.tops), dict(after.tops)
    for start, end in product(before.tops, after.tops):
        if not (count := pairs[start, end]):
            continue
        path = tag("path", d=_band(left[start], right[end], max(count * scale, 1.0)))
        left[start] += count * scale
        right[end] += count * scale
        words = f"{count:,} of {pairs.total():,}: {label(start)}, then {label(end)}"
        link = "#" + urlencode({before.condition: start, after.condition: end})
        title = tag("title", words)
        yield tag("a", title, path, href=link, class_=f"is-{end}", aria_label=words)


def _band(y: float, z: float, thick: float) -> str:
    """Return the path of a band from height ``y`` on the left to ``z`` on the right."""
    return (
        f"M0 {y:.2f}C50 {y:.2f} 50 {z:.2f} 100 {z:.2f}v{thick:.2f}"
        f"C50 {z + thick:.2f} 50 {y + thick:.2f} 0 {y + thick:.2f}z"
    )


def _labels(side: _Side, place: str, scale: float, height: float, label: Label) -> Markup:
    total, labels = sum(side.counts.values()), []
    text_x, node_x = _LABELS_AT[place]
    for outcome, count in side.counts.items():
        y, thick = side.tops[outcome], max(count * scale, 1.0)
        middle = y + thick / 2
        node = tag("rect", x=node_x, y=y, width=_NODE, height=thick)
        name = tag("text", label(outcome), x=text_x, y=middle - 3, class_="name")
        share = f"{count:,} · {percentage(count / total, 0)}"
        amount = tag("text", share, x=text_x, y=middle + 13, class_="amount")
        link = "#" + urlencode({side.condition: outcome})
        labels.append(tag("a", node, name, amount, href=link, class_=f"is-{outcome}"))
    return tag("svg", *labels, class_=f"labels {place}", width=_LABELS, height=height)
