"""How often 95% intervals of mean reasoning tokens, and of their difference, contain the truth.

    python benchmarks/means.py            # three minutes
    python benchmarks/means.py --quick    # seconds, rougher

The simulated models use a log-normal number of tokens, 1,000 on average, and 1.25 or 4 times as
many when the rules change. Half of the variance of the logarithm comes from the position, which is
the same under both rules. Where a game gives several samples, it makes 80% of the variance, or
none.
"""

import argparse
from itertools import product

import numpy as np
from known_models import DESIGNS, random
from measuring import print_heading, print_row
from numpy.typing import NDArray

from cant_do_that_anymore.metrics.stats.intervals import mean_interval

SIZES = (20, 100, 1000)
SPREADS = (0.5, 1.0)
"""Standard deviations of the logarithm."""
FACTORS = (1.25, 4.0)
MEAN = 1000
OF_GAME = (0.0, 0.8)
OF_POSITION = 0.5

Numbers = NDArray[np.float64]
Games = NDArray[np.int64]


def latent(games: Games, of_game: float) -> Numbers:
    """One number a sample, alike within games."""
    common: Numbers = random.standard_normal(games.max() + 1)[games]
    own: Numbers = random.standard_normal(len(games))
    mixed: Numbers = common * of_game**0.5 + own * (1 - of_game) ** 0.5
    return mixed


def tokens(games: Games, spread: float, of_game: float) -> tuple[Numbers, Numbers]:
    """What is thought about each sample under either rules, before any factor."""
    position = latent(games, of_game) * OF_POSITION**0.5
    before, after = (position + latent(games, of_game) * (1 - OF_POSITION) ** 0.5 for _ in range(2))
    return (
        MEAN * np.exp(spread * before - spread**2 / 2),
        MEAN * np.exp(spread * after - spread**2 / 2),
    )


def coverage(sizes: list[int], spread: float, of_game: float, times: int) -> list[float]:
    """The share of intervals that hold the truth: of the mean, then of each difference."""
    games = np.repeat(np.arange(len(sizes)), sizes)
    held: list[list[bool]] = [[] for _ in range(1 + len(FACTORS))]
    for _ in range(times):
        before, after = tokens(games, spread, of_game)
        values = [before, *(factor * after - before for factor in FACTORS)]
        truths = [MEAN, *(factor * MEAN - MEAN for factor in FACTORS)]
        for which, (drawn, truth) in enumerate(zip(values, truths, strict=True)):
            counts = drawn.round().astype(int).tolist()
            around = mean_interval(counts, games.tolist(), signed=which > 0)
            assert around
            held[which].append(around.low <= truth <= around.high)
    return [float(np.mean(kept)) for kept in held]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer experiments, no n of 1,000")
    quick = parser.parse_args().quick
    sizes, times = (SIZES[:2], 300) if quick else (SIZES, 2000)
    of = ["mean", *(f"difference, {factor:g} times" for factor in FACTORS)]
    print_heading(
        "design", "n", *(f"{what}, spread {spread:g}" for spread, what in product(SPREADS, of))
    )
    for (name, design), n in product(DESIGNS.items(), sizes):
        if name == "24 games" and n < 24:
            continue
        alike = (0.0,) if max(design(n)) == 1 else OF_GAME
        row: list[str] = []
        for spread in SPREADS:
            found = [coverage(design(n), spread, share, times) for share in alike]
            row += [f"{100 * min(shares):.1f}" for shares in zip(*found, strict=True)]
        print_row(name, n, *row)


if __name__ == "__main__":
    main()
