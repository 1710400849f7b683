"""95 % intervals that respect what is not independent: samples of one game, answers of one sample.

Rates have Wilson's interval where each game gives one sample. Everything else is resampled by whole
games, both answers of a sample together. To the games that were seen, half a game is added of each
kind that a sample can be (Agresti and Min's adjustment): without it, where few answers change or
few games are at hand, resampling mistakes lack of evidence for certainty.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 4_000
PARTS = 20
SEED = 20_220_722
_Z = 1.959963984540054

Method = Literal["wilson", "bootstrap"]
Floats = NDArray[np.float64]


# The four kinds of sample that half a game each is added of: special or not, before and after.
_BEFORE, _AFTER = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])


@dataclass(frozen=True)
class Interval:
    """Where the true value lies with 95 % confidence, and how that was found."""

    low: float
    high: float
    method: Method


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Wilson's score interval of a proportion; all of [0, 1] when there is nothing to go by."""
    if n == 0:
        return 0.0, 1.0
    share = successes / n
    centre = share + _Z**2 / (2 * n)
    spread = _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    scale = 1 + _Z**2 / n
    low = (centre - spread) / scale if successes else 0.0
    high = (centre + spread) / scale if successes < n else 1.0
    return low, high


def mcnemar(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Exact two-sided McNemar p-value: could the change be chance?"""
    lost = sum(b and not a for b, a in zip(before, after, strict=True))
    won = sum(a and not b for b, a in zip(before, after, strict=True))
    changed = lost + won
    tail = sum(comb(changed, k) for k in range(min(lost, won) + 1))
    return float(min(1.0, 2 * tail / 2**changed))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for being many, by Holm's method.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


class Clusters:
    """Samples grouped by game, for intervals of what was counted on them."""

    def __init__(self, games: Sequence[int]) -> None:
        self._of_sample = np.unique(np.asarray(games, dtype=np.int64), return_inverse=True)[1]
        self._n_samples = len(games)
        self._n_games = len(set(games))

    def rate(self, hits: Sequence[bool]) -> Interval | None:
        """Interval of the share of hits; None without samples."""
        if not hits:
            return None
        if self._n_games == self._n_samples:
            return Interval(*wilson(sum(hits), len(hits)), "wilson")
        return _percentiles(self._resampled(hits, _BEFORE) / self._sizes)

    def difference(self, before: Sequence[bool], after: Sequence[bool]) -> Interval | None:
        """Interval of (share after) - (share before), paired; None without samples."""
        return self._paired(before, after, lambda p, v: v - p) if before else None

    def relative_change(self, before: Sequence[bool], after: Sequence[bool]) -> Interval | None:
        """Interval of (share after - share before) / share before; None if that is over zero."""
        return self._paired(before, after, lambda p, v: v / p - 1) if any(before) else None

    def p_value(self, before: Sequence[bool], after: Sequence[bool]) -> float:
        """Could the difference be chance? Exact where each game gives one sample.

        Otherwise the differences of whole games change sign at random, since those of one game
        may all have one cause.
        """
        if self._n_games == self._n_samples:
            return mcnemar(before, after)
        changes = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
        per_game = np.bincount(self._of_sample, weights=changes)
        signs = np.random.default_rng(SEED).choice([-1.0, 1.0], size=(RESAMPLES, self._n_games))
        as_large = np.abs(signs @ per_game) >= abs(per_game.sum()) - 1e-9
        return float((1 + as_large.sum()) / (1 + RESAMPLES))

    def _paired(
        self,
        before: Sequence[bool],
        after: Sequence[bool],
        statistic: Callable[[Floats, Floats], Floats],
    ) -> Interval:
        p = self._resampled(before, _BEFORE) / self._sizes
        v = self._resampled(after, _AFTER) / self._sizes
        with np.errstate(divide="ignore", invalid="ignore"):
            return _percentiles(statistic(p, v))

    @cached_property
    def _sizes(self) -> Floats:
        """The number of samples in each resample."""
        return self._resampled([True] * self._n_samples, np.ones(4))

    def _resampled(self, hits: Sequence[bool], added: Floats) -> Floats:
        """The number of hits in each resample of games, the added ones among them."""
        per_game = np.bincount(self._of_sample, weights=np.asarray(hits, dtype=np.float64))
        half_a_game = self._n_samples / self._n_games / 2
        per_game = np.concatenate([per_game, half_a_game * added])
        return np.concatenate([draws @ per_game for draws in self._draws])

    @cached_property
    def _draws(self) -> list[NDArray[np.uint32]]:
        """How often each game was drawn, for each resample; in parts, to spare memory."""
        generator = np.random.default_rng(SEED)
        n = self._n_games + 4
        even, smallest = np.full(n, 1 / n), np.min_scalar_type(n)
        return [
            generator.multinomial(n, even, size=RESAMPLES // PARTS).astype(smallest)
            for _ in range(PARTS)
        ]


def _percentiles(values: Floats) -> Interval:
    """The middle 95 % of the resampled values that exist."""
    low, high = np.percentile(values[np.isfinite(values)], [2.5, 97.5])
    return Interval(float(low), float(high), "bootstrap")
