"""A ranking in one line: who adapts most, is the lead sure, and whose drop is no adapting."""

from collections.abc import Sequence
from functools import partial

from .comparison import MATTERS, Comparison, as_sentence
from .contenders import Contender, common_dataset
from .measures import GAIN, IMPACT, UNUSABLE
from .points import chance, in_points, points
from .rankings import UNUSABLE as NO_MOVE
from .rankings import Ranking, under_change
from .standings import Standing
from .statistics.intervals import SHARE_OF_SOME
from .uncertainty import interval_of
from .vocabulary import AFTER, LEGAL_OUTCOMES, OUTCOMES, Measure, Outcome, Sample

UNION = (
    "a fair common set is the union of the models' datasets, never one model's own: "
    "`cdta dataset union A B -o both.jsonl`, then `cdta run --dataset both.jsonl` for each"
)
_NAMED = 3
"""How many models are named before the others are counted."""
_NO_ADAPTING: dict[str, frozenset[Outcome]] = {
    "chatter": frozenset(("unreadable",)),
    "answers cut off": frozenset(("truncated",)),
    "refusals": frozenset(("refused",)),
    "no adapting": frozenset(OUTCOMES) - LEGAL_OUTCOMES,
}
"""What a drop may be instead of adapting: what came in place of the habit."""


def verdict(ranking: Ranking) -> str:
    """Who adapts most by legal gain, whether that is sure, and who only seems to.

    Whoever leads does so on the positions that each pair shares. What no interval carries is not
    said: of models that cannot be told apart, none is called the better.
    """
    why_not = {each.label: _why_not(each, ranking) for each in ranking.standings}
    ranked = [each for each in ranking.standings if not why_not[each.label]]
    parts = [_ranked(ranked, ranking) if ranked else "nobody can be ranked"]
    for each in ranking.standings:
        told = _instead(each) or why_not[each.label]
        parts += [f"{each.label}{told}"] if told else []
    return as_sentence("; ".join(parts), list(why_not))


def heading(models: Sequence[Contender]) -> str:
    """What the models are compared on."""
    common = common_dataset(models)
    if not common:
        pool = models[0].runs[0].dataset.pool_name  # the same for all, or they would not be here
        chosen = f", all chosen from the pool {pool}" if pool else ""
        return f"On the positions that each pair shares of its own datasets{chosen}"
    whose = f", the dataset of {common.version}" if common.version else ""
    return f"All on one dataset: {common.origin}{whose}"


def advice(models: Sequence[Contender]) -> str:
    """What would make the comparison fairer; "" if nothing would."""
    common = common_dataset(models)
    if not common:
        return f"Positions that are in both datasets suit both habits; {UNION}."
    if not common.version or all(run.version == common.version for m in models for run in m.runs):
        return ""
    return f"The positions were chosen for the habit of {common.version}; {UNION}."


def _why_not(standing: Standing, ranking: Ranking) -> str:
    """Why a model cannot be ranked; "" if it can."""
    if not standing.is_of_runs:
        return " cannot be ranked: a record of the original tells no legal moves"
    if not standing.samples:
        return " cannot be ranked: it has no answers"
    its = [lead for pair, lead in ranking.leads.items() if standing.label in pair]
    blurred = any(lead.blurred for lead in its) and not any(lead.is_sure for lead in its)
    if not blurred or GAIN not in standing.results.bounds:
        return ""
    share = _percent(standing.results.metrics[UNUSABLE[AFTER]])
    return f" cannot be ranked: {share} of its answers under the changed rules are no move"


def _instead(standing: Standing) -> str:
    """What a drop is, where it is sure that most of it is no adapting; "" where it is not."""
    drop, interval = standing.results.metrics[IMPACT], standing.results.intervals.get(IMPACT)
    if drop is None or drop > -MATTERS or not interval or interval.high >= 0:
        return ""
    counts = under_change(standing)
    for kind, outcomes in _NO_ADAPTING.items() if counts else ():
        of_it = Measure(
            kind, kind, kind, partial(_dropped_for, outcomes), _dropped, pairs=SHARE_OF_SOME
        )
        share = of_it.value(standing.samples)
        around = interval_of(of_it, standing.samples, standing.stretch)
        if share and around and around.low > 0.5:
            no_move = kind != "no adapting"
            useless = (NO_MOVE,) if no_move else (NO_MOVE, "illegal", "forbidden")
            answers = sum(counts[name] for name in useless) / sum(counts.values())
            are = "are no move" if no_move else "are other illegal moves or no move"
            mostly = "mostly " if share < 1 else ""
            return f"'s drop is {mostly}{kind}: {_percent(answers)} of its answers {are}"
    return ""


def _dropped(sample: Sample) -> bool:
    return sample.had_habit and not sample.kept_habit


def _dropped_for(outcomes: frozenset[Outcome], sample: Sample) -> bool:
    return _dropped(sample) and sample.replies[AFTER].outcome in outcomes


def _ranked(ranked: Sequence[Standing], ranking: Ranking) -> str:
    highest, *others = ranked
    if not any(map(_adapts, ranked)):
        unsure = "nobody adapts for sure: the highest legal gain, that of {}, is {}"
        alone = "it is not sure that {} adapts: its legal gain is {}"
        return (unsure if others else alone).format(highest.label, _gain(highest))
    if not others:
        return f"{highest.label} adapts: its legal gain is {_gain(highest)}"
    for best in ranked:
        rest = [other for other in ranked if other is not best]
        if all(ranking.is_ahead(best, other) for other in rest):
            lead = ranking.between(best, rest[0])
            told = f"{best.label} adapts most; its lead over {rest[0].label} is sure: {_size(lead)}"
            own = f"; on its own positions {highest.label} has the highest legal gain"
            return told if best is highest else told + own
    behind = [other for other in others if ranking.is_ahead(other, highest)]
    if behind:
        more = "gains" if len(behind) == 1 else "gain"
        return (
            f"nobody is ahead of all others for sure: {highest.label} has the highest legal gain, "
            f"but on the positions that they share {_listed(behind)} {more} more"
        )
    ahead = [other for other in others if ranking.is_ahead(highest, other)]
    level = [other for other in others if not ranking.is_ahead(highest, other)]
    also = f"; its lead over {_listed(ahead)} is sure" if ahead else ""
    leads = [ranking.between(highest, other) for other in level]
    return f"{highest.label} {_not_told_apart(level, leads)}{also}"


def _not_told_apart(level: Sequence[Standing], leads: Sequence[Comparison]) -> str:
    first = leads[0]
    if all(lead.verdict == "alike" for lead in leads):
        within = f"equal in the legal gain to within {100 * MATTERS:.0f} points"
        return f"cannot be told apart from {_listed(level)}: {within}"
    more = ""
    if not first.blurred and first.n_samples < first.enough:
        more = (
            f"; it would take about {first.enough:,} shared samples, not {first.n_samples:,}, to "
            f"show a difference of {100 * MATTERS:.0f} points"
        )
    over = f" over {level[0].label}" if len(level) > 1 else ""
    return (
        f"has the highest legal gain but cannot be told apart from {_listed(level)} "
        f"({_why_open(first)}{over}){more}"
    )


def _why_open(lead: Comparison) -> str:
    if lead.difference is None:
        return "they share no position that both answered"
    if lead.blurred:
        return "too many answers name no move"
    return f"{points(lead.difference, signed=True)}, {chance(lead.corrected_p)}"


def _size(lead: Comparison) -> str:
    return f"{lead.size.rstrip(',')}, {chance(lead.corrected_p)}"


def _adapts(standing: Standing) -> bool:
    """Whether it is sure that legal answers are gained, whatever those without a move would say."""
    bounds = standing.results.bounds.get(GAIN)
    if bounds:
        return bounds.lowest is not None and bounds.lowest > 0
    interval = standing.results.intervals.get(GAIN)
    return interval is not None and interval.low > 0


def _gain(standing: Standing) -> str:
    bounds = standing.results.bounds.get(GAIN)
    if bounds:
        low, high = (in_points(end, signed=False) for end in (bounds.low, bounds.high))
        return f"between {low} and {high} points, depending on the answers that name no move"
    interval = standing.results.intervals.get(GAIN)
    told = points(standing.results.metrics[GAIN])
    if not interval:
        return told
    low, high = (in_points(end, signed=False) for end in (interval.low, interval.high))
    return f"{told} (95 % interval {low} to {high})"


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0.0):.0f} %"


def _listed(models: Sequence[Standing]) -> str:
    names = [model.label for model in models]
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} others"]
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last
