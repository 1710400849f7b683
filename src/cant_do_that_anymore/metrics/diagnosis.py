"""The diagnosis: four questions about why a habit stays, each with one estimate and an answer.

All estimates are paired differences. Knowledge: how often the model calls an allowed answer right,
minus how often it calls a forbidden one right; guessing gives 0. Rule effect: usual answers under
a placebo, a similar change that leaves them right, minus those under the changed rules. Reminder
effect: rule uptake with a reminder minus rule uptake without. Other play: usual answers at
controls, where they stay right, under the changed rules minus those under the standard rules.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..task.conditions import KNOWS_ALLOWED, KNOWS_FORBIDDEN, PLACEBO, REMINDED
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Sample, Samples
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


@dataclass(frozen=True)
class Question:
    """A question of a diagnosis.

    Attributes:
        text: the question.
        estimate: computes the estimate from samples and controls, given how many effects like that
            of the reminder are reported with it.
        yes: the sign of the estimate that means yes.
        threshold: what the estimate is compared with; an interval that includes 0 never decides.
        falls: a measure of the samples whose interval must be below 0 for a yes.
    """

    text: str
    estimate: Callable[[Samples, Samples, int], Estimate | None]
    yes: int = 1
    threshold: float = 0.0
    falls: Measure | None = None

    def finding(self, samples: Samples, controls: Samples, effects: int) -> Finding:
        """Answer the question."""
        estimate = self.estimate(samples, controls, effects)
        answer = self._answer(estimate)
        if answer == "Yes" and self.falls:
            change = self.falls.estimate(samples)
            answer = "Yes" if change and change.sign < 0 else "Can't tell"
        return Finding(estimate, answer)

    def _answer(self, estimate: Estimate | None) -> Verdict:
        if estimate is None or estimate.low is None or estimate.high is None or not estimate.sign:
            return "Can't tell"
        above, below = estimate.low > self.threshold, estimate.high < self.threshold
        if not above and not below:
            return "Can't tell"
        return "Yes" if above == (self.yes > 0) else "No"


def _called_right(question: str, outcome: str) -> Event:
    return Event(question, lambda reply: reply.outcome == outcome)


_KNOWLEDGE = Measure(
    "knowledge",
    "Knowledge of the rule",
    "allowed answers called right, minus forbidden answers called right",
    _called_right(KNOWS_ALLOWED, "right"),
    _called_right(KNOWS_FORBIDDEN, "wrong"),
)
_RULE_EFFECT = Measure(
    "rule_effect",
    "Effect of the rule",
    "usual answers under a placebo, minus usual answers under the changed rules",
    usual(PLACEBO),
    usual(CHANGED_CONDITION),
)
_OTHER_PLAY = Measure(
    "other_play",
    "Other play",
    "usual answers at controls under the changed rules, minus those under the standard rules",
    usual(CHANGED_CONDITION),
    usual(STANDARD_CONDITION),
)

# The questions by the keys of their findings.
QUESTIONS = {
    "knowledge": Question(
        "Does it know the rule?",
        lambda samples, *_: _KNOWLEDGE.estimate(samples),
        threshold=KNOWS_FROM,
    ),
    "rule_effect": Question(
        "Is it the rule, not just any change of the prompt?",
        lambda samples, *_: _RULE_EFFECT.estimate(samples),
        falls=DELTA,  # or only the placebo changed the habit
    ),
    "reminder_effect": Question(
        "Does a reminder help?",
        lambda samples, _, effects: difference(
            uptake_under(REMINDED), UPTAKE, samples, comparisons=effects
        ),
    ),
    "other_play": Question(
        "Do other habits suffer?",
        lambda _, controls, __: _OTHER_PLAY.estimate(controls),
        yes=-1,
    ),
}


def diagnose(
    samples: Samples, controls: Samples, interventions: Sequence[str] = ()
) -> dict[str, Finding]:
    """Answer all questions; a reminder may be one of several interventions."""
    effects = len(interventions) if REMINDED in interventions else 1
    return {name: q.finding(samples, controls, effects) for name, q in QUESTIONS.items()}


Knowing = Literal["knows", "does not know", "unreadable"]


def knowing(sample: Sample) -> Knowing:
    """Return whether the model was right about both answers of a sample."""
    replies = [sample.replies[name] for name in (KNOWS_ALLOWED, KNOWS_FORBIDDEN)]
    if not all(reply.usable for reply in replies):
        return "unreadable"
    return "knows" if all(reply.outcome == "right" for reply in replies) else "does not know"
