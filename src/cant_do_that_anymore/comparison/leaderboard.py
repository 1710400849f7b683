"""Leaderboards: entries ranked within their category, and which leads are significant."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby

from ..errors import InvalidInput
from ..metrics.measures import UPTAKE
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, UNUSABLE_OUTCOMES
from .entries import Entry, named_entries, rank
from .naming import format_value
from .pairwise import PairComparison, check_comparable, compared, of_measure

# All outcomes that name no move, combined.
NO_MOVE = "unusable"
# Outcome groups of answers under the changed rules.
OUTCOME_GROUPS = ("usual", "forbidden", "adapted", "legal", "illegal", NO_MOVE)


@dataclass(frozen=True)
class Ranking:
    """The entries of one category, best first, and every pairwise comparison in every measure.

    In a pair the second entry ranks higher, so the difference is its lead.
    """

    entries: Sequence[Entry]
    comparisons: Sequence[PairComparison]

    @property
    def title(self) -> str:
        """The rules, and any non-default eval, form or pool, as a heading."""
        first = self.entries[0]
        remark = f" ({first.words.items} from the pool {first.pool})" if first.pool else ""
        eval_ = "" if first.eval == "all" else f"{first.eval}: "
        form = f", {first.words.item} shown as {first.form}" if first.other_form else ""
        title = first.change.title
        if title.split()[0].isalpha() and not eval_:
            title = title[0].upper() + title[1:]
        return f"{eval_}{title}{form}{remark}"

    @property
    def pairs(self) -> list[list[PairComparison]]:
        """The comparisons of every pair in all measures; pairs of the best first."""
        by_pair = groupby(self.comparisons, key=lambda c: (c.first.label, c.second.label))
        order = [entry.label for entry in self.entries]
        return sorted(
            ([*measures] for _, measures in by_pair),
            key=lambda pair: (order.index(pair[0].second.label), order.index(pair[0].first.label)),
        )

    @cached_property
    def leads(self) -> dict[tuple[str, str], PairComparison]:
        """The comparison of every pair in rule uptake, by the labels of the higher and lower."""
        return {(c.second.label, c.first.label): c for c in of_measure(self.comparisons, UPTAKE)}

    def between(self, first: Entry, second: Entry) -> PairComparison:
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
        InvalidInput: if there is nothing to compare, or the runs cannot be compared.
    """
    check_comparable(runs)
    if len(runs) < 2:
        raise InvalidInput(
            "there is nothing to compare, because this is one run; name two runs, as in "
            "`cdta compare RUN RUN` (see `cdta runs`)"
        )
    [ranking] = _ranked([sorted(named_entries(runs), key=rank)])
    return ranking


def _ranked(groups: Sequence[Sequence[Entry]]) -> list[Ranking]:
    worst_first = [list(reversed(group)) for group in groups]
    return [Ranking(*ranked) for ranked in zip(groups, compared(worst_first), strict=True)]


def changed_outcomes(entry: Entry) -> dict[str, int]:
    """Count the answers under the changed rules by outcome."""
    counts = dict.fromkeys(OUTCOME_GROUPS, 0)
    for outcome, count in entry.results.outcomes[CHANGED_CONDITION].items():
        counts[NO_MOVE if outcome in UNUSABLE_OUTCOMES else outcome] += count
    return counts


def differences_in_plan(entries: Sequence[Entry], but: Collection[str] = ()) -> list[str]:
    """Return a note for each setting that differs between models, except those given."""
    names = {name for entry in entries[1:] for name in entries[0].plan.differences(entry.plan)}
    with_own_note, words = {"temperature", "conditions", *but}, entries[0].words
    settings: dict[str, Callable[[Run], object]] = {
        **{name: partial(_of_plan, name) for name in sorted(names - with_own_note)},
        f"the form of the {words.item}": lambda run: run.plan.form.name,
        "the temperature used": lambda run: run.temperature_used,
        f"the origin of their {words.items}": lambda run: run.dataset.origin,
    }
    notes = _on_prompts(entries)
    for setting, value_of in settings.items():
        values = [format_value(value_of(entry.run)) for entry in entries]
        if len(set(values)) > 1:
            pairs = zip(entries, values, strict=True)
            by_model = "; ".join(f"{entry.label}: {value}" for entry, value in pairs)
            notes.append(
                f"these runs differ in {setting}, which may explain the difference ({by_model})"
            )
    return notes


def _on_prompts(entries: Sequence[Entry]) -> list[str]:
    """Return a note if the models got different prompts under a condition that they share."""
    prompts: dict[str, set[object]] = {}
    for condition in (condition for entry in entries for condition in entry.plan.conditions):
        prompts.setdefault(condition.name, set()).add((condition.prompts, condition.form.identity))
    if all(len(different) == 1 for different in prompts.values()):
        return []
    return ["these runs used different prompts, which may explain the difference"]


def _of_plan(name: str, run: Run) -> object:
    plan, attribute = run.plan, name.replace(" ", "_")
    if attribute == "change":
        return plan.change.identity
    value = getattr(plan if hasattr(plan, attribute) else plan.settings, attribute)
    return ", ".join(value) or "none" if isinstance(value, tuple) else value
