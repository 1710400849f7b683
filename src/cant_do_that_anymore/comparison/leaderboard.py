"""Leaderboards: entries ranked within their category, and which leads are significant."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby

from ..game.rules import identity_of
from ..metrics.measures import UPTAKE
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, UNUSABLE_OUTCOMES
from .entries import Entry, pool_runs, rank
from .naming import shown
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

    entries: Sequence[Entry]
    comparisons: Sequence[Comparison]

    @property
    def title(self) -> str:
        """The eval, the rules, and any non-default pool or selection, as a heading."""
        first = self.entries[0]
        chosen = f" from the pool {first.pool}" if first.pool else ""
        selected = f" selected {first.selection}" if first.selection else ""
        remark = f" (positions{chosen}{selected})" if chosen or selected else ""
        return f"{first.eval}: {first.change.title}{remark}"

    @property
    def comparable(self) -> list[Entry]:
        """The entries that can be compared, so without records of the original."""
        return [entry for entry in self.entries if entry.runs]

    @property
    def pairs(self) -> list[list[Comparison]]:
        """The comparisons of every pair in all measures; pairs of the best first."""
        by_pair = groupby(self.comparisons, key=lambda c: (c.first.label, c.second.label))
        order = [entry.label for entry in self.entries]
        return sorted(
            ([*measures] for _, measures in by_pair),
            key=lambda pair: (order.index(pair[0].second.label), order.index(pair[0].first.label)),
        )

    @cached_property
    def leads(self) -> dict[tuple[str, str], Comparison]:
        """The comparison of every pair in rule uptake, by the labels of the higher and lower."""
        return {(c.second.label, c.first.label): c for c in of_measure(self.comparisons, UPTAKE)}

    def between(self, first: Entry, second: Entry) -> Comparison:
        """Return the comparison of two entries in rule uptake, in either order."""
        pair = first.label, second.label
        return self.leads[pair if pair in self.leads else pair[::-1]]

    def is_ahead(self, first: Entry, second: Entry) -> bool:
        """Whether the first is significantly ahead of the second on the positions they share."""
        lead = self.between(first, second)
        return lead.is_significant and lead.ahead[0].label == first.label


def rankings(entries: Iterable[Entry]) -> list[Ranking]:
    """Rank entries by category; p-values are corrected over all of them."""
    return _ranked([list(group) for _, group in groupby(entries, key=lambda e: e.category)])


def ranking_of(runs: Sequence[Run]) -> Ranking:
    """Rank runs that are to be compared.

    Raises:
        InvalidInput: if there are fewer than two models, or their runs cannot be compared.
    """
    check_comparable(runs)
    [ranking] = _ranked([sorted(pool_runs(runs), key=rank)])
    return ranking


def _ranked(groups: Sequence[Sequence[Entry]]) -> list[Ranking]:
    worst_first = [[entry for entry in reversed(group) if entry.runs] for group in groups]
    return [Ranking(*ranked) for ranked in zip(groups, compared(worst_first), strict=True)]


def changed_outcomes(entry: Entry) -> dict[str, int]:
    """Count the answers under the changed rules by outcome; empty if unknown."""
    counts: Counter[str] = Counter()
    for outcome, count in entry.results.outcomes.get(CHANGED_CONDITION, {}).items():
        counts[UNUSABLE if outcome in UNUSABLE_OUTCOMES else outcome] += count
    return {outcome: counts[outcome] for outcome in OUTCOMES} if counts else {}


def differences_in_plan(entries: Sequence[Entry], but: Collection[str] = ()) -> list[str]:
    """Return a note for each setting that differs between models, except those given."""
    names = {name for entry in entries[1:] for name in entries[0].plan.differences(entry.plan)}
    settings: dict[str, Callable[[Run], object]] = {
        **{name: partial(_of_plan, name) for name in sorted(names - {"temperature", *but})},
        "the temperature that was used": _temperature_used,
        "how their datasets were selected": lambda run: (
            f"{run.dataset.origin} {run.dataset.selection}".strip()
        ),
    }
    notes = []
    for setting, value_of in settings.items():
        values = [" and ".join(sorted({shown(value_of(r)) for r in e.runs})) for e in entries]
        if len(set(values)) > 1:
            pairs = zip(entries, values, strict=True)
            by_model = "; ".join(f"{entry.label}: {value}" for entry, value in pairs)
            notes.append(
                f"these runs differ in {setting}, which may explain the difference ({by_model})"
            )
    return notes


def _of_plan(name: str, run: Run) -> object:
    plan, attribute = run.plan, name.replace(" ", "_")
    if attribute == "conditions":
        return ", ".join(f"{asked.name} {asked.text!r:.40}" for asked in plan.conditions)
    if attribute == "change":
        return identity_of(plan.change)
    return getattr(plan if hasattr(plan, attribute) else plan.settings, attribute)


def _temperature_used(run: Run) -> object:
    return "the provider's own" if run.own_temperature else run.plan.settings.temperature
