"""Simulates the coverage of intervals over wordings for the mean over all wordings like these.

    python benchmarks/coverage_of_wordings.py

Each simulated model has a different rule uptake under every wording, drawn around the mean with a
standard deviation of tau. A run uses one of eight wordings for each position.
"""

from functools import cache
from itertools import product

import numpy as np
from markdown_tables import print_heading, print_row

from cant_do_that_anymore.metrics.stats.intervals import RELATIVE_DROP, Interval, Ratio
from cant_do_that_anymore.metrics.types import GroupValue
from cant_do_that_anymore.metrics.wordings import summarize

WORDINGS, RUNS, HABIT_RATE = 8, 2000, 0.9
TAUS, MEANS, SIZES = (0.0, 0.03, 0.06, 0.1), (0.2, 0.5, 0.8), (100, 1000)


@cache
def uptake_interval(habits: int, prevented: int, n: int) -> Interval | None:
    """Return the interval of the rule uptake, from the counts of habits and prevented habits."""
    wholes = [1] * habits + [0] * (n - habits)
    parts = [1] * prevented + [0] * (n - prevented)
    return Ratio(parts, wholes, RELATIVE_DROP).interval(range(n))


def simulate(mean: float, tau: float, n: int, seed: int) -> list[float]:
    """Return the coverage of four intervals, and the share of runs with p < 0.05."""
    random, hits = np.random.default_rng(seed), []
    for _ in range(RUNS):
        # A beta distribution has this mean and standard deviation, and stays between 0 and 1.
        size = mean * (1 - mean) / tau**2 - 1 if tau else 0
        uptakes = (
            random.beta(mean * size, (1 - mean) * size, WORDINGS)
            if tau
            else np.full(WORDINGS, mean)
        )
        sizes = np.bincount(random.integers(0, WORDINGS, n), minlength=WORDINGS)
        habits = random.binomial(sizes, HABIT_RATE)
        prevented = random.binomial(habits, uptakes)
        pooled = uptake_interval(habits.sum(), prevented.sum(), n)
        assert pooled  # every run has habits
        groups = {
            str(k): GroupValue(size, part / whole, None, None)
            for k, (part, whole, size) in enumerate(zip(prevented, habits, sizes, strict=True))
            if whole
        }
        result = summarize("rule_uptake", groups, pooled, pooled)
        hits.append(
            (
                pooled.low <= uptakes.mean() <= pooled.high,
                pooled.low <= mean <= pooled.high,
                result.low <= mean <= result.high,
                result.spread_low <= tau <= result.spread_high,
                result.p < 0.05,
            )
        )
    return list(np.mean(hits, axis=0))


def main() -> None:
    """Print the table."""
    print_heading(
        *("samples", "mean", "tau", "interval of these wordings, for these"),
        *("the same, for all wordings", "interval for wordings like these"),
        *("interval of the spread", "p < 0.05"),
    )
    for seed, (n, mean, tau) in enumerate(product(SIZES, MEANS, TAUS)):
        shares = (f"{share:.1%}" for share in simulate(mean, tau, n, seed))
        print_row(f"{n:,}", mean, tau, *shares)


if __name__ == "__main__":
    main()
