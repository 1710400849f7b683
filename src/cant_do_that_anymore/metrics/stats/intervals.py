"""95% intervals of ratios, means and quotients, clustered by game.

Nearly every number of a run is a ratio: each sample contributes a part and a whole. Its interval
contains the ratios that a score test does not reject. There is no resampling.

The interval of a mean uses the jackknife over games and Student's t. Few games, or games of unequal
size, reduce the degrees of freedom.

A quotient compares what remains after two relative changes, so it divides 1 + ratio by 1 + ratio.
For a hypothetical quotient or difference, the second group takes the value that fits best: the
squared scores of both groups, each divided by its critical value, are summed, and the minimum of
the sum must not exceed 1. If one group is nearly certain, this is the score interval of the other.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import exp, inf, sqrt
from typing import ClassVar, Literal, NamedTuple

from .clusters import Tally, cluster_counts
from .score_interval import interval_end, ratio_of_cells, score, score_limits, t_quantile

Method = Literal[
    "score", "score by games", "t over games", "score, bounded", "score by games, bounded"
]
# Method names of intervals that allow for unusable answers.
BOUNDED: dict[Method, Method] = {
    "score": "score, bounded",
    "score by games": "score by games, bounded",
}
Support = Collection[tuple[int, int]]

# Pairs of part and whole for a proportion of the samples: hit or not.
RATE: Support = ((0, 1), (1, 1))
# For a proportion of a subset of the samples.
SHARE_OF_SOME: Support = ((0, 0), (0, 1), (1, 1))
# For a difference between two proportions of the same samples.
DIFFERENCE: Support = ((-1, 1), (0, 1), (1, 1))
# For a difference between two proportions of the same samples, over the first.
RELATIVE_CHANGE: Support = ((-1, 1), (0, 0), (0, 1), (1, 0))
# The same with the opposite sign: the first proportion minus the second, over the first.
RELATIVE_DROP: Support = ((-1, 0), (0, 0), (0, 1), (1, 1))


@dataclass(frozen=True)
class Interval:
    """A 95% confidence interval and the method that computed it."""

    low: float
    high: float
    method: Method


def ends_of(interval: Interval | None) -> tuple[float, float] | tuple[None, None]:
    """Return both ends of an interval, or None twice."""
    return (interval.low, interval.high) if interval else (None, None)


class Ratio(NamedTuple):
    """A sum of parts over a sum of wholes.

    Attributes:
        parts: one per sample, like the wholes.
        support: the pairs of part and whole that a sample can have.
    """

    parts: Sequence[int]
    wholes: Sequence[int]
    support: Support

    @property
    def value(self) -> float | None:
        """The sum of the parts over the sum of the wholes; None if that is 0."""
        whole = sum(self.wholes)
        return sum(self.parts) / whole if whole else None

    def interval(self, games: Sequence[Hashable]) -> Interval | None:
        """Return the 95% interval; None if the ratio is undefined. Arguments as of `tally`.

        >>> interval = Ratio([1] * 8 + [0] * 2, [1] * 10, RATE).interval(range(10))
        >>> round(interval.low, 6), round(interval.high, 6), interval.method
        (0.490162, 0.943318, 'score')
        """
        tally = self.tally(games)
        return _interval(tally) if tally else None

    def tally(self, games: Sequence[Hashable]) -> Tally | None:
        """Count the samples; None if the ratio is undefined.

        Args:
            games: the game of each sample.
        """
        if not sum(self.wholes):
            return None
        support = self.support
        if len(set(self.wholes)) == 1:
            # A plain mean: a whole that did not vary is treated as fixed.
            support = {(part, self.wholes[0]) for part, _ in support}
        kinds = {pair: pair for pair in sorted(support)}
        rows = list(zip(self.parts, self.wholes, strict=True))
        return cluster_counts(kinds, rows, games)


@dataclass(frozen=True)
class RatioDifference:
    """A second ratio minus a first, with its interval and the p-value of equal ratios."""

    value: float
    interval: Interval
    p: float


def ratio_difference(
    first: Ratio, second: Ratio, games: Sequence[Hashable]
) -> RatioDifference | None:
    """Compare two ratios over the same samples; their wholes may differ. None if one is undefined.

    The difference is linearized: each sample contributes the difference itself plus its deviations
    from the two ratios, divided by their mean wholes.
    """
    tally = difference_tally(first, second, games)
    if not tally:
        return None
    return RatioDifference(ratio_of_cells(tally.cells), _interval(tally), tally.p(0.0))


def difference_tally(first: Ratio, second: Ratio, games: Sequence[Hashable]) -> Tally | None:
    """Return the counts behind `ratio_difference`, for the same arguments."""
    if not sum(first.wholes) or not sum(second.wholes):
        return None
    rows = list(zip(first.parts, first.wholes, second.parts, second.wholes, strict=True))
    n = sum(any(row) for row in rows)
    before = sum(first.parts) / sum(first.wholes)
    after = sum(second.parts) / sum(second.wholes)
    mean_before, mean_after = sum(first.wholes) / n, sum(second.wholes) / n

    def linear(part1: int, whole1: int, part2: int, whole2: int) -> float:
        gain = (part2 - after * whole2) / mean_after
        loss = (part1 - before * whole1) / mean_before
        return after - before + gain - loss

    pairs = product(_possible(first), _possible(second))
    kinds = {pair1 + pair2: (linear(*pair1, *pair2), 1.0) for pair1, pair2 in pairs}
    return cluster_counts(kinds, rows, games)


def _possible(ratio: Ratio) -> list[tuple[int, int]]:
    """Return the pairs that a sample can have; a whole that did not vary is treated as fixed."""
    wholes = set(ratio.wholes)
    fixed = len(wholes) == 1
    return sorted(pair for pair in ratio.support if not fixed or pair[1] in wholes)


def method_of(*tallies: Tally) -> Method:
    """Return the method's name: clustered by game unless every game contributes one sample."""
    return (
        "score" if all(tally.degrees_of_freedom == inf for tally in tallies) else "score by games"
    )


@lru_cache(maxsize=4096)  # many measures have equal counts, and comparisons repeat them
def _interval(tally: Tally) -> Interval:
    return Interval(*score_limits(tally.cells, tally.critical), method_of(tally))


def mean_interval(
    values: Sequence[float], games: Sequence[Hashable], signed: bool
) -> Interval | None:
    """Return the interval of the mean; None without variation or with fewer than two games.

    Args:
        values: one per sample, like the games.
        signed: whether values may be negative. Unsigned amounts are skewed (most are small, a few
            large), so their interval extends by the same factor above and below the mean.

    >>> interval = mean_interval([1, 2, 3, 4, 5], range(5), signed=True)
    >>> round(interval.low, 6), round(interval.high, 6), interval.method
    (1.036757, 4.963243, 't over games')
    """
    sizes, sums = Counter(games), defaultdict[Hashable, float](float)
    for game, value in zip(games, values, strict=True):
        sums[game] += value
    if not values:
        return None
    n, mean = len(values), sum(values) / len(values)
    n_games = n**2 / sum(size**2 for size in sizes.values())  # effective number
    if n_games < 2:
        return None
    shifts = ((sums[game] - mean * size) / (n - size) for game, size in sizes.items())
    error = sqrt((len(sizes) - 1) / len(sizes) * sum(shift**2 for shift in shifts))
    if not error:
        return None
    reach = t_quantile(n_games - 1) * error
    if signed:
        return Interval(mean - reach, mean + reach, "t over games")
    factor = exp(reach / mean)
    return Interval(mean / factor, mean * factor, "t over games")


_PLACES = 16
_FROM_THE_MIDDLE = sorted(range(_PLACES + 1), key=lambda place: abs(place - _PLACES // 2))
_STEPS = 25
_GOLDEN = (sqrt(5) - 1) / 2
# Tolerance for the ends of the interval; the minimum itself is not much more accurate.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Quotient:
    """What remains after the first relative change over what remains after the second."""

    first: Tally
    second: Tally
    lowest: ClassVar[float] = 0.0
    null_value: ClassVar[float] = 1.0

    @property
    def value(self) -> float | None:
        """The quotient; None if nothing remains after the second change."""
        left = 1 + ratio_of_cells(self.second.cells)
        return (1 + ratio_of_cells(self.first.cells)) / left if left else None

    @property
    def interval(self) -> Interval | None:
        """The 95% interval; None if the quotient is undefined."""
        if self.value is None:
            return None

        def rejected(quotient: float) -> bool:
            return not self.holds(quotient)

        low, high = (interval_end(rejected, self.value, end, _CLOSE) for end in (self.lowest, inf))
        return Interval(low, high, method_of(self.first, self.second))

    def holds(self, quotient: float) -> bool:
        """Whether this quotient, which is above the lowest possible, is inside the interval."""
        (low1, high1), (low2, high2) = self._alone
        low = max(low2, self._second(quotient, low1))
        high = min(high2, self._second(quotient, high1))

        def squared_scores(second: float) -> float:
            s1 = score(self.first.cells, self._first(quotient, second) - 1) / self.first.critical
            s2 = score(self.second.cells, second - 1) / self.second.critical
            return s1**2 + s2**2

        return low <= high and _reaches(squared_scores, 1, low, high)

    def _first(self, quotient: float, second: float) -> float:
        return quotient * second

    def _second(self, quotient: float, first: float) -> float:
        return first / quotient

    @cached_property
    def _alone(self) -> list[tuple[float, float]]:
        """The interval of each group alone, where its share of the sum is at most 1."""
        alone = (_interval(tally) for tally in (self.first, self.second))
        return [(1 + interval.low, 1 + interval.high) for interval in alone]


def _reaches(function: Callable[[float], float], limit: float, low: float, high: float) -> bool:
    """Whether a function is at most a limit anywhere in a range.

    Evaluates a grid, from its middle on, then searches around the best point by golden section, and
    stops at the first success.
    """
    grid = [low + (high - low) * step / _PLACES for step in range(_PLACES + 1)]
    values = [inf] * len(grid)
    for place in _FROM_THE_MIDDLE:
        values[place] = function(grid[place])
        if values[place] <= limit:
            return True
    best = values.index(min(values))
    low, high = grid[max(0, best - 1)], grid[min(_PLACES, best + 1)]
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = function(inner), function(outer)
    for _ in range(_STEPS):
        if min(at_inner, at_outer) <= limit:
            return True
        if at_inner < at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - _GOLDEN * (high - low)
            at_inner = function(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + _GOLDEN * (high - low)
            at_outer = function(outer)
    return min(at_inner, at_outer) <= limit


class Difference(Quotient):
    """The first ratio minus the second."""

    lowest = -inf
    null_value = 0.0

    @property
    def value(self) -> float:
        """The difference."""
        return ratio_of_cells(self.first.cells) - ratio_of_cells(self.second.cells)

    def _first(self, difference: float, second: float) -> float:
        return difference + second

    def _second(self, difference: float, first: float) -> float:
        return first - difference
