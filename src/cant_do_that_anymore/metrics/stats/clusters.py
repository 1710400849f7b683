"""Counts by cluster, and the design effect of games that contribute several samples.

If every game contributes one sample, a score is compared with the normal distribution. Otherwise
its square is divided by the design effect (Kish, 1965; for score statistics Rao and Scott, 1992),
and the score is compared with Student's t. Little variation, or few games to estimate the design
effect from, must not look like certainty. So one game is added whose samples all deviate in one
direction, as far as possible.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import erfc, inf, sqrt
from typing import TypeVar

import numpy as np

from .score_interval import Cell, ratio_of_cells, score, t_quantile, t_two_sided

# The 97.5th percentile of the standard normal distribution.
NORMAL = 1.959963984540054

_Kind = TypeVar("_Kind", bound=tuple[int, ...])


@dataclass(frozen=True)
class Tally:
    """The counted samples of a ratio.

    Attributes:
        cells: every pair of part and whole that a sample can have, with its count.
        design_effect: the design effect, 1 or more: the loss of information from clustering.
        degrees_of_freedom: degrees of freedom; infinite if every game contributes one sample.
    """

    cells: tuple[Cell, ...]
    design_effect: float = 1.0
    degrees_of_freedom: float = inf

    @cached_property
    def critical(self) -> float:
        """The largest score of a ratio inside the 95% interval."""
        if self.degrees_of_freedom == inf:
            return NORMAL
        return t_quantile(self.degrees_of_freedom) * sqrt(self.design_effect)

    def p(self, ratio: float) -> float:
        """Return the two-sided p-value of the samples if this were the true ratio.

        It is below 0.05 exactly if the ratio is outside the interval.
        """
        adjusted = score(self.cells, ratio) / sqrt(self.design_effect)
        if self.degrees_of_freedom == inf:
            return erfc(adjusted / sqrt(2))
        return t_two_sided(adjusted, self.degrees_of_freedom)


def cluster_counts(
    support: Mapping[_Kind, tuple[float, float]],
    samples: Sequence[_Kind],
    games: Sequence[Hashable],
) -> Tally:
    """Count samples by cell, and estimate the design effect of their games.

    Samples without parts and wholes are left out: they do not affect any ratio.

    Args:
        support: the part and whole of every kind of sample.
        samples: the kind of each sample: its parts and wholes.
        games: the game of each sample.
    """
    counted = [(kind, game) for kind, game in zip(samples, games, strict=True) if any(kind)]
    counts = Counter(kind for kind, _ in counted)
    if unexpected := counts.keys() - support.keys():
        raise ValueError(f"a sample is {unexpected.pop()}, which is not one of {list(support)}")
    cells = tuple(Cell(*pair, counts[kind]) for kind, pair in support.items())
    row_of = {game: row for row, game in enumerate(dict.fromkeys(game for _, game in counted))}
    if len(row_of) == len(counted):
        return Tally(cells)
    column_of = {kind: index for index, kind in enumerate(support)}
    by_game = np.zeros((len(row_of), len(cells)))
    for kind, game in counted:
        by_game[row_of[game], column_of[kind]] += 1

    ratio = ratio_of_cells(cells)
    deviations = np.array([cell.part - ratio * cell.whole for cell in cells])
    sizes = by_game.sum(axis=1)
    squares = float((sizes**2).sum())
    n_games = len(counted) ** 2 / squares
    # The mean size, each game weighted by its squared size: many singles do not pull it down.
    added_size = float((sizes**3).sum()) / squares
    clustered_squares = float(((by_game @ deviations) ** 2).sum())
    if n_games > 1:
        clustered_squares *= n_games / (n_games - 1)
    independent_squares = float((by_game.sum(axis=0) * deviations**2).sum())
    max_square = float((deviations**2).max())
    effect = (clustered_squares + max_square * added_size**2) / (
        independent_squares + max_square * added_size
    )
    return Tally(cells, max(1.0, effect), n_games)
