"""Samples beside controls: what a change takes away from one kind of habit and not from another.

The difference in differences: what is left of the habits that the change forbids, over what is left
of those that it does not.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from .diagnosis import COLLATERAL, CORRECTED
from .results import Bounds
from .statistics.intervals import Interval, ratio_tally
from .statistics.quotient import Quotient
from .uncertainty import (
    answered,
    any_unusable,
    bounds_over,
    complete,
    games_of,
    guesses,
    ratio_of,
)
from .vocabulary import Measure, Number, Sample

Grouping = Callable[[Sequence[Sample]], Sequence[Hashable]]
Arms = tuple[Sequence[Sample], Sequence[Sample]]
"""Samples and controls."""


@dataclass(frozen=True)
class Contrast:
    """A relative change of the samples, beside one of the controls.

    Attributes:
        name: as in ``run.json``.
        title: for people.
        meaning: one line for people.
        change: of the samples, and ``beside`` of the controls.
        perfect: what a model would reach that follows the rules perfectly.
    """

    name: str
    title: str
    meaning: str
    change: Measure
    beside: Measure
    perfect: float | None = None
    remark: str = ""
    signed: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        """The conditions whose replies it looks at."""
        return tuple(dict.fromkeys((*self.change.needs, *self.beside.needs)))

    def value(self, arms: Arms) -> Number:
        """The number, or None where it does not exist."""
        quotient = self._quotient(arms, games_of)
        return quotient.value - 1 if quotient and quotient.value is not None else None

    def interval(
        self, arms: Arms, grouping: Grouping = games_of, stretch: float = 1.0
    ) -> Interval | None:
        """Its 95 % interval, where those of one group go together; None where it does not exist."""
        quotient = self._quotient(arms, grouping, stretch)
        found = quotient.interval if quotient else None
        return Interval(found.low - 1, found.high - 1, found.method) if found else None

    def bounds(self, arms: Arms, stretch: float = 1.0) -> Bounds | None:
        """Its bounds; None where unusable answers make no difference beside the interval."""
        measures = self.change, self.beside
        pairs = list(zip(measures, arms, strict=True))
        if not any(any_unusable(arm, measure.needs) for measure, arm in pairs):
            return None
        told = answered(arms[0]), answered(arms[1])
        samples, controls = (complete(arm, measure.needs) for measure, arm in pairs)
        return bounds_over(
            [told, *product(_extremes(*pairs[0]), _extremes(*pairs[1]))],
            self.value,
            lambda guess: self.interval(guess, stretch=stretch),
            self.value((samples, controls)),
        )

    def _quotient(self, arms: Arms, grouping: Grouping, stretch: float = 1.0) -> Quotient | None:
        tallies = []
        for measure, arm in zip((self.change, self.beside), arms, strict=True):
            ratio = ratio_of(measure, arm)
            if tally := ratio_tally(ratio.parts, ratio.wholes, grouping(arm), ratio.support):
                tallies.append(replace(tally, stretch=stretch))
        return Quotient(*tallies) if len(tallies) == 2 else None


def _extremes(measure: Measure, samples: Sequence[Sample]) -> list[Sequence[Sample]]:
    """The samples as they make the measure least, and as they make it greatest."""
    *_, least, greatest = guesses(measure, samples)
    return [least, greatest]


SPECIFIC = Contrast(
    "specific_impact_factor",
    "Specific impact factor",
    "what the rule takes away beyond what it takes away from habits that are still legal",
    CORRECTED,
    COLLATERAL,
    perfect=-1,
)
CONTRASTS: dict[str, Contrast] = {SPECIFIC.name: SPECIFIC}


def contrasts_for(conditions: Sequence[str]) -> list[Contrast]:
    """The contrasts whose replies are at hand."""
    return [c for c in CONTRASTS.values() if set(c.needs) <= set(conditions)]
