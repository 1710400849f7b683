"""Ratios of two independent groups of samples: their quotient, or their difference.

The quotient is of what is left by relative changes, so of 1 + ratio. A hypothetical quotient or
difference is held against the value of the second that goes with it best: the squared scores of the
two groups, each over its critical value, are summed, and the least sum may reach 1. Where one group
is all but certain, this is the score interval of the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from typing import ClassVar

from .intervals import Interval, method_of
from .score import estimate, last, not_rejected, score
from .tally import Tally

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
