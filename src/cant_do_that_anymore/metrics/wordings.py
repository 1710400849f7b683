"""Results by wording: how much the phrasing of the prompts matters.

Each position of a run gets one of its wordings. The interval of a measure over all samples is about
the mean over these wordings. Other wordings would give another mean, so a second interval treats
the wordings as a sample: the mean of their values, plus or minus t times their standard deviation
over the root of their number. Readers get the wider end on each side.

The values of the wordings differ by chance alone. The spread is the standard deviation that is left
when this is subtracted (method of moments). Its interval contains the spreads under which the
weighted squared deviations of the values are not surprising (the Q-profile method: Viechtbauer,
2007).
"""

from collections.abc import Mapping, Sequence
from math import exp, lgamma, log, sqrt

from ..task.types import Plan, Sample, Samples
from .bounds import group_value, interval_of
from .measures import MEASURES, UPTAKE
from .stats.clusters import NORMAL
from .stats.intervals import Interval
from .stats.score_interval import interval_end, t_quantile
from .types import GroupValue, WordingResults

MAX_SPREAD = 1.0  # of values between -1 and 1


def by_wording(samples: Samples, plan: Plan, pooled: Interval | None) -> WordingResults | None:
    """Return the rule uptake by wording; None where fewer than two wordings have a value.

    Args:
        pooled: its interval over all samples.
    """
    measure = MEASURES[UPTAKE]
    groups: dict[str, list[Sample]] = {name: [] for name in plan.wordings}
    for sample in samples:
        groups[plan.wording_of(sample.item)].append(sample)
    details = {name: group_value(measure, group) for name, group in groups.items()}
    as_scored = interval_of(measure, samples)
    n_undefined = sum(entry.value is None for entry in details.values())
    if pooled is None or as_scored is None or len(details) - n_undefined < 2:
        return None
    return summarize(measure.name, details, pooled, as_scored)


def summarize(
    measure: str,
    details: Mapping[str, GroupValue],
    pooled: Interval,
    as_scored: Interval,
) -> WordingResults:
    """Return the spread between wordings, its p-value, and the interval of their mean.

    The sampling variance of a wording is that of all samples, scaled to its number of samples. Its
    own variance would depend on its value, and the test would reject too often.

    Args:
        details: the value of each wording, at least two of them defined.
        pooled: the interval over all samples, and ``as_scored`` the same without bounds.
    """
    by_name = {name: entry.value for name, entry in details.items()}
    values = [value for value in by_name.values() if value is not None]
    sizes = [entry.n for entry in details.values() if entry.value is not None]
    error = ((as_scored.high - as_scored.low) / (2 * NORMAL)) ** 2
    errors = [error * sum(sizes) / n for n in sizes]
    freedom, mean = len(values) - 1, sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / freedom
    reach = t_quantile(freedom) * sqrt(variance / len(values))
    return WordingResults(
        measure,
        by_name,
        details,
        sqrt(max(0.0, variance - sum(errors) / len(errors))),
        *spread_interval(values, errors),
        p=1 - chi_squared(_heterogeneity(values, errors, 0.0), freedom),
        low=min(pooled.low, mean - reach),
        high=max(pooled.high, min(1.0, mean + reach)),
    )


def spread_interval(values: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """Return the 95% interval of the standard deviation between groups.

    Args:
        values: one per group.
        errors: the sampling variances of the values.
    """

    def largest_with(probability: float) -> float:
        """Return the largest spread with at least this probability of smaller deviations."""

        def rejected(spread: float) -> bool:
            deviations = _heterogeneity(values, errors, spread**2)
            return chi_squared(deviations, len(values) - 1) < probability

        return interval_end(rejected, 0.0, MAX_SPREAD, within=1e-12)

    return largest_with(0.975), largest_with(0.025)


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
