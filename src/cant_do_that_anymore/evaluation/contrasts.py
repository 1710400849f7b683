"""Two measures of groups of samples that have none in common, held against each other.

What is left of the habits that the change forbids, over what is left of those that it does not (the
difference in differences); and habits kept where the rule is known, less those kept elsewhere.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ..task.types import Measure, Number, Sample
from .diagnosis import COLLATERAL, CORRECTED, GAP, KEPT_UNKNOWING, placebo_moved
from .results import Bounds, Results
from .statistics.intervals import Interval, ratio_tally
from .statistics.quotient import Difference, Quotient
from .uncertainty import (
    answered,
    any_unusable,
    bounds_over,
    complete,
    games_of,
    guesses,
    ratio_of,
)

Grouping = Callable[[Sequence[Sample]], Sequence[Hashable]]
Arms = tuple[Sequence[Sample], Sequence[Sample]]
"""Samples and controls."""


@dataclass(frozen=True)
class Contrast:
    """One measure beside another, of groups that have no sample in common.

    Attributes:
        name: as in ``run.json``.
        title: for people.
        meaning: one line for people.
        change: a measure, and ``beside`` the one that it is held against.
        kind: how the two are put together.
        perfect: what a model would reach that follows the rules perfectly.
    """

    name: str
    title: str
    meaning: str
    change: Measure
    beside: Measure
    kind: type[Quotient]
    perfect: float | None = None
    remark: str = ""
    signed: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        """The conditions whose replies it looks at."""
        return tuple(dict.fromkeys((*self.change.needs, *self.beside.needs)))

    def value(self, arms: Arms) -> Number:
        """The number, or None where it does not exist."""
        return self._value(self._compared([arm for _, arm in self._groups(arms)]))

    def interval(
        self, arms: Arms, grouping: Grouping = games_of, critical_factor: float = 1.0
    ) -> Interval | None:
        """Its 95 % interval, where those of one group go together; None where it does not exist."""
        groups = [arm for _, arm in self._groups(arms)]
        return self._interval(self._compared(groups, grouping, critical_factor))

    def bounds(self, arms: Arms, critical_factor: float = 1.0) -> Bounds | None:
        """Its bounds; None where unusable answers make no difference beside the interval."""
        groups = self._groups(arms)
        if not any(any_unusable(arm, measure.needs) for measure, arm in groups):
            return None
        scored = [answered(arm) for _, arm in groups]
        guessed = [scored, *product(*(_extremes(*group) for group in groups))]
        usable = [complete(arm, measure.needs) for measure, arm in groups]
        return bounds_over(
            [self._compared(guess, critical_factor=critical_factor) for guess in guessed],
            self._value,
            self._interval,
            self._value(self._compared(usable)),
        )

    def _groups(self, arms: Arms) -> list[tuple[Measure, Sequence[Sample]]]:
        """The two measures, each with what it is a number over."""
        return [(measure, arms[measure.of_controls]) for measure in (self.change, self.beside)]

    def _compared(
        self,
        groups: Sequence[Sequence[Sample]],
        grouping: Grouping = games_of,
        critical_factor: float = 1.0,
    ) -> Quotient | None:
        tallies = []
        for measure, group in zip((self.change, self.beside), groups, strict=True):
            ratio = ratio_of(measure, group)
            if tally := ratio_tally(ratio.parts, ratio.wholes, grouping(group), ratio.support):
                tallies.append(replace(tally, critical_factor=critical_factor))
        return self.kind(*tallies) if len(tallies) == 2 else None

    def _value(self, found: Quotient | None) -> Number:
        value = found.value if found else None
        return None if value is None else value - self.kind.of_equals

    def _interval(self, found: Quotient | None) -> Interval | None:
        around, less = found.interval if found else None, self.kind.of_equals
        return Interval(around.low - less, around.high - less, around.method) if around else None


def _extremes(measure: Measure, samples: Sequence[Sample]) -> list[Sequence[Sample]]:
    """The samples as they make the measure least, and as they make it greatest."""
    *_, least, greatest = guesses(measure, samples)
    return [least, greatest]


SPECIFIC = Contrast(
    "specific_impact_factor",
    "Specific impact factor",
    "the same, less what happens to habits that stay legal",
    CORRECTED,
    COLLATERAL,
    Quotient,
    perfect=-1,
)
KNOWING_EFFECT = Contrast(
    "knowing_effect",
    "Effect of knowing",
    "habits kept where the rule is known, minus habits kept where it is not",
    GAP,
    KEPT_UNKNOWING,
    Difference,
)
OF_PLACEBO = (CORRECTED.name, SPECIFIC.name)
"""What compares the changed rules with the placebo."""
CONTRASTS: dict[str, Contrast] = {each.name: each for each in (KNOWING_EFFECT, SPECIFIC)}


def unclaimed(results: Results) -> tuple[str, ...]:
    """What does not show the effect of the rule, since the placebo alone moved the habit."""
    return OF_PLACEBO if placebo_moved(results) else ()


def contrasts_for(conditions: Sequence[str]) -> list[Contrast]:
    """The contrasts whose replies are at hand."""
    return [c for c in CONTRASTS.values() if set(c.needs) <= set(conditions)]
