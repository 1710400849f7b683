"""Measures of a diagnosis: knowledge of the rule, placebo, reminder, contrast with controls.

In addition to the two requests of every run, a diagnosis asks about each position under a placebo
(a change of the same form that leaves the habit legal), with a reminder, and whether two moves are
legal. Controls are positions whose habit stays legal. They show how much the rule change affects
habits that it does not forbid.

A contrast combines two measures: the habits that remain where the change forbids them over those
that remain where it does not (the difference in differences), or the habits kept where the model
knows the rule minus those kept where it does not.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

from ..formatting import Number
from ..task.conditions import KNOWS_ALLOWED, KNOWS_FORBIDDEN, PLACEBO, QUESTIONS, REMINDED
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Sample, Samples
from .bounds import (
    answered,
    any_unusable,
    bounds_over,
    complete_cases,
    games_of,
    imputations,
    ratio_of,
)
from .stats.intervals import (
    DIFFERENCE,
    RELATIVE_CHANGE,
    SHARE_OF_SOME,
    Difference,
    Interval,
    Quotient,
)
from .types import Bounds, Measure, Metric, Results, excludes_zero

Knowing = Literal[
    "knows and drops",
    "knows and keeps",
    "does not know and drops",
    "does not know and keeps",
    "unreadable and drops",
    "unreadable and keeps",
]
KNOWLEDGE_GROUPS: tuple[Knowing, ...] = get_args(Knowing)


def knows(sample: Sample) -> bool | None:
    """Whether the model answered both yes/no questions correctly; None if an answer is unusable."""
    replies = [sample.replies[name] for name in QUESTIONS]
    if not all(reply.usable for reply in replies):
        return None
    return all(reply.outcome == "right" for reply in replies)


def knowledge_group_of(sample: Sample) -> Knowing | None:
    """Return the sample's group by knowledge and behavior; None if the model shows no habit."""
    if not sample.had_habit:
        return None
    return KNOWLEDGE_GROUPS[2 * (True, False, None).index(knows(sample)) + sample.kept_habit]


def _knowledge(sample: Sample) -> int:
    """Return 1 or 0 for "yes" to the allowed move, minus 1 or 0 for "yes" to the forbidden one."""
    right = sample.replies[KNOWS_ALLOWED].outcome == "right"
    return right - (sample.replies[KNOWS_FORBIDDEN].outcome == "wrong")


def _kept(name: str, title: str, meaning: str, perfect: float | None, knows_rule: bool) -> Measure:
    """Build a measure: how often the habit is kept where the model knows the rule, or does not."""

    def whole(sample: Sample) -> bool:
        return sample.had_habit and knows(sample) is knows_rule

    return Measure(
        name,
        title,
        meaning,
        part=lambda sample: whole(sample) and sample.kept_habit,
        whole=whole,
        pairs=SHARE_OF_SOME,
        perfect=perfect,
        needs=(STANDARD_CONDITION, CHANGED_CONDITION, *QUESTIONS),
        bounded=True,
    )


def impact(
    name: str,
    title: str,
    meaning: str,
    before: str,
    after: str,
    perfect: float | None,
    of_controls: bool = False,
) -> Measure:
    """Build a measure: the relative change in usual answers from one condition to another."""
    return Measure(
        name,
        title,
        meaning,
        part=lambda sample: sample.is_usual(after) - sample.is_usual(before),
        whole=lambda sample: sample.is_usual(before),
        pairs=RELATIVE_CHANGE,
        perfect=perfect,
        needs=(before, after),
        bounded=True,
        of_controls=of_controls,
    )


KNOWLEDGE, PLACEBO_IMPACT = "rule_knowledge", "placebo_impact_factor"
KNOWING_DOING_GAP = _kept(
    "knowing_doing_gap",
    "Gap between knowing and doing",
    "share of habits kept where both yes/no answers are right",
    perfect=0,
    knows_rule=True,
)
KEPT_UNKNOWING = _kept(
    "kept_without_knowing",
    "Habit kept without knowing",
    "share of habits kept where a yes/no answer is wrong",
    perfect=None,
    knows_rule=False,
)
CORRECTED = impact(
    "corrected_impact_factor",
    "Corrected impact factor",
    "the changed rules compared with the placebo",
    PLACEBO,
    CHANGED_CONDITION,
    perfect=-1,
)
COLLATERAL = impact(
    "collateral_change",
    "Collateral change",
    "the same at control {items}, whose habit stays {allowed}",
    PLACEBO,
    CHANGED_CONDITION,
    perfect=0,
    of_controls=True,
)

DIAGNOSIS = (
    Measure(
        KNOWLEDGE,
        "Knowledge of the rule (J)",
        "how often it calls allowed {answer}s {allowed}, minus how often it calls forbidden ones "
        "{allowed}",
        part=_knowledge,
        pairs=DIFFERENCE,
        perfect=1,
        needs=QUESTIONS,
        remark="guessing: 0",
        bounded=True,
    ),
    KNOWING_DOING_GAP,
    KEPT_UNKNOWING,
    Measure(
        "reminder_effect",
        "Effect of a reminder",
        "relative change in {disallowed} answers when the prompt repeats the rule at its end",
        part=lambda sample: (
            sample.breaks_changed_rules(REMINDED) - sample.breaks_changed_rules(CHANGED_CONDITION)
        ),
        whole=lambda sample: sample.breaks_changed_rules(CHANGED_CONDITION),
        pairs=RELATIVE_CHANGE,
        needs=(CHANGED_CONDITION, REMINDED),
        remark="-1: removes all",
        bounded=True,
    ),
    impact(
        PLACEBO_IMPACT,
        "Impact factor of the placebo",
        "effect of the prompt change alone: a change that leaves the habit {allowed}",
        STANDARD_CONDITION,
        PLACEBO,
        perfect=0,
    ),
    CORRECTED,
    impact(
        "placebo_collateral_change",
        "Collateral change of the placebo",
        "effect of the placebo at control {items}",
        STANDARD_CONDITION,
        PLACEBO,
        perfect=0,
        of_controls=True,
    ),
    COLLATERAL,
)


def range_of(results: Results, name: str) -> tuple[float, float] | None:
    """Return the 95% interval of a number, including its bounds over unusable answers."""
    if bounds := results.bounds.get(name):
        ends = bounds.lowest, bounds.highest
        return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])
    interval = results.intervals.get(name)
    return (interval.low, interval.high) if interval else None


def placebo_moved(results: Results) -> bool:
    """Whether the placebo alone significantly changed how often the usual answer is played."""
    ends = range_of(results, PLACEBO_IMPACT)
    return ends is not None and excludes_zero(*ends)


Grouping = Callable[[Samples], Sequence[Hashable]]
# Samples and controls.
Arms = tuple[Samples, Samples]


@dataclass(frozen=True)
class Contrast(Metric):
    """A comparison of two measures over groups without common samples.

    Attributes:
        measure: a measure, and ``reference`` the measure it is compared with.
        kind: how the two are combined.
        perfect: the value of a model that follows the rules perfectly.
    """

    measure: Measure
    reference: Measure
    kind: type[Quotient]
    perfect: float | None = None
    remark: str = ""
    signed: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        """The conditions whose answers the contrast uses."""
        return tuple(dict.fromkeys((*self.measure.needs, *self.reference.needs)))

    def estimate(self, arms: Arms, grouping: Grouping) -> tuple[Number, Interval | None]:
        """Return the value and its 95% interval, clustered by the grouping; None if undefined."""
        return self._over([arm for _, arm in self._groups(arms)], grouping)

    def bounds(self, arms: Arms) -> Bounds | None:
        """Return the bounds; None if unusable answers change little compared with the interval."""
        groups = self._groups(arms)
        if not any(any_unusable(arm, measure.needs) for measure, arm in groups):
            return None
        scored = [answered(arm) for _, arm in groups]
        guessed = [scored, *product(*(_extremes(*group) for group in groups))]
        possible = [self._over(guess, games_of) for guess in guessed]
        usable = [complete_cases(arm, measure.needs) for measure, arm in groups]
        complete, _ = self._over(usable, games_of)
        values, intervals = [value for value, _ in possible], [interval for _, interval in possible]
        return bounds_over(values, intervals, complete)

    def _groups(self, arms: Arms) -> list[tuple[Measure, Samples]]:
        """Pair each of the two measures with its samples or controls."""
        return [(measure, arms[measure.of_controls]) for measure in (self.measure, self.reference)]

    def _over(
        self, groups: Sequence[Samples], grouping: Grouping
    ) -> tuple[Number, Interval | None]:
        """Return the value and its interval over the samples of each measure."""
        first, second = (
            ratio_of(measure, group).tally(grouping(group))
            for measure, group in zip((self.measure, self.reference), groups, strict=True)
        )
        null = self.kind.null_value
        combined = self.kind(first, second) if first and second else None
        if not combined or combined.value is None or not (interval := combined.interval):
            return None, None
        shifted = Interval(interval.low - null, interval.high - null, interval.method)
        return combined.value - null, shifted


def _extremes(measure: Measure, samples: Samples) -> list[Samples]:
    """Return the samples filled in to minimize the measure, and to maximize it."""
    *_, least, greatest = imputations(measure, samples)
    return [least, greatest]


SPECIFIC = Contrast(
    "specific_impact_factor",
    "Specific impact factor",
    "the same, corrected for the change at control {items}",
    CORRECTED,
    COLLATERAL,
    Quotient,
    perfect=-1,
)
KNOWING_EFFECT = Contrast(
    "knowing_effect",
    "Effect of knowing",
    "habits kept where the rule is known, minus habits kept where it is not",
    KNOWING_DOING_GAP,
    KEPT_UNKNOWING,
    Difference,
)
# Measures that compare the changed rules with the placebo.
PLACEBO_CORRECTED = (CORRECTED.name, SPECIFIC.name)
CONTRASTS: dict[str, Contrast] = {
    contrast.name: contrast for contrast in (KNOWING_EFFECT, SPECIFIC)
}


def confounded(results: Results) -> tuple[str, ...]:
    """Return the measures that do not show the rule's effect because the placebo had one, too."""
    return PLACEBO_CORRECTED if placebo_moved(results) else ()


def contrasts_for(conditions: Sequence[str]) -> list[Contrast]:
    """Return the contrasts that can be computed from answers under these conditions."""
    return [c for c in CONTRASTS.values() if set(c.needs) <= set(conditions)]
