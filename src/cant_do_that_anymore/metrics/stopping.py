"""Sequential stopping by precision, and the sample sizes to expect.

It looks at the interval of the impact factor, bounds included, after some samples, and again
whenever there are half as many more. Who looks several times and stops when the interval is narrow
is wrong more often than once in twenty: where the estimate is extreme, the interval is narrow. So
in such a run every interval is a little wider, by as much as simulations ask for:
``benchmarks/coverage.py --part precision``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil

from ..errors import pluralize
from ..task.types import Plan, Sample
from .bounds import answered, bounds_of, interval_of, ratio_of, widened
from .measures import IMPACT, MEASURES
from .stats.clusters import NORMAL, Tally
from .stats.intervals import RELATIVE_CHANGE
from .stats.score_interval import Cell
from .types import Results

FIRST_LOOK = 50
"""Fewer samples can be all alike by chance."""
CRITICAL_FACTOR = 1.1
"""By how much larger critical values are in a run that looks several times."""


def critical_factor_of(*plans: Plan) -> float:
    """By how much larger critical values are than where all runs look once."""
    return CRITICAL_FACTOR if any(plan.precision for plan in plans) else 1.0


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
    interval = widened(
        interval_of(impact, told, CRITICAL_FACTOR), bounds_of(impact, samples, CRITICAL_FACTOR)
    )
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


USUAL_SHARE, USUAL_IMPACT = 0.67, -0.5
"""Of the model inside, and halfway to perfect: for a first idea of sizes."""
HALF_WIDTH = 0.05
"""For which a diagnosis says its sizes."""
NO_LIMIT = 10**9


def enough_for_corrected(placebo_share: float, impact: float) -> int:
    """Samples for a corrected impact factor within `HALF_WIDTH` either way.

    Args:
        placebo_share: how often the special move is played under the placebo.
        impact: what the rule takes away of that, negative.

    >>> enough_for_corrected(0.67, -0.5), enough_for_corrected(0.95, 0)
    (952, 162)
    """
    return _enough(_variance(placebo_share, impact))


def enough_for_specific(placebo_share: float, impact: float) -> int:
    """Samples, and as many controls that keep their habits as often, for the specific one.

    >>> enough_for_specific(0.67, -0.5), enough_for_specific(0.95, 0)
    (1331, 324)
    """
    beside = (1 + impact) ** 2 * _variance(placebo_share, 0)
    return _enough(_variance(placebo_share, impact) + beside)


def _variance(before: float, impact: float) -> float:
    """Of a relative change over one sample, whose two answers are independent."""
    after = before * (1 + impact)
    discordant = before * (1 - after) + (1 - before) * after
    return (1 + impact) ** 2 * discordant / (after * before)


def _enough(variance: float) -> int:
    return ceil(NORMAL**2 * variance / HALF_WIDTH**2)


Shares = Mapping[tuple[int, int], float]
"""How often a sample has a part and a whole of the impact factor."""


def shares_expected(samples: Sequence[Sample]) -> Shares:
    """Those of samples, if there are enough of them; else such as are usual."""
    told = answered(samples)
    if len(told) < FIRST_LOOK:
        return shares_if(USUAL_SHARE, USUAL_IMPACT)
    ratio = ratio_of(MEASURES[IMPACT], told)
    counts = Counter(zip(ratio.parts, ratio.wholes, strict=True))
    return {pair: count / len(told) for pair, count in counts.items()}


def shares_if(share: float, impact: float) -> Shares:
    """Those of a model whose two answers are independent.

    Args:
        share: how often it plays the special move under the standard rules.
        impact: what the change takes away of that, negative.
    """
    after = share * (1 + impact)
    return {(-1, 1): share * (1 - after), (0, 1): share * after, (1, 0): (1 - share) * after}


def expected_samples(precision: float, most: int, shares: Shares) -> int:
    """Samples at the look that is expected to be the last, if each is of a game of its own.

    >>> expected_samples(0.1, 1000, shares_if(0.67, -0.5))
    378
    >>> expected_samples(0.1, 1000, shares_if(0.67, -1))
    75
    """
    for size in looks(most):
        cells = [Cell(*pair, round(size * shares.get(pair, 0.0))) for pair in RELATIVE_CHANGE]
        tally = Tally(tuple(cells), critical_factor=CRITICAL_FACTOR)
        if sum(cell.count * cell.whole for cell in cells) and tally.is_narrower_than(precision):
            break
    return size


def expected_sample_size(precision: float | None, most: int) -> int:
    """How many samples a run is to have; with a precision, as many as that usually takes.

    >>> [expected_sample_size(*each) for each in ((None, 1000), (0.1, 1000), (0.1, 60))]
    [1000, 378, 60]
    """
    if not precision:
        return most
    return expected_samples(precision, most, shares_if(USUAL_SHARE, USUAL_IMPACT))


def on_expected_samples(precision: float | None, most: int, samples: Sequence[Sample]) -> list[str]:
    """How many samples a run takes that stops by itself, by those that are kept or by three models.

    Nothing, if it is not to stop by itself.
    """
    if not precision:
        return []

    def expected(shares: Shares) -> str:
        return f"{expected_samples(precision, NO_LIMIT, shares):,}"

    told, allowed = f"precision: {precision:g} takes about", f"; -n allows {most:,}"
    if len(answered(samples)) >= FIRST_LOOK:
        by = f"samples, by {len(samples):,} that are kept"
        return [f"{told} {expected(shares_expected(samples))} {by}{allowed}"]
    half, none, whole = (
        expected(shares_if(USUAL_SHARE, impact)) for impact in (USUAL_IMPACT, 0.0, -1.0)
    )
    return [
        f"{told} {half} samples if half of the habit yields, as is taken here, {none} if none and "
        f"{whole} if all of it does ({100 * USUAL_SHARE:.0f} % special moves under the standard "
        f"rules){allowed}"
    ]
