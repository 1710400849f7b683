"""How many draws per position take the fewest requests for the same precision.

    python benchmarks/draws.py

Finding a position takes 1 / hit rate requests, and each draw two. Draws of one position that
correlate by r are worth D / (1 + (D - 1) r) positions.
"""

from datetime import UTC, datetime

from measuring import print_heading, print_row

from cant_do_that_anymore.metrics.stopping import best_draws, relative_cost

HIT_RATES = (0.01, 0.05, 0.075, 0.16, 0.67)
CORRELATIONS = (0.1, 0.2, 0.3, 0.5, 0.8)


def main() -> None:
    print(f"`python benchmarks/draws.py`, {datetime.now(UTC):%Y-%m-%d}\n")
    print_heading("hit rate", *(f"correlation {each:g}" for each in CORRELATIONS))
    for rate in HIT_RATES:
        print_row(f"{100 * rate:g}%", *(_cell(rate, each) for each in CORRELATIONS))


def _cell(rate: float, correlation: float) -> str:
    best = best_draws(rate, correlation)
    share = relative_cost(best, rate, correlation) / relative_cost(1, rate, correlation)
    return f"{best}, {100 * share:.0f}%"


if __name__ == "__main__":
    main()
