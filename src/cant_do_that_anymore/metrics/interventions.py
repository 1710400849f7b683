"""What helps: the effect of each intervention on the rule uptake, compared with no intervention.

An intervention is a condition under the changed rules with something added to the prompt. All
numbers are over the same samples, so the comparison is paired.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from statistics import fmean

from ..formatting import Number
from ..providers.base import add_costs
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Plan, Samples
from .bounds import answered, estimate_of, games_of
from .diagnosis import impact
from .stats.intervals import RELATIVE_DROP, Support, ends_of
from .stats.significance import holm, p_value
from .types import InterventionEffect, Measure

# Pairs of part and whole for a change whose denominator is another condition's.
_CHANGE: Support = tuple((part, whole) for part in (-1, 0, 1) for whole in (0, 1))


def effects_of(samples: Samples, plan: Plan, controls: Samples = ()) -> list[InterventionEffect]:
    """Return the effects of the interventions of a plan, the most helpful first."""
    names = plan.interventions
    costs, usable = _extra_costs(samples, names), answered(samples)
    p_values = [_p(usable, name) for name in names]
    elsewhere = holm([_controls_p(name, controls) for name in names])

    def estimate(measure: Measure, of: Samples = samples) -> tuple[Number, Number, Number]:
        value, interval = estimate_of(measure, of)
        return value, *ends_of(interval)

    effects = [
        InterventionEffect(
            name,
            *estimate(_measure(name, STANDARD_CONDITION, STANDARD_CONDITION)),
            *estimate(
                replace(_measure(name, CHANGED_CONDITION, STANDARD_CONDITION), pairs=_CHANGE)
            ),
            p,
            corrected,
            *estimate(_measure(name, CHANGED_CONDITION, CHANGED_CONDITION)),
            *estimate(_usual_moves(name), controls),
            *costs[name],
            other_p,
        )
        for name, p, corrected, other_p in zip(
            names, p_values, holm(p_values), elsewhere, strict=True
        )
    ]
    return sorted(effects, key=lambda e: inf if e.difference is None else -e.difference)


def _usual_moves(name: str) -> Measure:
    """Build the measure of how an intervention changes the usual answers at controls."""
    return impact(name, name, "", CHANGED_CONDITION, name, perfect=0, of_controls=True)


def _controls_p(name: str, controls: Samples) -> float:
    usable = answered(controls)
    changes = [_usual_moves(name).part(control) for control in usable]
    return p_value(changes, games_of(usable))


def _p(samples: Samples, name: str) -> float:
    """Return the p-value of the difference, the largest over what unusable answers may have been.

    They count as breaking the rule, or under one of the two conditions as legal; 1 if the direction
    of the difference depends on that.
    """
    games, readings = games_of(samples), []
    for as_legal in ("", CHANGED_CONDITION, name):
        broken = [
            [
                int(
                    sample.breaks_changed_rules(condition)
                    and (condition != as_legal or sample.replies[condition].usable)
                )
                for condition in (CHANGED_CONDITION, name)
            ]
            for sample in samples
        ]
        readings.append([before - after for before, after in broken])
    signs = {(sum(fewer) > 0) - (sum(fewer) < 0) for fewer in readings}
    return 1.0 if len(signs) > 1 else max(p_value(fewer, games) for fewer in readings)


def _measure(name: str, before: str, base: str) -> Measure:
    """Build a measure: by how much an intervention lowers the answers that break the rule.

    Args:
        before: the condition that it is compared with.
        base: the condition whose number of such answers is the denominator.
    """
    return Measure(
        name,
        name,
        "",
        part=lambda sample: sample.breaks_changed_rules(before) - sample.breaks_changed_rules(name),
        whole=lambda sample: sample.breaks_changed_rules(base),
        pairs=RELATIVE_DROP,
        needs=tuple(dict.fromkeys((base, before, name))),
        bounded=True,
    )


def _extra_costs(samples: Samples, names: Sequence[str]) -> dict[str, tuple[Number, Number]]:
    """Return the additional tokens and dollars per sample, compared with no intervention."""
    usage: dict[str, list[int]] = {name: [] for name in (CHANGED_CONDITION, *names)}
    costs: dict[str, list[float | None]] = {name: [] for name in usage}
    for sample in answered(samples) if names else ():
        answers = sample.answers
        for name in usage:
            used = answers[name].usage
            usage[name].append(used.input_tokens + used.output_tokens)
            costs[name].append(answers[name].cost)
    tokens = {name: fmean(counts) for name, counts in usage.items() if counts}
    dollars = {
        name: None if (total := add_costs(*costs[name])) is None else total / len(costs[name])
        for name in tokens
    }
    return {
        name: (
            _minus(tokens.get(name), tokens.get(CHANGED_CONDITION)),
            _minus(dollars.get(name), dollars.get(CHANGED_CONDITION)),
        )
        for name in names
    }


def _minus(first: Number, second: Number) -> Number:
    return None if first is None or second is None else first - second
