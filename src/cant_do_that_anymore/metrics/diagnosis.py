"""Measures of a diagnosis: knowledge of the rule, placebo, reminder, contrast with controls.

Beside the two questions of every run, a diagnosis asks each position under a placebo (a change of
the same form that leaves the habit legal), with a reminder, and whether two moves are legal.
Controls are positions whose habit stays legal; what the change takes away there, it takes away from
anything.

What is left of the habits that the change forbids, over what is left of those that it does not (the
difference in differences); and habits kept where the rule is known, less those kept elsewhere.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, get_args

from ..formatting import Number
from ..task.conditions import KNOWS_ALLOWED, KNOWS_FORBIDDEN, PLACEBO, QUESTIONS, REMINDED
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Sample
from .bounds import answered, any_unusable, bounds_over, complete, games_of, guesses, ratio_of
from .stats.intervals import (
    DIFFERENCE,
    RELATIVE_CHANGE,
    SHARE_OF_SOME,
    Difference,
    Interval,
    Quotient,
    ratio_tally,
)
from .types import Bounds, Measure, Results

Knowing = Literal[
    "knows and drops",
    "knows and keeps",
    "does not know and drops",
    "does not know and keeps",
    "unreadable and drops",
    "unreadable and keeps",
]
KNOWING: tuple[Knowing, ...] = get_args(Knowing)


def knows(sample: Sample) -> bool | None:
    """Whether both yes/no questions were answered right; None if an answer is unusable."""
    replies = [sample.replies[name] for name in QUESTIONS]
    if not all(reply.usable for reply in replies):
        return None
    return all(reply.outcome == "right" for reply in replies)


def knowing_of(sample: Sample) -> Knowing | None:
    """Which of the six groups it belongs to; None without a habit."""
    if not sample.had_habit:
        return None
    return KNOWING[2 * (True, False, None).index(knows(sample)) + sample.kept_habit]


def _knowledge(sample: Sample) -> int:
    """Said yes to the allowed move, less said yes to the forbidden one."""
    right = sample.replies[KNOWS_ALLOWED].outcome == "right"
    return right - (sample.replies[KNOWS_FORBIDDEN].outcome == "wrong")


def _kept(name: str, title: str, meaning: str, perfect: float | None, known: bool) -> Measure:
    """How often the habit is kept where the rule is known, or where it is not."""

    def whole(sample: Sample) -> bool:
        return sample.had_habit and knows(sample) is known

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


def _impact(
    name: str,
    title: str,
    meaning: str,
    before: str,
    after: str,
    perfect: float | None,
    of_controls: bool = False,
) -> Measure:
    """How much less often the special move is played under one condition than under another."""
    return Measure(
        name,
        title,
        meaning,
        part=lambda sample: sample.plays_special(after) - sample.plays_special(before),
        whole=lambda sample: sample.plays_special(before),
        pairs=RELATIVE_CHANGE,
        perfect=perfect,
        needs=(before, after),
        bounded=True,
        of_controls=of_controls,
    )


KNOWLEDGE, PLACEBO_IMPACT = "rule_knowledge", "placebo_impact_factor"
GAP = _kept(
    "knowing_doing_gap",
    "Gap between knowing and doing",
    "of the habits where both yes/no answers are right, the share that is kept",
    perfect=0,
    known=True,
)
KEPT_UNKNOWING = _kept(
    "kept_without_knowing",
    "Habit kept without knowing",
    "of the habits where a yes/no answer is wrong, the share that is kept",
    perfect=None,
    known=False,
)
CORRECTED, COLLATERAL = (
    _impact(
        "corrected_impact_factor",
        "Corrected impact factor",
        "the changed rules compared with the placebo",
        PLACEBO,
        CHANGED_CONDITION,
        perfect=-1,
    ),
    _impact(
        "collateral_change",
        "Collateral change",
        "the same at control positions, whose habit stays legal",
        PLACEBO,
        CHANGED_CONDITION,
        perfect=0,
        of_controls=True,
    ),
)

DIAGNOSIS = (
    Measure(
        KNOWLEDGE,
        "Knowledge of the rule (J)",
        "how often it calls allowed moves legal, minus how often it calls forbidden ones legal",
        part=_knowledge,
        pairs=DIFFERENCE,
        perfect=1,
        needs=QUESTIONS,
        remark="guessing: 0",
        bounded=True,
    ),
    GAP,
    KEPT_UNKNOWING,
    Measure(
        "reminder_effect",
        "Effect of a reminder",
        "relative change in answers that are not legal when the rule is stated again at the end",
        part=lambda sample: sample.breaks(REMINDED) - sample.breaks(CHANGED_CONDITION),
        whole=lambda sample: sample.breaks(CHANGED_CONDITION),
        pairs=RELATIVE_CHANGE,
        needs=(CHANGED_CONDITION, REMINDED),
        remark="-1: removes all",
        bounded=True,
    ),
    _impact(
        PLACEBO_IMPACT,
        "Impact factor of the placebo",
        "effect of a change of the same form that leaves the habit legal",
        STANDARD_CONDITION,
        PLACEBO,
        perfect=0,
    ),
    CORRECTED,
    _impact(
        "placebo_collateral_change",
        "Collateral change of the placebo",
        "effect of the placebo at control positions",
        STANDARD_CONDITION,
        PLACEBO,
        perfect=0,
        of_controls=True,
    ),
    COLLATERAL,
)


def range_of(results: Results, name: str) -> tuple[float, float] | None:
    """The 95% interval of a number, whatever unusable answers would have said."""
    if bounds := results.bounds.get(name):
        ends = bounds.lowest, bounds.highest
        return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])
    found = results.intervals.get(name)
    return (found.low, found.high) if found else None


def placebo_moved(results: Results) -> bool:
    """Whether the placebo alone changed how often the special move is played."""
    ends = range_of(results, PLACEBO_IMPACT)
    return ends is not None and not ends[0] <= 0 <= ends[1]


Grouping = Callable[[Sequence[Sample]], Sequence[Hashable]]
Arms = tuple[Sequence[Sample], Sequence[Sample]]
"""Samples and controls."""


@dataclass(frozen=True)
class Contrast:
    """One measure beside another, of groups that have no sample in common.

    Attributes:
        name: as in ``run.json``.
        title: for people.
        meaning: one line for people.
        change: a measure, and ``beside`` the one that it is held against.
        kind: how the two are put together.
        perfect: what a model would reach that follows the rules perfectly.
    """

    name: str
    title: str
    meaning: str
    change: Measure
    beside: Measure
    kind: type[Quotient]
    perfect: float | None = None
    remark: str = ""
    signed: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        """The conditions whose replies it looks at."""
        return tuple(dict.fromkeys((*self.change.needs, *self.beside.needs)))

    def value(self, arms: Arms) -> Number:
        """The number, or None where it does not exist."""
        return self._value(self._compared([arm for _, arm in self._groups(arms)]))

    def interval(
        self, arms: Arms, grouping: Grouping = games_of, critical_factor: float = 1.0
    ) -> Interval | None:
        """Its 95 % interval, where those of one group go together; None where it does not exist."""
        groups = [arm for _, arm in self._groups(arms)]
        return self._interval(self._compared(groups, grouping, critical_factor))

    def bounds(self, arms: Arms, critical_factor: float = 1.0) -> Bounds | None:
        """Its bounds; None where unusable answers make no difference beside the interval."""
        groups = self._groups(arms)
        if not any(any_unusable(arm, measure.needs) for measure, arm in groups):
            return None
        scored = [answered(arm) for _, arm in groups]
        guessed = [scored, *product(*(_extremes(*group) for group in groups))]
        usable = [complete(arm, measure.needs) for measure, arm in groups]
        return bounds_over(
            [self._compared(guess, critical_factor=critical_factor) for guess in guessed],
            self._value,
            self._interval,
            self._value(self._compared(usable)),
        )

    def _groups(self, arms: Arms) -> list[tuple[Measure, Sequence[Sample]]]:
        """The two measures, each with what it is a number over."""
        return [(measure, arms[measure.of_controls]) for measure in (self.change, self.beside)]

    def _compared(
        self,
        groups: Sequence[Sequence[Sample]],
        grouping: Grouping = games_of,
        critical_factor: float = 1.0,
    ) -> Quotient | None:
        tallies = []
        for measure, group in zip((self.change, self.beside), groups, strict=True):
            ratio = ratio_of(measure, group)
            if tally := ratio_tally(ratio.parts, ratio.wholes, grouping(group), ratio.support):
                tallies.append(replace(tally, critical_factor=critical_factor))
        return self.kind(*tallies) if len(tallies) == 2 else None

    def _value(self, found: Quotient | None) -> Number:
        value = found.value if found else None
        return None if value is None else value - self.kind.of_equals

    def _interval(self, found: Quotient | None) -> Interval | None:
        around, less = found.interval if found else None, self.kind.of_equals
        return Interval(around.low - less, around.high - less, around.method) if around else None


def _extremes(measure: Measure, samples: Sequence[Sample]) -> list[Sequence[Sample]]:
    """The samples as they make the measure least, and as they make it greatest."""
    *_, least, greatest = guesses(measure, samples)
    return [least, greatest]


SPECIFIC = Contrast(
    "specific_impact_factor",
    "Specific impact factor",
    "the same, less what happens to habits that stay legal",
    CORRECTED,
    COLLATERAL,
    Quotient,
    perfect=-1,
)
KNOWING_EFFECT = Contrast(
    "knowing_effect",
    "Effect of knowing",
    "habits kept where the rule is known, minus habits kept where it is not",
    GAP,
    KEPT_UNKNOWING,
    Difference,
)
OF_PLACEBO = (CORRECTED.name, SPECIFIC.name)
"""What compares the changed rules with the placebo."""
CONTRASTS: dict[str, Contrast] = {each.name: each for each in (KNOWING_EFFECT, SPECIFIC)}


def unclaimed(results: Results) -> tuple[str, ...]:
    """What does not show the effect of the rule, since the placebo alone moved the habit."""
    return OF_PLACEBO if placebo_moved(results) else ()


def contrasts_for(conditions: Sequence[str]) -> list[Contrast]:
    """The contrasts whose replies are at hand."""
    return [c for c in CONTRASTS.values() if set(c.needs) <= set(conditions)]
