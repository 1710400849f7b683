"""Plots with matplotlib: rule uptake by model, shares of outcomes, uptake by reasoning tokens."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from math import floor, log10
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter, StrMethodFormatter, SymmetricalLogLocator

from ..comparison.entries import Entry
from ..files import atomic_write, file_errors
from ..formatting import spelled, visible
from ..metrics.measures import reasoning_name
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, UNUSABLE_OUTCOMES, Outcome

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
Chart = Callable[[Sequence[Entry]], Figure]


class Plot(Figure):
    """A figure that notebooks show as an image."""

    @mpl.rc_context(STYLE)
    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def uptake_chart(entries: Sequence[Entry]) -> Figure:
    """Plot the rule uptake: a row per model, or a row per rules and a mark per model."""
    by_rules = len({entry.change.key for entry in entries}) > 1
    row_of = _rules if by_rules else _label
    rows, models = _unique(map(row_of, entries)), _unique(map(_label, entries))
    per_row = len(models) if by_rules else 1
    figure, [axes] = _panels(len(rows) * (0.3 + 0.12 * per_row), 1)
    for entry in entries:
        number = models.index(entry.label) % per_row
        offset = 0.7 * ((number + 0.5) / per_row - 0.5)
        _draw_uptake(axes, entry, number, y=rows.index(row_of(entry)) + offset)
    axes.axvline(0, color=INK, linewidth=1, zorder=0)
    axes.update_datalim([(0, 0), (1, 0)])
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(axis="x")
    _label_rows(axes, rows)
    if by_rules:
        for number, model in enumerate(models):
            axes.plot([], [], _mark(number), color=_color(number), label=_wrapped(model))
        figure.legend(loc="outside right upper", frameon=False)
    _title(figure, "Rule uptake", entries)
    return figure


def outcome_chart(entries: Sequence[Entry]) -> Figure:
    """Plot the shares of the outcomes under the standard and the changed rules, a row per model."""
    figure, panels = _panels(0.45 * len(entries), 2)
    for axes, condition in zip(panels, (STANDARD_CONDITION, CHANGED_CONDITION), strict=True):
        for row, entry in enumerate(entries):
            end = 0.0
            for outcome, share in _shares(entry.results.outcomes[condition]).items():
                axes.barh(row, share, 0.7, end, color=OUTCOME_COLORS[outcome])
                end += share
        axes.set(title=f"{condition.title()} rules", xlim=(0, 1))
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        _label_rows(axes, list(map(_label, entries)))
        axes.label_outer()  # panels side by side share their labels
    patches = [Patch(color=color, label=outcome) for outcome, color in OUTCOME_COLORS.items()]
    figure.legend(handles=patches, loc="outside right upper", frameon=False)
    _title(figure, "Outcomes", entries)
    return figure


def curve_chart(entries: Sequence[Entry]) -> Figure:
    """Plot the rule uptake by reasoning tokens, a line per model."""
    least = min((tokens for tokens in map(_tokens, entries) if tokens >= 1), default=1.0)
    decade = 10.0 ** floor(log10(least))  # the axis is linear below it, since models may have 0
    figure, [axes] = _panels(2.6, 1)
    for number, model in enumerate(_unique(entry.model for entry in entries)):
        line = sorted((e for e in entries if e.model == model and e.results.uptake), key=_tokens)
        for entry in line:
            _draw_uptake(axes, entry, number, x=_tokens(entry))
        values = [entry.results.uptake.value for entry in line if entry.results.uptake]
        axes.plot(list(map(_tokens, line)), values, color=_color(number), label=_wrapped(model))
    axes.set_xscale("symlog", linthresh=decade, linscale=0.5)
    axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=decade, subs=[1, 3]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set(xlabel="mean reasoning tokens, changed rules")
    axes.axhline(0, color=INK, linewidth=1, zorder=0)
    axes.grid(axis="y")
    figure.legend(loc="outside right upper", frameon=False)
    _title(figure, "Rule uptake by reasoning", entries)
    return figure


def has_curve(entries: Sequence[Entry]) -> bool:
    """Whether a model has several efforts with reasoning."""
    efforts: dict[str, set[str | None]] = {}
    for entry in entries:
        efforts.setdefault(entry.model, set()).add(entry.effort)
    return any(map(_tokens, entries)) and any(len(several) > 1 for several in efforts.values())


def _tokens(entry: Entry) -> float:
    tokens = entry.results.get(reasoning_name(CHANGED_CONDITION))
    return tokens.value if tokens else 0.0


def _draw_uptake(axes: Axes, entry: Entry, number: int, **place: float) -> None:
    """Draw a value with its interval; ``place`` is ``y`` if values are on the x-axis, else x."""
    uptake = entry.results.uptake
    if not uptake or uptake.low is None or uptake.high is None:
        return
    lengths = [[uptake.value - uptake.low], [uptake.high - uptake.value]]
    style: Any = {"yerr" if "x" in place else "xerr": lengths, "linewidth": 1}
    style |= {"x": uptake.value, "y": uptake.value} | place
    axes.errorbar(fmt=_mark(number), color=_color(number), **style)


def _color(number: int) -> str:
    return COLORS[number % len(COLORS)]


def _mark(number: int) -> str:
    return MARKERS[number % len(MARKERS)]


def _shares(counts: Mapping[Outcome, int]) -> dict[str, float]:
    """Return the shares of the outcomes; those without an answer are one."""
    shares = dict.fromkeys(OUTCOME_COLORS, 0.0)
    for outcome, count in counts.items():
        name = NO_ANSWER if outcome in UNUSABLE_OUTCOMES else outcome
        shares[name] += count / max(1, sum(counts.values()))
    return shares


def _label(entry: Entry) -> str:
    return entry.label


def _rules(entry: Entry) -> str:
    """Return the title of the rules, and the pool if it is not the default."""
    return entry.change.title + (f" (pool {entry.pool})" if entry.pool else "")


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _wrapped(name: str) -> str:
    """Wrap a name, with characters that the font lacks as code points."""
    font = get_font(findfont(FONT))
    letters = [c if font.get_char_index(ord(c)) else spelled(c) for c in visible(name)]
    return fill("".join(letters), 36)


def _panels(height: float, n: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels of this height in inches, side by side."""
    figure = Plot(figsize=(3 * n + 4, height + 1.3), layout="constrained")
    return figure, list(figure.subplots(1, n, squeeze=False).flat)


def _label_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label the rows of a panel, the first on top."""
    axes.set_yticks(range(len(names)), list(map(_wrapped, names)))
    axes.set_ylim(len(names) - 0.4, -0.6)


def _title(figure: Figure, subject: str, entries: Sequence[Entry]) -> None:
    """Add the title, with the rules and the numbers of samples."""
    rules = _unique(map(_rules, entries))
    subject = f"{subject} by rules" if len(rules) > 1 else f"{rules[0]}: {subject.lower()}"
    counts = sorted({entry.results.n for entry in entries})
    n = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
    title = f"{subject} ({entries[0].eval}, n = {n}; 95% intervals)"
    figure.suptitle(fill(title, round(11 * figure.get_figwidth())), size=11, x=0.01, ha="left")


@mpl.rc_context(STYLE)
def figure_of(chart: Chart, entries: Sequence[Entry]) -> Figure:
    """Draw a figure in our style."""
    return chart(entries)


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
