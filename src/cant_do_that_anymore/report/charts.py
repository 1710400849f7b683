"""Pictures of a run as SVG. Colours come from the style sheet, so they follow light and dark."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode
from xml.etree import ElementTree

import chess.svg
from markupsafe import Markup

from ..metrics.stats.intervals import Interval
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION, Outcome, Sample
from .markup import move_styles, tag
from .words import percentage

Pairs = Mapping[tuple[Outcome, Outcome], int]
"""How many samples had which outcome under one condition, and which under another."""
Side = Literal["left", "right"]

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
            if mark.interval.low < low:
                parts.append(
                    tag("text", "‹", x="0%", dx=-7, y=y + 5, class_=f"beyond {mark.style}")
                )
            if mark.interval.high > high:
                parts.append(tag("text", "›", x="100%", y=y + 5, class_=f"beyond {mark.style}"))
        if mark.value is not None:
            parts.append(tag("circle", cx=at(mark.value), cy=y, r=4, class_=f"dot {mark.style}"))
    return tag("svg", *parts, class_="intervals", width="100%", height=height, aria_hidden="true")


@dataclass(frozen=True)
class Flow:
    """How answers moved from one condition to another: three pictures beside each other.

    The bands stretch; the labels left and right of them keep their size. Every band and label
    links to its samples.
    """

    left: Markup
    bands: Markup
    right: Markup


def flow(
    samples: Sequence[Sample], before: str = STANDARD_CONDITION, after: str = CHANGED_CONDITION
) -> Flow:
    """The outcomes under the condition ``before`` on the left, under ``after`` on the right."""
    pairs = Counter(
        (sample.replies[before].outcome, sample.replies[after].outcome) for sample in samples
    )
    totals = [_totals(pairs, side) for side in (0, 1)]
    scale = _FLOW_HEIGHT / max(1, len(samples))
    left, right = (_tops(counts, scale) for counts in totals)
    height = max(2 * _EDGE + _FLOW_HEIGHT + _GAP * (len(counts) - 1) for counts in totals)
    bands = tag(
        "svg",
        *_bands(pairs, (before, after), left, right, scale),
        class_="bands",
        viewBox=f"0 0 100 {height:g}",
        preserveAspectRatio="none",
        width="100%",
        height=height,
    )
    return Flow(
        _labels(totals[0], left, scale, height, before, "left"),
        bands,
        _labels(totals[1], right, scale, height, after, "right"),
    )


def _totals(pairs: Pairs, side: int) -> dict[Outcome, int]:
    counts: Counter[Outcome] = Counter()
    for pair, count in pairs.items():
        counts[pair[side]] += count
    return {outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]}


def _tops(totals: Mapping[Outcome, int], scale: float) -> dict[Outcome, float]:
    tops, y = {}, _EDGE
    for outcome, count in totals.items():
        tops[outcome] = y
        y += count * scale + _GAP
    return tops


def _bands(
    pairs: Pairs,
    contrast: tuple[str, str],
    tops: Mapping[Outcome, float],
    ends: Mapping[Outcome, float],
    scale: float,
) -> list[Markup]:
    left, right = dict(tops), dict(ends)
    bands = []
    for start in tops:
        for end in ends:
            count = pairs.get((start, end), 0)
            if not count:
                continue
            y, z, thick = left[start], right[end], count * scale
            left[start] += thick
            right[end] += thick
            path = tag("path", d=_band(y, z, max(thick, 1.0)))
            words = f"{count:,} of {sum(pairs.values()):,}: {start}, then {end}"
            link = "#" + urlencode(dict(zip(contrast, (start, end), strict=True)))
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
    condition: str,
    side: Side,
) -> Markup:
    everything = sum(totals.values())
    text_x, node_x = (_LABELS - 12, _LABELS - _NODE) if side == "left" else (12.0, 0.0)
    labels = []
    for outcome, count in totals.items():
        y, thick = tops[outcome], max(count * scale, 1.0)
        middle = y + thick / 2
        node = tag("rect", x=node_x, y=y, width=_NODE, height=thick)
        name = tag("text", outcome, x=text_x, y=middle - 3, class_="name")
        share = f"{count:,} · {percentage(count / everything)}"
        amount = tag("text", share, x=text_x, y=middle + 13, class_="amount")
        link = "#" + urlencode({condition: outcome})
        labels.append(tag("a", node, name, amount, href=link, class_=f"is-{outcome}"))
    return tag("svg", *labels, class_=f"labels {side}", width=_LABELS, height=height)


def pieces() -> Markup:
    """python-chess's pieces."""
    drawings = [ElementTree.fromstring(drawing) for drawing in chess.svg.PIECES.values()]
    for drawing in drawings:
        move_styles(drawing)
    return Markup("".join(ElementTree.tostring(drawing, "unicode") for drawing in drawings))
