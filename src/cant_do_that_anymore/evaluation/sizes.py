"""How many samples a diagnosis takes for intervals of a given width."""

from math import ceil

from .statistics.tally import NORMAL

HALF_WIDTH = 0.05


def enough_for_corrected(placebo_share: float, impact: float) -> int:
    """Samples for a corrected impact factor within `HALF_WIDTH` either way.

    Args:
        placebo_share: how often the special move is played under the placebo.
        impact: what the rule takes away of that, negative.

    >>> enough_for_corrected(0.67, -0.5), enough_for_corrected(0.95, 0)
    (952, 162)
    """
    return _enough(_variance(placebo_share, impact))


def enough_for_specific(placebo_share: float, impact: float) -> int:
    """Samples, and as many controls that keep their habits as often, for the specific one.

    >>> enough_for_specific(0.67, -0.5), enough_for_specific(0.95, 0)
    (1331, 324)
    """
    beside = (1 + impact) ** 2 * _variance(placebo_share, 0)
    return _enough(_variance(placebo_share, impact) + beside)


def _variance(before: float, impact: float) -> float:
    """Of a relative change over one sample, whose two answers are independent."""
    after = before * (1 + impact)
    discordant = before * (1 - after) + (1 - before) * after
    return (1 + impact) ** 2 * discordant / (after * before)


def _enough(variance: float) -> int:
    return ceil(NORMAL**2 * variance / HALF_WIDTH**2)
