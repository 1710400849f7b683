"""Pictures of an experiment, as PNG and SVG files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..errors import Problem
from ..evaluation.groups import MANY
from ..evaluation.trials import Trial, by_earlier_moves, share_of
from ..files import replacing

_COLOURS = ("#0072b2", "#c44f00", "#009e73", "#b5588c", "#e69f00", "#56b4e9", "#1c1d1f")
"""Told apart by colour-blind readers as well."""
_BARS = (("standard rules", _COLOURS[0], -0.2), ("changed rules", _COLOURS[1], 0.2))
_STYLE: dict[Any, Any] = {  # versions of matplotlib differ in the type of the keys
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 10.0,
    "savefig.dpi": 160,
    "svg.hashsalt": "cdta",  # the same numbers make the same file
    "text.parse_math": False,  # a dollar sign in a model's name is a dollar sign
}


def bar_chart(pooled: Mapping[str, Trial], title: str, stem: Path) -> list[Path]:
    """Share of special moves under both rule sets, a pair of bars a model; the files written."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.0, 1.6 + 0.6 * len(pooled)), layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(pooled))
        for index, (label, colour, offset) in enumerate(_BARS):
            columns = [(trial.before, trial.after)[index] for trial in pooled.values()]
            found = [
                share_of(column, trial.games)
                for column, trial in zip(columns, pooled.values(), strict=True)
            ]
            shares = [share.value for share in found]
            errors = [
                [share.value - share.low for share in found],
                [share.high - share.value for share in found],
            ]
            axes.barh(places + offset, shares, 0.36, label=label, color=colour)
            axes.errorbar(
                shares, places + offset, xerr=errors, fmt="none", color="#1c1d1f", capsize=3
            )
        axes.set_yticks(places, list(pooled))
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_xlabel("share of special moves, with 95 % interval")
        _finish(axes, title, "x")
        return _saved(figure, stem)


def line_chart(pooled: Mapping[str, Trial], title: str, stem: Path) -> list[Path]:
    """Share of diagonal bishop moves by number of earlier bishop moves; the files written."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.subplots()
        for number, (model, trial) in enumerate(pooled.items()):
            by_count = by_earlier_moves(trial, MANY)
            counts, shares = list(by_count), list(by_count.values())
            low, high = [share.low for share in shares], [share.high for share in shares]
            colour = _COLOURS[number % len(_COLOURS)]
            values = [share.value for share in shares]
            axes.plot(counts, values, "-o", markersize=3, color=colour, label=model)
            axes.fill_between(counts, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_ylim(0, 1)
        axes.set_xticks(range(MANY + 1), [*map(str, range(MANY)), f"{MANY} or more"])
        axes.set_xlabel("earlier bishop moves")
        axes.set_ylabel("share of diagonal bishop moves")
        _finish(axes, title, "y")
        return _saved(figure, stem)


def _finish(axes: Axes, title: str, grid: Literal["x", "y"]) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.grid(axis=grid, color="#dedbd2", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9)


def _saved(figure: Figure, stem: Path) -> list[Path]:
    files = [stem.with_suffix(suffix) for suffix in (".png", ".svg")]
    try:
        for file in files:
            form = file.suffix[1:]
            with replacing(file) as picture:
                figure.savefig(
                    picture, format=form, metadata={"Date": None} if form == "svg" else None
                )
    except OSError as problem:
        raise Problem(f"cannot write the plots to {str(stem.parent)!r} ({problem})") from None
    return files
