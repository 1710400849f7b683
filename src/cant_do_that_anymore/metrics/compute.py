"""Compute all results of a run from its samples."""

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cache
from typing import TypeVar

from ..formatting import Number
from ..providers.base import Usage
from ..task.types import Condition, Outcome, Plan, Sample, answers_of
from .bounds import (
    answered,
    bounds_of,
    games_of,
    interval_in,
    ratios_of,
    special_moves_of,
    unusable_share,
    widened,
)
from .diagnosis import Grouping, contrasts_for
from .measures import STATISTICS, measures_for
from .stats.intervals import Interval
from .stopping import critical_factor_of
from .thinking import amounts_for
from .types import Measure, Results

_Found = TypeVar("_Found")


def compute(samples: Sequence[Sample], plan: Plan, controls: Sequence[Sample] = ()) -> Results:
    """Compute everything; sound for any number of samples."""
    arms = told, told_controls = answered(samples), answered(controls)
    names = [condition.name for condition in plan.conditions]
    amounts, contrasts = amounts_for(names, told), contrasts_for(names)
    critical_factor, known = critical_factor_of(plan), measures_for(names)
    of_samples = [measure for measure in known if not measure.of_controls]
    of_controls = [measure for measure in known if measure.of_controls]
    ratios = ratios_of(of_samples, told) | ratios_of(of_controls, told_controls)

    def also_failed(measure: Measure) -> Sequence[Sample]:
        return controls if measure.of_controls else samples

    @cache
    def groups(grouping: Grouping, of_controls: bool) -> Sequence[Hashable]:
        return grouping(told_controls if of_controls else told)

    def interval(measure: Measure, grouping: Grouping) -> Interval | None:
        together = groups(grouping, measure.of_controls)
        return interval_in(ratios[measure.name], together, critical_factor)

    measures = [
        measure
        for measure in known
        if not measure.optional or ratios[measure.name].value is not None
    ]
    bounded = [measure for measure in measures if measure.bounded]
    bounds = _existing(
        {
            measure.name: bounds_of(measure, also_failed(measure), critical_factor)
            for measure in bounded
        }
        | {
            contrast.name: contrast.bounds((samples, controls), critical_factor)
            for contrast in contrasts
        }
    )
    as_scored = {measure.name: interval(measure, games_of) for measure in measures} | {
        contrast.name: contrast.interval(arms, critical_factor=critical_factor)
        for contrast in contrasts
    }
    return Results(
        metrics={
            **{measure.name: ratios[measure.name].value for measure in measures},
            **{contrast.name: contrast.value(arms) for contrast in contrasts},
            **{amount.name: amount.value(told) for amount in amounts},
            **{statistic.name: statistic.value(told) for statistic in STATISTICS.values()},
            "n_samples": len(told),
            "n_games": len(set(groups(games_of, False))),
            "n_failed": len(samples) - len(told),
            **({"n_controls": len(told_controls)} if of_controls else {}),
            **{f"{name}_unusable_proportion": unusable_share(samples, name) for name in names},
            **_usage([*samples, *controls]),
        },
        intervals=_existing(
            {name: widened(found, bounds.get(name)) for name, found in as_scored.items()}
            | {amount.name: amount.interval(told, critical_factor) for amount in amounts}
        ),
        by_special_move=_existing(
            {measure.name: interval(measure, special_moves_of) for measure in bounded}
            | {c.name: c.interval(arms, special_moves_of, critical_factor) for c in contrasts}
        ),
        bounds=bounds,
        outcomes={each.name: _outcomes(samples, each) for each in plan.conditions},
        control_outcomes={
            each.name: _outcomes(controls, each)
            for each in plan.conditions
            if controls and each.name in controls[0].replies
        },
    )


def _existing(numbers: dict[str, _Found | None]) -> dict[str, _Found]:
    return {name: found for name, found in numbers.items() if found is not None}


def _usage(samples: Sequence[Sample]) -> dict[str, Number]:
    usage = sum((answer.usage for answer in answers_of(samples)), Usage())
    return {
        "usage_prompt_tokens": usage.input_tokens,
        "usage_completion_tokens": usage.output_tokens,
        "usage_total_tokens": usage.input_tokens + usage.output_tokens,
        **({"usage_cached_tokens": usage.cached_tokens} if usage.cached_tokens else {}),
    }


def _outcomes(samples: Sequence[Sample], condition: Condition) -> dict[Outcome, int]:
    counts = Counter(sample.replies[condition.name].outcome for sample in samples)
    return {outcome: counts[outcome] for outcome in condition.outcomes}
