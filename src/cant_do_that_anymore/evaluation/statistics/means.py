"""95 % intervals of means of numbers without bounds, such as tokens.

What the mean would be without each game in turn says how far it may be off (the jackknife), by
Student's t. Few games, or games of unequal size, leave fewer degrees of freedom.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from math import exp, sqrt

from . import student
from .intervals import Interval


def mean_interval(
    values: Sequence[int], games: Sequence[Hashable], *, signed: bool, critical_factor: float = 1.0
) -> Interval | None:
    """Interval of the mean; None where nothing varies, or there is no more than one game's worth.

    Args:
        values: one a sample, and so the games that the samples are from.
        signed: whether values may be below 0. Amounts that cannot are skewed: most are small and a
            few large, so that the interval reaches as many times above the mean as below it.
        stretch: as in `Tally`.

    >>> interval = mean_interval([1, 2, 3, 4, 5], range(5), signed=True)
    >>> round(interval.low, 6), round(interval.high, 6), interval.method
    (1.036757, 4.963243, 't over games')
    """
    sizes, sums = Counter(games), Counter[Hashable]()
    for game, value in zip(games, values, strict=True):
        sums[game] += value
    n, mean = len(values), sum(values) / max(1, len(values))
    n_games = n**2 / max(1, sum(size**2 for size in sizes.values()))  # as many of equal size
    if n_games < 2:
        return None
    shifts = ((sums[game] - mean * size) / (n - size) for game, size in sizes.items())
    error = sqrt((len(sizes) - 1) / len(sizes) * sum(shift**2 for shift in shifts))
    if not error:
        return None
    reach = critical_factor * student.quantile(n_games - 1) * error
    if signed:
        return Interval(mean - reach, mean + reach, "t over games")
    times = exp(reach / mean)
    return Interval(mean / times, mean * times, "t over games")
