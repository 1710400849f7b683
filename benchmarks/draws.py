"""Finds the number of draws per position that needs the fewest requests for the same precision.

    python benchmarks/draws.py

Finding a position takes 1 / hit rate requests, and each draw takes two. D draws of one position
with a correlation of r are worth D / (1 + (D - 1) r) positions.

The second table shows the coverage of intervals in 1,000 simulated runs of 40 positions per row.
The model keeps its habit with a probability drawn for each position from a symmetric beta
distribution, so the true rule uptake is 0.5.
"""

from datetime import UTC, datetime
from random import Random
from statistics import fmean

from markdown_tables import print_heading, print_row

from cant_do_that_anymore.metrics.stats.intervals import RELATIVE_DROP, Interval, Ratio
from cant_do_that_anymore.metrics.stopping import best_draws, relative_cost

HIT_RATES = (0.01, 0.05, 0.075, 0.16, 0.67)
CORRELATIONS = (0.1, 0.2, 0.3, 0.5, 0.8)
RUNS, POSITIONS = 1_000, 40


def main() -> None:
    print(f"`python benchmarks/draws.py`, {datetime.now(UTC):%Y-%m-%d}\n")
    print_heading("hit rate", *(f"correlation {correlation:g}" for correlation in CORRELATIONS))
    for hit_rate in HIT_RATES:
        cells = (_format_best_draws(hit_rate, correlation) for correlation in CORRELATIONS)
        print_row(f"{100 * hit_rate:g}%", *cells)

    print()
    print_heading(
        "draws", "correlation", "covered", "width", "covered and width, draws as positions"
    )
    for draws, correlation in ((1, 0.5), (2, 0.5), (3, 0.5), (5, 0.5), (3, 0.2), (3, 0.06)):
        clustered, unclustered = zip(*_simulate_intervals(draws, correlation), strict=True)
        print_row(draws, correlation, *_summarize(clustered), ", ".join(_summarize(unclustered)))


def _simulate_intervals(draws: int, correlation: float) -> list[tuple[Interval, Interval]]:
    """Return the intervals of each run with positions as clusters, and without clusters."""
    random, shape = Random(f"{draws} {correlation}"), (1 / correlation - 1) / 2
    results = []
    for _ in range(RUNS):
        probabilities = [random.betavariate(shape, shape) for _ in range(POSITIONS)]
        followed = [int(random.random() < p) for p in probabilities for _ in range(draws)]
        ratio = Ratio(followed, [1] * len(followed), RELATIVE_DROP)
        positions = [number // draws for number in range(len(followed))]
        intervals = ratio.interval(positions), ratio.interval(range(len(followed)))
        assert intervals[0] and intervals[1]
        results.append((intervals[0], intervals[1]))
    return results


def _summarize(intervals: tuple[Interval, ...]) -> tuple[str, str]:
    covered = fmean(interval.low <= 0.5 <= interval.high for interval in intervals)
    width = fmean(interval.high - interval.low for interval in intervals)
    return f"{100 * covered:.1f}%", f"{width:.3f}"


def _format_best_draws(hit_rate: float, correlation: float) -> str:
    best = best_draws(hit_rate, correlation)
    share = relative_cost(best, hit_rate, correlation) / relative_cost(1, hit_rate, correlation)
    return f"{best}, {100 * share:.0f}%"


if __name__ == "__main__":
    main()
