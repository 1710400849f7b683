"""How many positions to ask about in one wave, where answers come together and hours later.

A question too many costs half its price and is kept for a larger dataset; one too few costs another
wave, which may take a day. So the first wave wastes nothing, whatever the model hits, and tells its
hit rate; those after it are large enough to be the last in four of five cases.
"""

from math import ceil, sqrt

MOST_HIT = 0.67
"""No model was seen to hit more: 5 to 16 % of the shipped pool, up to 67 % of common habits."""
LEAST_FIRST = 300
"""So many tell the hit rate well enough, even if few positions are wanted."""
CAUTION = 0.84
"""Standard deviations by which the hits may fall short: four times of five they do not."""


def asked_in_waves(wanted: int, rate: float) -> int:
    """How many positions are asked about to find so many, where that share of them is hit.

    >>> asked_in_waves(1000, 0.075)
    14369
    """
    first = wave_size(wanted, 0, 0)
    hits = round(first * rate)
    return first + wave_size(wanted - hits, first, hits)


def wave_size(missing: int, seen: int, hits: int) -> int:
    """How many positions more to ask about.

    Args:
        missing: hits that are wanted still.
        seen: positions that were asked about.
        hits: those of them that were hit.

    >>> wave_size(1000, 0, 0)
    1493
    >>> wave_size(900, 1493, 100)
    14688
    >>> wave_size(0, 17000, 1000)
    0
    """
    if missing <= 0:
        return 0
    if seen < LEAST_FIRST or not hits:
        return max(ceil(missing / MOST_HIT), LEAST_FIRST)
    rate, variance = hits / seen, hits / seen * (1 - hits / seen) * CAUTION**2
    # The hits of n more are n * rate, off by the root of variance * (n + n**2 / seen): by chance,
    # and because the rate is known from those seen alone. Solved for n where the low end will do.
    a, b = rate**2 - variance / seen, 2 * rate * missing + variance
    return ceil((b + sqrt(b**2 - 4 * a * missing**2)) / (2 * a))
