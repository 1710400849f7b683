"""Plot of an estimate: requests, cost and time of each step."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ...costs.forecast import Forecast
from .style import COLORS, STYLE, grid, label_rows, panels

# Figures drawn, with the title and the divisor of each.
_PANELS = {"requests": ("requests", 1), "dollars": ("US dollars", 1), "seconds": ("minutes", 60)}
_MARK: dict[str, Any] = {"fmt": "o", "color": COLORS[0], "capsize": 3}


def estimate_chart(plans: Sequence[Forecast]) -> Figure:
    """Plot the expected value and the 95% range of each figure, a row for each step."""
    steps = [
        (f"{planned.heading}: {step}", figures._asdict())
        for planned in plans
        for step, figures in planned.steps.items()
    ]
    with mpl.rc_context(STYLE):
        figure, drawings = panels(11.0, 1.2 + 0.4 * len(steps), len(_PANELS), narrow=False)
        for axes, (name, (title, divisor)) in zip(drawings, _PANELS.items(), strict=True):
            for row, (_, figures) in enumerate(steps):
                if figures[name]:
                    low, value, high = (number / divisor for number in figures[name])
                    # A mean may be beyond 95% of the possible values.
                    below, above = max(0.0, value - low), max(0.0, high - value)
                    axes.errorbar(value, row, xerr=[[below], [above]], **_MARK)
            label_rows(axes, [heading for heading, _ in steps])
            axes.set_xlim(left=0)
            axes.set_title(title, loc="left", fontsize=10)
            grid(axes, "x")
    return figure
