"""The table of measures: rule uptake, and the numbers of the original eval under their names.

The terminal, the report, comparisons, Inspect's scores and the docs all read this table, so a new
measure is one entry here.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev

from ..task.types import (
    CHANGED_CONDITION,
    LEGAL_OUTCOMES,
    STANDARD_CONDITION,
    Sample,
    Samples,
)
from .estimates import Estimate, Event, Measure, groups_of
from .intervals import mean_interval


def usual(condition: str) -> Event:
    """Return the event that a reply gives the usual answer."""
    return Event(condition, lambda reply: reply.outcome == "usual")


def violation(condition: str) -> Event:
    """Return the event that a reply, as scored under the changed rules, breaks them."""
    return Event(condition, lambda reply: reply.under_change not in LEGAL_OUTCOMES)


def uptake_under(condition: str) -> Measure:
    """Return the rule uptake under a condition: one minus violations over would-be violations."""
    return Measure(
        "rule_uptake",
        violation(STANDARD_CONDITION),
        violation(condition),
        relative=True,
        requires=usual(STANDARD_CONDITION),  # without a habit, there is nothing to drop
        meaning="share of would-be violations that stating the changed rules prevents",
    )


UPTAKE = uptake_under(CHANGED_CONDITION)
BEFORE, AFTER = usual(STANDARD_CONDITION), usual(CHANGED_CONDITION)
DELTA = Measure(
    "delta", BEFORE, AFTER, negated=True, meaning="change in the share of usual answers"
)
SHARE_BEFORE = "predicted_move_proportion"
SHARE_AFTER = "predicted_move_in_variant_proportion"
# The measures of the original eval. They count any reply but the usual answer as a change.
ORIGINAL = (
    Measure(
        "variant_impact_factor",
        BEFORE,
        AFTER,
        relative=True,
        negated=True,
        meaning="relative change in usual answers",
    ),
    DELTA,
    Measure(SHARE_BEFORE, BEFORE, meaning="share of usual answers under the standard rules"),
    Measure(SHARE_AFTER, AFTER, meaning="share of usual answers under the changed rules"),
)
MEASURES = {measure.name: measure for measure in (UPTAKE, *ORIGINAL)}

# The original's numbers about chess: the number of moves so far.
_LENGTH = "num_previous_moves"
LENGTHS: Mapping[str, Callable[[list[float]], float]] = {
    "avg_num_previous_moves": fmean,
    "std_num_previous_moves": pstdev,
}


def lengths(samples: Samples) -> dict[str, Estimate]:
    """Return the original's numbers about the moves so far; none for other habits."""
    values = [sample.item.facts[_LENGTH] for sample in samples if _LENGTH in sample.item.facts]
    if not values:
        return {}
    return {name: Estimate(of(values), None, None, len(values)) for name, of in LENGTHS.items()}


def reasoning_name(condition: str) -> str:
    """Return the name of the mean number of reasoning tokens under a condition."""
    return f"{condition}_reasoning_tokens"


REASONING_DIFFERENCE = "reasoning_tokens_difference"


def reasoning_tokens(samples: Samples, conditions: Sequence[str]) -> dict[str, Estimate]:
    """Return the mean reasoning tokens by condition, and the difference; none without reasoning."""
    tokens = {name: [_reasoning(sample, name) for sample in samples] for name in conditions}
    if not any(map(any, tokens.values())):
        return {}
    before, after = tokens[STANDARD_CONDITION], tokens[CHANGED_CONDITION]
    increases = [b - a for a, b in zip(before, after, strict=True)]
    means = {reasoning_name(name): _mean(values, samples) for name, values in tokens.items()}
    return means | {REASONING_DIFFERENCE: _mean(increases, samples, signed=True)}


def _reasoning(sample: Sample, condition: str) -> float:
    return sample.answers[condition].usage.thinking_tokens


def _mean(values: list[float], samples: Samples, *, signed: bool = False) -> Estimate:
    low, high = mean_interval(values, groups_of(samples), signed=signed) or (None, None)
    return Estimate(fmean(values), low, high, len(values))
