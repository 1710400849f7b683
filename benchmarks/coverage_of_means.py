"""Simulates the coverage of 95% intervals of mean reasoning tokens and of their change.

    python benchmarks/coverage_of_means.py            # about three minutes
    python benchmarks/coverage_of_means.py --quick    # a few seconds

The simulated models use a log-normal number of tokens, 1,000 on average, and 1.25 or 4 times as
many under the changed rules. Half of the variance of the logarithm comes from the position, which
is the same under both rules. In games with several samples, the game accounts for 80% of the
variance, or for none.
"""

import argparse
from itertools import product

import numpy as np
from markdown_tables import print_heading, print_row
from numpy.typing import NDArray
from simulated_models import DESIGNS, is_possible, random

from cant_do_that_anymore.metrics.stats.intervals import mean_interval

SIZES = (20, 100, 1000)
SPREADS = (0.5, 1.0)
"""Standard deviations of the logarithm."""
FACTORS = (1.25, 4.0)
"""Mean tokens under the changed rules, relative to the standard rules."""
MEAN = 1000
GAME_SHARES = (0.0, 0.8)
"""Shares of the variance that come from the game."""
POSITION_SHARE = 0.5

Values = NDArray[np.float64]
Games = NDArray[np.int64]


def draw_normal(games: Games, game_share: float) -> Values:
    """Draw a standard normal value per sample, correlated within games."""
    common: Values = random.standard_normal(games.max() + 1)[games]
    own: Values = random.standard_normal(len(games))
    mixed: Values = common * game_share**0.5 + own * (1 - game_share) ** 0.5
    return mixed


def draw_tokens(games: Games, spread: float, game_share: float) -> tuple[Values, Values]:
    """Draw the tokens of each sample under both rules, before any factor."""
    position = draw_normal(games, game_share) * POSITION_SHARE**0.5
    before, after = (
        position + draw_normal(games, game_share) * (1 - POSITION_SHARE) ** 0.5 for _ in range(2)
    )
    return (
        MEAN * np.exp(spread * before - spread**2 / 2),
        MEAN * np.exp(spread * after - spread**2 / 2),
    )


def simulate_coverage(
    game_sizes: list[int], spread: float, game_share: float, count: int
) -> list[float]:
    """Return the coverage of the interval of the mean, and of each difference."""
    games = np.repeat(np.arange(len(game_sizes)), game_sizes)
    contains_truth: list[list[bool]] = [[] for _ in range(1 + len(FACTORS))]
    for _ in range(count):
        before, after = draw_tokens(games, spread, game_share)
        values = [before, *(factor * after - before for factor in FACTORS)]
        truths = [MEAN, *(factor * MEAN - MEAN for factor in FACTORS)]
        for number, (drawn, truth) in enumerate(zip(values, truths, strict=True)):
            tokens = drawn.round().astype(int).tolist()
            interval = mean_interval(tokens, games.tolist(), signed=number > 0)
            assert interval
            contains_truth[number].append(interval.low <= truth <= interval.high)
    return [float(np.mean(hits)) for hits in contains_truth]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer experiments, no n of 1,000")
    is_quick = parser.parse_args().quick
    sizes, count = (SIZES[:2], 300) if is_quick else (SIZES, 2000)
    measures = ["mean", *(f"difference, {factor:g} times" for factor in FACTORS)]
    columns = (f"{measure}, spread {spread:g}" for spread, measure in product(SPREADS, measures))
    print_heading("design", "n", *columns)
    for (name, game_sizes), n in product(DESIGNS.items(), sizes):
        if not is_possible(name, n):
            continue
        game_shares = (0.0,) if max(game_sizes(n)) == 1 else GAME_SHARES
        row: list[str] = []
        for spread in SPREADS:
            rows = [simulate_coverage(game_sizes(n), spread, share, count) for share in game_shares]
            row += [f"{100 * min(shares):.1f}" for shares in zip(*rows, strict=True)]
        print_row(name, n, *row)


if __name__ == "__main__":
    main()
