"""Pictures of a run as SVG. Colours come from the style sheet, so they follow light and dark."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from ..evaluation.intervals import Interval
from ..evaluation.judging import OUTCOMES, Outcome
from .markup import Markup, join, tag
from .words import percentage

Flow = Mapping[tuple[Outcome, Outcome], int]
"""How many samples had which outcome under the standard rules, and which under the changed ones."""

_FLOW_HEIGHT = 240.0
_GAP = 38.0
"""Between two outcomes: room for two lines of text beside even the thinnest."""
_EDGE = 22.0
_LABELS = 108
_NODE = 6.0


@dataclass(frozen=True)
class Mark:
    """A value and its interval, drawn in the colour of a style class."""

    value: float | None
    interval: Interval | None
    style: str


def intervals(marks: Sequence[Mark], low: float, high: float) -> Markup:
    """Values as dots and their 95 % intervals as lines, on a scale from ``low`` to ``high``.

    Thin lines mark both ends of the scale and its middle. It stretches to the width it is given;
    an interval that leaves the scale ends in an arrow.
    """

    def at(value: float) -> str:
        return f"{100 * (min(max(value, low), high) - low) / (high - low):.2f}%"

    row = 14
    height = row * len(marks)
    parts = [tag("line", x1=x, x2=x, y1=0, y2=height, class_="axis") for x in ("0%", "50%", "100%")]
    for number, mark in enumerate(marks):
        y = row * number + row / 2
        if mark.interval:
            ends = {"x1": at(mark.interval.low), "x2": at(mark.interval.high)}
            parts.append(tag("line", **ends, y1=y, y2=y, class_=f"whisker {mark.style}"))
            if mark.interval.high > high:
                parts.append(tag("text", "›", x="100%", y=y + 5, class_=f"beyond {mark.style}"))
        if mark.value is not None:
            parts.append(tag("circle", cx=at(mark.value), cy=y, r=4, class_=f"dot {mark.style}"))
    return tag("svg", *parts, class_="intervals", width="100%", height=height, aria_hidden="true")


def flow_picture(flow: Flow) -> Markup:
    """How answers moved: outcomes under the standard rules left, under the changed ones right.

    Every band and outcome links to its samples. The middle stretches; the labels keep their size.
    """
    if not flow:
        return tag("p", "There are no samples.")
    before, after = (_totals(flow, side) for side in (0, 1))
    scale = _FLOW_HEIGHT / sum(flow.values())
    tops = [_tops(totals, scale) for totals in (before, after)]
    height = max(2 * _EDGE + _FLOW_HEIGHT + _GAP * (len(totals) - 1) for totals in (before, after))
    return tag(
        "div",
        _labels(before, tops[0], scale, height, "standard"),
        tag(
            "svg",
            *_bands(flow, tops[0], tops[1], scale),
            class_="bands",
            viewBox=f"0 0 100 {height:g}",
            preserveAspectRatio="none",
            width="100%",
            height=height,
        ),
        _labels(after, tops[1], scale, height, "variant"),
        class_="flow",
        role="group",
        aria_label="How answers moved from the standard to the changed rules",
    )


def _totals(flow: Flow, side: int) -> dict[Outcome, int]:
    counts: Counter[Outcome] = Counter()
    for pair, count in flow.items():
        counts[pair[side]] += count
    return {outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]}


def _tops(totals: Mapping[Outcome, int], scale: float) -> dict[Outcome, float]:
    tops, y = {}, _EDGE
    for outcome, count in totals.items():
        tops[outcome] = y
        y += count * scale + _GAP
    return tops


def _bands(
    flow: Flow, tops: Mapping[Outcome, float], ends: Mapping[Outcome, float], scale: float
) -> list[Markup]:
    left, right = dict(tops), dict(ends)
    bands = []
    for start in tops:
        for end in ends:
            count = flow.get((start, end), 0)
            if not count:
                continue
            y, z, thick = left[start], right[end], count * scale
            left[start] += thick
            right[end] += thick
            path = tag("path", d=_band(y, z, max(thick, 1.0)))
            words = f"{count:,} of {sum(flow.values()):,}: {start}, then {end}"
            link = "#" + urlencode({"standard": start, "variant": end})
            bands.append(
                tag("a", tag("title", words), path, href=link, class_=f"is-{end}", aria_label=words)
            )
    return bands


def _band(y: float, z: float, thick: float) -> str:
    """A band from height ``y`` on the left to ``z`` on the right, ``thick`` high."""
    return (
        f"M0 {y:.2f}C50 {y:.2f} 50 {z:.2f} 100 {z:.2f}v{thick:.2f}"
        f"C50 {z + thick:.2f} 50 {y + thick:.2f} 0 {y + thick:.2f}z"
    )


def _labels(
    totals: Mapping[Outcome, int],
    tops: Mapping[Outcome, float],
    scale: float,
    height: float,
    rule_set: str,
) -> Markup:
    on_left = rule_set == "standard"
    everything = sum(totals.values())
    text_x, node_x = (_LABELS - 12, _LABELS - _NODE) if on_left else (12.0, 0.0)
    labels = []
    for outcome, count in totals.items():
        y, thick = tops[outcome], max(count * scale, 1.0)
        middle = y + thick / 2
        node = tag("rect", x=node_x, y=y, width=_NODE, height=thick)
        name = tag("text", outcome, x=text_x, y=middle - 3, class_="name")
        share = f"{count:,} · {percentage(count / everything)}"
        amount = tag("text", share, x=text_x, y=middle + 13, class_="amount")
        link = "#" + urlencode({rule_set: outcome})
        labels.append(tag("a", join(node, name, amount), href=link, class_=f"is-{outcome}"))
    side = "left" if on_left else "right"
    return tag("svg", *labels, class_=f"labels {side}", width=_LABELS, height=height)
