"""Numbers on a labelled axis, and shares of a whole, as small pictures for the rows of a table.

Colours come from the style sheet. The pictures stretch to the width they are given; their letters
keep their size.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor

from markupsafe import Markup

from .markup import tag

_ROW = 14
_STEPS = (0.1, 0.25, 0.5, 1.0)
_MOST_STEPS = 4
"""An axis is cut to the fewest steps that hold all numbers, of the smallest that are few."""


@dataclass(frozen=True)
class Axis:
    """A scale for all rows of a table; it always holds 0.

    Attributes:
        low: where it begins, and ``high`` where it ends.
        factor: what its labels are multiplied by, and ``unit`` what they are of.
    """

    low: float
    high: float
    factor: float = 1
    unit: str = ""

    def at(self, value: float) -> str:
        """The place of a value on it."""
        inside = min(max(value, self.low), self.high)
        return f"{100 * (inside - self.low) / (self.high - self.low):.2f}%"

    @property
    def ticks(self) -> dict[float, str]:
        """Both ends and 0, with their labels."""
        ends = dict.fromkeys((self.low, 0.0, self.high))
        return {end: f"{self.factor * end:g}".replace("-", "−") for end in ends}


def axis_over(values: Iterable[float | None], factor: float = 1, unit: str = "") -> Axis:
    """The axis that holds all values.

    >>> axis_over([-0.66, 0.02, None])
    Axis(low=-0.75, high=0.25, factor=1, unit='')
    """
    known = [0.0, *(value for value in values if value is not None)]
    for step in _STEPS:
        low, high = floor(min(known) / step), ceil(max(known) / step)
        if high - low <= _MOST_STEPS:
            break
    return Axis(low * step, max(high, low + 1) * step, factor, unit)


def scale(axis: Axis) -> Markup:
    """The labels of the axis."""
    parts = []
    for value, label in axis.ticks.items():
        anchor = "start" if value == axis.low else "end" if value == axis.high else "middle"
        shown = f"{label} {axis.unit}" if value == axis.high and axis.unit else label
        parts.append(tag("text", shown, x=axis.at(value), y=11, text_anchor=anchor))
    return tag("svg", *parts, class_="scale", width="100%", height=_ROW, aria_hidden="true")


def dot(
    axis: Axis,
    value: float | None,
    interval: tuple[float | None, float | None] = (None, None),
    bounds: tuple[float | None, float | None] = (None, None),
) -> Markup:
    """A value as a dot, its interval as a line, and behind them its bounds, if it has any."""
    middle = _ROW / 2
    parts = [
        tag("line", x1=axis.at(tick), x2=axis.at(tick), y1=0, y2=_ROW, class_="axis")
        for tick in axis.ticks
    ]
    for (low, high), style in ((bounds, "bounds"), (interval, "whisker plain")):
        if low is not None and high is not None:
            ends = {"x1": axis.at(low), "x2": axis.at(high)}
            parts.append(tag("line", **ends, y1=middle, y2=middle, class_=style))
    if value is not None:
        parts.append(tag("circle", cx=axis.at(value), cy=middle, r=4, class_="dot plain"))
    return tag("svg", *parts, class_="intervals", width="100%", height=_ROW, aria_hidden="true")


def stack(counts: Mapping[str, int]) -> Markup:
    """Shares of a whole side by side, in the colours of the outcomes."""
    whole, before, parts = sum(counts.values()), 0, []
    for name, count in counts.items():
        if count:
            x, width = (f"{100 * part / whole:.2f}%" for part in (before, count))
            told = tag("title", f"{name}: {count:,} of {whole:,}, {100 * count / whole:.1f} %")
            parts.append(tag("rect", told, x=x, width=width, height=_ROW, class_=f"is-{name}"))
            before += count
    shares = (f"{name} {100 * n / whole:.0f} %" for name, n in counts.items() if n)
    label = ", ".join(shares)
    return tag(
        "svg", *parts, class_="stack", width="100%", height=_ROW, role="img", aria_label=label
    )
