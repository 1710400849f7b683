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
from math import erfc, inf, sqrt
from typing import TypeVar

import numpy as np

from .score_interval import Cell, estimate, score, t_quantile, t_two_sided

# The 97.5th percentile of the standard normal distribution.
NORMAL = 1.959963984540054

_Kind = TypeVar("_Kind", bound=Hashable)


@dataclass(frozen=True)
class Tally:
    """The counted samples of a ratio.

    Attributes:
        cells: every pair of part and whole that a sample can have, with its count.
        effect: the design effect, 1 or more: the loss of information from clustering.
        freedom: degrees of freedom; infinite if every game contributes one sample.
        critical_factor: factor on the critical value, above 1 if the interval is checked several
            times.
    """

    cells: tuple[Cell, ...]
    effect: float = 1.0
    freedom: float = inf
    critical_factor: float = 1.0

    @property
    def critical(self) -> float:
        """The largest score of a ratio inside the 95% interval."""
        if self.freedom == inf:
            return self.critical_factor * NORMAL
        return self.critical_factor * t_quantile(self.freedom) * sqrt(self.effect)

    def contains(self, ratio: float) -> bool:
        """Whether this ratio is inside the 95% interval."""
        return score(self.cells, ratio) <= self.critical

    def is_narrower_than(self, reach: float) -> bool:
        """Whether the 95% interval extends at most this far from the estimate on both sides."""
        value = estimate(self.cells)
        return not self.contains(value - reach) and not self.contains(value + reach)

    def p(self, ratio: float) -> float:
        """Return the two-sided p-value of the samples if this were the true ratio.

        It is below 0.05 exactly if the ratio is outside the interval.
        """
        adjusted = score(self.cells, ratio) / (self.critical_factor * sqrt(self.effect))
        if self.freedom == inf:
            return erfc(adjusted / sqrt(2))
        return t_two_sided(adjusted, self.freedom)


def cluster_counts(
    support: Mapping[_Kind, tuple[float, float]],
    kinds: Sequence[_Kind],
    games: Sequence[Hashable],
) -> Tally:
    """Count samples by cell, and estimate the design effect of their games.

    Args:
        support: the part and whole of every kind of sample.
        kinds: the kind of each sample.
        games: the game of each sample.
    """
    counts = Counter(kinds)
    if unexpected := counts.keys() - support.keys():
        raise ValueError(f"a sample is {unexpected.pop()}, which is not one of {list(support)}")
    cells = tuple(Cell(*pair, counts[kind]) for kind, pair in support.items())
    row_of = {game: row for row, game in enumerate(dict.fromkeys(games))}
    if len(row_of) == len(games):
        return Tally(cells)
    column_of = {kind: index for index, kind in enumerate(support)}
    by_game = np.zeros((len(row_of), len(cells)))
    np.add.at(by_game, ([row_of[game] for game in games], [column_of[kind] for kind in kinds]), 1)

    ratio = estimate(cells)
    deviations = np.array([cell.part - ratio * cell.whole for cell in cells])
    sizes = by_game.sum(axis=1)
    squares = float((sizes**2).sum())
    n_games = len(games) ** 2 / squares
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
