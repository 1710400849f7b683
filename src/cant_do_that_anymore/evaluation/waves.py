"""How many positions to ask about in one wave, where answers come together and hours later.

A question too many costs half its price and is kept for a larger dataset; one too few costs another
wave, which may take a day. So the first wave wastes nothing, whatever the model hits, and tells its
hit rate; those after it are large enough to be the last in four of five cases.
"""

from math import ceil, sqrt

MOST_HIT = 0.67
"""No model was seen to hit more: 5 to 16 % of the shipped pool, up to 67 % of common habits."""
LEAST_FIRST = 500
"""So many tell the hit rate well enough, even if few positions are wanted."""
CAUTION = 0.84
"""Standard deviations by which the hits may fall short: four times of five they do not."""


def asked_in_waves(wanted: int, rate: float) -> int:
    """How many positions are asked about to find so many, where that share of them is hit.

    >>> asked_in_waves(1000, 0.075)
    14657
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
    15020
    >>> wave_size(0, 17000, 1000)
    0
    """
    if missing <= 0:
        return 0
    if seen < LEAST_FIRST or not hits:
        return max(ceil(missing / MOST_HIT), LEAST_FIRST)
    rate = hits / seen
    cautious = rate - CAUTION * sqrt(rate * (1 - rate) / seen)
    return ceil((missing + CAUTION * sqrt(missing * (1 - rate))) / max(cautious, 1 / seen))
