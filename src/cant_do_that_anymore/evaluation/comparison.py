"""Runs side by side: each on its own dataset, and pair by pair on the positions they share.

Shares on two datasets cannot be subtracted from each other, since every model's dataset holds the
positions that suit its own habit. On shared positions they can: both models were asked the same
questions, and the difference is taken sample by sample.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil
from statistics import NormalDist
from typing import Literal

from ..errors import BadInput
from .intervals import Clusters, Interval, holm
from .measures import MEASURES
from .results import Run
from .vocabulary import Measure, Sample

ALPHA = 0.05
POWER = 0.8
MATTERS = 0.05
"""A difference of five points is worth knowing of; a smaller one is not looked for."""
_DISCORDANT_AT_WORST = 0.5
"""How often two models are taken to differ where there is no sample to tell."""

Verdict = Literal["different", "alike", "open"]


@dataclass(frozen=True)
class Comparison:
    """One measure of two models on the positions they share.

    Attributes:
        first: label of one model, and ``second`` of the other.
        measure: what is compared.
        shares: the measure of each on the shared positions; None where they share none.
        interval: 95 % interval of the second share minus the first, paired.
        p: the chance of such a difference between equal models.
        corrected_p: the same, corrected for the number of comparisons.
        enough: how many shared samples would show a difference of `MATTERS`.
    """

    first: str
    second: str
    measure: Measure
    n_samples: int
    n_games: int
    shares: tuple[float, float] | None
    interval: Interval | None
    p: float
    corrected_p: float
    enough: int

    @property
    def difference(self) -> float | None:
        """The second share minus the first."""
        return self.shares[1] - self.shares[0] if self.shares else None

    @property
    def verdict(self) -> Verdict:
        """What the shared positions say."""
        if self.corrected_p < ALPHA:
            return "different"
        if self.interval and self.interval.low >= -MATTERS and self.interval.high <= MATTERS:
            return "alike"
        return "open"

    @property
    def sentence(self) -> str:
        """The verdict in plain words."""
        what = self.measure.played
        if self.difference is None:
            return (
                f"{self.first} and {self.second} share no position, so nothing can be said about "
                f"{what}; about {self.enough:,} shared samples would be enough."
            )
        on = f"on {_counted(self.n_samples, 'shared sample')}"
        if self.verdict == "different":
            more, less = self.first, self.second
            if self.difference > 0:
                more, less = less, more
            points = f"{100 * abs(self.difference):.1f} points"
            return f"{more} plays {what} more often than {less}, by {points} {on}."
        if self.verdict == "alike":
            return (
                f"{self.first} and {self.second} play {what} equally often, "
                f"to within {100 * MATTERS:.0f} points, {on}."
            )
        whether = f"whether {self.first} and {self.second} differ in playing {what}"
        if self.n_samples < self.enough:
            few = "is" if self.n_samples == 1 else "are"
            return (
                f"{_counted(self.n_samples, 'shared sample')} {few} too few to tell {whether}; "
                f"about {self.enough:,} would be enough."
            )
        return f"it stays open {whether} {on}: if they do, it is by little."


def compare(runs: Sequence[Run]) -> list[Comparison]:
    """Compare every pair of runs in every measure, on the positions the two share.

    Raises:
        BadInput: if there are fewer than two runs, or their rules differ.
    """
    if len(runs) < 2:
        raise BadInput("a comparison needs two runs or more")
    rules = sorted({run.plan.change.key for run in runs})
    if len(rules) > 1:
        raise BadInput(f"runs under different rules cannot be compared: {', '.join(rules)}")
    pairs = list(combinations(zip(labels(runs), runs, strict=True), 2))
    measures = [measure for measure in MEASURES.values() if measure.played]
    n_comparisons = len(pairs) * len(measures)
    found = [
        _compared(first, second, measure, _shared(mine, yours), n_comparisons)
        for (first, mine), (second, yours) in pairs
        for measure in measures
    ]
    corrected = holm([comparison.p for comparison in found])
    return [replace(c, corrected_p=p) for c, p in zip(found, corrected, strict=True)]


def labels(runs: Sequence[Run]) -> list[str]:
    """A name for each run: the model's version, with the eval or a number where that is not enough.

    >>> labels([])
    []
    """
    names = [run.version for run in runs]
    if len(set(names)) < len(names) and len({run.plan.eval for run in runs}) > 1:
        names = [f"{run.version} {run.plan.eval}" for run in runs]
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if names.count(name) == 1 else f"{name} #{seen[name]}")
    return unique


def differences_in_plan(runs: Sequence[Run]) -> list[str]:
    """What was not the same for all runs, one sentence each."""
    first, *others = runs
    names = [name for run in others for name in first.plan.differences(run.plan)]
    if len({run.protocol for run in runs}) > 1:
        names.append("protocol")
    return [
        f"the runs differ in {name}, so differences between them need not be the models'"
        for name in dict.fromkeys(names)
    ]


def _shared(mine: Run, yours: Run) -> list[tuple[Sample, Sample]]:
    theirs = _by_position(yours)
    return [(sample, theirs[key]) for key, sample in _by_position(mine).items() if key in theirs]


def _by_position(run: Run) -> dict[tuple[str, int], Sample]:
    """The answered samples by position, a position's repeated askings by their number."""
    return {(sample.position.id, sample.draw): sample for sample in run.answered}


def _compared(
    first: str,
    second: str,
    measure: Measure,
    shared: Sequence[tuple[Sample, Sample]],
    n_comparisons: int,
) -> Comparison:
    mine = [bool(measure.part(sample)) for sample, _ in shared]
    yours = [bool(measure.part(sample)) for _, sample in shared]
    games = [sample.position.game for sample, _ in shared]
    clusters, n = Clusters(games), len(shared)
    # Only samples where the two differ count. Their shares have the same difference, and sound
    # bounds also where the two never differ.
    won = [yes and not no for no, yes in zip(mine, yours, strict=True)]
    lost = [yes and not no for yes, no in zip(mine, yours, strict=True)]
    interval = clusters.difference(lost, won)
    p = clusters.p_value(lost, won) if shared else 1.0
    return Comparison(
        first=first,
        second=second,
        measure=measure,
        n_samples=n,
        n_games=len(set(games)),
        shares=(sum(mine) / n, sum(yours) / n) if shared else None,
        interval=interval,
        p=p,
        corrected_p=p,
        enough=_enough(interval, n, n_comparisons),
    )


def _enough(interval: Interval | None, n: int, n_comparisons: int) -> int:
    """Samples that show a difference of `MATTERS` with the usual power after the correction.

    The variance of one sample is taken from the width of the interval, so it includes that samples
    of one game tell less than as many of different games.
    """
    normal = NormalDist()
    z = normal.inv_cdf(1 - ALPHA / n_comparisons / 2) + normal.inv_cdf(POWER)
    if interval:
        error = (interval.high - interval.low) / 2 / normal.inv_cdf(0.975)
        variance = n * error**2
    else:
        variance = _DISCORDANT_AT_WORST
    return ceil(z**2 * variance / MATTERS**2)


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("s" if n != 1 else "")
