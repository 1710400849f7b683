"""Score test and score interval of a ratio, and Student's t distribution.

Every sample gives a part and a whole; the ratio is the sum of the parts over that of the wholes. A
hypothetical ratio makes of each sample a deviation, part - ratio * whole, of expectation 0. Its
variance is taken at the multinomial distribution most likely among those with that expectation,
over all cells (pairs of part and whole) that a sample can fall into, seen or not: so that a change
never seen is unlikely, but not impossible. Special cases are Wilson's interval (1927) of a share,
Tango's (1998) of a paired difference, and Nam and Blackwelder's (2002) of a paired ratio.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, lgamma, log, log1p, pi, sqrt

_HALVINGS = 200
"""More than any bisection of two floats takes."""


@dataclass(frozen=True)
class Cell:
    """One thing that a sample can be, and how many samples are."""

    part: float
    whole: float
    count: int


def estimate(cells: Sequence[Cell]) -> float:
    """The ratio; the wholes must not sum to 0."""
    return sum(c.count * c.part for c in cells) / sum(c.count * c.whole for c in cells)


def score(cells: Sequence[Cell], ratio: float) -> float:
    """How many standard errors the samples lie from a hypothetical ratio, in absolute value.

    With d the deviations, the likely probability of a cell is count / (n (1 + m d)), where m, the
    multiplier, makes their expectation 0. It follows that the variance of the sum of all d is that
    sum over m, and the squared score the sum times m.
    """
    total = sum(c.count * (c.part - ratio * c.whole) for c in cells)
    if total == 0:
        return 0.0
    sign = 1 if total > 0 else -1
    deviations = [(sign * (c.part - ratio * c.whole), c.count) for c in cells]
    furthest = min(d for d, _ in deviations)
    if furthest >= 0:
        return inf
    return sqrt(abs(total) * _multiplier(deviations, -1 / furthest))


def _multiplier(deviations: list[tuple[float, int]], largest: float) -> float:
    """The m > 0 at which the sum of count d / (1 + m d), which falls with m, is 0.

    At the largest m, cells with the most negative d would have no bounded probability. If none was
    seen and the sum is still positive there, what is missing lies on such a cell.
    """
    seen = [(d, count) for d, count in deviations if count]
    low, high = 0.0, largest
    free = all(1 + largest * d > 1e-12 for d, _ in seen)
    if free and sum(count * d / (1 + largest * d) for d, count in seen) >= 0:
        return largest
    m = 0.0
    for _ in range(_HALVINGS):
        value = slope = 0.0
        for d, count in seen:
            share = d / (1 + m * d)
            value += count * share
            slope -= count * share * share
        if value > 0:
            low = m
        else:
            high = m
        # Newton's step, unless it leaves what is known to hold the root.
        step = m - value / slope if slope else low
        step = step if low < step < high else (low + high) / 2
        if abs(step - m) <= 1e-16 * high:
            break
        m = step
    return m


def not_rejected(cells: Sequence[Cell], critical: float) -> tuple[float, float]:
    """The ratios whose score is at most the critical value."""
    value = estimate(cells)
    lowest, highest = _range(cells)

    def rejected(ratio: float) -> bool:
        return score(cells, ratio) > critical

    return last(rejected, value, lowest), last(rejected, value, highest)


def _range(cells: Sequence[Cell]) -> tuple[float, float]:
    """The ratios that samples of these kinds can have."""
    ratios = [c.part / c.whole for c in cells if c.whole]
    lowest = -inf if any(c.part < 0 for c in cells if not c.whole) else min(ratios)
    highest = inf if any(c.part > 0 for c in cells if not c.whole) else max(ratios)
    return lowest, highest


def last(
    rejected: Callable[[float], bool], inside: float, end: float, within: float = 0.0
) -> float:
    """The last ratio on the way from the estimate to the end that is not rejected, by bisection.

    The end itself is always rejected, unless it is the estimate: no variance is left there.
    """
    if inside == end:
        return end
    outside, step = end, 1.0
    if abs(end) == inf:
        outside = inside + (step if end > 0 else -step)
        while not rejected(outside):
            step *= 2
            inside, outside = outside, outside + (step if end > 0 else -step)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if middle in (inside, outside) or abs(outside - inside) <= within:
            break
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return inside


_TERMS = 100_000
_TINY = 1e-300


def t_two_sided(t: float, freedom: float) -> float:
    """The chance of a value as far from 0 as t.

    >>> round(t_two_sided(2.228138852, 10), 9)
    0.05
    """
    if t == 0:
        return 1.0
    a, b, x, y = freedom / 2, 0.5, freedom / (freedom + t * t), t * t / (freedom + t * t)
    front = exp(lgamma(a + b) - lgamma(a) - log(pi) / 2 + b * log(y) - a * log1p(t * t / freedom))
    # The continued fraction converges quickly on one side only.
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, y) / b


@lru_cache(maxsize=1024)
def t_quantile(freedom: float) -> float:
    """The t that is exceeded, either way, with a chance of 5 %.

    >>> round(t_quantile(10), 6)
    2.228139
    """
    low, high = 1.0, 2.0
    while t_two_sided(high, freedom) > 0.05:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if t_two_sided(middle, freedom) > 0.05 else (low, middle)
    return sqrt(low * high)


def _continued_fraction(a: float, b: float, x: float) -> float:
    """That of the incomplete beta function, by Lentz's method (Press et al., 2007, section 6.4)."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    result = d
    for m in range(1, _TERMS):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + factor * d or _TINY)
            c = 1 + factor / c or _TINY
            result *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return result
