"""Compute all results of a run from its samples."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from ..formatting import Number
from ..providers.base import Usage
from ..task.types import Condition, Outcome, Plan, Samples, answers_of
from .bounds import (
    answered,
    bounds_of,
    games_of,
    ratios_of,
    special_moves_of,
    unusable_share,
    widened,
)
from .diagnosis import Grouping, contrasts_for
from .interventions import effects_of
from .measures import STATISTICS, UPTAKE, measures_for
from .reasoning import amounts_for
from .stats.intervals import Interval, Ratio
from .stopping import critical_factor_of
from .types import Measure, Results
from .wordings import by_wording

_Value = TypeVar("_Value")


def compute(samples: Samples, plan: Plan, controls: Samples = ()) -> Results:
    """Compute all metrics, intervals, bounds and outcome counts; for any number of samples."""
    everything, arms = (samples, controls), (answered(samples), answered(controls))
    names = [condition.name for condition in plan.conditions]
    available, contrasts = measures_for(names), contrasts_for(names)
    amounts, critical_factor = amounts_for(names, arms[0]), critical_factor_of(plan)
    ratios: dict[str, Ratio] = {}
    for of_controls, arm in enumerate(arms):
        ratios |= ratios_of([m for m in available if m.of_controls == of_controls], arm)
    measures = [m for m in available if not m.optional or ratios[m.name].value is not None]
    bounded = [measure for measure in measures if measure.bounded]

    def intervals(of: Sequence[Measure], grouping: Grouping) -> dict[str, Interval]:
        clusters = [grouping(arm) for arm in arms]
        return _existing(
            {m.name: ratios[m.name].interval(clusters[m.of_controls], critical_factor) for m in of}
            | {c.name: c.interval(arms, grouping, critical_factor) for c in contrasts}
        )

    bounds = _existing(
        {m.name: bounds_of(m, everything[m.of_controls], critical_factor) for m in bounded}
        | {c.name: c.bounds(everything, critical_factor) for c in contrasts}
    )
    by_game = {
        name: widened(interval, bounds.get(name))
        for name, interval in intervals(measures, games_of).items()
    }
    return Results(
        metrics={
            **{measure.name: ratios[measure.name].value for measure in measures},
            **{contrast.name: contrast.value(arms) for contrast in contrasts},
            **{amount.name: amount.value(arms[0]) for amount in amounts},
            **{statistic.name: statistic.value(arms[0]) for statistic in STATISTICS.values()},
            "n_samples": len(arms[0]),
            "n_games": len(set(games_of(arms[0]))),
            "n_failed": len(samples) - len(arms[0]),
            **({"n_controls": len(arms[1])} if any(m.of_controls for m in available) else {}),
            **{f"{name}_unusable_proportion": unusable_share(samples, name) for name in names},
            **_usage([*samples, *controls]),
        },
        intervals=by_game
        | _existing({amount.name: amount.interval(arms[0], critical_factor) for amount in amounts}),
        by_special_move=intervals(bounded, special_moves_of),
        bounds=bounds,
        outcomes={condition.name: _outcomes(samples, condition) for condition in plan.conditions},
        control_outcomes={
            condition.name: _outcomes(controls, condition)
            for condition in plan.conditions
            if controls and condition.name in controls[0].replies
        },
        wordings=by_wording(arms[0], plan, by_game.get(UPTAKE), critical_factor),
        interventions=effects_of(samples, plan, controls),
    )


def _existing(numbers: dict[str, _Value | None]) -> dict[str, _Value]:
    return {name: value for name, value in numbers.items() if value is not None}


def _usage(samples: Samples) -> dict[str, Number]:
    usage = sum((answer.usage for answer in answers_of(samples)), Usage())
    return {
        "usage_prompt_tokens": usage.input_tokens,
        "usage_completion_tokens": usage.output_tokens,
        "usage_total_tokens": usage.input_tokens + usage.output_tokens,
        **({"usage_cached_tokens": usage.cached_tokens} if usage.cached_tokens else {}),
    }


def _outcomes(samples: Samples, condition: Condition) -> dict[Outcome, int]:
    counts = Counter(sample.replies[condition.name].outcome for sample in samples)
    return {outcome: counts[outcome] for outcome in condition.outcomes}
