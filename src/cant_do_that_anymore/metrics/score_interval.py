"""Score test and score interval of a ratio, and Student's t distribution.

Each sample contributes a part and a whole; the ratio is the sum of the parts over the sum of the
wholes. Under a hypothetical ratio, each sample has a deviation, part - ratio * whole, with
expectation 0. Its variance is computed under the most likely multinomial distribution with that
expectation, over all cells (pairs of part and whole) that a sample can fall into, observed or not.
So a change that was never observed is unlikely, but not impossible. Special cases are Wilson's
interval (1927) for a proportion, Tango's (1998) for a paired difference, and Nam and Blackwelder's
(2002) for a paired ratio.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import atan, copysign, exp, inf, lgamma, pi, sqrt

import numpy as np
from numpy.polynomial.legendre import leggauss

# An interval leaves out the true value with at most this probability.
ALPHA = 0.05
# Enough to bisect to the last float, or to find that the end is 0.
_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class Cell:
    """A pair of part and whole, and the number of samples that have it."""

    part: float
    whole: float
    count: int


def ratio_of_cells(cells: Sequence[Cell]) -> float:
    """Return the ratio; the wholes must not sum to 0."""
    return sum(c.count * c.part for c in cells) / sum(c.count * c.whole for c in cells)


def score_limits(cells: Sequence[Cell], critical: float) -> tuple[float, float]:
    """Return the lowest and the highest ratio whose score is at most the critical value."""
    value = ratio_of_cells(cells)

    def rejected(ratio: float) -> bool:
        return is_rejected(cells, ratio, critical)

    return interval_end(rejected, value, -inf), interval_end(rejected, value, inf)


def is_rejected(cells: Sequence[Cell], ratio: float, critical: float) -> bool:
    """Whether the score of a ratio, its distance in standard errors, is above the critical value.

    With d the deviations, the most likely probability of a cell is count / (n (1 + m d)), where the
    multiplier m makes their expectation 0: the sum of count d / (1 + m d), which falls with m, is 0
    there. It follows that the squared score is m times the sum of all d. So the score is above the
    critical value if that sum is still positive at the m that belongs to the critical value. No m
    is so large that the cell with the most negative d would have unbounded probability.
    """
    deviations = [(cell.part - ratio * cell.whole, cell.count) for cell in cells]
    total = sum([count * d for d, count in deviations])
    if total < 0:
        deviations, total = [(-d, count) for d, count in deviations], -total
    furthest, _ = min(deviations)
    if total == 0 or furthest >= 0:
        return total > 0
    m = critical**2 / total  # of the critical value
    return 1 + m * furthest > 0 and sum([count * d / (1 + m * d) for d, count in deviations]) > 0


def interval_end(rejected: Callable[[float], bool], inside: float, end: float) -> float:
    """Return the last ratio from the estimate toward the end that is not rejected, by bisection.

    The end itself is always rejected unless it is the estimate, because no variance is left there.
    """
    if inside == end:
        return end
    outside, step = end, copysign(1.0, end)
    if abs(end) == inf:
        outside = inside + step
        while not rejected(outside):
            step *= 2
            inside, outside = outside, outside + step
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if middle in (inside, outside):
            break
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return inside


# Enough nodes for 12 digits.
_NODES, _WEIGHTS = leggauss(64)


def t_two_sided(t: float, freedom: float) -> float:
    """Return the two-sided p-value of Student's t.

    As a density of the angle whose tangent is t / sqrt(freedom), t has a power of the cosine.

    >>> round(t_two_sided(2.228138852, 10), 9)
    0.05
    """
    half = atan(t / sqrt(freedom)) / 2
    inside = half * float(_WEIGHTS @ np.cos(half * (_NODES + 1)) ** (freedom - 1))
    total = sqrt(pi) / 2 * exp(lgamma(freedom / 2) - lgamma((freedom + 1) / 2))
    return 1 - inside / total


@lru_cache(maxsize=1024)
def t_quantile(freedom: float, alpha: float = ALPHA) -> float:
    """Return the two-sided critical value of Student's t.

    >>> round(t_quantile(10), 6)
    2.228139
    """
    return interval_end(lambda t: t_two_sided(t, freedom) <= alpha, 1.0, inf)
