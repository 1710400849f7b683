"""The verdict on a leaderboard in a few sentences."""

from collections.abc import Sequence
from functools import partial

from ..errors import pluralize
from ..formatting import Number, format_p, format_points
from ..metrics.bounds import interval_of
from ..metrics.measures import IMPACT, MEASURES, UNUSABLE, UPTAKE
from ..metrics.stats.intervals import SHARE_OF_SOME
from ..metrics.types import Measure
from ..task.types import CHANGED_CONDITION, LEGAL_OUTCOMES, OUTCOMES, Outcome, Sample
from .entries import Contender, Standing, common_dataset
from .leaderboard import UNUSABLE as NO_MOVE
from .leaderboard import Ranking, changed_outcomes
from .pairwise import MATTERS, Comparison, as_sentence

UNION = (
    "a fair common set is the union of the models' datasets, never one model's own: "
    "`cdta dataset union A B -o both.jsonl`, then `cdta run --dataset both.jsonl` for each"
)
_NAMED = 3
"""How many models are named before the others are counted."""
_NOT_LEGAL = "no adaptation"
_NO_ADAPTING: dict[str, frozenset[Outcome]] = {
    "off-task replies": frozenset(("unreadable",)),
    "cut-off replies": frozenset(("truncated",)),
    "refusals": frozenset(("refused",)),
    _NOT_LEGAL: frozenset(OUTCOMES) - LEGAL_OUTCOMES,
}
"""What a drop may be instead of adapting: what came in place of the habit."""


def verdict(ranking: Ranking) -> str:
    """Who adapts most by rule uptake, whether that is significant, and who only seems to.

    Whoever leads does so on the positions that each pair shares. What no interval carries is not
    said: where a lead is not significant, none is called the better.
    """
    why_not = {each.label: _why_not(each, ranking) for each in ranking.standings}
    ranked = [each for each in ranking.standings if not why_not[each.label]]
    parts = [_ranked(ranked, ranking) if ranked else "no model can be ranked"]
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
        return " cannot be ranked: a record of the original does not tell legal moves"
    if not standing.samples:
        return " cannot be ranked: it has no answers"
    if standing.least_uptake is None:
        return " cannot be ranked: no answer under the standard rules is a move that is illegal now"
    its = [lead for pair, lead in ranking.leads.items() if standing.label in pair]
    blurred = any(lead.blurred for lead in its) and not any(lead.is_significant for lead in its)
    if not blurred or UPTAKE not in standing.results.bounds:
        return ""
    share = _percent(standing.results.metrics[UNUSABLE[CHANGED_CONDITION]])
    return f" cannot be ranked: {share} of its answers under the changed rules contain no move"


def _instead(standing: Standing) -> str:
    """What a drop is, where significantly most of it is no adapting; "" where it is not."""
    drop = standing.results.metrics[IMPACT]
    # As scored: the interval that is printed allows for the answers that this is about.
    interval = interval_of(MEASURES[IMPACT], standing.samples, standing.critical_factor)
    if drop is None or drop > -MATTERS or not interval or interval.high >= 0:
        return ""
    counts = changed_outcomes(standing)
    for kind, outcomes in _NO_ADAPTING.items() if counts else ():
        of_it = Measure(
            kind, kind, kind, partial(_dropped_for, outcomes), _dropped, pairs=SHARE_OF_SOME
        )
        share = of_it.value(standing.samples)
        around = interval_of(of_it, standing.samples, standing.critical_factor)
        if share and around and around.low > 0.5:
            no_move = kind != _NOT_LEGAL
            useless = (NO_MOVE,) if no_move else (NO_MOVE, "illegal", "forbidden")
            answers = sum(counts[name] for name in useless) / sum(counts.values())
            are = "contain no move" if no_move else "are other illegal moves or contain no move"
            mostly = "mostly " if share < 1 else ""
            return f"'s drop is {mostly}{kind}: {_percent(answers)} of its answers {are}"
    return ""


def _dropped(sample: Sample) -> bool:
    return sample.had_habit and not sample.kept_habit


def _dropped_for(outcomes: frozenset[Outcome], sample: Sample) -> bool:
    return _dropped(sample) and sample.replies[CHANGED_CONDITION].outcome in outcomes


def _ranked(ranked: Sequence[Standing], ranking: Ranking) -> str:
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
            told = f"{best.label} adapts most; its lead over {rest[0].label} is significant: {lead}"
            own = f"; on its own positions {highest.label} has the highest rule uptake"
            return told if best is highest else told + own
    behind = [other for other in others if ranking.is_ahead(other, highest)]
    if behind:
        are = "is" if len(behind) == 1 else "are"
        return (
            f"no model is significantly ahead of all others: {highest.label} has the highest rule "
            f"uptake, but on the positions that they share {_listed(behind)} {are} ahead of it"
        )
    ahead = [other for other in others if ranking.is_ahead(highest, other)]
    level = [other for other in others if not ranking.is_ahead(highest, other)]
    also = f"; its lead over {_listed(ahead)} is significant" if ahead else ""
    leads = [ranking.between(highest, other) for other in level]
    return f"{highest.label} {_not_ahead(level, leads)}{also}"


def _not_ahead(level: Sequence[Standing], leads: Sequence[Comparison]) -> str:
    first = leads[0]
    if all(lead.verdict == "equivalent" for lead in leads):
        within = f"to within {100 * MATTERS:.0f} points"
        return f"is equivalent to {_listed(level)} in the rule uptake, {within}"
    more = ""
    if not first.blurred and first.n_samples < first.enough:
        more = (
            f"; only {pluralize(first.n_samples, 'sample')} shared, and detecting a difference of "
            f"{100 * MATTERS:.0f} points would take about {first.enough:,}"
        )
    over = f" over {level[0].label}" if len(level) > 1 else ""
    return (
        f"has the highest rule uptake, but its lead over {_listed(level)} is inconclusive "
        f"({_why_inconclusive(first)}{over}){more}"
    )


def _why_inconclusive(lead: Comparison) -> str:
    if lead.difference is None:
        return "they share no position that both answered"
    if lead.blurred:
        return "too many answers contain no move"
    return f"{format_points(lead.difference, signed=True)}, {format_p(lead.corrected_p)}"


def _size(lead: Comparison) -> str:
    return f"{lead.size.rstrip(',')}, {format_p(lead.corrected_p)}"


def _adapts(standing: Standing) -> bool:
    """Whether the rule uptake is significantly above 0."""
    interval = standing.results.intervals.get(UPTAKE)
    return interval is not None and interval.low > 0


def _uptake(standing: Standing) -> str:
    results = standing.results
    interval = results.intervals[UPTAKE]  # whoever is ranked has one
    value, low, high = map(_brief, (results.metrics[UPTAKE], interval.low, interval.high))
    allowing = ", allowing for answers that contain no move" if UPTAKE in results.bounds else ""
    return f"{value} (95% interval {low} to {high}{allowing})"


def _brief(value: Number) -> str:
    return f"{round(value or 0.0, 2) + 0:.2f}"


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0.0):.0f}%"


def _listed(models: Sequence[Standing]) -> str:
    names = [model.label for model in models]
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} others"]
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last
