"""Leaderboards: entries ranked within their category, and which leads are significant."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from ..metrics.measures import UPTAKE
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, UNUSABLE_OUTCOMES
from .entries import Contender, Standing, entries_in, rank
from .pairwise import Comparison, check_comparable, compared, of_measure

# All outcomes that name no move, combined.
UNUSABLE = "unusable"
# Outcome groups of answers under the changed rules.
OUTCOMES = ("special", "forbidden", "adapted", "legal", "illegal", UNUSABLE)


@dataclass(frozen=True)
class Ranking:
    """The entries of one category, best first, and every pairwise comparison in every measure.

    In a pair the second entry ranks higher, so the difference is its lead.
    """

    standings: Sequence[Standing]
    comparisons: Sequence[Comparison]

    @property
    def contenders(self) -> list[Contender]:
        """The models that can be compared, so without records of the original."""
        return [entry.contender for entry in self.standings if entry.contender]

    @property
    def pairs(self) -> list[list[Comparison]]:
        """The comparisons of every pair in all measures; pairs of the best first."""
        by_pair = groupby(self.comparisons, key=lambda c: (c.first.label, c.second.label))
        order = [standing.label for standing in self.standings]
        return sorted(
            ([*measures] for _, measures in by_pair),
            key=lambda pair: (order.index(pair[0].second.label), order.index(pair[0].first.label)),
        )

    @cached_property
    def leads(self) -> dict[tuple[str, str], Comparison]:
        """The comparison of every pair in rule uptake, by the labels of the higher and lower."""
        comparisons = of_measure(self.comparisons, UPTAKE)
        return {
            (comparison.second.label, comparison.first.label): comparison
            for comparison in comparisons
        }

    def between(self, first: Standing, second: Standing) -> Comparison:
        """Return the comparison of two entries in rule uptake, in either order."""
        pair = first.label, second.label
        return self.leads[pair if pair in self.leads else pair[::-1]]

    def is_ahead(self, first: Standing, second: Standing) -> bool:
        """Whether the first is significantly ahead of the second on the positions they share."""
        lead = self.between(first, second)
        return lead.is_significant and lead.ahead[0].label == first.label


def rankings(entries: Iterable[Standing]) -> list[Ranking]:
    """Rank entries by category; p-values are corrected over all of them."""
    return _ranked([list(group) for _, group in groupby(entries, key=lambda entry: entry.place)])


def ranking_of(runs: Sequence[Run]) -> Ranking:
    """Rank runs that are to be compared.

    Raises:
        InvalidInput: if there are fewer than two models, or their runs cannot be compared.
    """
    check_comparable(runs)
    [ranking] = _ranked([sorted(entries_in(runs), key=rank)])
    return ranking


def _ranked(groups: Sequence[Sequence[Standing]]) -> list[Ranking]:
    models = [[entry.contender for entry in reversed(group) if entry.contender] for group in groups]
    return [Ranking(*ranked) for ranked in zip(groups, compared(models), strict=True)]


def changed_outcomes(standing: Standing) -> dict[str, int]:
    """Count the answers under the changed rules by outcome; empty if unknown."""
    counts: Counter[str] = Counter()
    for outcome, count in standing.results.outcomes.get(CHANGED_CONDITION, {}).items():
        counts[UNUSABLE if outcome in UNUSABLE_OUTCOMES else outcome] += count
    return {outcome: counts[outcome] for outcome in OUTCOMES} if counts else {}
