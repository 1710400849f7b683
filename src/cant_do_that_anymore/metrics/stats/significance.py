"""Permutation tests over whole games, and Holm's correction.

If two conditions (or two models) did not differ, swapping them within any game would have been
equally likely. The p-value is the proportion of all such swaps with a difference at least as large
as the observed one. If every game contributes one sample, this is McNemar's exact test (1947).
"""

from collections.abc import Hashable, Sequence

import numpy as np


def p_value(differences: Sequence[int], games: Sequence[Hashable]) -> float:
    """Return the two-sided p-value of a sum of differences.

    Args:
        differences: one integer per sample.
        games: the game of each sample.

    >>> p_value([1, 1, 1, 1, 1, 0], range(6))
    0.0625
    """
    by_game: dict[Hashable, int] = {}
    for game, difference in zip(games, differences, strict=True):
        by_game[game] = by_game.get(game, 0) + difference
    return _swapped_share(list(by_game.values()))


def _swapped_share(values: Sequence[int]) -> float:
    """Return the proportion of all sign choices whose sum is at least as far from 0 as the values'.

    A sum is as far from 0 if the values that change sign add up to at most the smaller of the two
    sides.
    """
    sizes = sorted(abs(value) for value in values if value)
    total, observed = sum(sizes), abs(sum(values))
    smaller_side = (total - observed) // 2
    chances = np.zeros(smaller_side + 1)
    chances[0], reached = 1.0, 0
    for size in sizes:
        reached = min(reached + size, smaller_side)
        reachable = chances[: reached + 1]
        reachable *= 0.5
        if size <= smaller_side:
            reachable[size:] += reachable[: reached + 1 - size].copy()
    return min(1.0, 2 * float(chances.sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for multiple testing by Holm's method (1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected
