"""Leaderboards: entries ranked by rule uptake, the verdict on them, and the check for CI."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

from ..errors import InvalidInput
from ..formatting import format_setting, join_words, percentage, pluralize
from ..metrics.estimates import Estimate
from ..metrics.measures import UPTAKE
from ..runs.run import Run
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, UNUSABLE_OUTCOMES
from .entries import Category, Entry, category_of, named_entries
from .pairwise import Pair, check_comparable, pairs_of

# A model is not ranked if more of its replies than these shares are unusable, or cut off.
MAX_UNUSABLE, MAX_CUT_OFF = 0.1, 0.05


@dataclass(frozen=True)
class Ranking:
    """The entries of one category, the best first, and every pair of them."""

    entries: Sequence[Entry]
    pairs: Sequence[Pair]

    @cached_property
    def why_unranked(self) -> dict[str, str]:
        """Why entries have no rank, by their labels."""
        reasons = {entry.label: unranked_reason(entry) for entry in self.entries}
        return {label: reason for label, reason in reasons.items() if reason}

    @property
    def verdict(self) -> str:
        """Which model follows the rule most often, and whether its lead is significant."""
        ranked = [entry for entry in self.entries if entry.label not in self.why_unranked]
        sentences = [self._on_ranked(ranked) if ranked else "No model can be ranked."]
        sentences += [f"{name} is not ranked: {why}." for name, why in self.why_unranked.items()]
        return " ".join(sentences)

    def _on_ranked(self, ranked: Sequence[Entry]) -> str:
        best, *others = ranked
        uptake = best.results[UPTAKE.name].as_share
        if all(entry.results[UPTAKE.name].sign <= 0 for entry in ranked):
            who, whose = best.label, "its rule uptake"
            if others:
                who, whose = "any model", f"the highest rule uptake, that of {best.label},"
            return f"There is no evidence that {who} follows the rule: {whose} is {uptake}."
        if not others:
            return f"{best.label} follows the rule in {uptake} of the cases where it matters."
        leads = [pair for pair in self.pairs if pair.first is best and pair.second in others]
        if all(lead.sign > 0 for lead in leads):
            over = f"its lead over {others[0].label} is significant: {leads[0].points}"
            return f"{best.label} follows the rule most often; {over}."
        return f"{best.label} has the highest rule uptake, {uptake}; {_on_leads(leads)}."


def _on_leads(leads: Sequence[Pair]) -> str:
    """Describe the leads of the best model over each other model, by verdict."""
    size = f" ({leads[0].points})" if len(leads) == 1 and leads[0].difference else ""
    groups = {
        "on the items that they share, it is behind {}": [p for p in leads if p.sign < 0],
        "it is equivalent to {}": [p for p in leads if p.verdict == "equivalent"],
        f"its lead over {{}} is inconclusive{size}": [
            p for p in leads if p.verdict == "inconclusive"
        ],
        "its lead over {} is significant": [p for p in leads if p.sign > 0],
    }
    others = {text: join_words([p.second.label for p in group]) for text, group in groups.items()}
    return "; ".join(text.format(names) for text, names in others.items() if names)


def unranked_reason(entry: Entry) -> str:
    """Return why an entry has no rank; "" if it has one."""
    results, words = entry.results, entry.run.words
    if not results.n:
        return "it has no answers"
    for condition in (STANDARD_CONDITION, CHANGED_CONDITION):
        cut_off = results.share(condition, "truncated")
        unusable = results.share(condition, *UNUSABLE_OUTCOMES)
        under = f"of its replies under the {condition} rules"
        if cut_off > MAX_CUT_OFF:
            return f"{percentage(cut_off, 0)} {under} were cut off"
        if unusable > MAX_UNUSABLE:
            return f"{percentage(unusable, 0)} {under} contain no {words.answer}"
    if not results.uptake:
        return f"it never {words.past} its usual {words.answer} {words.as_usual}"
    return ""


def rankings(runs: Iterable[Run]) -> list[Ranking]:
    """Rank runs within their categories.

    Raises:
        InvalidInput: if runs of a category are of different protocols.
    """
    by_category: dict[Category, list[Run]] = {}
    for run in runs:
        by_category.setdefault(category_of(run), []).append(run)
    return [_ranking(group) for group in by_category.values()]


def _ranking(runs: Sequence[Run]) -> Ranking:
    """Return the ranking: first the entries with a rank, the highest rule uptake first."""
    protocols = sorted({run.protocol for run in runs})
    if len(protocols) > 1:
        raise InvalidInput(
            f"runs of protocols {' and '.join(protocols)} cannot be ranked; run the older again"
        )

    def key(entry: Entry) -> tuple[bool, float, str]:
        uptake = entry.results.uptake
        return bool(unranked_reason(entry)), -uptake.value if uptake else 0.0, entry.label

    entries = sorted(named_entries(runs), key=key)
    return Ranking(entries, pairs_of(entries))


def ranking_of(runs: Sequence[Run]) -> Ranking:
    """Rank runs that are to be compared.

    Raises:
        InvalidInput: if there is nothing to compare, or the runs cannot be compared.
    """
    check_comparable(runs)
    if len(runs) < 2:
        raise InvalidInput(
            "this is one run; name two to compare, as in `cdta compare RUN RUN` (see `cdta runs`)"
        )
    return _ranking(runs)


def verdicts(ranked: Sequence[Ranking]) -> list[str]:
    """Return the verdict of each ranking, with its title if there are several."""
    if len(ranked) == 1:
        return [ranked[0].verdict]
    return [f"{ranking.entries[0].title}: {ranking.verdict}" for ranking in ranked]


@dataclass(frozen=True)
class BaselineCheck:
    """Whether a run is worse than a baseline in rule uptake, on the items they share.

    Attributes:
        difference: the rule uptake of the run minus that of the baseline.
        tolerance: the drop that is accepted.
        verdict: "worse" if the whole interval is below minus the tolerance; "not worse" if it is
            at or above it; "inconclusive" otherwise.
    """

    baseline: str
    run: str
    difference: Estimate
    tolerance: float
    verdict: Literal["worse", "not worse", "inconclusive"]
    sentence: str


_CLAIMS = {
    "worse": "The check fails: {} is significantly",
    "not worse": "The check passes: {} is not",
    "inconclusive": "The check passes: it is inconclusive whether {} is",
}


def check_baseline(
    ranking: Ranking, baseline: Sequence[Run], tolerance: float = 0.0
) -> BaselineCheck:
    """Check whether the other of two entries is worse than that of the baseline.

    Raises:
        InvalidInput: if there are not two entries, or they have no value on shared items.
    """
    is_old = {e.label: any(e.run is own for own in baseline) for e in ranking.entries}
    if sorted(is_old.values()) != [False, True]:
        labels = ", ".join(is_old)
        raise InvalidInput(f"--baseline RUN RUN takes one run on each side, not {labels}")
    new, old = sorted(ranking.entries, key=lambda entry: is_old[entry.label])
    [pair] = pairs_of([new, old])
    if not pair.difference:
        raise InvalidInput(f"{new.label} and {old.label} cannot be compared: {pair.result}")
    low, high = pair.difference.low or 0.0, pair.difference.high or 0.0
    verdict: Literal["worse", "not worse", "inconclusive"] = "inconclusive"
    if high < -tolerance:
        verdict = "worse"
    elif low >= -tolerance:
        verdict = "not worse"
    by = f" by more than {100 * tolerance:g} points" if tolerance else ""
    claim = f"{_CLAIMS[verdict].format(new.label)} worse than the baseline {old.label}{by}"
    shared = pluralize(pair.shared, f"shared {new.run.words.item}")
    sentence = f"{claim}. Its rule uptake differs by {pair.points} on {shared}."
    return BaselineCheck(old.label, new.label, pair.difference, tolerance, verdict, sentence)


def heading(entries: Sequence[Entry]) -> str:
    """Describe the items of the comparison, and how to compare on more of them."""
    datasets = {(entry.run.dataset.version, entry.run.dataset.origin) for entry in entries}
    items = {frozenset(sample.item.id for sample in entry.run.samples) for entry in entries}
    if len(datasets) > 1 or len(items) > 1:
        plural = entries[0].run.words.items
        return f"Each pair on the {plural} that both have; for more, give all runs one --dataset"
    [(version, origin)] = datasets
    whose = f", chosen for the habit of {version}" if version else ""
    return f"All models on one dataset: {origin}{whose}"


def settings_of(run: Run) -> dict[str, str]:
    """Return the settings that may change the numbers of a run, as texts by name; not the seed."""
    plan = run.plan
    values = {"wording": ", ".join(plan.wordings), "form": plan.form.name, "reading": plan.reading}
    values |= asdict(plan.settings) | {"seed": None}
    return {
        name.replace("_", " "): format_setting(value)
        for name, value in values.items()
        if value not in (None, "")
    }


def differences_in_plan(entries: Sequence[Entry]) -> list[str]:
    """Return a note for each setting that differs between models and is not in their names."""
    origin = f"the origin of their {entries[0].run.words.items}"
    settings = [settings_of(entry.run) | {origin: entry.run.dataset.origin} for entry in entries]
    conditions = (condition for entry in entries for condition in entry.run.plan.conditions)
    prompts = {c.prompts for c in conditions if c.name == CHANGED_CONDITION}
    notes = ["these runs used different prompts"] if len(prompts) > 1 else []
    for name in sorted({*chain(*settings)} - {"reasoning effort"}):
        texts = [each.get(name, "default") for each in settings]
        if len(set(texts)) > 1:
            pairs = zip(entries, texts, strict=True)
            by_model = "; ".join(f"{entry.label}: {text}" for entry, text in pairs)
            notes.append(f"these runs differ in {name} ({by_model})")
    return [f"{note}, which may explain a difference" for note in notes]
