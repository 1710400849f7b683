"""Intervals of ratios, of differences between ratios, and of means, clustered by group.

Nearly every number of a run is a ratio: each sample contributes a part and a whole. Its interval
contains the ratios that a score test does not reject. There is no resampling. The interval of a
mean uses the jackknife over groups and Student's t.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Sequence
from itertools import product
from math import exp, sqrt
from typing import NamedTuple

from .clusters import Tally, cluster_counts
from .score_interval import ratio_of_cells, t_quantile

# Every combination of part and whole that a sample can have.
Support = Collection[tuple[int, int]]
# Of a share of the samples.
SHARE: Support = ((0, 1), (1, 1))
# Of a difference between two shares of the same samples.
DIFFERENCE: Support = ((-1, 1), (0, 1), (1, 1))
# Of the first share minus the second, over the first.
DROP: Support = ((-1, 0), (0, 0), (0, 1), (1, 1))

Groups = Sequence[Hashable]


class Ratio(NamedTuple):
    """A sum of parts over a sum of wholes: one of each per sample."""

    parts: Sequence[int]
    wholes: Sequence[int]
    support: Support

    @property
    def value(self) -> float:
        """The ratio; the wholes must not sum to 0."""
        return sum(self.parts) / sum(self.wholes)

    @property
    def possible(self) -> list[tuple[int, int]]:
        """The pairs that a sample can have; a whole that did not vary is treated as fixed."""
        wholes = set(self.wholes)
        return sorted(p for p in self.support if len(wholes) > 1 or p[1] in wholes)

    def tally(self, groups: Groups) -> Tally:
        """Count the samples by pair and group.

        >>> low, high = Ratio([1] * 8 + [0] * 2, [1] * 10, SHARE).tally(range(10)).interval()
        >>> round(low, 6), round(high, 6)
        (0.490162, 0.943318)
        """
        rows = list(zip(self.parts, self.wholes, strict=True))
        return cluster_counts({pair: pair for pair in self.possible}, rows, groups)


def difference_tally(first: Ratio, second: Ratio, groups: Groups) -> Tally:
    """Count the samples of the first ratio minus the second; their wholes may differ.

    The difference is linearized: each sample contributes the difference itself plus its deviations
    from the two ratios, divided by their mean wholes.
    """
    rows = list(zip(first.parts, first.wholes, second.parts, second.wholes, strict=True))
    n = sum(any(row) for row in rows)
    difference = first.value - second.value
    mean1, mean2 = sum(first.wholes) / n, sum(second.wholes) / n

    def linear(part1: int, whole1: int, part2: int, whole2: int) -> float:
        gain = (part1 - first.value * whole1) / mean1
        loss = (part2 - second.value * whole2) / mean2
        return difference + gain - loss

    pairs = product(first.possible, second.possible)
    kinds = {pair1 + pair2: (linear(*pair1, *pair2), 1.0) for pair1, pair2 in pairs}
    return cluster_counts(kinds, rows, groups)


def value_of(tally: Tally) -> float:
    """Return the ratio of a tally."""
    return ratio_of_cells(tally.cells)


def mean_interval(
    values: Sequence[float], groups: Groups, *, signed: bool = False
) -> tuple[float, float] | None:
    """Return the interval of the mean; None without variation or with fewer than two groups.

    Unsigned amounts are skewed (most are small, a few large), so their interval extends by the same
    factor above and below the mean.

    >>> low, high = mean_interval([1, 2, 3, 4, 5], range(5), signed=True)
    >>> round(low, 6), round(high, 6)
    (1.036757, 4.963243)
    """
    sizes, sums = Counter(groups), defaultdict[Hashable, float](float)
    for group, value in zip(groups, values, strict=True):
        sums[group] += value
    if not values:
        return None
    n, mean = len(values), sum(values) / len(values)
    n_groups = n**2 / sum(size**2 for size in sizes.values())  # effective number
    if n_groups < 2:
        return None
    shifts = ((sums[group] - mean * size) / (n - size) for group, size in sizes.items())
    error = sqrt((len(sizes) - 1) / len(sizes) * sum(shift**2 for shift in shifts))
    if not error:
        return None
    reach = t_quantile(n_groups - 1) * error
    if signed:
        return mean - reach, mean + reach
    factor = exp(reach / mean)
    return mean / factor, mean * factor
