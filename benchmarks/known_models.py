"""Models made up for simulations, whose true values are known.

A model plays the habit with probability p under the standard rules and p (1 + impact) under the
changed ones. Its two answers are independent, or correlated: then, in 80 % of samples, it plays the
habit under the changed rules only where it did under the standard ones. Where a game gives several
samples, each copies the answers of one common sample of the game with a probability of 80 %.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

COPYING = 0.8
NESTED = 0.8
SEED = 20_220_722
AT_ONCE = 1000
"""Experiments drawn together, to spare memory."""

Model = tuple[float, float, bool]
"""Its p, its impact factor, and whether its two answers are correlated."""
Answers = NDArray[np.int64]
Experiment = tuple[list[int], list[int], list[int]]
"""Whether the habit was played before and after, and the game, of each sample."""

random = np.random.default_rng(SEED)
_START = random.bit_generator.state


def restart() -> None:
    """Draw from the beginning again, so that one table does not depend on those before it."""
    random.bit_generator.state = _START


def one_each(n: int) -> list[int]:
    return [1] * n


def twos(n: int) -> list[int]:
    return [2] * (n // 2)


def ones_and_tens(n: int) -> list[int]:
    return [1] * (n // 2) + [10] * (n // 20)


def big_games(n: int) -> list[int]:
    return [n // 24 + (game < n % 24) for game in range(24)]


def four_games(n: int) -> list[int]:
    return [n // 4] * 4


DESIGNS: dict[str, Callable[[int], list[int]]] = {
    "1 sample a game": one_each,
    "2 samples a game": twos,
    "half singles, half games of 10": ones_and_tens,
    "24 games": big_games,
    "4 games": four_games,
}


def answers(
    p: float, impact: float, correlated: bool, size: tuple[int, int]
) -> tuple[Answers, Answers]:
    before = random.random(size) < p
    after = random.random(size) < p * (1 + impact)
    if correlated:
        nested = before & (random.random(size) < 1 + impact)
        after = np.where(random.random(size) < NESTED, nested, after)
    return before.astype(np.int64), after.astype(np.int64)


def experiments(
    model: Model, sizes: list[int], times: int, copying: float = COPYING
) -> Iterator[Experiment]:
    if times > AT_ONCE:
        yield from experiments(model, sizes, times - AT_ONCE, copying)
        times = AT_ONCE
    games = np.repeat(np.arange(len(sizes)), sizes)
    before, after = answers(*model, (times, len(games)))
    if max(sizes) > 1:
        common_before, common_after = answers(*model, (times, len(sizes)))
        copied = random.random((times, len(games))) < copying
        before = np.where(copied, common_before[:, games], before)
        after = np.where(copied, common_after[:, games], after)
    names = games.tolist()
    for one, other in zip(before.tolist(), after.tolist(), strict=True):
        yield one, other, names
