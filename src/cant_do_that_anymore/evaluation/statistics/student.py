"""Student's t distribution, for any number of degrees of freedom."""

from functools import lru_cache
from math import exp, lgamma, log, log1p, pi, sqrt

_TERMS = 100_000
_TINY = 1e-300


def two_sided(t: float, freedom: float) -> float:
    """The chance of a value as far from 0 as t.

    >>> round(two_sided(2.228138852, 10), 9)
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
def quantile(freedom: float) -> float:
    """The t that is exceeded, either way, with a chance of 5 %.

    >>> round(quantile(10), 6)
    2.228139
    """
    low, high = 1.0, 2.0
    while two_sided(high, freedom) > 0.05:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if two_sided(middle, freedom) > 0.05 else (low, middle)
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
