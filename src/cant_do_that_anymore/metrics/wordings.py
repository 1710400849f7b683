"""Results by wording: how much the phrasing of the prompts matters.

Each item gets one wording of the run, by its id, so the rule uptake of the run is that of these
wordings together. The values of single wordings differ by chance alone. The spread is the standard
deviation that is left when this is subtracted (method of moments). Its interval contains the
spreads under which the weighted squared deviations of the values are not surprising (the Q-profile
method: Viechtbauer, 2007).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, sqrt
from statistics import NormalDist, fmean, variance

from ..task.types import Plan, Sample, Samples
from .estimates import Estimate
from .measures import UPTAKE
from .score_interval import interval_end

MAX_SPREAD = 1.0  # of values between -1 and 1
# With a smaller share of usual answers under the standard rules, the interval is too narrow.
WEAK_HABIT = 0.3


@dataclass(frozen=True)
class Wordings:
    """The rule uptake by wording.

    Attributes:
        spread: the standard deviation between wordings, without sampling error; its n is the number
            of wordings.
        by_wording: the rule uptake of each wording that has one.
    """

    spread: Estimate
    by_wording: Mapping[str, Estimate]


def by_wording(samples: Samples, plan: Plan, pooled: Estimate | None) -> Wordings | None:
    """Return the rule uptake by wording; None where fewer than two wordings have a value."""
    of_wording: dict[str, list[Sample]] = {name: [] for name in plan.wordings}
    for sample in samples:
        of_wording[plan.wording_of(sample.item)].append(sample)
    estimates = {name: UPTAKE.estimate(some) for name, some in of_wording.items()}
    defined = {name: estimate for name, estimate in estimates.items() if estimate}
    if pooled is None or len(defined) < 2:
        return None
    return Wordings(spread_of(list(defined.values()), pooled), defined)


def spread_of(estimates: Sequence[Estimate], pooled: Estimate) -> Estimate:
    """Return the standard deviation between wordings, given their estimate over all samples.

    The sampling variance of a wording is that of all samples, scaled to its number of samples. Its
    own variance would depend on its value.
    """
    values, sizes = [e.value for e in estimates], [e.n for e in estimates]
    error = (pooled.reach / NormalDist().inv_cdf(0.975)) ** 2
    errors = [error * sum(sizes) / n for n in sizes]

    def largest_with(probability: float) -> float:
        """Return the largest spread with at least this probability of smaller deviations."""

        def rejected(spread: float) -> bool:
            deviations = _heterogeneity(values, errors, spread**2)
            return chi_squared(deviations, len(values) - 1) < probability

        return interval_end(rejected, 0.0, MAX_SPREAD)

    spread = min(MAX_SPREAD, sqrt(max(0.0, variance(values) - fmean(errors))))
    low, high = min(spread, largest_with(0.975)), max(spread, largest_with(0.025))
    return Estimate(spread, low, high, len(values))


def _heterogeneity(values: Sequence[float], errors: Sequence[float], between: float) -> float:
    """Return Cochran's Q: the squared deviations from the weighted mean, over their variances."""
    weights = [1 / (error + between) if error + between else 1e12 for error in errors]
    pairs = list(zip(weights, values, strict=True))
    mean = sum(weight * value for weight, value in pairs) / sum(weights)
    return sum(weight * (value - mean) ** 2 for weight, value in pairs)


def chi_squared(value: float, freedom: int) -> float:
    """Return the probability that a chi-squared variable is at most ``value``.

    >>> round(chi_squared(14.067, 7), 4)
    0.95
    """
    if value <= 0:
        return 0.0
    a, x = freedom / 2, value / 2
    term = total = 1 / a
    while term > total * 1e-15:
        a += 1
        term *= x / a
        total += term
    return min(1.0, total * exp(freedom / 2 * log(x) - x - lgamma(freedom / 2)))
