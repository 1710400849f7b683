"""A comparison in one line: who drops the habit best, is it sure, and what would be fairer."""

from collections.abc import Sequence

from .comparison import MATTERS, Comparison, as_sentence, models_in, of_measure
from .contenders import Contender, common_dataset
from .measures import GAIN, IMPACT, UNUSABLE
from .points import chance, in_points, points
from .vocabulary import AFTER

UNION = (
    "a fair common set is the union of the models' datasets, never one model's own: "
    "`cdta dataset union A B -o both.jsonl`, then `cdta run --dataset both.jsonl` for each"
)


def verdict(comparisons: Sequence[Comparison]) -> str:
    """Who drops the habit best, whether that is sure, and who cannot be ranked."""
    by_impact = of_measure(comparisons, IMPACT)
    muddled = [model for model in models_in(comparisons) if _is_muddled(model, by_impact)]
    clear = [c for c in comparisons if c.first not in muddled and c.second not in muddled]
    parts = [_ranked(clear)] if clear else []
    parts += [_why_not(model) for model in muddled]
    return as_sentence("; ".join(parts), models_in(comparisons))


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


def _is_muddled(model: Contender, by_impact: Sequence[Comparison]) -> bool:
    """Whether answers without a move keep a model from being ranked at all."""
    its = [c for c in by_impact if model in (c.first, c.second)]
    return model.has_junk and any(c.blurred for c in its) and not any(_sure(c) for c in its)


def _why_not(model: Contender) -> str:
    share = model.results.metrics[UNUSABLE[AFTER]] or 0.0
    return (
        f"{model.label} cannot be ranked: {100 * share:.1f} % of its answers under the changed "
        "rules name no move"
    )


def _ranked(comparisons: Sequence[Comparison]) -> str:
    by_impact, by_gain = (of_measure(comparisons, name) for name in (IMPACT, GAIN))
    if len(by_impact) == 1:
        return _of_two(by_impact[0], by_gain[0])
    models = models_in(comparisons)
    leads = {m.label: [c for c in by_impact if _sure(c) and c.ahead[0] == m] for m in models}
    most = max(map(len, leads.values()))
    best = [model for model in models if len(leads[model.label]) == most]
    if not most:
        if all(c.verdict == "alike" for c in by_impact):
            return f"all are equal in the impact factor to within {100 * MATTERS:.0f} points"
        return "no model drops more of its habit than another for sure"
    if most == len(models) - 1:
        least = min(leads[best[0].label], key=lambda c: abs(c.difference or 0.0))
        return (
            f"{best[0].label} drops more of its habit than every other, and that is sure: its "
            f"smallest lead is {_lead(least)}, over {least.ahead[1].label}"
            f"{_in_legal_moves(best[0], by_gain)}"
        )
    ahead = ", and ".join(
        f"{model.label} is ahead of {_listed([c.ahead[1] for c in leads[model.label]])}"
        for model in best
    )
    return f"no model drops more of its habit than all others for sure; {ahead}"


def _of_two(by_impact: Comparison, by_gain: Comparison) -> str:
    if not _sure(by_impact):
        also = f"; but {by_gain.claim}" if _sure(by_gain) else ""
        return f"{by_impact.claim}{also}"
    better, worse = by_impact.ahead
    return (
        f"{better.label} drops more of its habit than {worse.label}, and that is sure: by "
        f"{_lead(by_impact)}{_in_legal_moves(better, [by_gain])}"
    )


def _in_legal_moves(best: Contender, by_gain: Sequence[Comparison]) -> str:
    """Whether who drops the habit plays legal moves instead: to drop it is not yet to adapt."""
    its = [c for c in by_gain if best in (c.first, c.second)]
    behind = [c.ahead[0] for c in its if _sure(c) and c.ahead[0] != best]
    level = [c.first if c.second == best else c.second for c in its if not _sure(c)]
    if behind:
        return f"; but {_listed(behind)} gain{'s' if len(behind) == 1 else ''} more legal answers"
    if level:
        return f"; but it does not gain more legal answers than {_listed(level)} for sure"
    least = min(abs(c.difference or 0.0) for c in its)
    return f"; it also gains more legal answers, by {points(least)}" + (
        " or more" if len(its) > 1 else ""
    )


def _lead(comparison: Comparison) -> str:
    """How much it is, its interval, and its chance."""
    assert comparison.interval
    ends = sorted(map(abs, (comparison.interval.low, comparison.interval.high)))
    low, high = (in_points(end, signed=False) for end in ends)
    return (
        f"{comparison.size.rstrip(',')} (95 % interval {low} to {high}, "
        f"{chance(comparison.corrected_p)})"
    )


def _sure(comparison: Comparison) -> bool:
    return comparison.verdict == "different"


def _listed(models: Sequence[Contender]) -> str:
    *some, last = [model.label for model in models]
    return f"{', '.join(some)} and {last}" if some else last
