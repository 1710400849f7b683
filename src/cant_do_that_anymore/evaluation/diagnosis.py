"""Why a habit stays: does the model not know the rule, or can it not stop? And what is the rule's?

Beside the two questions of every run, a diagnosis asks each position under a placebo (the change in
form, the standard rule in content), with a reminder, and whether two moves are legal. Controls are
positions whose habit stays legal; what the change takes away there, it takes away from anything.
"""

from typing import Literal, get_args

from .statistics.intervals import RELATIVE_CHANGE, SHARE_OF_SOME
from .vocabulary import AFTER, BEFORE, Measure, Sample

PLACEBO, REMINDED = "placebo", "reminded"
KNOWS_FORBIDDEN, KNOWS_ALLOWED = QUESTIONS = ("knows_forbidden", "knows_allowed")
"""Of knowledge: is a special move legal, and is one that the changed rules allow?"""
ASKED = (BEFORE, AFTER, PLACEBO, REMINDED, *QUESTIONS)
"""What every position is asked under."""
ASKED_OF_CONTROLS = (BEFORE, AFTER, PLACEBO)

Knowing = Literal[
    "knows and drops", "knows and keeps", "does not know and drops", "does not know and keeps"
]
KNOWING: tuple[Knowing, ...] = get_args(Knowing)


def knows(sample: Sample) -> bool:
    """Whether both questions of knowledge were answered right."""
    return all(sample.replies[name].outcome == "right" for name in QUESTIONS)


def knowing_of(sample: Sample) -> Knowing | None:
    """Which of the four groups it belongs to; None without a habit."""
    if not sample.had_habit:
        return None
    return KNOWING[2 * (not knows(sample)) + sample.kept_habit]


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


KNOWING_RATE, GAP = "knowing_rate", "knowing_doing_gap"
PLACEBO_IMPACT = "placebo_impact_factor"
CORRECTED, COLLATERAL = (
    _impact(
        "corrected_impact_factor",
        "Corrected impact factor",
        "what the rule itself takes away: beside the placebo, which changes the text alone",
        PLACEBO,
        AFTER,
        perfect=-1,
    ),
    _impact(
        "collateral_change",
        "Collateral change",
        "what it takes away from habits that are still legal, at control positions",
        PLACEBO,
        AFTER,
        perfect=0,
        of_controls=True,
    ),
)

DIAGNOSIS = (
    Measure(
        KNOWING_RATE,
        "Knowing rate",
        "both questions about the rule answered right, where there was a habit; guessing gives .25",
        part=lambda sample: sample.had_habit and knows(sample),
        whole=lambda sample: sample.had_habit,
        pairs=SHARE_OF_SOME,
        perfect=1,
        needs=(BEFORE, *QUESTIONS),
        remark="guessing: 0.25",
        bounded=True,
    ),
    Measure(
        GAP,
        "Gap between knowing and doing",
        "of the habits where the rule is known, those that are kept all the same",
        part=lambda sample: knowing_of(sample) == "knows and keeps",
        whole=lambda sample: sample.had_habit and knows(sample),
        pairs=SHARE_OF_SOME,
        perfect=0,
        needs=(BEFORE, AFTER, *QUESTIONS),
        bounded=True,
    ),
    Measure(
        "doing_without_knowing",
        "Doing without knowing",
        "of the habits where the rule is not known, those given up for a legal move all the same",
        part=lambda sample: sample.had_habit and not knows(sample) and sample.adapted,
        whole=lambda sample: sample.had_habit and not knows(sample),
        pairs=SHARE_OF_SOME,
        needs=(BEFORE, AFTER, *QUESTIONS),
        bounded=True,
    ),
    _impact(
        "reminder_effect",
        "Effect of a reminder",
        "what stating the rule once more, right before the move, takes away on top",
        AFTER,
        REMINDED,
        perfect=None,
    ),
    _impact(
        PLACEBO_IMPACT,
        "Impact factor of the placebo",
        "what the mere form of the change takes away",
        BEFORE,
        PLACEBO,
        perfect=0,
    ),
    CORRECTED,
    _impact(
        "placebo_collateral_change",
        "Collateral change of the placebo",
        "what the mere form of the change takes away at control positions",
        BEFORE,
        PLACEBO,
        perfect=0,
        of_controls=True,
    ),
    COLLATERAL,
)
