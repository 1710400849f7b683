"""Counts of samples, and the design effect of groups that contribute several of them.

If every group contributes one sample, a score is compared with the normal distribution. Otherwise
its square is divided by the design effect (Kish, 1965; for score statistics Rao and Scott, 1992),
and the score is compared with Student's t. Little variation, or few groups to estimate the design
effect from, must not look like certainty. So one group is added whose samples all deviate in one
direction, as far as possible.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt
from statistics import NormalDist
from typing import TypeVar

import numpy as np

from .score_interval import ALPHA, Cell, ratio_of_cells, score_limits, t_quantile

_Kind = TypeVar("_Kind", bound=tuple[int, ...])


@dataclass(frozen=True)
class Tally:
    """The counted samples of a ratio.

    Attributes:
        cells: every pair of part and whole that a sample can have, with its count.
        design_effect: the design effect, 1 or more: the loss of information from clustering.
        degrees_of_freedom: degrees of freedom; infinite if every group contributes one sample.
    """

    cells: tuple[Cell, ...]
    design_effect: float = 1.0
    degrees_of_freedom: float = inf

    def interval(self, alpha: float = ALPHA) -> tuple[float, float]:
        """Return the lowest and the highest ratio that the samples do not reject."""
        return _limits(self, alpha)


@lru_cache(maxsize=4096)  # many measures have equal counts
def _limits(tally: Tally, alpha: float) -> tuple[float, float]:
    if tally.degrees_of_freedom == inf:
        return score_limits(tally.cells, NormalDist().inv_cdf(1 - alpha / 2))
    critical = t_quantile(tally.degrees_of_freedom, alpha) * sqrt(tally.design_effect)
    return score_limits(tally.cells, critical)


def cluster_counts(
    support: Mapping[_Kind, tuple[float, float]],
    samples: Sequence[_Kind],
    groups: Sequence[Hashable],
) -> Tally:
    """Count samples by cell, and estimate the design effect of their groups.

    Samples without parts and wholes are left out: they do not affect any ratio.

    Args:
        support: the part and whole of every kind of sample.
        samples: the kind of each sample: its parts and wholes.
        groups: the group of each sample.
    """
    counted = [(kind, group) for kind, group in zip(samples, groups, strict=True) if any(kind)]
    counts = Counter(kind for kind, _ in counted)
    if unexpected := counts.keys() - support.keys():
        raise ValueError(f"a sample is {unexpected.pop()}, which is not one of {list(support)}")
    cells = tuple(Cell(*pair, counts[kind]) for kind, pair in support.items())
    row_of = {group: row for row, group in enumerate(dict.fromkeys(group for _, group in counted))}
    if len(row_of) == len(counted):
        return Tally(cells)
    column_of = {kind: index for index, kind in enumerate(support)}
    by_group = np.zeros((len(row_of), len(cells)))
    for kind, group in counted:
        by_group[row_of[group], column_of[kind]] += 1

    ratio = ratio_of_cells(cells)
    deviations = np.array([cell.part - ratio * cell.whole for cell in cells])
    sizes = by_group.sum(axis=1)
    squares = float((sizes**2).sum())
    n_groups = len(counted) ** 2 / squares
    # The mean size, each group weighted by its squared size: many singles do not pull it down.
    added_size = float((sizes**3).sum()) / squares
    clustered_squares = float(((by_group @ deviations) ** 2).sum())
    if n_groups > 1:
        clustered_squares *= n_groups / (n_groups - 1)
    independent_squares = float((by_group.sum(axis=0) * deviations**2).sum())
    max_square = float((deviations**2).max())
    effect = (clustered_squares + max_square * added_size**2) / (
        independent_squares + max_square * added_size
    )
    return Tally(cells, max(1.0, effect), n_groups)
