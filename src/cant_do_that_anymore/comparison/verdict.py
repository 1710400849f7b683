"""The verdict on a leaderboard in a few sentences."""

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

from ..datasets.storage import Dataset
from ..errors import InvalidInput
from ..formatting import (
    brief,
    format_p,
    format_points,
    join_words,
    percentage,
    pluralize,
    range_in_points,
)
from ..metrics.bounds import interval_of
from ..metrics.measures import IMPACT, MEASURES, UNUSABLE_SHARE, UPTAKE
from ..metrics.stats.intervals import SHARE_OF_SOME
from ..metrics.types import ALPHA, Measure
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, LEGAL_OUTCOMES, OUTCOMES, Outcome, Sample
from .entries import Entry
from .leaderboard import NO_MOVE, Ranking, changed_outcomes
from .pairwise import EQUIVALENCE_MARGIN, PairComparison, as_sentence

UNION = (
    "For a fairer test, run both on the union of their datasets: `cdta dataset union A B -o "
    "both.jsonl`, then `cdta run --dataset both.jsonl` for each"
)
# At most this many models are named, and the others are counted.
_MAX_NAMED = 3
_NOT_LEGAL = "no adaptation"
# Kinds of drops that are not adaptation, by the outcomes that replaced the habit.
_NOT_ADAPTING: dict[str, frozenset[Outcome]] = {
    "off-task replies": frozenset(("unreadable",)),
    "cut-off replies": frozenset(("truncated",)),
    "refusals": frozenset(("refused",)),
    _NOT_LEGAL: frozenset(OUTCOMES) - LEGAL_OUTCOMES,
}


def verdict(ranking: Ranking) -> str:
    """Describe which model adapts most by rule uptake, and whether its lead is significant.

    Models whose drop is mostly not adaptation, or that cannot be ranked, are named as well.

    Leads refer to the positions that each pair shares. If a lead is not significant, the verdict
    calls neither model better.
    """
    why_not = {entry.label: _unranked_reason(entry, ranking) for entry in ranking.entries}
    ranked = [entry for entry in ranking.entries if not why_not[entry.label]]
    parts = [_ranked(ranked, ranking) if ranked else "no model can be ranked"]
    for entry in ranking.entries:
        remark = _drop_explanation(entry) or why_not[entry.label]
        parts += [f"{entry.label}{remark}"] if remark else []
    text = ranking.entries[0].words.fill("; ".join(parts))
    return as_sentence(text, list(why_not))


def verdicts(ranked: Sequence[Ranking]) -> list[str]:
    """Return the verdict of each ranking, with its title if there are several."""
    return [f"{r.title}: {verdict(r)}" if len(ranked) > 1 else verdict(r) for r in ranked]


class BaselineCheck(NamedTuple):
    """Whether a run is worse than a baseline in rule uptake, on the positions they share.

    Attributes:
        difference: the rule uptake of the run minus that of the baseline; ``low`` and ``high`` are
            its 95% interval, and ``p`` is the p-value of equal models.
        tolerance: the drop that is accepted.
        verdict: "worse" if p is below 0.05 and the whole interval is below minus the tolerance;
            "not worse" if the whole interval is at or above it; "inconclusive" otherwise.
    """

    baseline: str
    run: str
    samples: int
    difference: float
    low: float
    high: float
    p: float
    tolerance: float
    verdict: Literal["worse", "not worse", "inconclusive"]
    sentence: str


def check_baseline(
    ranking: Ranking, baseline: Sequence[Run], tolerance: float = 0.0
) -> BaselineCheck:
    """Check whether the other of two entries is worse than that of the baseline.

    Raises:
        InvalidInput: if there are not two entries, or they have no value on shared positions.
    """
    first = [e for e in ranking.entries if any(e.run is own for own in baseline)]
    if len(ranking.entries) != 2 or len(first) != 1:
        names = ", ".join(entry.label for entry in ranking.entries)
        raise InvalidInput(f"--baseline RUN RUN takes one run on each side, not {names}")
    old = first[0]
    [new] = [entry for entry in ranking.entries if entry is not old]
    lead = ranking.between(old, new)
    if lead.difference is None or not lead.interval:
        raise InvalidInput(
            f"{new.label} and the baseline {old.label} cannot be compared: {lead.sentence[:-1]}"
        )
    sign = 1 if lead.second is new else -1
    low, high = sorted((sign * lead.interval.low, sign * lead.interval.high))
    by = f" by more than {100 * tolerance:g} points" if tolerance else ""
    than = f"worse than the baseline {old.label}{by}"
    result: Literal["worse", "not worse", "inconclusive"]
    if high < -tolerance and lead.p < ALPHA:
        result, claim = "worse", f"the check fails: {new.label} is significantly {than}"
    elif low >= -tolerance:
        result, claim = "not worse", f"the check passes: {new.label} is not {than}"
    else:
        result = "inconclusive"
        claim = f"the check passes: it is inconclusive whether {new.label} is {than}"
    difference = sign * lead.difference
    samples = pluralize(lead.n_samples, "shared sample")
    interval = f"95% interval {range_in_points(low, high, ' to ')} on {samples}"
    size = f"its rule uptake differs by {format_points(difference, signed=True)} ({interval})"
    too_many = f", and too many replies contain no {new.words.answer}"
    why = too_many if lead.is_undecidable else ""
    sentence = as_sentence(f"{claim}; {size}{why}", [])
    numbers = difference, low, high, lead.p, tolerance
    return BaselineCheck(old.label, new.label, lead.n_samples, *numbers, result, sentence)


def heading(entries: Sequence[Entry]) -> str:
    """Describe the dataset of the comparison."""
    common = common_dataset(entries)
    if not common:
        pool = entries[0].pool  # the same for all comparable runs
        chosen = f", all chosen from the pool {pool}" if pool else ""
        items = entries[0].words.items
        return f"Each pair on the {items} that their own datasets share{chosen}"
    whose = f", the dataset of {common.version}" if common.version else ""
    return f"All models on one dataset: {common.origin}{whose}"


def advice(entries: Sequence[Entry]) -> str:
    """Suggest how to make the comparison fairer; "" if it is fair."""
    common, items = common_dataset(entries), entries[0].words.items
    first, *others = [(entry.run.identity, entry.run.version) for entry in entries]
    if not common and all(other == first for other in others):
        return f"Give both runs the same --seed and -n, so that they share all {items}."
    if not common:
        return f"Each pair is compared only on {items} where both have the habit. {UNION}."
    if not common.version or all(entry.run.version == common.version for entry in entries):
        return ""
    return f"The {items} were chosen for the habit of {common.version}. {UNION}."


def common_dataset(entries: Sequence[Entry]) -> Dataset | None:
    """Return the dataset that all models were evaluated on, or None if it differs."""
    datasets = [entry.run.dataset for entry in entries]
    same = len({(data.version, data.origin, data.endpoint) for data in datasets}) == 1
    return datasets[0] if same and len({entry.items for entry in entries}) == 1 else None


def _unranked_reason(entry: Entry, ranking: Ranking) -> str:
    """Return why a model cannot be ranked; "" if it can."""
    if not entry.run.answered:
        return " cannot be ranked: it has no answers"
    if entry.least_uptake is None:
        return " cannot be ranked: it never {past} the usual {answer} under the standard rules"
    leads = [lead for pair, lead in ranking.leads.items() if entry.label in pair]
    blurred = any(lead.is_undecidable for lead in leads) and not any(
        lead.is_significant for lead in leads
    )
    if not blurred or UPTAKE not in entry.results.bounds:
        return ""
    share = percentage(entry.results.metrics[UNUSABLE_SHARE[CHANGED_CONDITION]], 0)
    return (
        f" cannot be ranked: {share} of its replies under the changed rules contain no {{answer}}"
    )


def _drop_explanation(entry: Entry) -> str:
    """Describe a drop that significantly is mostly not adaptation; "" otherwise."""
    drop = entry.results.metrics[IMPACT]
    # As scored, because the reported interval already allows for these answers.
    interval = interval_of(MEASURES[IMPACT], entry.run.answered)
    if drop is None or drop > -EQUIVALENCE_MARGIN or not interval or interval.high >= 0:
        return ""
    counts = changed_outcomes(entry)
    for kind, outcomes in _NOT_ADAPTING.items():
        measure = Measure(
            kind, kind, kind, partial(_dropped_for, outcomes), _dropped, pairs=SHARE_OF_SOME
        )
        share = measure.value(entry.run.answered)
        interval_of_share = interval_of(measure, entry.run.answered)
        if share and interval_of_share and interval_of_share.low > 0.5:
            no_move = kind != _NOT_LEGAL
            not_legal = (NO_MOVE,) if no_move else (NO_MOVE, "illegal", "forbidden")
            answers = sum(counts[name] for name in not_legal) / sum(counts.values())
            none = "contain no {answer}"
            are = none if no_move else f"are other {{disallowed}} {{answer}}s or {none}"
            mostly = "mostly " if share < 1 else ""
            return f"'s drop is {mostly}{kind}: {percentage(answers, 0)} of its replies {are}"
    return ""


def _dropped(sample: Sample) -> bool:
    return sample.had_habit and not sample.kept_habit


def _dropped_for(outcomes: frozenset[Outcome], sample: Sample) -> bool:
    return _dropped(sample) and sample.replies[CHANGED_CONDITION].outcome in outcomes


def _ranked(ranked: Sequence[Entry], ranking: Ranking) -> str:
    highest, *others = ranked
    if not any(map(_adapts, ranked)):
        none = "no model adapts significantly: the highest rule uptake, that of {}, is {}"
        alone = "{} does not adapt significantly: its rule uptake is {}"
        return (none if others else alone).format(highest.label, _uptake(highest))
    if not others:
        return f"{highest.label} adapts: its rule uptake is {_uptake(highest)}"
    for best in ranked:
        rest = [other for other in ranked if other is not best]
        if all(ranking.is_ahead(best, other) for other in rest):
            lead = _size(ranking.between(best, rest[0]))
            text = f"{best.label} adapts most; its lead over {rest[0].label} is significant: {lead}"
            own = f"; on its own {{items}} {highest.label} has the highest rule uptake"
            return text if best is highest else text + own
    behind = [other for other in others if ranking.is_ahead(other, highest)]
    if behind:
        are = "is" if len(behind) == 1 else "are"
        return (
            f"no model is significantly ahead of all others: {highest.label} has the highest rule "
            f"uptake, but on the {{items}} that they share {_join_names(behind)} {are} ahead of it"
        )
    ahead = [other for other in others if ranking.is_ahead(highest, other)]
    level = [other for other in others if not ranking.is_ahead(highest, other)]
    also = f"; its lead over {_join_names(ahead)} is significant" if ahead else ""
    leads = [ranking.between(highest, other) for other in level]
    return f"{highest.label} {_not_ahead(level, leads)}{also}"


def _not_ahead(level: Sequence[Entry], leads: Sequence[PairComparison]) -> str:
    first = leads[0]
    if all(lead.verdict == "equivalent" for lead in leads):
        within = f"to within {100 * EQUIVALENCE_MARGIN:.0f} points"
        return f"is equivalent to {_join_names(level)} in the rule uptake, {within}"
    sample_text = ""
    if not first.is_undecidable and first.n_samples < first.required_samples:
        sample_text = (
            f"; only {pluralize(first.n_samples, 'sample')} shared, and detecting a difference of "
            f"{100 * EQUIVALENCE_MARGIN:.0f} points would take about {first.required_samples:,}"
        )
    over = f" over {level[0].label}" if len(level) > 1 else ""
    return (
        f"has the highest rule uptake, but its lead over {_join_names(level)} is inconclusive "
        f"({_why_inconclusive(first)}{over}){sample_text}"
    )


def _why_inconclusive(lead: PairComparison) -> str:
    if lead.difference is None:
        return "they share no {item} that both answered"
    if lead.is_undecidable:
        return "too many replies contain no {answer}"
    return f"{format_points(lead.difference, signed=True)}, {format_p(lead.corrected_p)}"


def _size(lead: PairComparison) -> str:
    return f"{lead.size.rstrip(',')}, {format_p(lead.corrected_p)}"


def _adapts(entry: Entry) -> bool:
    """Whether the rule uptake is significantly above 0."""
    interval = entry.results.intervals.get(UPTAKE)
    return interval is not None and interval.low > 0


def _uptake(entry: Entry) -> str:
    results = entry.results
    interval = results.intervals[UPTAKE]  # every ranked model has one
    value, low, high = map(brief, (results.metrics[UPTAKE], interval.low, interval.high))
    allowing = ", allowing for replies that contain no {answer}" if UPTAKE in results.bounds else ""
    return f"{value} (95% interval {low} to {high}{allowing})"


def _join_names(entries: Sequence[Entry]) -> str:
    names = [entry.label for entry in entries]
    if len(names) > _MAX_NAMED + 1:
        names = [*names[:_MAX_NAMED], f"{len(names) - _MAX_NAMED} others"]
    return join_words(names)
