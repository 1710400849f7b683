"""95% intervals of ratios, means and quotients, clustered by game.

Nearly every number of a run is such a ratio: each sample gives a part and a whole. Those ratios are
in the interval that a score test does not reject; nothing is resampled.

What the mean would be without each game in turn says how far it may be off (the jackknife), by
Student's t. Few games, or games of unequal size, leave fewer degrees of freedom.

The quotient is of what is left by relative changes, so of 1 + ratio. A hypothetical quotient or
difference is held against the value of the second that goes with it best: the squared scores of the
two groups, each over its critical value, are summed, and the least sum may reach 1. Where one group
is all but certain, this is the score interval of the other.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from math import exp, inf, sqrt
from typing import ClassVar, Literal, NamedTuple

from .clusters import Tally, cluster_counts
from .score_interval import estimate, last, not_rejected, score, t_quantile

Method = Literal[
    "score", "score by games", "t over games", "score, bounded", "score by games, bounded"
]
BOUNDED: dict[Method, Method] = {
    "score": "score, bounded",
    "score by games": "score by games, bounded",
}
"""What a method is called where the interval allows for unusable answers."""
Support = Collection[tuple[int, int]]

RATE: Support = ((0, 1), (1, 1))
"""Parts and wholes of a share of the samples: hit or not."""
SHARE_OF_SOME: Support = ((0, 0), (0, 1), (1, 1))
"""Of a share of those samples that count."""
DIFFERENCE: Support = ((-1, 1), (0, 1), (1, 1))
"""Of a difference between two shares of the same samples."""
RELATIVE_CHANGE: Support = ((-1, 1), (0, 0), (0, 1), (1, 0))
"""Of a difference between two shares of the same samples, over the first."""
RELATIVE_DROP: Support = ((-1, 0), (0, 0), (0, 1), (1, 1))
"""The same with the sign turned: the first share minus the second, over the first."""


@dataclass(frozen=True)
class Interval:
    """Where the true value lies with 95 % confidence, and how that was found."""

    low: float
    high: float
    method: Method


class Ratio(NamedTuple):
    """Parts and wholes, one of each a sample, and the pairs of them that a sample can have."""

    parts: Sequence[int]
    wholes: Sequence[int]
    support: Support

    @property
    def value(self) -> float | None:
        """The sum of the parts over that of the wholes; None if that is 0."""
        whole = sum(self.wholes)
        return sum(self.parts) / whole if whole else None


@dataclass(frozen=True)
class RatioDifference:
    """A second ratio minus a first, its interval, and the chance of it between equal ratios."""

    value: float
    interval: Interval
    p: float


def ratio_interval(
    parts: Sequence[int],
    wholes: Sequence[int],
    games: Sequence[Hashable],
    support: Support,
    critical_factor: float = 1.0,
) -> Interval | None:
    """Interval of the sum of the parts over that of the wholes; None if that is 0.

    Args:
        parts: one a sample, and so the wholes, and the games that the samples are from.
        support: the pairs of part and whole that a sample can have.
        stretch: as in `Tally`.

    >>> interval = ratio_interval([1] * 8 + [0] * 2, [1] * 10, range(10), RATE)
    >>> round(interval.low, 6), round(interval.high, 6), interval.method
    (0.490162, 0.943318, 'score')
    """
    tally = ratio_tally(parts, wholes, games, support)
    return _interval(replace(tally, critical_factor=critical_factor)) if tally else None


def ratio_tally(
    parts: Sequence[int], wholes: Sequence[int], games: Sequence[Hashable], support: Support
) -> Tally | None:
    """What `ratio_interval` counts, with the same arguments."""
    if not sum(wholes):
        return None
    if len(set(wholes)) == 1:
        # A plain mean: a whole that did not vary is taken as fixed, whatever else it could be.
        support = {(part, wholes[0]) for part, _ in support}
    rows = list(zip(parts, wholes, strict=True))
    # A sample of no part and no whole bears on no ratio.
    told = [index for index, row in enumerate(rows) if any(row)]
    kinds = {pair: pair for pair in sorted(support)}
    return cluster_counts(kinds, [rows[i] for i in told], [games[i] for i in told])


def ratio_difference(
    first: Ratio, second: Ratio, games: Sequence[Hashable], critical_factor: float = 1.0
) -> RatioDifference | None:
    """Compare two ratios of the same samples, whose wholes may differ; None if one is over 0.

    The difference is taken as the mean over samples of its linear approximation: to the difference
    itself, each sample adds its deviations from the two ratios, over their mean wholes.
    """
    tally = difference_tally(first, second, games)
    if not tally:
        return None
    tally = replace(tally, critical_factor=critical_factor)
    return RatioDifference(estimate(tally.cells), _interval(tally), tally.p(0.0))


def difference_tally(first: Ratio, second: Ratio, games: Sequence[Hashable]) -> Tally | None:
    """What `ratio_difference` counts, with the same arguments."""
    if not sum(first.wholes) or not sum(second.wholes):
        return None
    rows = list(zip(first.parts, first.wholes, second.parts, second.wholes, strict=True))
    told = [index for index, row in enumerate(rows) if any(row)]
    before = sum(first.parts) / sum(first.wholes)
    after = sum(second.parts) / sum(second.wholes)
    mean_before, mean_after = sum(first.wholes) / len(told), sum(second.wholes) / len(told)

    def linear(part1: int, whole1: int, part2: int, whole2: int) -> float:
        gain = (part2 - after * whole2) / mean_after
        loss = (part1 - before * whole1) / mean_before
        return after - before + gain - loss

    pairs = product(_possible(first), _possible(second))
    kinds = {one + two: (linear(*one, *two), 1.0) for one, two in pairs}
    return cluster_counts(kinds, [rows[i] for i in told], [games[i] for i in told])


def _possible(ratio: Ratio) -> list[tuple[int, int]]:
    """What a sample can be; a whole that did not vary is taken as fixed."""
    wholes = set(ratio.wholes)
    fixed = len(wholes) == 1
    return sorted(pair for pair in ratio.support if not fixed or pair[1] in wholes)


def method_of(*tallies: Tally) -> Method:
    """Whether each game gives one sample, or the samples of one go together."""
    return "score" if all(tally.freedom == inf for tally in tallies) else "score by games"


@lru_cache(maxsize=4096)  # measures that count alike are many, and comparisons count again
def _interval(tally: Tally) -> Interval:
    return Interval(*not_rejected(tally.cells, tally.critical), method_of(tally))


def mean_interval(
    values: Sequence[int], games: Sequence[Hashable], *, signed: bool, critical_factor: float = 1.0
) -> Interval | None:
    """Interval of the mean; None where nothing varies, or there is no more than one game's worth.

    Args:
        values: one a sample, and so the games that the samples are from.
        signed: whether values may be below 0. Amounts that cannot are skewed: most are small and a
            few large, so that the interval reaches as many times above the mean as below it.
        stretch: as in `Tally`.

    >>> interval = mean_interval([1, 2, 3, 4, 5], range(5), signed=True)
    >>> round(interval.low, 6), round(interval.high, 6), interval.method
    (1.036757, 4.963243, 't over games')
    """
    sizes, sums = Counter(games), Counter[Hashable]()
    for game, value in zip(games, values, strict=True):
        sums[game] += value
    n, mean = len(values), sum(values) / max(1, len(values))
    n_games = n**2 / max(1, sum(size**2 for size in sizes.values()))  # as many of equal size
    if n_games < 2:
        return None
    shifts = ((sums[game] - mean * size) / (n - size) for game, size in sizes.items())
    error = sqrt((len(sizes) - 1) / len(sizes) * sum(shift**2 for shift in shifts))
    if not error:
        return None
    reach = critical_factor * t_quantile(n_games - 1) * error
    if signed:
        return Interval(mean - reach, mean + reach, "t over games")
    times = exp(reach / mean)
    return Interval(mean / times, mean * times, "t over games")


_PLACES = 16
_STEPS = 25
_GOLDEN = (sqrt(5) - 1) / 2
_CLOSE = 1e-9
"""As near as an end of the interval is found; what is least is not found much better."""


@dataclass(frozen=True)
class Quotient:
    """What is left of the first over what is left of the second, of two groups as counted."""

    first: Tally
    second: Tally
    lowest: ClassVar[float] = 0.0
    of_equals: ClassVar[float] = 1.0

    @property
    def value(self) -> float | None:
        """The quotient; None if nothing is left of the second."""
        left = 1 + estimate(self.second.cells)
        return (1 + estimate(self.first.cells)) / left if left else None

    @property
    def interval(self) -> Interval | None:
        """Its 95 % interval."""
        if self.value is None:
            return None

        def rejected(quotient: float) -> bool:
            return not self.holds(quotient)

        low, high = (last(rejected, self.value, end, _CLOSE) for end in (self.lowest, inf))
        return Interval(low, high, method_of(self.first, self.second))

    def holds(self, quotient: float) -> bool:
        """Whether this quotient, which is above the lowest, is in the interval."""
        (low1, high1), (low2, high2) = self._alone
        low, high = (
            max(low2, self._second(quotient, low1)),
            min(high2, self._second(quotient, high1)),
        )

        def strangeness(second: float) -> float:
            first = self._first(quotient, second) - 1
            of_first = score(self.first.cells, first) / self.first.critical
            return of_first**2 + (score(self.second.cells, second - 1) / self.second.critical) ** 2

        return low <= high and _reaches(strangeness, 1, low, high)

    def _first(self, quotient: float, second: float) -> float:
        return quotient * second

    def _second(self, quotient: float, first: float) -> float:
        return first / quotient

    @cached_property
    def _alone(self) -> list[tuple[float, float]]:
        """What is left of each by itself: only there, its share of the sum is at most 1."""
        alone = [not_rejected(each.cells, each.critical) for each in (self.first, self.second)]
        return [(1 + low, 1 + high) for low, high in alone]


def _reaches(of: Callable[[float], float], most: float, low: float, high: float) -> bool:
    """Whether a value is at most so much: among a few places, or by golden section about the best.

    The search ends as soon as one is found.
    """
    places = [low + (high - low) * step / _PLACES for step in range(_PLACES + 1)]
    values = []
    for place in places:
        values.append(of(place))
        if values[-1] <= most:
            return True
    best = values.index(min(values))
    low, high = places[max(0, best - 1)], places[min(_PLACES, best + 1)]
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    of_inner, of_outer = of(inner), of(outer)
    for _ in range(_STEPS):
        if min(of_inner, of_outer) <= most:
            return True
        if of_inner < of_outer:
            high, outer, of_outer = outer, inner, of_inner
            inner = high - _GOLDEN * (high - low)
            of_inner = of(inner)
        else:
            low, inner, of_inner = inner, outer, of_outer
            outer = low + _GOLDEN * (high - low)
            of_outer = of(outer)
    return min(of_inner, of_outer) <= most


class Difference(Quotient):
    """The ratio of the first minus that of the second."""

    lowest = -inf
    of_equals = 0.0

    @property
    def value(self) -> float:
        """The difference."""
        return estimate(self.first.cells) - estimate(self.second.cells)

    def _first(self, difference: float, second: float) -> float:
        return difference + second

    def _second(self, difference: float, first: float) -> float:
        return first - difference
