"""Plots with matplotlib: rule uptake by model, shares of outcomes, uptake by reasoning tokens."""

from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from itertools import cycle
from math import floor, log10, nan
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
from ..comparison.leaderboard import Ranking
from ..files import atomic_write, file_errors, safe_name
from ..formatting import spelled, visible
from ..metrics.estimates import Estimate
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION
from .rows import reasoning_of

# Distinguishable for color-blind readers.
COLORS = ("#0072b2", "#c44f00", "#009e73", "#b5588c", "#e69f00", "#56b4e9", "#1c1d1f")
GRID = "#dedbd2"
FONT = "DejaVu Sans"
OUTCOME_COLORS: dict[str, str] = {
    "usual": "#e69f00",
    "forbidden": "#8c6100",
    "adapted": "#009e73",
    "legal": "#56b4e9",
    "illegal": "#b5588c",
}
STYLE: dict[Any, Any] = {  # versions of matplotlib differ in the type of the keys
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.family": FONT,
    "font.size": 9,
    "grid.color": GRID,
    "savefig.dpi": 160,
    "svg.hashsalt": "cdta",  # reproducible files
    "text.parse_math": False,  # model names may contain dollar signs
}


class Plot(Figure):
    """A figure in our style, which notebooks show as an image."""

    @mpl.rc_context(STYLE)
    def savefig(self, *args: Any, **options: Any) -> None:
        """Write the figure to a file."""
        super().savefig(*args, **options)

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


@mpl.rc_context(STYLE)
def uptake_chart(entries: Sequence[Entry]) -> Figure:
    """Plot the rule uptake: a row per model, and with several rules one per model and rules."""
    several = len({entry.title for entry in entries}) > 1
    names = [f"{entry.title}: {entry.label}" if several else entry.label for entry in entries]
    figure, [axes] = _panels("Rule uptake", entries, 0.42 * len(entries))
    values, reaches = _uptakes(entries)
    axes.errorbar(values, range(len(entries)), xerr=reaches, fmt="o", color=COLORS[0])
    axes.axvline(0, color="black", linewidth=1, zorder=0)
    axes.update_datalim([(0, 0), (1, 0)])
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set(xlabel="rule uptake, 95% interval")
    axes.grid(axis="x")
    _label_rows(axes, names)
    return figure


@mpl.rc_context(STYLE)
def outcome_chart(entries: Sequence[Entry]) -> Figure:
    """Plot the shares of the outcomes under the standard and the changed rules, a row per model."""
    figure, panels = _panels("Outcomes", entries, 0.45 * len(entries), 2)
    for axes, condition in zip(panels, (STANDARD_CONDITION, CHANGED_CONDITION), strict=True):
        for row, entry in enumerate(entries):
            counts, end = entry.results.outcomes[condition], 0.0
            for outcome, count in counts.items():
                share = count / max(1, sum(counts.values()))
                axes.barh(row, share, 0.7, end, color=OUTCOME_COLORS.get(outcome, GRID))
                end += share
        axes.set(title=f"{condition.title()} rules", xlim=(0, 1))
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        _label_rows(axes, [entry.label for entry in entries])
        axes.label_outer()  # panels side by side share their labels
    words = entries[0].run.words
    colors = {words.label(name): color for name, color in OUTCOME_COLORS.items()}
    colors[f"no {words.answer}"] = GRID
    patches = [Patch(color=color, label=name) for name, color in colors.items()]
    figure.legend(handles=patches, loc="outside right upper", frameon=False)
    return figure


@mpl.rc_context(STYLE)
def curve_chart(entries: Sequence[Entry]) -> Figure:
    """Plot the rule uptake by reasoning tokens, a line per model."""
    figure, [axes] = _panels("Rule uptake by reasoning", entries, 2.6)
    models = dict.fromkeys(entry.model for entry in entries)
    for model, color in zip(models, cycle(COLORS), strict=False):
        line = sorted((e for e in entries if e.model == model and e.results.uptake), key=_tokens)
        tokens, (values, reaches) = list(map(_tokens, line)), _uptakes(line)
        axes.errorbar(tokens, values, reaches, fmt="o-", color=color, label=_wrapped(model))
    least = min((tokens for tokens in map(_tokens, entries) if tokens >= 1), default=1.0)
    decade = 10.0 ** floor(log10(least))  # the axis is linear below it, since models may have 0
    axes.set_xscale("symlog", linthresh=decade, linscale=0.5)
    axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=decade, subs=[1, 3]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set(xlabel="mean reasoning tokens, changed rules", ylabel="rule uptake, 95% interval")
    axes.axhline(0, color="black", linewidth=1, zorder=0)
    axes.grid(axis="y")
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def has_curve(entries: Sequence[Entry]) -> bool:
    """Whether a model has several efforts with reasoning."""
    models = {entry.model for entry in entries}
    kinds = {(entry.model, entry.run.plan.settings.reasoning_effort) for entry in entries}
    return any(map(_tokens, entries)) and len(kinds) > len(models)


def _tokens(entry: Entry) -> float:
    return reasoning_of(entry) or 0.0


def _uptakes(entries: Sequence[Entry]) -> tuple[list[float], list[list[float]]]:
    """Return the rule uptakes, and how far their intervals reach below and above them."""
    undefined = Estimate(nan, nan, nan, 0)  # is not drawn
    uptakes = [entry.results.uptake or undefined for entry in entries]
    below = [uptake.value - (uptake.low or 0.0) for uptake in uptakes]
    above = [(uptake.high or 0.0) - uptake.value for uptake in uptakes]
    return [uptake.value for uptake in uptakes], [below, above]


def _wrapped(name: str) -> str:
    """Wrap a name, with characters that the font lacks as code points."""
    font = get_font(findfont(FONT))
    letters = [c if font.get_char_index(ord(c)) else spelled(c) for c in visible(name)]
    return fill("".join(letters), 36)


def _panels(
    subject: str, entries: Sequence[Entry], height: float, n: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels of this height in inches, side by side.

    Its title names the subject, the rules and the numbers of samples.
    """
    figure = Plot(figsize=(3 * n + 4, height + 1.3), layout="constrained")
    titles = {entry.title for entry in entries}
    title = f"{subject} by rules" if len(titles) > 1 else f"{titles.pop()}: {subject.lower()}"
    sizes = sorted({entry.results.n for entry in entries})
    n_samples = " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1])))
    text = fill(f"{title} (n = {n_samples})", round(11 * figure.get_figwidth()))
    figure.suptitle(text, size=11, x=0.01, ha="left")
    return figure, list(figure.subplots(1, n, squeeze=False).flat)


def _label_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label the rows of a panel, the first on top."""
    axes.set_yticks(range(len(names)), list(map(_wrapped, names)))
    axes.set_ylim(len(names) - 0.4, -0.6)


def charts(ranked: Sequence[Ranking]) -> dict[str, Callable[[], Figure]]:
    """Return what draws each plot, by the names of their files."""
    plots: dict[str, Callable[[], Figure]] = {}
    by_eval: dict[str, list[Entry]] = {}
    for ranking in ranked:
        entries, first = ranking.entries, ranking.entries[0]
        by_eval.setdefault(first.run.plan.eval, []).extend(entries)
        names = (first.run.plan.eval, first.change.key, *first.details)
        suffix = "-".join(map(safe_name, names))
        plots[f"outcomes-{suffix}"] = partial(outcome_chart, entries)
        plots[f"uptake-{suffix}"] = partial(uptake_chart, entries)
        if has_curve(entries):
            plots[f"curve-{suffix}"] = partial(curve_chart, entries)
    for name, entries in by_eval.items():
        if len({entry.change.key for entry in entries}) > 1:
            plots[f"rules-{name}"] = partial(uptake_chart, entries)
    return plots


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG.

    Raises:
        UserError: if it cannot be written.
    """
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    with file_errors("write the plots to", stem.parent):
        for file, metadata in zip(files, (None, {"Date": None}), strict=True):
            with atomic_write(file) as output:
                figure.savefig(output, format=file.suffix[1:], metadata=metadata)
    return files
