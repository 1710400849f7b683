"""Leaderboards: entries ranked by rule uptake, the verdict on them, and the check for CI."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, NamedTuple

from ..datasets.storage import Dataset
from ..errors import InvalidInput
from ..formatting import format_setting, join_words, percentage, pluralize
from ..metrics.estimates import Estimate
from ..metrics.measures import UPTAKE
from ..runs.run import Run
from ..task.prompts import ORIGINAL_RULES
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, UNUSABLE_OUTCOMES
from .entries import Entry, named_entries
from .pairwise import Pair, check_comparable, pairs_of

# A model is not ranked if more of its replies than these shares are unusable, or cut off.
MAX_UNUSABLE, MAX_CUT_OFF = 0.1, 0.05
MAX_NAMED = 3  # models in a sentence; the others are counted


@dataclass(frozen=True)
class Ranking:
    """The entries of one category, the best first, and every pair of them."""

    entries: Sequence[Entry]
    pairs: Sequence[Pair]

    @property
    def title(self) -> str:
        """The rules, and any non-default eval, form or pool, as a heading."""
        first = self.entries[0]
        remark = f" ({first.words.items} from the pool {first.pool})" if first.pool else ""
        eval_ = "" if first.plan.eval == "all" else f"{first.plan.eval}: "
        form = f", {first.words.item} shown as {first.other_form}" if first.other_form else ""
        title = first.change.title
        if title.split()[0].isalpha() and not eval_:
            title = title[0].upper() + title[1:]
        return f"{eval_}{title}{form}{remark}"

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
            if not others:
                whether = f"There is no evidence that {best.label} follows the rule"
                return f"{whether}: rule uptake {uptake}."
            highest = f"the highest rule uptake, that of {best.label}, is {uptake}"
            return f"There is no evidence that any model follows the rule: {highest}."
        if not others:
            return f"{best.label} follows the rule in {uptake} of the cases where it matters."
        behind = {entry.label for entry in others}
        leads = [p for p in self.pairs if p.first is best and p.second.label in behind]
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
    parts = (text.format(_others(group)) for text, group in groups.items() if group)
    return "; ".join(parts)


def _others(leads: Sequence[Pair]) -> str:
    """Join the other models of leads as in a sentence; of many, the first ones and a count."""
    labels = [lead.second.label for lead in leads]
    if len(labels) > MAX_NAMED + 1:
        labels[MAX_NAMED:] = [f"{len(labels) - MAX_NAMED} others"]
    return join_words(labels)


def unranked_reason(entry: Entry) -> str:
    """Return why an entry has no rank; "" if it has one."""
    results, words = entry.results, entry.words
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


def rankings(entries: Iterable[Entry]) -> list[Ranking]:
    """Rank entries, sorted by category, within their categories."""
    groups = [list(group) for _, group in groupby(entries, key=lambda e: e.category)]
    return [Ranking(group, pairs_of(group)) for group in map(_sorted, groups)]


def _sorted(entries: Iterable[Entry]) -> list[Entry]:
    """Sort entries: ranked ones first, the highest rule uptake first."""

    def key(entry: Entry) -> tuple[bool, float, str]:
        uptake = entry.results.uptake
        return bool(unranked_reason(entry)), -uptake.value if uptake else 0.0, entry.label

    return sorted(entries, key=key)


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
    entries = _sorted(named_entries(runs))
    return Ranking(entries, pairs_of(entries))


def verdicts(ranked: Sequence[Ranking]) -> list[str]:
    """Return the verdict of each ranking, with its title if there are several."""
    return [f"{r.title}: {r.verdict}" if len(ranked) > 1 else r.verdict for r in ranked]


class BaselineCheck(NamedTuple):
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

    @property
    def json(self) -> dict[str, Any]:
        """The check, ready for JSON."""
        return self._asdict() | {"difference": asdict(self.difference)}


def check_baseline(
    ranking: Ranking, baseline: Sequence[Run], tolerance: float = 0.0
) -> BaselineCheck:
    """Check whether the other of two entries is worse than that of the baseline.

    Raises:
        InvalidInput: if there are not two entries, or they have no value on shared items.
    """
    is_old = [any(entry.run is own for own in baseline) for entry in ranking.entries]
    if sorted(is_old) != [False, True]:
        labels = ", ".join(entry.label for entry in ranking.entries)
        raise InvalidInput(f"--baseline RUN RUN takes one run on each side, not {labels}")
    [pair] = ranking.pairs
    if not pair.difference:
        raise InvalidInput(f"the runs cannot be checked: {pair.sentence[:-1]}")
    old, new, change = pair.second, pair.first, pair.difference
    if is_old[0]:
        old, new, change = new, old, -change
    low, high = change.low or 0.0, change.high or 0.0
    than = f"worse than the baseline {old.label}"
    than += f" by more than {100 * tolerance:g} points" if tolerance else ""
    verdict: Literal["worse", "not worse", "inconclusive"]
    if high < -tolerance:
        verdict, claim = "worse", f"The check fails: {new.label} is significantly {than}"
    elif low >= -tolerance:
        verdict, claim = "not worse", f"The check passes: {new.label} is not {than}"
    else:
        verdict = "inconclusive"
        claim = f"The check passes: it is inconclusive whether {new.label} is {than}"
    size, shared = change.as_points, pluralize(pair.shared, f"shared {new.words.item}")
    sentence = f"{claim}. Its rule uptake differs by {size} on {shared}."
    return BaselineCheck(old.label, new.label, change, tolerance, verdict, sentence)


def heading(entries: Sequence[Entry]) -> str:
    """Describe the dataset of the comparison."""
    common = common_dataset(entries)
    if not common:
        return f"Each pair on the {entries[0].words.items} that their own datasets share"
    whose = f", the dataset of {common.version}" if common.version else ""
    return f"All models on one dataset: {common.origin}{whose}"


def advice(entries: Sequence[Entry]) -> str:
    """Suggest how to make the comparison fairer; "" if it is fair."""
    items, change = entries[0].words.items, entries[0].change
    own_file = "" if change.identity == change.key else ".toml"
    options = "" if change.key == ORIGINAL_RULES else f" --rules {change.key}{own_file}"
    union = (
        f"For a fairer test, run both on the union of their datasets: `cdta dataset union{options} "
        f"A B -o both.jsonl`, then `cdta run{options} --dataset both.jsonl` for each"
    )
    common = common_dataset(entries)
    models = [(entry.run.identity, entry.run.version) for entry in entries]
    if not common and all(model == models[0] for model in models):
        return f"Give both runs the same --seed and -n, so that they share all {items}."
    if not common:
        return f"{union}."
    if not common.version or all(entry.run.version == common.version for entry in entries):
        return ""
    return f"The {items} were chosen for the habit of {common.version}. {union}."


def common_dataset(entries: Sequence[Entry]) -> Dataset | None:
    """Return the dataset that all models were evaluated on, or None if it differs."""
    datasets = [entry.run.dataset for entry in entries]
    kinds = {(data.version, data.origin) for data in datasets}
    items = {frozenset(sample.item.id for sample in entry.run.samples) for entry in entries}
    return datasets[0] if len(kinds) == len(items) == 1 else None


def settings_of(run: Run) -> dict[str, str]:
    """Return the settings that may change the numbers of a run, as texts by name; not the seed."""
    plan = run.plan
    values = {"wording": plan.wording, "form": plan.form.name, "reading": plan.reading}
    values |= asdict(plan.settings) | {"seed": None}
    return {
        name.replace("_", " "): format_setting(value)
        for name, value in values.items()
        if value not in (None, "")
    }


def differences_in_plan(entries: Sequence[Entry], but: Collection[str] = ()) -> list[str]:
    """Return a note for each setting that differs between models, except those given."""
    origin = f"the origin of their {entries[0].words.items}"
    settings = [settings_of(entry.run) | {origin: entry.run.dataset.origin} for entry in entries]
    conditions = (condition for entry in entries for condition in entry.plan.conditions)
    prompts = {c.prompts for c in conditions if c.name == CHANGED_CONDITION}
    notes = ["these runs used different prompts"] if len(prompts) > 1 else []
    for name in sorted({name for each in settings for name in each if name not in but}):
        texts = [each.get(name, "default") for each in settings]
        if len(set(texts)) > 1:
            pairs = zip(entries, texts, strict=True)
            by_model = "; ".join(f"{entry.label}: {text}" for entry, text in pairs)
            notes.append(f"these runs differ in {name} ({by_model})")
    return [f"{note}, which may explain a difference" for note in notes]
