"""Compare models pair by pair on shared positions, with paired intervals and tests.

Numbers on two datasets cannot be subtracted from each other, since every model's dataset holds the
positions that suit its own habit. On shared positions they can: both models were asked the same
questions, and the difference is taken sample by sample.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import ceil
from statistics import NormalDist
from typing import Literal

from ..errors import InvalidInput, pluralize
from ..formatting import Number, format_points, range_in_points
from ..game.rules import identity_of
from ..metrics.bounds import any_unusable, bounds_apply, games_of, guesses, ratio_of
from ..metrics.measures import MEASURES
from ..metrics.stats.intervals import BOUNDED, Interval, Ratio, RatioDifference, ratio_difference
from ..metrics.stats.tests import holm, p_value
from ..metrics.stopping import critical_factor_of
from ..metrics.types import Measure
from ..runs.results import Run
from ..task.types import Sample
from .entries import Contender, contenders, grouped, one_protocol


@dataclass(frozen=True)
class Paired:
    """What two models' answers to the same questions come to in one measure.

    Attributes:
        values: the measure of each; None where it does not exist, or may not, depending on what
            unusable answers would have said.
        as_scored: 95 % interval of the second value minus the first, answers taken as they are.
        interval: the same, but it holds whatever answers without a move would have said.
        p: the chance of such a difference between equal models; 1 where what those answers would
            have said decides who is ahead.
        extremes: the least and the greatest difference over all that they could have said; None
            where that makes no difference beside the interval.
    """

    values: tuple[Number, Number]
    as_scored: Interval | None = None
    interval: Interval | None = None
    p: float = 1.0
    extremes: tuple[float, float] | None = None


def paired(
    measure: Measure,
    first: Sequence[Sample],
    second: Sequence[Sample],
    critical_factor: float = 1.0,
) -> Paired:
    """Compare two models by their samples of the same positions, in the same order."""
    answered = [both for both in zip(first, second, strict=True) if all(s.answered for s in both)]
    ours, theirs = ([both[side] for both in answered] for side in (0, 1))
    values = measure.value(ours), measure.value(theirs)
    ratios = ratio_of(measure, ours), ratio_of(measure, theirs)
    found = _difference(*ratios, games_of(ours), critical_factor)
    if not found:
        return Paired(values)
    as_scored = Paired(values, found.interval, found.interval, found.p)
    if not any(any_unusable(side, measure.needs) for side in (first, second)):
        return as_scored
    ours_between, theirs_between = _extremes(measure, first), _extremes(measure, second)
    if not ours_between or not theirs_between:
        return Paired((values[0] if ours_between else None, values[1] if theirs_between else None))
    imagined = [
        found,
        *(
            difference
            for one, other in product(ours_between, theirs_between)
            if (difference := _difference(one, other, games_of(first), critical_factor))
        ),
    ]
    differences = [d.value for d in imagined]
    if not bounds_apply(found.interval, differences, [d.interval for d in imagined]):
        return as_scored
    least, greatest = min(differences), max(differences)
    low = min(d.interval.low for d in imagined)
    high = max(d.interval.high for d in imagined)
    one_way = least > 0 or greatest < 0
    return Paired(
        values,
        as_scored=found.interval,
        interval=Interval(low, high, BOUNDED[found.interval.method]),
        p=max(d.p for d in imagined) if one_way else 1.0,
        extremes=(least, greatest),
    )


def _extremes(measure: Measure, samples: Sequence[Sample]) -> list[Ratio]:
    """The measure at its least, at its greatest, and where there is least to divide by.

    What one model said binds no other. Nothing where only unusable answers are there to divide by.
    """
    imagined = [ratio_of(measure, guess) for guess in guesses(measure, samples)]
    fewest = min(imagined, key=lambda ratio: sum(ratio.wholes))
    if not sum(fewest.wholes):
        return []
    return [min(imagined, key=_value), max(imagined, key=_value), fewest]


def _value(ratio: Ratio) -> float:
    return sum(ratio.parts) / sum(ratio.wholes)


def _difference(
    first: Ratio, second: Ratio, games: Sequence[Hashable], critical_factor: float
) -> RatioDifference | None:
    found = ratio_difference(first, second, games, critical_factor)
    if not found or len({*first.wholes, *second.wholes}) > 1:
        return found
    # Wholes that never vary make plain means, and of these the test can be exact.
    changes = [after - before for before, after in zip(first.parts, second.parts, strict=True)]
    return replace(found, p=p_value(changes, games))


def check_comparable(runs: Sequence[Run]) -> None:
    """Refuse runs that cannot be compared.

    Raises:
        InvalidInput: if there are fewer than two models, or their protocols, rules, evals, ways of
            selection or pools differ.
    """
    one_protocol(runs)
    for what, kinds in (
        ("under different rules", {identity_of(run.plan.change) for run in runs}),
        # all_small draws from the same positions as all
        ("of different evals", {run.plan.eval.removesuffix("_small") for run in runs}),
    ):
        if len(kinds) > 1:
            raise InvalidInput(f"runs {what} cannot be compared: {', '.join(sorted(kinds))}")
    union = "cdta dataset union A B -o both.jsonl, then cdta run --dataset both.jsonl"
    for how, kinds, instead in (
        ("selected", {run.dataset.selection for run in runs}, f"set: {union}"),
        ("chosen from", {run.dataset.chosen_from for run in runs}, "pool"),
    ):
        if len(kinds - {""}) > 1:
            told = " and ".join(sorted(kinds - {""}))
            raise InvalidInput(
                f"runs on positions {how} {told} cannot be ranked together; measure all on one "
                f"{instead}"
            )
    if len(grouped(runs)) < 2:
        raise InvalidInput(
            "a comparison needs runs of two models or settings; these are "
            f"{pluralize(len(runs), 'run')} of one, which would be taken together"
        )


ALPHA = 0.05
POWER = 0.8
MATTERS = 0.05
"""A difference of five points is worth knowing of; a smaller one is not looked for."""
_DISCORDANT_AT_WORST = 0.5
"""How often two models are taken to differ where there is no sample to tell."""

Verdict = Literal["different", "equivalent", "inconclusive"]


@dataclass(frozen=True)
class Comparison:
    """One measure of two models on the positions they share.

    Attributes:
        first: one model, and ``second`` the other.
        n_samples: how many answered samples they share, and ``n_games`` of how many games.
        values: the measure of each on the shared positions; None where it does not exist.
        interval: 95 % interval of the second value minus the first, paired; it holds whatever
            answers without a move would have said.
        p: the chance of such a difference between equal models.
        corrected_p: the same, corrected for all comparisons that are shown together.
        extremes: the least and the greatest difference over all that answers without a move could
            have said; None where that makes no difference beside the interval.
        enough: how many shared samples would show a difference of `MATTERS`.
    """

    first: Contender
    second: Contender
    measure: Measure
    n_samples: int
    n_games: int
    values: tuple[Number, Number]
    interval: Interval | None
    p: float
    corrected_p: float
    extremes: tuple[float, float] | None
    enough: int

    @property
    def difference(self) -> float | None:
        """The second value minus the first."""
        first, second = self.values
        return None if first is None or second is None else second - first

    @property
    def verdict(self) -> Verdict:
        """What the shared positions say."""
        if not self.interval:
            return "inconclusive"
        low, high = self.interval.low, self.interval.high
        if self.corrected_p < ALPHA and not low <= 0 <= high:
            return "different"
        return "equivalent" if low >= -MATTERS and high <= MATTERS else "inconclusive"

    @property
    def is_significant(self) -> bool:
        """Whether they differ significantly."""
        return self.verdict == "different"

    @property
    def ahead(self) -> tuple[Contender, Contender]:
        """Who is better by the measured values, and who is not."""
        better_below = (self.measure.perfect or 0) < 0
        second_is_better = ((self.difference or 0.0) < 0) == better_below
        return (self.second, self.first) if second_is_better else (self.first, self.second)

    @property
    def blurred(self) -> bool:
        """Whether answers without a move make it inconclusive, so that more samples do not help."""
        if self.verdict != "inconclusive" or not self.extremes:
            return False
        return self.extremes[1] - self.extremes[0] > MATTERS

    @property
    def size(self) -> str:
        """How far apart the two are, in words."""
        if not self.extremes:
            return format_points(abs(self.difference or 0.0))
        near, far = sorted(map(abs, self.extremes))
        shown = range_in_points(near, far, " to ").replace("+", "")
        return f"{shown} points, depending on what answers without a move would have said,"

    @property
    def sentence(self) -> str:
        """The verdict in plain words."""
        return as_sentence(self.claim, [self.first.label, self.second.label])

    @property
    def claim(self) -> str:
        """The sentence, to go on from."""
        both = f"{self.first.label} and {self.second.label}"
        on = f"on {pluralize(self.n_samples, 'shared sample')}"
        whether = f"whether {both} differ in {self._title}"
        if self.difference is None or not self.interval:
            return self._nothing_shared
        if self.verdict == "different":
            better, worse = self.ahead
            return f"{better.label} {self.measure.compared} than {worse.label}, by {self.size} {on}"
        if self.verdict == "equivalent":
            within = f"to within {100 * MATTERS:.0f} points"
            return f"{both} are equivalent in {self._title} {within} {on}"
        if self.blurred:
            return f"too many answers name no move to tell {whether} {on}"
        if self.n_samples < self.enough:
            few = "is" if self.n_samples == 1 else "are"
            return (
                f"{pluralize(self.n_samples, 'shared sample')} {few} too few to tell {whether}; "
                f"about {self.enough:,} would be enough"
            )
        between = range_in_points(self.interval.low, self.interval.high, " and ")
        return f"it is inconclusive {whether} {on}: the difference is between {between} points"

    @property
    def _title(self) -> str:
        return f"the {self.measure.title.lower()}"

    @property
    def _nothing_shared(self) -> str:
        both = f"{self.first.label} and {self.second.label}"
        if not self.n_samples:
            return (
                f"{both} share no position, so nothing can be said about {self._title}; about "
                f"{self.enough:,} shared samples would be enough"
            )
        pairs = zip((self.first, self.second), self.values, strict=True)
        who = " and ".join(model.label for model, value in pairs if value is None)
        return (
            f"on {pluralize(self.n_samples, 'shared sample')} {who} never showed the habit, so "
            f"nothing can be said about {self._title}"
        )


def compare(runs: Sequence[Run]) -> list[Comparison]:
    """Compare every pair of models in every measure, on the positions the two share.

    Raises:
        InvalidInput: if there are fewer than two models, or their protocols, rules, evals, ways of
            selection or pools differ.
    """
    check_comparable(runs)
    [found] = compared([contenders(runs)])
    return found


def compared(groups: Sequence[Sequence[Contender]]) -> list[list[Comparison]]:
    """Every pair of models of each group in every measure.

    The groups are shown together, so p is corrected for all comparisons of all of them.
    """
    pairs = [list(combinations(models, 2)) for models in groups]
    measures = [measure for measure in MEASURES.values() if measure.compared]
    tests = sum(map(len, pairs)) * len(measures)
    found = [
        [each for pair in group for each in _of_pair(*pair, measures, tests)] for group in pairs
    ]
    corrected = iter(holm([comparison.p for group in found for comparison in group]))
    return [[replace(each, corrected_p=next(corrected)) for each in group] for group in found]


def as_sentence(claim: str, labels: Sequence[str]) -> str:
    """With a full stop, and a capital unless it begins with the name of a model."""
    named = claim.startswith(tuple(labels))
    return f"{claim if named else claim[0].upper() + claim[1:]}."


def of_measure(comparisons: Sequence[Comparison], name: str) -> list[Comparison]:
    """Every pair in one measure."""
    return [comparison for comparison in comparisons if comparison.measure.name == name]


def _of_pair(
    first: Contender, second: Contender, measures: Sequence[Measure], tests: int
) -> list[Comparison]:
    mine, yours = first.by_position(), second.by_position()
    shared = [key for key in mine if key in yours]
    ours, theirs = [mine[key] for key in shared], [yours[key] for key in shared]
    answered = [key for key in shared if mine[key].answered and yours[key].answered]
    n_games = len(set(games_of([mine[key] for key in answered])))
    critical_factor = critical_factor_of(
        *(run.plan for model in (first, second) for run in model.runs)
    )
    found = [(measure, paired(measure, ours, theirs, critical_factor)) for measure in measures]
    return [
        Comparison(
            first=first,
            second=second,
            measure=measure,
            n_samples=len(answered),
            n_games=n_games,
            values=each.values,
            interval=each.interval,
            p=each.p,
            corrected_p=each.p,
            extremes=each.extremes,
            enough=_enough(each.as_scored, len(answered), tests),
        )
        for measure, each in found
    ]


def _enough(interval: Interval | None, n: int, tests: int) -> int:
    """Samples that show a difference of `MATTERS` with the usual power after the correction.

    The variance of one sample is taken from the width of the interval, so it includes that samples
    of one game tell less than as many of different games.
    """
    normal = NormalDist()
    z = normal.inv_cdf(1 - ALPHA / tests / 2) + normal.inv_cdf(POWER)
    if interval:
        error = (interval.high - interval.low) / 2 / normal.inv_cdf(0.975)
        variance = n * error**2
    else:
        variance = _DISCORDANT_AT_WORST
    return ceil(z**2 * variance / MATTERS**2)
