"""One measure of two models on the same samples: the difference, its interval, and its chance."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ..metrics.bounds import any_unusable, bounds_apply, games_of, guesses, ratio_of
from ..metrics.stats.intervals import BOUNDED, Interval, Ratio, RatioDifference, ratio_difference
from ..metrics.stats.tests import p_value
from ..metrics.types import Measure
from ..task.types import Number, Sample


@dataclass(frozen=True)
class Paired:
    """What two models' answers to the same questions come to in one measure.

    Attributes:
        values: the measure of each; None where it does not exist, or may not, depending on what
            unusable answers would have said.
        as_scored: 95 % interval of the second value minus the first, answers taken as they are.
        interval: the same, but it holds whatever answers without a move would have said.
        p: the chance of such a difference between equal models; 1 where what those answers would
            have said decides who is ahead.
        extremes: the least and the greatest difference over all that they could have said; None
            where that makes no difference beside the interval.
    """

    values: tuple[Number, Number]
    as_scored: Interval | None = None
    interval: Interval | None = None
    p: float = 1.0
    extremes: tuple[float, float] | None = None


def paired(
    measure: Measure,
    first: Sequence[Sample],
    second: Sequence[Sample],
    critical_factor: float = 1.0,
) -> Paired:
    """Compare two models by their samples of the same positions, in the same order."""
    answered = [both for both in zip(first, second, strict=True) if all(s.answered for s in both)]
    ours, theirs = ([both[side] for both in answered] for side in (0, 1))
    values = measure.value(ours), measure.value(theirs)
    ratios = ratio_of(measure, ours), ratio_of(measure, theirs)
    found = _difference(*ratios, games_of(ours), critical_factor)
    if not found:
        return Paired(values)
    as_scored = Paired(values, found.interval, found.interval, found.p)
    if not any(any_unusable(side, measure.needs) for side in (first, second)):
        return as_scored
    ours_between, theirs_between = _extremes(measure, first), _extremes(measure, second)
    if not ours_between or not theirs_between:
        return Paired((values[0] if ours_between else None, values[1] if theirs_between else None))
    imagined = [
        found,
        *(
            difference
            for one, other in product(ours_between, theirs_between)
            if (difference := _difference(one, other, games_of(first), critical_factor))
        ),
    ]
    differences = [d.value for d in imagined]
    if not bounds_apply(found.interval, differences, [d.interval for d in imagined]):
        return as_scored
    least, greatest = min(differences), max(differences)
    low = min(d.interval.low for d in imagined)
    high = max(d.interval.high for d in imagined)
    one_way = least > 0 or greatest < 0
    return Paired(
        values,
        as_scored=found.interval,
        interval=Interval(low, high, BOUNDED[found.interval.method]),
        p=max(d.p for d in imagined) if one_way else 1.0,
        extremes=(least, greatest),
    )


def _extremes(measure: Measure, samples: Sequence[Sample]) -> list[Ratio]:
    """The measure at its least, at its greatest, and where there is least to divide by.

    What one model said binds no other. Nothing where only unusable answers are there to divide by.
    """
    imagined = [ratio_of(measure, guess) for guess in guesses(measure, samples)]
    fewest = min(imagined, key=lambda ratio: sum(ratio.wholes))
    if not sum(fewest.wholes):
        return []
    return [min(imagined, key=_value), max(imagined, key=_value), fewest]


def _value(ratio: Ratio) -> float:
    return sum(ratio.parts) / sum(ratio.wholes)


def _difference(
    first: Ratio, second: Ratio, games: Sequence[Hashable], critical_factor: float
) -> RatioDifference | None:
    found = ratio_difference(first, second, games, critical_factor)
    if not found or len({*first.wholes, *second.wholes}) > 1:
        return found
    # Wholes that never vary make plain means, and of these the test can be exact.
    changes = [after - before for before, after in zip(first.parts, second.parts, strict=True)]
    return replace(found, p=p_value(changes, games))
