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

from collections.abc import Sequence
from math import exp, lgamma, log, sqrt
from typing import NamedTuple

from ..task.types import Plan, Sample
from .bounds import interval_of
from .stats.clusters import NORMAL
from .stats.intervals import Interval, ends_of
from .stats.score_interval import interval_end, t_quantile
from .types import Measure, WordingResults, WordingValue

MAX_SPREAD = 1.0  # of values between -1 and 1


def by_wording(
    measure: Measure,
    samples: Sequence[Sample],
    plan: Plan,
    pooled: Interval | None,
    critical_factor: float = 1.0,
) -> WordingResults | None:
    """Return the measure by wording; None with one wording, or where fewer than two have a value.

    Args:
        pooled: the interval of the measure over all samples.
    """
    groups: dict[str, list[Sample]] = {name: [] for name in plan.wordings}
    for sample in samples:
        groups[plan.wording_of(sample.position)].append(sample)
    details = {name: _value(measure, members, critical_factor) for name, members in groups.items()}
    defined = [(entry.value, entry.n) for entry in details.values() if entry.value is not None]
    alone = interval_of(measure, samples, critical_factor)
    if pooled is None or alone is None or len(defined) < 2:
        return None
    summary = summarize(defined, alone, critical_factor)
    ends = {"low": min(pooled.low, summary.low), "high": max(pooled.high, summary.high)}
    values = {name: entry.value for name, entry in details.items()}
    return WordingResults(measure.name, values, details, *summary._replace(**ends))


class Summary(NamedTuple):
    """The spread between wordings, its p-value, and the interval of their mean."""

    spread: float
    spread_low: float
    spread_high: float
    p: float
    low: float
    high: float


def summarize(
    wordings: Sequence[tuple[float, int]], pooled: Interval, critical_factor: float = 1.0
) -> Summary:
    """Return the spread between wordings, its p-value, and the interval of their mean.

    The sampling variance of a wording is that of all samples, scaled to its number of samples. Its
    own variance would depend on its value, and the test would reject too often.

    Args:
        wordings: the value of each, and its number of samples.
        pooled: the interval over all samples.
        critical_factor: as in `Tally`.
    """
    values = [value for value, _ in wordings]
    error = ((pooled.high - pooled.low) / (2 * NORMAL * critical_factor)) ** 2
    total = sum(n for _, n in wordings)
    errors = [error * total / n for _, n in wordings]
    freedom, mean, variance = len(values) - 1, sum(values) / len(values), _variance(values)
    reach = critical_factor * t_quantile(freedom) * sqrt(variance / len(values))
    return Summary(
        sqrt(max(0.0, variance - sum(errors) / len(errors))),
        *spread_interval(values, errors),
        p=1 - chi_squared(_heterogeneity(values, errors, 0.0), freedom),
        low=min(pooled.low, mean - reach),
        high=min(1.0, max(pooled.high, mean + reach)),
    )


def _value(measure: Measure, samples: Sequence[Sample], critical_factor: float) -> WordingValue:
    interval = interval_of(measure, samples, critical_factor) if samples else None
    return WordingValue(len(samples), measure.value(samples), *ends_of(interval))


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


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
