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

_Value = TypeVar("_Value")


def compute(samples: Sequence[Sample], plan: Plan, controls: Sequence[Sample] = ()) -> Results:
    """Compute all metrics, intervals, bounds and outcome counts; for any number of samples."""
    arms = answered_samples, answered_controls = answered(samples), answered(controls)
    names = [condition.name for condition in plan.conditions]
    amounts, contrasts = amounts_for(names, answered_samples), contrasts_for(names)
    critical_factor, available = critical_factor_of(plan), measures_for(names)
    of_samples = [measure for measure in available if not measure.of_controls]
    of_controls = [measure for measure in available if measure.of_controls]
    ratios = ratios_of(of_samples, answered_samples) | ratios_of(of_controls, answered_controls)

    def including_failed(measure: Measure) -> Sequence[Sample]:
        return controls if measure.of_controls else samples

    @cache
    def clusters_by(grouping: Grouping, of_controls: bool) -> Sequence[Hashable]:
        return grouping(answered_controls if of_controls else answered_samples)

    def interval(measure: Measure, grouping: Grouping) -> Interval | None:
        clusters = clusters_by(grouping, measure.of_controls)
        return interval_in(ratios[measure.name], clusters, critical_factor)

    measures = [
        measure
        for measure in available
        if not measure.optional or ratios[measure.name].value is not None
    ]
    bounded = [measure for measure in measures if measure.bounded]
    bounds = _existing(
        {
            measure.name: bounds_of(measure, including_failed(measure), critical_factor)
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
            **{amount.name: amount.value(answered_samples) for amount in amounts},
            **{
                statistic.name: statistic.value(answered_samples)
                for statistic in STATISTICS.values()
            },
            "n_samples": len(answered_samples),
            "n_games": len(set(clusters_by(games_of, False))),
            "n_failed": len(samples) - len(answered_samples),
            **({"n_controls": len(answered_controls)} if of_controls else {}),
            **{f"{name}_unusable_proportion": unusable_share(samples, name) for name in names},
            **_usage([*samples, *controls]),
        },
        intervals=_existing(
            {
                name: widened(scored_interval, bounds.get(name))
                for name, scored_interval in as_scored.items()
            }
            | {
                amount.name: amount.interval(answered_samples, critical_factor)
                for amount in amounts
            }
        ),
        by_special_move=_existing(
            {measure.name: interval(measure, special_moves_of) for measure in bounded}
            | {c.name: c.interval(arms, special_moves_of, critical_factor) for c in contrasts}
        ),
        bounds=bounds,
        outcomes={condition.name: _outcomes(samples, condition) for condition in plan.conditions},
        control_outcomes={
            condition.name: _outcomes(controls, condition)
            for condition in plan.conditions
            if controls and condition.name in controls[0].replies
        },
    )


def _existing(numbers: dict[str, _Value | None]) -> dict[str, _Value]:
    return {name: value for name, value in numbers.items() if value is not None}


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
