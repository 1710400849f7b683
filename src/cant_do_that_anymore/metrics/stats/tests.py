"""Permutation tests over whole games, and Holm's correction.

Were there nothing to tell two conditions (or two models) apart, then exchanging them within a game
would have been as likely as not, game by game. The p-value is the share of all such exchanges that
give a difference as large as the one seen. Where each game gives one sample, this is McNemar's
exact test (1947).
"""

from collections.abc import Hashable, Sequence

import numpy as np


def p_value(differences: Sequence[int], games: Sequence[Hashable]) -> float:
    """Could a sum of differences as far from 0 be chance? Two-sided.

    Args:
        differences: one a sample, whole numbers.
        games: the game that each sample is from.

    >>> p_value([1, 1, 1, 1, 1, 0], range(6))
    0.0625
    """
    by_game: dict[Hashable, int] = {}
    for game, difference in zip(games, differences, strict=True):
        by_game[game] = by_game.get(game, 0) + difference
    return _exchanged(list(by_game.values()))


def _exchanged(values: Sequence[int]) -> float:
    """The share of all choices of signs whose sum is as far from 0 as that of the values.

    A sum is as far from 0 if what changes sign amounts to at most the smaller of the two sides.
    """
    sizes = sorted(abs(value) for value in values if value)
    total, seen = sum(sizes), abs(sum(values))
    most = (total - seen) // 2
    chances = np.zeros(most + 1)
    chances[0], reached = 1.0, 0
    for size in sizes:
        reached = min(reached + size, most)
        now = chances[: reached + 1]
        now *= 0.5
        if size <= most:
            now[size:] += now[: reached + 1 - size].copy()
    return min(1.0, 2 * float(chances.sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for being many, by Holm's method (1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected
