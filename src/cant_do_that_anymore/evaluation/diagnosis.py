"""Why a habit stays: does the model not know the rule, or can it not stop? And is it the rule?

Beside the two questions of every run, a diagnosis asks each position under a placebo (a change of
the same form that leaves the habit legal), with a reminder, and whether two moves are legal.
Controls are positions whose habit stays legal; what the change takes away there, it takes away from
anything.
"""

from typing import Literal, get_args

from ..task.conditions import (
    KNOWS_ALLOWED,
    KNOWS_FORBIDDEN,
    PLACEBO,
    QUESTIONS,
    REMINDED,
)
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Measure, Sample
from .results import Results
from .statistics.intervals import DIFFERENCE, RELATIVE_CHANGE, SHARE_OF_SOME

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
