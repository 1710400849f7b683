"""Intervals of ratios, of differences between ratios, and of means, clustered by group.

Nearly every number of a run is a ratio: each sample contributes a part and a whole. Its interval
contains the ratios that a score test does not reject. There is no resampling.

If every group contributes one sample, a score is compared with the normal distribution. Otherwise
its square is divided by the design effect (Kish, 1965; for score statistics Rao and Scott, 1992),
and the score is compared with Student's t. Little variation, or few groups to estimate the design
effect from, must not look like certainty. So one group is added whose samples all deviate in one
direction, as far as possible.

The interval of a mean uses the jackknife over groups and Student's t.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Sequence
from itertools import product, starmap
from math import exp, sqrt
from statistics import NormalDist
from typing import NamedTuple

from .score_interval import ALPHA, Cell, ratio_of_cells, score_limits, t_quantile

# The part and the whole that a sample contributes.
Pair = tuple[float, float]
# Every pair that a sample can have: of a share of the samples,
SHARE: Collection[Pair] = ((0, 1), (1, 1))
# of a difference between two shares of the same samples,
DIFFERENCE: Collection[Pair] = ((-1, 1), (0, 1), (1, 1))
# and of the first share minus the second, over the first.
DROP: Collection[Pair] = ((-1, 0), (0, 0), (0, 1), (1, 1))

Groups = Sequence[Hashable]


class Ratio(NamedTuple):
    """The sum of the parts of samples over the sum of their wholes.

    Attributes:
        pairs: the part and the whole of each sample.
        support: every pair that a sample can have.
    """

    pairs: Sequence[Pair]
    support: Collection[Pair]

    @property
    def value(self) -> float:
        """The ratio; the wholes must not sum to 0."""
        return sum(part for part, _ in self.pairs) / sum(whole for _, whole in self.pairs)

    @property
    def possible(self) -> list[Pair]:
        """The pairs that a sample can have; a whole that did not vary is treated as fixed."""
        wholes = {whole for _, whole in self.pairs}
        return [pair for pair in self.support if len(wholes) > 1 or pair[1] in wholes]

    def interval(self, groups: Groups, alpha: float = ALPHA) -> tuple[float, float]:
        """Return the lowest and the highest ratio that the samples do not reject.

        Samples without a part and a whole are left out: they do not affect any ratio.

        >>> low, high = Ratio([(1, 1)] * 8 + [(0, 1)] * 2, SHARE).interval(range(10))
        >>> round(low, 6), round(high, 6)
        (0.490162, 0.943318)
        """
        rows = [(pair, group) for pair, group in zip(self.pairs, groups, strict=True) if any(pair)]
        counts = Counter(pair for pair, _ in rows)
        if unexpected := counts.keys() - set(self.possible):
            raise ValueError(f"a sample has {unexpected.pop()}, which is not possible")
        cells = [Cell(*pair, counts[pair]) for pair in dict.fromkeys(self.possible)]
        return score_limits(cells, _critical_value(cells, rows, alpha))


def _critical_value(
    cells: Sequence[Cell], rows: Sequence[tuple[Pair, Hashable]], alpha: float
) -> float:
    """Return the largest score that does not reject a ratio, given the group of each sample."""
    sizes = Counter(group for _, group in rows)
    if len(sizes) == len(rows):
        return NormalDist().inv_cdf(1 - alpha / 2)
    ratio = ratio_of_cells(cells)
    sums = defaultdict[Hashable, float](float)
    for (part, whole), group in rows:
        sums[group] += part - ratio * whole
    squares = sum(size**2 for size in sizes.values())
    n_groups = len(rows) ** 2 / squares  # effective number
    # The mean size, each group weighted by its squared size: many singles do not pull it down.
    added_size = sum(size**3 for size in sizes.values()) / squares
    clustered_squares = sum(total**2 for total in sums.values())
    if n_groups > 1:
        clustered_squares *= n_groups / (n_groups - 1)
    deviations = [(cell.part - ratio * cell.whole, cell.count) for cell in cells]
    independent_squares = sum(count * deviation**2 for deviation, count in deviations)
    max_square = max(deviation**2 for deviation, _ in deviations)
    design_effect = (clustered_squares + max_square * added_size**2) / (
        independent_squares + max_square * added_size
    )
    return t_quantile(n_groups, alpha) * sqrt(max(1.0, design_effect))


def difference_of(first: Ratio, second: Ratio) -> Ratio:
    """Return the first ratio minus the second, over the same samples; their wholes may differ.

    The difference is linearized: each sample contributes the difference itself plus its deviations
    from the two ratios, divided by their mean wholes.
    """
    both = list(zip(first.pairs, second.pairs, strict=True))
    n = sum(any(map(any, each)) for each in both)
    value1, value2 = first.value, second.value
    mean1, mean2 = (sum(whole for _, whole in each.pairs) / n for each in (first, second))

    def linear(pair1: Pair, pair2: Pair) -> Pair:
        gain = (pair1[0] - value1 * pair1[1]) / mean1
        loss = (pair2[0] - value2 * pair2[1]) / mean2
        return value1 - value2 + gain - loss, 1.0

    pairs = [linear(*each) if any(map(any, each)) else (0.0, 0.0) for each in both]
    return Ratio(pairs, list(starmap(linear, product(first.possible, second.possible))))


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
