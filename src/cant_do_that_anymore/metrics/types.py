"""The types of metrics: measure, bounds, results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..formatting import Number
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome, Sample
from .stats.intervals import RATE, Interval, Support


@dataclass(frozen=True)
class Bounds:
    """Where a number lies whatever the unusable answers would have said.

    Attributes:
        low: its least value, and ``high`` its greatest, over all that they could have said and
            the samples of missing ones left out.
        lowest: the least end of a 95 % interval over all of that, and ``highest`` the greatest.
        complete: its value over the samples of which every answer named a move.
    """

    low: Number
    high: Number
    lowest: Number
    highest: Number
    complete: Number


@dataclass(frozen=True)
class Results:
    """Everything computed from the samples of a run.

    Attributes:
        metrics: numbers by name; None where a number does not exist.
        intervals: 95% intervals of the measures among them; where there are bounds, from their
            lowest to their highest.
        by_special_move: intervals, answers taken as they are, if samples of one special move went
            together.
        bounds: where unusable answers matter beside the interval.
        outcomes: how many answers were what, by condition.
        control_outcomes: the same of the controls, if there are any.
    """

    metrics: dict[str, Number]
    intervals: dict[str, Interval]
    by_special_move: dict[str, Interval]
    bounds: dict[str, Bounds]
    outcomes: dict[str, dict[Outcome, int]]
    control_outcomes: dict[str, dict[Outcome, int]] = field(default_factory=dict)


Of = Callable[[Sample], int]


def one_each(_: Sample) -> int:
    """The whole of a share of all samples."""
    return 1


@dataclass(frozen=True)
class Measure:
    """A number over samples: the sum of their parts over the sum of their wholes.

    Attributes:
        name: as in ``run.json``; the original's where it has one.
        title: for people.
        meaning: one line for people.
        part: what a sample adds above the line, and ``whole`` below it.
        pairs: every part and whole that a sample can have together.
        perfect: what a model would reach that follows the rules perfectly.
        needs: the conditions whose replies it looks at.
        remark: what stands beside it in the terminal, where that is not the perfect value.
        compared: what a model does that is better by it; "" if `cdta compare` does not look at it.
        bounded: whether unusable answers can carry it away, so that it has bounds.
        optional: whether a run that does not have it does not mention it.
        of_controls: whether it is a number over control positions.
    """

    name: str
    title: str
    meaning: str
    part: Of
    whole: Of = one_each
    pairs: Support = RATE
    perfect: float | None = None
    needs: tuple[str, ...] = (STANDARD_CONDITION, CHANGED_CONDITION)
    remark: str = ""
    compared: str = ""
    bounded: bool = False
    optional: bool = False
    of_controls: bool = False

    @property
    def signed(self) -> bool:
        """Whether it is a change, from -1 to 1, and not a share, from 0 to 1."""
        return any(part < 0 for part, _ in self.pairs)

    def value(self, samples: Sequence[Sample]) -> Number:
        """The number, or None where there is nothing to divide by."""
        whole = sum(map(self.whole, samples))
        return sum(map(self.part, samples)) / whole if whole else None
