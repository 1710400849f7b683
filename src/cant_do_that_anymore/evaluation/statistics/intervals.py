"""95 % intervals of ratios of sums over samples, where samples of one game go together.

Nearly every number of a run is such a ratio: each sample gives a part and a whole. Those ratios are
in the interval that a score test does not reject; nothing is resampled.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import inf
from typing import Literal, NamedTuple

from .score import estimate, not_rejected
from .tally import Tally, counted

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
    return counted(kinds, [rows[i] for i in told], [games[i] for i in told])


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
    return counted(kinds, [rows[i] for i in told], [games[i] for i in told])


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
