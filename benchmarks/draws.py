"""How many draws per position take the fewest requests for the same precision; how intervals hold.

    python benchmarks/draws.py

Finding a position takes 1 / hit rate requests, and each draw two. Draws of one position that
correlate by r are worth D / (1 + (D - 1) r) positions.

The second table simulates 1,000 runs of 40 positions per row. A model keeps its habit with a
chance that each position draws from a symmetric beta distribution, so the true rule uptake is 0.5.
"""

from datetime import UTC, datetime
from random import Random
from statistics import fmean

from measuring import print_heading, print_row

from cant_do_that_anymore.metrics.stats.intervals import RELATIVE_DROP, Interval, Ratio
from cant_do_that_anymore.metrics.stopping import best_draws, relative_cost

HIT_RATES = (0.01, 0.05, 0.075, 0.16, 0.67)
CORRELATIONS = (0.1, 0.2, 0.3, 0.5, 0.8)
RUNS, POSITIONS = 1_000, 40


def main() -> None:
    print(f"`python benchmarks/draws.py`, {datetime.now(UTC):%Y-%m-%d}\n")
    print_heading("hit rate", *(f"correlation {each:g}" for each in CORRELATIONS))
    for rate in HIT_RATES:
        print_row(f"{100 * rate:g}%", *(_cell(rate, each) for each in CORRELATIONS))

    print()
    print_heading(
        "draws", "correlation", "covered", "width", "covered and width, draws as positions"
    )
    for draws, correlation in ((1, 0.5), (2, 0.5), (3, 0.5), (5, 0.5), (3, 0.2), (3, 0.06)):
        together, apart = zip(*_simulated(draws, correlation), strict=True)
        print_row(draws, correlation, *_summary(together), ", ".join(_summary(apart)))


def _simulated(draws: int, correlation: float) -> list[tuple[Interval, Interval]]:
    """Return the interval of each run with positions as clusters, and as if there were none."""
    random, shape = Random(f"{draws} {correlation}"), (1 / correlation - 1) / 2
    found = []
    for _ in range(RUNS):
        chances = [random.betavariate(shape, shape) for _ in range(POSITIONS)]
        followed = [int(random.random() < chance) for chance in chances for _ in range(draws)]
        ratio = Ratio(followed, [1] * len(followed), RELATIVE_DROP)
        games = [number // draws for number in range(len(followed))]
        intervals = ratio.interval(games), ratio.interval(range(len(followed)))
        assert intervals[0] and intervals[1]
        found.append((intervals[0], intervals[1]))
    return found


def _summary(intervals: tuple[Interval, ...]) -> tuple[str, str]:
    covered = fmean(each.low <= 0.5 <= each.high for each in intervals)
    return f"{100 * covered:.1f}%", f"{fmean(each.high - each.low for each in intervals):.3f}"


def _cell(rate: float, correlation: float) -> str:
    best = best_draws(rate, correlation)
    share = relative_cost(best, rate, correlation) / relative_cost(1, rate, correlation)
    return f"{best}, {100 * share:.0f}%"


if __name__ == "__main__":
    main()
