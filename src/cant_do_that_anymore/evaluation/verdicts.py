"""A ranking in one line: who adapts most, is the lead sure, and whose drop is no adapting."""

from collections import Counter
from collections.abc import Sequence

from .comparison import MATTERS, Comparison, as_sentence
from .contenders import Contender, common_dataset
from .measures import GAIN, IMPACT, UNUSABLE
from .notes import ENOUGH, in_place_of_habits, is_broken
from .points import chance, in_points, points
from .rankings import UNUSABLE as NO_MOVE
from .rankings import Ranking, under_change
from .standings import Standing
from .vocabulary import AFTER, Outcome

UNION = (
    "a fair common set is the union of the models' datasets, never one model's own: "
    "`cdta dataset union A B -o both.jsonl`, then `cdta run --dataset both.jsonl` for each"
)
_NAMED = 3
"""How many models are named before the others are counted."""
_NO_MOVE: dict[Outcome, str] = {
    "unreadable": "chatter",
    "truncated": "answers cut off",
    "refused": "refusals",
}
"""What a drop is that consists of answers without a move."""


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
    if standing.sure_gain is None:
        return " cannot be ranked: it has no answers"
    its = [lead for pair, lead in ranking.leads.items() if standing.label in pair]
    if any(lead.blurred for lead in its) and not any(lead.is_sure for lead in its):
        share = _percent(standing.results.metrics[UNUSABLE[AFTER]])
        if GAIN in standing.results.bounds:
            return f" cannot be ranked: {share} of its answers under the changed rules are no move"
    return ""


def _instead(standing: Standing) -> str:
    """What a drop that is sure is instead of adapting; "" if there is none, or it is adapting."""
    drop, interval = standing.results.metrics[IMPACT], standing.results.intervals.get(IMPACT)
    if drop is None or drop > -MATTERS or not interval or interval.high >= 0:
        return ""
    if not standing.is_junk or not is_broken(standing.samples) or len(standing.samples) < ENOUGH:
        return ""
    dropped = Counter(in_place_of_habits(standing.samples))
    counts = under_change(standing)
    kind = max(_NO_MOVE, key=lambda outcome: dropped[outcome])
    if 2 * dropped[kind] > dropped.total():
        mostly = "" if dropped[kind] == dropped.total() else "mostly "
        share = _percent(counts[NO_MOVE] / sum(counts.values()))
        return f"'s drop is {mostly}{_NO_MOVE[kind]}: {share} of its answers are no move"
    useless = sum(counts[name] for name in (NO_MOVE, "illegal", "forbidden"))
    share = _percent(useless / sum(counts.values()))
    return f"'s drop is no adapting: {share} of its answers are other illegal moves or no move"


def _ranked(ranked: Sequence[Standing], ranking: Ranking) -> str:
    best, *others = ranked
    if not any(map(_adapts, ranked)):
        whether = "nobody adapts for sure" if others else f"it is not sure that {best.label} adapts"
        whose = f"the highest legal gain, that of {best.label}," if others else "its legal gain"
        return f"{whether}: {whose} is {_gain(best)}"
    if not others:
        return f"{best.label} adapts: its legal gain is {_gain(best)}"
    leads = [ranking.leads[best.label, other.label] for other in others]
    ahead = [lead for lead in leads if lead.is_sure and lead.ahead[0] == lead.second]
    behind = [lead for lead in leads if lead.is_sure and lead.ahead[0] == lead.first]
    level = [lead for lead in leads if not lead.is_sure]
    if behind:
        more = "gains" if len(behind) == 1 else "gain"
        return (
            f"nobody is ahead of all others: {best.label} has the highest legal gain, but on the "
            f"positions that they share {_listed(behind)} {more} more for sure"
        )
    if not level:
        return f"{best.label} adapts most; its lead over {_told(ahead[0])}"
    also = f"; its lead over {_listed(ahead)} is sure" if ahead else ""
    return f"{best.label} {_not_told_apart(level)}{also}"


def _not_told_apart(level: Sequence[Comparison]) -> str:
    first = level[0]
    if all(lead.verdict == "alike" for lead in level):
        within = f"equal in the legal gain to within {100 * MATTERS:.0f} points"
        return f"cannot be told apart from {_listed(level)}: {within}"
    if first.difference is None:
        why = "they share no position that both answered"
    elif first.blurred:
        why = "too many answers name no move"
    else:
        why = f"{points(first.difference, signed=True)}, {chance(first.corrected_p)}"
    more = ""
    if not first.blurred and first.n_samples < first.enough:
        more = (
            f"; it would take about {first.enough:,} shared samples, not {first.n_samples:,}, to "
            f"show a difference of {100 * MATTERS:.0f} points"
        )
    over = f" over {first.first.label}" if len(level) > 1 else ""
    return (
        f"has the highest legal gain but cannot be told apart from {_listed(level)} "
        f"({why}{over}){more}"
    )


def _told(lead: Comparison) -> str:
    size = lead.size.rstrip(",")
    return f"{lead.first.label} is sure: {size}, {chance(lead.corrected_p)}"


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


def _listed(leads: Sequence[Comparison]) -> str:
    """Whom they are over."""
    names = [lead.first.label for lead in leads]
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} others"]
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last
