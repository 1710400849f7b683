"""Counts by cluster, and the design effect of games that give several samples.

Where each game gives one sample, a score is held against the normal distribution. Otherwise the
design effect (Kish, 1965; for score statistics Rao and Scott, 1992) divides its square, and it is
held against Student's t. Too little variation or too few games to learn the design effect from must
not look like certainty, so to the games seen one is added whose samples all go one way, as far as
they can.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import erfc, inf, sqrt
from typing import TypeVar

import numpy as np

from .score_interval import Cell, estimate, score, t_quantile, t_two_sided

NORMAL = 1.959963984540054
"""The 97.5th percentile of the normal distribution."""

_Kind = TypeVar("_Kind", bound=Hashable)


@dataclass(frozen=True)
class Tally:
    """What was counted of the samples behind a ratio.

    Attributes:
        cells: what a sample can be, and how many are.
        effect: the design effect, 1 or more, by which samples of one game tell less.
        freedom: degrees of freedom, infinite where each game gives one sample.
        stretch: by how much the critical value is to be larger than for an interval that is looked
            at once.
    """

    cells: tuple[Cell, ...]
    effect: float = 1.0
    freedom: float = inf
    critical_factor: float = 1.0

    @property
    def critical(self) -> float:
        """What the score of a ratio may reach, for this to be in the 95 % interval."""
        if self.freedom == inf:
            return self.critical_factor * NORMAL
        return self.critical_factor * t_quantile(self.freedom) * sqrt(self.effect)

    def contains(self, ratio: float) -> bool:
        """Whether this ratio is in the 95 % interval."""
        return score(self.cells, ratio) <= self.critical

    def is_narrower_than(self, reach: float) -> bool:
        """Whether the 95 % interval goes at most so far from the estimate, either way."""
        value = estimate(self.cells)
        return not self.contains(value - reach) and not self.contains(value + reach)

    def p(self, ratio: float) -> float:
        """The chance of such samples, or stranger ones, if this were the true ratio.

        It is below 5 % exactly where the ratio is outside the interval.
        """
        strange = score(self.cells, ratio) / (self.critical_factor * sqrt(self.effect))
        if self.freedom == inf:
            return erfc(strange / sqrt(2))
        return t_two_sided(strange, self.freedom)


def cluster_counts(
    support: Mapping[_Kind, tuple[float, float]],
    kinds: Sequence[_Kind],
    games: Sequence[Hashable],
) -> Tally:
    """Count samples.

    Args:
        support: the part and whole of every kind that a sample can be.
        kinds: the kind of each sample.
        games: the game of each sample.
    """
    counts = Counter(kinds)
    if strange := counts.keys() - support.keys():
        raise ValueError(f"a sample is {strange.pop()}, which is not one of {list(support)}")
    cells = tuple(Cell(*pair, counts[kind]) for kind, pair in support.items())
    number = {game: row for row, game in enumerate(dict.fromkeys(games))}
    if len(number) == len(games):
        return Tally(cells)
    column = {kind: column for column, kind in enumerate(support)}
    by_game = np.zeros((len(number), len(cells)))
    np.add.at(by_game, ([number[game] for game in games], [column[kind] for kind in kinds]), 1)

    ratio = estimate(cells)
    deviations = np.array([cell.part - ratio * cell.whole for cell in cells])
    sizes = by_game.sum(axis=1)
    squares = float((sizes**2).sum())
    n_games = len(games) ** 2 / squares
    # The mean size, each game weighted by its squared size: many singles do not pull it down.
    added = float((sizes**3).sum()) / squares
    together = float(((by_game @ deviations) ** 2).sum())
    if n_games > 1:
        together *= n_games / (n_games - 1)
    apart = float((by_game.sum(axis=0) * deviations**2).sum())
    furthest = float((deviations**2).max())
    effect = (together + furthest * added**2) / (apart + furthest * added)
    return Tally(cells, max(1.0, effect), n_games)
