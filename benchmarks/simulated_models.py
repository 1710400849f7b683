"""Simulated models with known true values.

A model plays the habit with probability p under the standard rules and p (1 + impact) under the
changed rules. Its two answers are independent or correlated. If they are correlated, then in 80% of
samples the model plays the habit under the changed rules only if it did under the standard rules.
In games with several samples, each sample copies the answers of one common sample of its game with
a probability of 80%.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product

import numpy as np
from numpy.typing import NDArray

COPIED_SHARE = 0.8
NESTED_SHARE = 0.8
SEED = 20_220_722
MAX_EXPERIMENTS_AT_ONCE = 1000
"""Experiments drawn in one call, to limit memory."""

Model = tuple[float, float, bool]
"""The model's p, its impact factor, and whether its two answers are correlated."""
Answers = NDArray[np.int64]
Experiment = tuple[list[int], list[int], list[int]]
"""For each sample: whether the model plays the habit under the standard rules, whether it does
under the changed rules, and the game."""

random = np.random.default_rng(SEED)


def reseed(key: str) -> None:
    """Seed the generator by a key."""
    seed = int.from_bytes(sha256(f"{SEED} {key}".encode()).digest()[:8], "big")
    random.bit_generator.state = np.random.PCG64(seed).state


@dataclass(frozen=True)
class Design:
    """The numbers of samples per game.

    The repr of a design is part of the seed of a simulation. Renaming a field or a design changes
    the simulated numbers.

    Attributes:
        name: the name in tables.
        n: the number of samples.
        game_sizes: the number of samples of each game.
        copying: the probability that a sample copies the common sample of its game.
    """

    name: str
    n: int
    game_sizes: tuple[int, ...] = field(repr=False)
    copying: float = COPIED_SHARE

    @property
    def has_one_per_game(self) -> bool:
        """Whether each game has only one sample."""
        return max(self.game_sizes) == 1

    @property
    def games(self) -> NDArray[np.int64]:
        """The game of each sample."""
        return np.repeat(np.arange(len(self.game_sizes)), self.game_sizes)


def one_per_game(n: int) -> list[int]:
    return [1] * n


def two_per_game(n: int) -> list[int]:
    return [2] * (n // 2)


def ones_and_tens(n: int) -> list[int]:
    return [1] * (n // 2) + [10] * (n // 20)


def twenty_four_games(n: int) -> list[int]:
    return [n // 24 + (game < n % 24) for game in range(24)]


def four_games(n: int) -> list[int]:
    return [n // 4] * 4


ONE_PER_GAME, TWO_PER_GAME = "1 sample per game", "2 samples per game"
ONES_AND_TENS, GAMES_24 = "half singles, half games of 10", "24 games"
DESIGNS: dict[str, Callable[[int], list[int]]] = {
    ONE_PER_GAME: one_per_game,
    TWO_PER_GAME: two_per_game,
    ONES_AND_TENS: ones_and_tens,
    GAMES_24: twenty_four_games,
    "4 games": four_games,
}
FEW_LARGE = Design("900 singles, 30 games of 20", 1500, (1,) * 900 + (20,) * 30)
FEW_LARGE_COPIED = Design(f"{FEW_LARGE.name}, all alike", 1500, FEW_LARGE.game_sizes, copying=1.0)


def is_possible(name: str, n: int) -> bool:
    """Whether there are enough samples for every game of a design."""
    return name != GAMES_24 or n >= 24


def make_design(name: str, n: int) -> Design:
    return Design(name, n, tuple(DESIGNS[name](n)))


def make_designs(names: Iterable[str], sizes: tuple[int, ...]) -> list[Design]:
    """Return all possible designs of these names and sizes, and the two of a fixed size."""
    possible = [make_design(*each) for each in product(names, sizes) if is_possible(*each)]
    return [*possible, FEW_LARGE, FEW_LARGE_COPIED]


def experiments_per_cell(design: Design, count: int) -> int:
    """Return the number of experiments for a design: fewer if it is slow."""
    return count // 4 if design.n >= 1000 and not design.has_one_per_game else count


def draw_answers(
    p: float, impact: float, correlated: bool, size: tuple[int, int]
) -> tuple[Answers, Answers]:
    before = random.random(size) < p
    after = random.random(size) < p * (1 + impact)
    if correlated:
        nested = before & (random.random(size) < 1 + impact)
        after = np.where(random.random(size) < NESTED_SHARE, nested, after)
    return before.astype(np.int64), after.astype(np.int64)


def draw_experiments(model: Model, design: Design, count: int) -> Iterator[Experiment]:
    if count > MAX_EXPERIMENTS_AT_ONCE:
        yield from draw_experiments(model, design, count - MAX_EXPERIMENTS_AT_ONCE)
        count = MAX_EXPERIMENTS_AT_ONCE
    games = design.games
    before, after = draw_answers(*model, (count, len(games)))
    if not design.has_one_per_game:
        common_before, common_after = draw_answers(*model, (count, len(design.game_sizes)))
        is_copy = random.random((count, len(games))) < design.copying
        before = np.where(is_copy, common_before[:, games], before)
        after = np.where(is_copy, common_after[:, games], after)
    game_list = games.tolist()
    for standard, changed in zip(before.tolist(), after.tolist(), strict=True):
        yield standard, changed, game_list
