"""How many samples a run takes that stops by itself, when the impact factor is known well enough.

It looks at the interval of the impact factor, bounds included, after some samples, and again
whenever there are half as many more. Who looks several times and stops when the interval is narrow
is wrong more often than once in twenty: where the estimate is extreme, the interval is narrow. So
in such a run every interval is a little wider, by as much as simulations ask for:
``benchmarks/coverage.py --part precision``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..errors import pluralize
from ..task.types import Plan, Sample
from .measures import IMPACT, MEASURES
from .results import Results
from .uncertainty import answered, bounds_of, interval_of, widened

FIRST_LOOK = 50
"""Fewer samples can be all alike by chance."""
STRETCH = 1.1
"""By how much larger critical values are in a run that looks several times."""


def stretch_of(*plans: Plan) -> float:
    """By how much larger critical values are than where all runs look once."""
    return STRETCH if any(plan.precision for plan in plans) else 1.0


def looks(most: int) -> Iterator[int]:
    """How many samples there are whenever the run looks at the interval, at last all of them.

    >>> list(looks(300)), list(looks(20))
    ([50, 75, 112, 168, 252, 300], [20])
    """
    size = FIRST_LOOK
    while size < most:
        yield size
        size += size // 2
    yield most


def stages(plan: Plan) -> Iterator[Plan]:
    """The plan with as many samples as there are at each look; as it is, if no look can end it."""
    for size in looks(plan.wanted) if plan.precision else [plan.wanted]:
        yield replace(plan, wanted=size)


def is_reached(samples: Sequence[Sample], plan: Plan) -> bool:
    """Whether the interval of the impact factor is as narrow as it is to be."""
    if not plan.precision:
        return False
    told, impact = answered(samples), MEASURES[IMPACT]
    value = impact.value(told)
    interval = widened(interval_of(impact, told, STRETCH), bounds_of(impact, samples, STRETCH))
    if value is None or interval is None:
        return False
    return max(value - interval.low, interval.high - value) <= plan.precision


def on_precision(n: int, results: Results, plan: Plan) -> list[str]:
    """Where a run with so many samples stopped that was to stop by itself, and why."""
    value, interval = results.metrics[IMPACT], results.intervals.get(IMPACT)
    if not plan.precision:
        return []
    if value is None or interval is None:
        never = "the special move never came under the standard rules"
        why = never if results.metrics["n_samples"] else "no sample has all its answers"
        return [
            f"the precision asked for, {plan.precision:g}, is not reached: {why}, so there is no "
            "impact factor"
        ]
    below, above = value - interval.low, interval.high - value
    told = (
        f"after {pluralize(n, 'sample')} the interval of the impact factor reaches {below:.3f} "
        f"below "
        f"it and {above:.3f} above"
    )
    if max(below, above) <= plan.precision:
        return [f"stopped at the precision asked for, {plan.precision:g}: {told}"]
    ended, larger = "there are no more positions", "-n allows no more, and a larger one goes on"
    why = ended if n < plan.wanted else larger
    if IMPACT in results.bounds:
        why += "; answers that name no move make the interval wider"
    return [f"the precision asked for, {plan.precision:g}, is not reached: {told}; {why}"]
