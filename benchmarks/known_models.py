"""Models made up for simulations, whose true values are known.

A model plays the habit with probability p under the standard rules and p (1 + impact) under the
changed ones. Its two answers are independent, or correlated: then, in 80% of samples, it plays the
habit under the changed rules only where it did under the standard ones. Where a game gives several
samples, each copies the answers of one common sample of the game with a probability of 80%.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product

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


def restart(key: str) -> None:
    """Draw other numbers for every key, and the same ones for the same key."""
    seed = int.from_bytes(sha256(f"{SEED} {key}".encode()).digest()[:8], "big")
    random.bit_generator.state = np.random.PCG64(seed).state


@dataclass(frozen=True)
class Design:
    """How samples are spread over games.

    Attributes:
        name: what tables call it.
        n: the number of samples.
        games: how many samples each game gives.
        copying: how often a sample copies the common one of its game.
    """

    name: str
    n: int
    games: tuple[int, ...] = field(repr=False)
    copying: float = COPYING

    @property
    def is_alone(self) -> bool:
        """Whether each game gives one sample."""
        return max(self.games) == 1

    @property
    def of_sample(self) -> NDArray[np.int64]:
        """The game of each sample."""
        return np.repeat(np.arange(len(self.games)), self.games)


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


ALONE, TWOS, TENS = "1 sample per game", "2 samples per game", "half singles, half games of 10"
BIG = "24 games"
DESIGNS: dict[str, Callable[[int], list[int]]] = {
    ALONE: one_each,
    TWOS: twos,
    TENS: ones_and_tens,
    BIG: big_games,
    "4 games": four_games,
}
FEW_LARGE = Design("900 singles, 30 games of 20", 1500, (1,) * 900 + (20,) * 30)
ALL_ALIKE = Design(f"{FEW_LARGE.name}, all alike", 1500, FEW_LARGE.games, copying=1.0)


def design(name: str, n: int) -> Design:
    return Design(name, n, tuple(DESIGNS[name](n)))


def designs(sizes: tuple[int, ...]) -> list[Design]:
    """All that are possible with so many samples, and the two that have a number of their own."""
    named = [
        design(*place) for place in product(DESIGNS, sizes) if place[0] != BIG or place[1] > 24
    ]
    return [*named, FEW_LARGE, ALL_ALIKE]


def answers(
    p: float, impact: float, correlated: bool, size: tuple[int, int]
) -> tuple[Answers, Answers]:
    before = random.random(size) < p
    after = random.random(size) < p * (1 + impact)
    if correlated:
        nested = before & (random.random(size) < 1 + impact)
        after = np.where(random.random(size) < NESTED, nested, after)
    return before.astype(np.int64), after.astype(np.int64)


def experiments(model: Model, of: Design, times: int) -> Iterator[Experiment]:
    if times > AT_ONCE:
        yield from experiments(model, of, times - AT_ONCE)
        times = AT_ONCE
    games = of.of_sample
    before, after = answers(*model, (times, len(games)))
    if not of.is_alone:
        common_before, common_after = answers(*model, (times, len(of.games)))
        copied = random.random((times, len(games))) < of.copying
        before = np.where(copied, common_before[:, games], before)
        after = np.where(copied, common_after[:, games], after)
    names = games.tolist()
    for one, other in zip(before.tolist(), after.tolist(), strict=True):
        yield one, other, names
