"""How often intervals over wordings hold the mean over all wordings like these.

    python benchmarks/coverage_of_wordings.py

Each simulated model has a rule uptake of its own under every wording, drawn around the mean with a
standard deviation of tau. A run asks about each position in one of eight wordings.
"""

from functools import cache

import numpy as np

from cant_do_that_anymore.metrics.stats.intervals import RELATIVE_DROP, Interval, Ratio
from cant_do_that_anymore.metrics.types import GroupValue
from cant_do_that_anymore.metrics.wordings import summarize

K, RUNS, SHARE = 8, 2000, 0.9
TAUS, MEANS, SIZES = (0.0, 0.03, 0.06, 0.1), (0.2, 0.5, 0.8), (100, 1000)


@cache
def interval(habits: int, prevented: int, n: int) -> Interval | None:
    """Interval of the rule uptake: so many habits in n samples, so many of them prevented."""
    wholes = [1] * habits + [0] * (n - habits)
    parts = [1] * prevented + [0] * (n - prevented)
    return Ratio(parts, wholes, RELATIVE_DROP).interval(range(n))


def simulate(mean: float, tau: float, n: int, seed: int) -> list[float]:
    """Return the coverage of three intervals and of the spread's, and the share with p < 0.05."""
    random, hits = np.random.default_rng(seed), []
    for _ in range(RUNS):
        # A beta distribution has this mean and standard deviation, and stays between 0 and 1.
        size = mean * (1 - mean) / tau**2 - 1 if tau else 0
        true = random.beta(mean * size, (1 - mean) * size, K) if tau else np.full(K, mean)
        sizes = np.bincount(random.integers(0, K, n), minlength=K)
        habits = random.binomial(sizes, SHARE)
        prevented = random.binomial(habits, true)
        pooled = interval(habits.sum(), prevented.sum(), n)
        assert pooled  # every run has habits
        groups = {
            str(k): GroupValue(size, part / whole, None, None)
            for k, (part, whole, size) in enumerate(zip(prevented, habits, sizes, strict=True))
            if whole
        }
        result = summarize("rule_uptake", groups, pooled, pooled)
        hits.append(
            (
                pooled.low <= true.mean() <= pooled.high,
                pooled.low <= mean <= pooled.high,
                result.low <= mean <= result.high,
                result.spread_low <= tau <= result.spread_high,
                result.p < 0.05,
            )
        )
    return list(np.mean(hits, axis=0))


def main() -> None:
    """Print the table."""
    heads = (
        *("samples", "mean", "tau", "interval of these wordings, for these"),
        *("the same, for all wordings", "interval for wordings like these"),
        *("interval of the spread", "p < 0.05"),
    )
    print(f"| {' | '.join(heads)} |\n|{'---:|' * len(heads)}")
    for number, (n, mean, tau) in enumerate((n, m, t) for n in SIZES for m in MEANS for t in TAUS):
        shares = " | ".join(f"{share:.1%}" for share in simulate(mean, tau, n, number))
        print(f"| {n:,} | {mean} | {tau} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
