"""Compute all results of a run from its samples."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from statistics import fmean
from typing import NamedTuple, TypeVar

from ..formatting import Number
from ..providers.base import Usage
from ..task.types import Condition, Outcome, Plan, Samples, answers_of
from .bounds import (
    answered,
    bounds_of,
    games_of,
    ratios_of,
    unusable_share,
    widened,
)
from .diagnosis import Arms, contrasts_for
from .interventions import effects_of
from .measures import STATISTICS, UPTAKE, means_for, measures_for
from .stats.intervals import Interval, Ratio, mean_interval
from .types import Bounds, Measure, Results
from .wordings import by_wording

_Value = TypeVar("_Value")


class Estimated(NamedTuple):
    """A number with its 95% interval and its bounds, where it has them."""

    value: Number
    interval: Interval | None
    bounds: Bounds | None = None


def estimates_of(
    measures: Sequence[Measure], names: Sequence[str], all_arms: Arms
) -> dict[str, Estimated]:
    """Estimate measures, and the contrasts and means that the named conditions allow for.

    Args:
        all_arms: all samples and controls, answered or not.
    """
    arms = answered(all_arms[0]), answered(all_arms[1])
    games, ratios = [games_of(arm) for arm in arms], dict[str, Ratio]()
    for of_controls, arm in enumerate(arms):
        ratios |= ratios_of([m for m in measures if m.of_controls == of_controls], arm)
    computed: dict[str, Estimated] = {}
    had_habit = any(sample.had_habit for sample in arms[0])
    for m in measures:
        if m.name == UPTAKE and not had_habit:  # nothing to take up a rule against
            computed[m.name] = Estimated(None, None)
            continue
        ratio, samples = ratios[m.name], all_arms[m.of_controls]
        if ratio.value is not None or not m.optional:
            bounds = bounds_of(m, samples) if m.bounded else None
            interval = ratio.interval(games[m.of_controls])
            widest = interval and widened(interval, bounds)
            computed[m.name] = Estimated(ratio.value, widest, bounds)
    for c in contrasts_for(names):
        bounds = c.bounds(all_arms)
        value, interval = c.estimate(arms, games_of)
        computed[c.name] = Estimated(value, interval and widened(interval, bounds), bounds)
    for mean in chain(*means_for(names, arms[0]).values()):
        values = [mean.of(sample) for sample in arms[0]]
        interval = mean_interval(values, games[0], mean.signed)
        computed[mean.name] = Estimated(fmean(values), interval)
    return computed


def compute(samples: Samples, plan: Plan, controls: Samples = ()) -> Results:
    """Compute all metrics, intervals, bounds and outcome counts; for any number of samples."""
    all_arms, arms = (samples, controls), (answered(samples), answered(controls))
    names = [condition.name for condition in plan.conditions]
    measures = measures_for(names)
    estimates = estimates_of(measures, names, all_arms)
    intervals = _existing({name: estimate.interval for name, estimate in estimates.items()})

    return Results(
        metrics={
            **{name: estimate.value for name, estimate in estimates.items()},
            **{s.name: s.value(arms[0]) for s in STATISTICS.values() if s.applies(arms[0])},
            "n_samples": len(arms[0]),
            "n_games": len(set(games_of(arms[0]))),
            "n_failed": len(samples) - len(arms[0]),
            **({"n_controls": len(arms[1])} if any(m.of_controls for m in measures) else {}),
            **{f"{name}_unusable_proportion": unusable_share(samples, name) for name in names},
            **_usage([*samples, *controls]),
        },
        intervals=intervals,
        bounds=_existing({name: estimate.bounds for name, estimate in estimates.items()}),
        outcomes={condition.name: _outcomes(samples, condition) for condition in plan.conditions},
        control_outcomes={
            condition.name: _outcomes(controls, condition)
            for condition in plan.conditions
            if controls and condition.name in controls[0].replies
        },
        wordings=by_wording(arms[0], plan, intervals.get(UPTAKE)),
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
