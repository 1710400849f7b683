"""Compare models pair by pair on shared positions, with paired intervals and tests.

Numbers on two datasets cannot be subtracted from each other, because every model's dataset contains
the positions that match its own habit. On shared positions they can: both models got the same
requests, and the difference is computed sample by sample.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import ceil
from statistics import NormalDist
from typing import Literal

from ..errors import InvalidInput
from ..formatting import Number, format_points, pluralize, range_in_points
from ..metrics.bounds import any_unusable, bounds_over, games_of, imputations, ratio_of, widened
from ..metrics.measures import MEASURES
from ..metrics.stats.intervals import Interval, Ratio, RatioDifference, ratio_difference
from ..metrics.stats.significance import holm, p_value
from ..metrics.types import ALPHA, Measure, excludes_zero
from ..runs.results import Run
from ..task.types import Sample
from .entries import Entry, one_protocol


@dataclass(frozen=True)
class MeasureComparison:
    """The comparison of two models' answers to the same requests in one measure.

    Attributes:
        values: the measure of each model; None if it is undefined, or could be, depending on the
            unusable answers.
        as_scored: 95% interval of the second value minus the first, for the answers as scored.
        interval: the same, widened to allow for every reading of the unusable answers.
        p: the p-value of equal models; 1 if the unusable answers decide which model is ahead.
        extremes: the least and the greatest difference over all possibilities; None if they make no
            difference compared with the interval.
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
) -> MeasureComparison:
    """Compare two models by their samples of the same positions, in the same order."""
    answered = [pair for pair in zip(first, second, strict=True) if all(s.answered for s in pair)]
    first_answered, second_answered = ([pair[side] for pair in answered] for side in (0, 1))
    ratios = ratio_of(measure, first_answered), ratio_of(measure, second_answered)
    values = ratios[0].value, ratios[1].value
    observed = _difference(*ratios, games_of(first_answered))
    if not observed:
        return MeasureComparison(values)
    as_scored = MeasureComparison(values, observed.interval, observed.interval, observed.p)
    if not any(any_unusable(side, measure.needs) for side in (first, second)):
        return as_scored
    first_extremes, second_extremes = _extremes(measure, first), _extremes(measure, second)
    if not first_extremes or not second_extremes:
        return MeasureComparison(
            (values[0] if first_extremes else None, values[1] if second_extremes else None)
        )
    games = games_of(first)
    guessed = (_difference(*ratios, games) for ratios in product(first_extremes, second_extremes))
    possible = [observed, *filter(None, guessed)]
    differences = [d.value for d in possible]
    bounds = bounds_over(differences, [d.interval for d in possible], None)
    if not bounds:
        return as_scored
    least, greatest = min(differences), max(differences)
    same_sign = least > 0 or greatest < 0
    return replace(
        as_scored,
        interval=widened(observed.interval, bounds),
        p=max(d.p for d in possible) if same_sign else 1.0,
        extremes=(least, greatest),
    )


def _extremes(measure: Measure, samples: Sequence[Sample]) -> list[Ratio]:
    """Return the measure at its minimum, at its maximum, and with the smallest denominator.

    Empty if the denominator depends on unusable answers alone. One model's answers do not constrain
    the other's.
    """
    possible = [ratio_of(measure, guess) for guess in imputations(measure, samples)]
    fewest = min(possible, key=lambda ratio: sum(ratio.wholes))
    if not sum(fewest.wholes):
        return []
    by_value = sorted(possible, key=lambda ratio: ratio.value or 0.0)
    return [by_value[0], by_value[-1], fewest]


def _difference(first: Ratio, second: Ratio, games: Sequence[Hashable]) -> RatioDifference | None:
    difference = ratio_difference(first, second, games)
    if not difference or len({*first.wholes, *second.wholes}) > 1:
        return difference
    # If the wholes never vary, the ratios are means, and the test can be exact.
    changes = [after - before for before, after in zip(first.parts, second.parts, strict=True)]
    return replace(difference, p=p_value(changes, games))


def check_comparable(runs: Sequence[Run]) -> None:
    """Reject runs that cannot be compared.

    Raises:
        InvalidInput: if their protocols, rules, evals or pools differ.
    """
    one_protocol(runs)
    for difference, kinds in (
        ("under different rules", {run.plan.change.identity for run in runs}),
        # all_small draws from the same positions as all
        ("of different evals", {run.plan.eval.removesuffix("_small") for run in runs}),
    ):
        if len(kinds) > 1:
            raise InvalidInput(f"runs {difference} cannot be compared: {', '.join(sorted(kinds))}")
    pools = sorted({run.dataset.chosen_from for run in runs} - {""})
    if len(pools) > 1:
        raise InvalidInput(
            f"runs on positions chosen from {' and '.join(pools)} cannot be ranked together; "
            "evaluate all models on one pool"
        )


POWER = 0.8
# Differences below five points are considered irrelevant.
EQUIVALENCE_MARGIN = 0.05
# Assumed share of differing answers if no samples are shared.
_DISCORDANT_AT_WORST = 0.5

Verdict = Literal["different", "equivalent", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class PairComparison(MeasureComparison):
    """The comparison of two models in one measure on the positions they share.

    Attributes:
        first: one model, and ``second`` the other.
        n_samples: the number of answered samples they share, and ``n_games`` the number of their
            games.
        corrected_p: the p-value, corrected for all comparisons that are reported together.
        required_samples: the number of shared samples that detect a difference of
            `EQUIVALENCE_MARGIN`.
    """

    first: Entry
    second: Entry
    measure: Measure
    n_samples: int
    n_games: int
    corrected_p: float
    required_samples: int

    @property
    def difference(self) -> float | None:
        """The second value minus the first."""
        first, second = self.values
        return None if first is None or second is None else second - first

    @property
    def verdict(self) -> Verdict:
        """Whether the models are different, equivalent, or the comparison is inconclusive."""
        if not self.interval:
            return "inconclusive"
        low, high = self.interval.low, self.interval.high
        if self.corrected_p < ALPHA and excludes_zero(low, high):
            return "different"
        return (
            "equivalent"
            if low >= -EQUIVALENCE_MARGIN and high <= EQUIVALENCE_MARGIN
            else "inconclusive"
        )

    @property
    def is_significant(self) -> bool:
        """Whether the models differ significantly."""
        return self.verdict == "different"

    @property
    def ahead(self) -> tuple[Entry, Entry]:
        """The better model by the measured values, and the other."""
        better_below = (self.measure.perfect or 0) < 0
        second_is_better = ((self.difference or 0.0) < 0) == better_below
        return (self.second, self.first) if second_is_better else (self.first, self.second)

    @property
    def is_undecidable(self) -> bool:
        """Whether unusable answers make it inconclusive, so that more samples do not help."""
        if self.verdict != "inconclusive" or not self.extremes:
            return False
        return self.extremes[1] - self.extremes[0] > EQUIVALENCE_MARGIN

    @property
    def size(self) -> str:
        """The size of the difference, as text."""
        if not self.extremes:
            return format_points(abs(self.difference or 0.0))
        near, far = sorted(map(abs, self.extremes))
        text = range_in_points(near, far, " to ").replace("+", "")
        how = self.first.words.fill("how replies without a {answer} are read")
        return f"{text} points, depending on {how},"

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        return as_sentence(self._claim(), [self.first.label, self.second.label])

    def _claim(self) -> str:
        both = f"{self.first.label} and {self.second.label}"
        samples = pluralize(self.n_samples, "shared sample")
        fill = self.first.words.fill
        title = f"the {fill(self.measure.title).lower()}"
        nothing = f"so {title} cannot be compared"
        whether = f"whether {both} differ in {title}"
        if not self.n_samples:
            enough = f"about {self.required_samples:,} shared samples would be enough"
            return f"{both} share no {self.first.words.item}, {nothing}; {enough}"
        if self.difference is None or not self.interval:
            pairs = zip((self.first, self.second), self.values, strict=True)
            models = " and ".join(entry.label for entry, value in pairs if value is None)
            return f"on {samples} {models} never showed the habit, {nothing}"
        if self.is_significant:
            better, worse = self.ahead
            does = f"{better.label} {fill(self.measure.compared)} than {worse.label}"
            return f"{does}, by {self.size} on {samples}"
        if self.verdict == "equivalent":
            within = f"to within {100 * EQUIVALENCE_MARGIN:.0f} points"
            return f"{both} are equivalent in {title} {within} on {samples}"
        if self.is_undecidable:
            none = f"contain no {self.first.words.answer}"
            return f"too many replies {none} to tell {whether} on {samples}"
        if self.n_samples < self.required_samples:
            few = "is" if self.n_samples == 1 else "are"
            enough = f"about {self.required_samples:,} would be enough"
            return f"{samples} {few} too few to tell {whether}; {enough}"
        between = range_in_points(self.interval.low, self.interval.high, " and ")
        apart = f"the difference is between {between} points"
        return f"it is inconclusive {whether} on {samples}: {apart}"


def compared(groups: Sequence[Sequence[Entry]]) -> list[list[PairComparison]]:
    """Compare every pair of models within each group in every measure.

    The groups are reported together, so p-values are corrected for all comparisons of all groups.
    """
    pairs = [list(combinations(models, 2)) for models in groups]
    measures = [measure for measure in MEASURES.values() if measure.compared]
    tests = sum(map(len, pairs)) * len(measures)
    comparisons = [
        [comparison for pair in group for comparison in _of_pair(*pair, measures, tests)]
        for group in pairs
    ]
    corrected = iter(holm([comparison.p for group in comparisons for comparison in group]))
    return [
        [replace(comparison, corrected_p=next(corrected)) for comparison in group]
        for group in comparisons
    ]


def as_sentence(claim: str, labels: Sequence[str]) -> str:
    """Add a full stop, and a capital unless the claim begins with a model's name."""
    named = claim.startswith(tuple(labels))
    return f"{claim if named else claim[0].upper() + claim[1:]}."


def of_measure(comparisons: Sequence[PairComparison], name: str) -> list[PairComparison]:
    """Return the comparisons of every pair in one measure."""
    return [comparison for comparison in comparisons if comparison.measure.name == name]


def _of_pair(
    first: Entry, second: Entry, measures: Sequence[Measure], tests: int
) -> list[PairComparison]:
    ours, theirs = first.by_item(), second.by_item()
    shared = [(ours[key], theirs[key]) for key in ours if key in theirs]
    sides = [sample for sample, _ in shared], [sample for _, sample in shared]
    answered = [a for a, b in shared if a.answered and b.answered]
    n_games = len(set(games_of(answered)))
    comparisons = []
    for measure in measures:
        result = paired(measure, *sides)
        comparisons.append(
            PairComparison(
                **vars(result),
                first=first,
                second=second,
                measure=measure,
                n_samples=len(answered),
                n_games=n_games,
                corrected_p=result.p,
                required_samples=_required_samples(result.as_scored, len(answered), tests),
            )
        )
    return comparisons


def _required_samples(interval: Interval | None, n: int, tests: int) -> int:
    """Return the samples that detect a difference of the equivalence margin, after correction.

    The variance per sample comes from the width of the interval, so it includes the clustering by
    game.
    """
    normal = NormalDist()
    z = normal.inv_cdf(1 - ALPHA / tests / 2) + normal.inv_cdf(POWER)
    if interval:
        error = (interval.high - interval.low) / 2 / normal.inv_cdf(0.975)
        variance = n * error**2
    else:
        variance = _DISCORDANT_AT_WORST
    return ceil(z**2 * variance / EQUIVALENCE_MARGIN**2)
