"""SVG charts of a report, and the board diagram of a rule.

Colors come from the style sheet. Charts stretch to the width they are given; their text keeps its
size.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Literal
from urllib.parse import urlencode
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import chess
import chess.svg
from markupsafe import Markup

from ..formatting import percentage
from ..game.notation import move_number_prefix, notate
from ..game.position import Position
from ..game.rule_pool import EXAMPLE_GAME, example_of
from ..game.rules import STANDARD, Rules
from ..metrics.stats.intervals import Interval
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION, Outcome, Sample


def tag(name: str, *children: str, **attributes: str | float) -> Markup:
    """Return an SVG element; children that are not `Markup` are escaped.

    >>> print(tag("text", "a < b", class_="note"))
    <text class="note">a &lt; b</text>
    """
    pairs = Markup().join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _attribute(value))
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, pairs, Markup().join(children))


def move_styles(drawing: Element) -> None:
    """Turn inline styles into attributes, since the content security policy allows no styles."""
    for element in drawing.iter():
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            name, _, value = declaration.partition(":")
            element.set(name.strip(), value.strip())


def _attribute(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


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


def dot(
    axis: Axis,
    value: float | None,
    interval: tuple[float | None, float | None] = (None, None),
    bounds: tuple[float | None, float | None] = (None, None),
) -> Markup:
    """Draw a value as a dot, its interval as a line, and its bounds as a band behind them."""
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
    """Draw the shares of the outcomes as a stacked bar."""
    total, start, parts = sum(counts.values()), 0, []
    for name, count in counts.items():
        if count:
            x, width = (f"{100 * amount / total:.2f}%" for amount in (start, count))
            tooltip = tag("title", f"{name}: {count:,} of {total:,}, {100 * count / total:.1f} %")
            parts.append(tag("rect", tooltip, x=x, width=width, height=_ROW, class_=f"is-{name}"))
            start += count
    shares = (f"{name} {100 * n / total:.0f} %" for name, n in counts.items() if n)
    label = ", ".join(shares)
    return tag(
        "svg", *parts, class_="stack", width="100%", height=_ROW, role="img", aria_label=label
    )


# Numbers of samples by their outcomes under two conditions.
Pairs = Mapping[tuple[Outcome, Outcome], int]
Side = Literal["left", "right"]

_FLOW_HEIGHT = 240.0
_GAP = 38.0  # between outcomes, for two lines of text beside even the thinnest
_EDGE = 22.0
_LABELS = 108
_NODE = 6.0


@dataclass(frozen=True)
class Mark:
    """A value and its interval, with the CSS class of their color."""

    value: float | None
    interval: Interval | None
    style: str


def intervals(marks: Sequence[Mark], low: float, high: float) -> Markup:
    """Draw values as dots and 95% intervals as lines, on a scale from ``low`` to ``high``.

    Thin lines mark both ends of the scale and its middle. An interval that exceeds the scale ends
    in an arrow.
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
    """A flow chart of outcomes from one condition to another: labels, bands, labels.

    The bands stretch; the labels keep their size. Every band and label links to its samples.
    """

    left: Markup
    bands: Markup
    right: Markup


def flow(
    samples: Sequence[Sample], before: str = STANDARD_CONDITION, after: str = CHANGED_CONDITION
) -> Flow:
    """Draw the outcomes under ``before`` on the left and under ``after`` on the right."""
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
    """Return the path of a band from height ``y`` on the left to ``z`` on the right."""
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
    total = sum(totals.values())
    text_x, node_x = (_LABELS - 12, _LABELS - _NODE) if side == "left" else (12.0, 0.0)
    labels = []
    for outcome, count in totals.items():
        y, thick = tops[outcome], max(count * scale, 1.0)
        middle = y + thick / 2
        node = tag("rect", x=node_x, y=y, width=_NODE, height=thick)
        name = tag("text", outcome, x=text_x, y=middle - 3, class_="name")
        share = f"{count:,} · {percentage(count / total)}"
        amount = tag("text", share, x=text_x, y=middle + 13, class_="amount")
        link = "#" + urlencode({condition: outcome})
        labels.append(tag("a", node, name, amount, href=link, class_=f"is-{outcome}"))
    return tag("svg", *labels, class_=f"labels {side}", width=_LABELS, height=height)


def pieces() -> Markup:
    """Return the pieces of python-chess as SVG definitions."""
    drawings = [ElementTree.fromstring(drawing) for drawing in chess.svg.PIECES.values()]
    for drawing in drawings:
        move_styles(drawing)
    return Markup("".join(ElementTree.tostring(drawing, "unicode") for drawing in drawings))


_SQUARE = 45.0


@dataclass(frozen=True)
class RulePicture:
    """A board diagram of a piece whose moves a rule changes.

    Attributes:
        board: the diagram: small dots for moves the piece keeps, large dots for new ones, crosses
            for lost ones.
        move: the special move in notation.
        source: the game that the position is from.
    """

    board: Markup
    move: str
    source: str


def rule_picture(rules: Rules, otherwise: Position | None = None) -> RulePicture | None:
    """Draw the example of the rules, or ``otherwise`` if they have none."""
    example = example_of(rules)
    position = example or otherwise
    if not position:
        return None
    board, special = position.board(), position.special_moves[0]
    source = EXAMPLE_GAME if example else "a sample of this run"
    return RulePicture(
        _board_diagram(board, special, rules),
        move_number_prefix(board) + notate(board, special),
        source,
    )


def _board_diagram(board: chess.Board, special: str, rules: Rules) -> Markup:
    start = chess.Move.from_uci(special).from_square
    old, new = (_targets(version, board, start) for version in (STANDARD, rules))
    description = f"{len(new - old)} moves are new, {len(new & old)} kept, {len(old - new)} lost"
    return tag(
        "svg",
        *(_square(square, " last" if square == start else "") for square in chess.SQUARES),
        *(_piece(square, piece) for square, piece in sorted(board.piece_map().items())),
        *(_dot(end, "kept", 6) for end in sorted(new & old)),
        *(_dot(end, "new", 9) for end in sorted(new - old)),
        *(_cross(end) for end in sorted(old - new)),
        class_="board",
        viewBox="0 0 360 360",
        role="img",
        aria_label=description,
    )


def _targets(rules: Rules, board: chess.Board, start: chess.Square) -> set[chess.Square]:
    return {move.to_square for move in rules.legal_moves(board) if move.from_square == start}


def _corner(square: chess.Square) -> tuple[float, float]:
    return _SQUARE * chess.square_file(square), _SQUARE * (7 - chess.square_rank(square))


def _square(square: chess.Square, marked: str) -> Markup:
    x, y = _corner(square)
    shade = "light" if chess.BB_SQUARES[square] & chess.BB_LIGHT_SQUARES else "dark"
    return tag("rect", x=x, y=y, width=_SQUARE, height=_SQUARE, class_=shade + marked)


def _piece(square: chess.Square, piece: chess.Piece) -> Markup:
    x, y = _corner(square)
    name = f"{chess.COLOR_NAMES[piece.color]}-{chess.piece_name(piece.piece_type)}"
    return tag("use", href=f"#{name}", transform=f"translate({x:g} {y:g})")


def _dot(square: chess.Square, style: str, radius: float) -> Markup:
    x, y = _corner(square)
    return tag("circle", cx=x + _SQUARE / 2, cy=y + _SQUARE / 2, r=radius, class_=f"now {style}")


def _cross(square: chess.Square) -> Markup:
    x, y = _corner(square)
    strokes = f"M{x + 12:g} {y + 12:g}l21 21m0 -21l-21 21"
    return tag("path", d=strokes, class_="lost")
