"""The diagnosis: four questions about why a habit stays, each with one estimate and an answer.

All estimates are paired differences. Knowledge: how often the model calls an allowed answer right,
minus how often it calls a forbidden one right; guessing gives 0. Rule effect: usual answers under
a placebo, a similar change that leaves them right, minus those under the changed rules. Reminder
effect: rule uptake with a reminder minus rule uptake without. Other play: usual answers at
controls, where they stay right, under the changed rules minus those under the standard rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..task.conditions import (
    DIAGNOSIS_CONDITIONS,
    KNOWS_ALLOWED,
    KNOWS_FORBIDDEN,
    PLACEBO,
    REMINDED,
)
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Samples
from .estimates import Estimate, Event, Measure, difference
from .measures import DELTA, UPTAKE, uptake_under, usual

Verdict = Literal["Yes", "No", "Can't tell"]
# A model knows a rule if it is right by at least so much more than guessing.
KNOWS_FROM = 0.5


@dataclass(frozen=True)
class Finding:
    """What a diagnosis says to one of its questions; no estimate if it is undefined."""

    estimate: Estimate | None
    answer: Verdict


_KNOWLEDGE = Measure(
    "knowledge",
    Event(KNOWS_ALLOWED, lambda reply: reply.outcome == "right"),
    Event(KNOWS_FORBIDDEN, lambda reply: reply.outcome == "wrong"),  # says that it is right
)
_RULE_EFFECT = Measure("rule_effect", usual(PLACEBO), usual(CHANGED_CONDITION))
_OTHER_PLAY = Measure("other_play", usual(CHANGED_CONDITION), usual(STANDARD_CONDITION))


def findings_of(
    samples: Samples,
    controls: Samples,
    conditions: Sequence[str],
    interventions: Sequence[str] = (),
) -> dict[str, Finding]:
    """Answer all questions, if their conditions are there; interventions may have a reminder."""
    if not set(DIAGNOSIS_CONDITIONS) <= set(conditions):
        return {}
    effects = len(interventions) if REMINDED in interventions else 1
    knowledge, rule = _KNOWLEDGE.estimate(samples), _RULE_EFFECT.estimate(samples)
    reminder = difference(uptake_under(REMINDED), UPTAKE, samples, comparisons=effects)
    other, fall = _OTHER_PLAY.estimate(controls), DELTA.estimate(samples)
    is_rule = answer_to(rule)
    if is_rule == "Yes" and not (fall and fall.sign < 0):
        is_rule = "Can't tell"  # only the placebo changed the habit
    return {
        "knowledge": Finding(knowledge, answer_to(knowledge, KNOWS_FROM)),
        "rule_effect": Finding(rule, is_rule),
        "reminder_effect": Finding(reminder, answer_to(reminder)),
        "other_play": Finding(other, answer_to(-other if other else None)),
    }


def answer_to(estimate: Estimate | None, threshold: float = 0.0) -> Verdict:
    """Say whether an effect is above the threshold; an interval that includes 0 never decides."""
    if not estimate or estimate.low is None or estimate.high is None or not estimate.sign:
        return "Can't tell"
    if estimate.low > threshold:
        return "Yes"
    return "No" if estimate.high < threshold else "Can't tell"
