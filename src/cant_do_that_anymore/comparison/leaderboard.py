"""Leaderboards: which entries are ranked together, in which order, and which leads are
significant.
"""

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

UNUSABLE = "unusable"
"""All outcomes that name no move, together."""
OUTCOMES = ("special", "forbidden", "adapted", "legal", "illegal", UNUSABLE)
"""What an answer under the changed rules can be, at a glance."""


@dataclass(frozen=True)
class Ranking:
    """Those of one place, the best first, and every pair of them in every measure.

    In a pair the second stands higher, so that the difference is its lead.
    """

    standings: Sequence[Standing]
    comparisons: Sequence[Comparison]

    @property
    def contenders(self) -> list[Contender]:
        """Those that can be compared: records of the original cannot."""
        return [each.contender for each in self.standings if each.contender]

    @property
    def pairs(self) -> list[list[Comparison]]:
        """Every pair's comparisons, in all measures; those of the best first."""
        found = groupby(self.comparisons, key=lambda c: (c.first.label, c.second.label))
        order = [standing.label for standing in self.standings]
        return sorted(
            ([*measures] for _, measures in found),
            key=lambda each: (order.index(each[0].second.label), order.index(each[0].first.label)),
        )

    @cached_property
    def leads(self) -> dict[tuple[str, str], Comparison]:
        """The rule uptake of every pair, by the labels of the higher and the lower."""
        found = of_measure(self.comparisons, UPTAKE)
        return {(each.second.label, each.first.label): each for each in found}

    def between(self, one: Standing, other: Standing) -> Comparison:
        """The rule uptake of two, whichever stands higher."""
        pair = one.label, other.label
        return self.leads[pair if pair in self.leads else pair[::-1]]

    def is_ahead(self, one: Standing, other: Standing) -> bool:
        """Whether the one is significantly ahead of the other where both were asked."""
        lead = self.between(one, other)
        return lead.is_significant and lead.ahead[0].label == one.label


def rankings(found: Iterable[Standing]) -> list[Ranking]:
    """Those that stand at one place together, as they come; p is corrected over all of them."""
    return _ranked([list(group) for _, group in groupby(found, key=lambda each: each.place)])


def ranking_of(runs: Sequence[Run]) -> Ranking:
    """Those of runs that are to be compared.

    Raises:
        InvalidInput: if there are fewer than two models, or their runs cannot be compared.
    """
    check_comparable(runs)
    [ranking] = _ranked([sorted(entries_in(runs), key=rank)])
    return ranking


def _ranked(groups: Sequence[Sequence[Standing]]) -> list[Ranking]:
    known = [[each.contender for each in reversed(group) if each.contender] for group in groups]
    return [Ranking(*each) for each in zip(groups, compared(known), strict=True)]


def changed_outcomes(standing: Standing) -> dict[str, int]:
    """How many answers under the changed rules were what; nothing where that is not known."""
    counts: Counter[str] = Counter()
    for outcome, count in standing.results.outcomes.get(CHANGED_CONDITION, {}).items():
        counts[UNUSABLE if outcome in UNUSABLE_OUTCOMES else outcome] += count
    return {outcome: counts[outcome] for outcome in OUTCOMES} if counts else {}
