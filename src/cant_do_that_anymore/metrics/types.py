"""Types shared by all metrics: measures, bounds and results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..formatting import Number
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome, Sample, Samples
from .stats.intervals import RATE, Interval, Support

# A corrected p-value below this is significant, if the interval excludes 0.
ALPHA = 0.05


def excludes_zero(low: Number, high: Number) -> bool:
    """Whether an interval, if there is one, does not contain 0."""
    return low is not None and high is not None and not low <= 0 <= high


@dataclass(frozen=True)
class Bounds:
    """Range of a number over everything the unusable answers could have been.

    Attributes:
        low: the least value, and ``high`` the greatest, over all of these possibilities and over
            leaving out samples without an answer.
        lowest: the lower end of the lowest 95% interval, and ``highest`` the upper end of the
            highest.
        complete: the value over the samples in which every answer names a move.
    """

    low: Number
    high: Number
    lowest: Number
    highest: Number
    complete: Number


@dataclass(frozen=True)
class GroupValue:
    """A measure over a group of samples, with its 95% interval."""

    n: int
    value: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class WordingResults:
    """A measure by wording.

    Attributes:
        measure: its name.
        by_wording: the value by wording; None where it is undefined.
        details: the same with numbers of samples and 95% intervals.
        spread: the standard deviation between wordings, without sampling error; ``spread_low`` and
            ``spread_high`` are its 95% interval.
        p: the probability of values as different as these if the wordings made no difference.
        low: with ``high``, the 95% interval of the mean over wordings like these.
    """

    measure: str
    by_wording: Mapping[str, Number]
    details: Mapping[str, GroupValue]
    spread: float
    spread_low: float
    spread_high: float
    p: float
    low: float
    high: float

    @property
    def sorted(self) -> list[tuple[str, GroupValue]]:
        """The wordings with their values, the highest first and undefined ones last."""
        return sorted(
            self.details.items(), key=lambda item: -2 if item[1].value is None else item[1].value
        )[::-1]


@dataclass(frozen=True)
class InterventionEffect:
    """The effect of one intervention; None where a number is undefined.

    Attributes:
        rule_uptake: the rule uptake with the intervention, and its 95% interval.
        difference: how much higher that is than without it.
        p: the probability of such a difference by chance; ``p_holm`` is corrected for the number of
            interventions.
        closes: the share of illegal answers under the changed rules that it removes.
        controls: the relative change in usual answers at controls, where they stay legal,
            compared with the changed rules alone; None without a diagnosis.
        extra_tokens: additional tokens per sample, input and output.
        extra_dollars: their cost; None if it is not known.
        controls_p_holm: the p-value of the change at controls, corrected like ``p_holm``.
    """

    name: str
    rule_uptake: Number
    low: Number
    high: Number
    difference: Number
    difference_low: Number
    difference_high: Number
    p: float
    p_holm: float
    closes: Number
    closes_low: Number
    closes_high: Number
    controls: Number
    controls_low: Number
    controls_high: Number
    extra_tokens: Number
    extra_dollars: Number
    controls_p_holm: float = 1.0

    @property
    def is_significant(self) -> bool:
        """Whether it makes a difference, after correction and whatever unusable answers meant."""
        return self.p_holm < ALPHA and excludes_zero(self.difference_low, self.difference_high)

    @property
    def changes_other_play(self) -> bool:
        """Whether it changes the usual answers at controls, after correction as above."""
        return self.controls_p_holm < ALPHA and excludes_zero(self.controls_low, self.controls_high)


@dataclass(frozen=True)
class Results:
    """All numbers computed from the samples of a run.

    Attributes:
        metrics: numbers by name; None where a number is undefined.
        intervals: 95% intervals of the measures by name; where a measure has bounds, the interval
            reaches from their lowest to their highest.
        bounds: bounds by name, only where unusable answers matter compared with the interval.
        outcomes: number of answers per outcome, by condition.
        control_outcomes: the same for the controls, if there are any.
        wordings: the main measure by wording, if the run has several.
        interventions: the effects of the interventions, the most helpful first.
    """

    metrics: dict[str, Number]
    intervals: dict[str, Interval]
    bounds: dict[str, Bounds]
    outcomes: dict[str, dict[Outcome, int]]
    control_outcomes: dict[str, dict[Outcome, int]] = field(default_factory=dict)
    wordings: WordingResults | None = None
    interventions: list[InterventionEffect] = field(default_factory=list)


PerSample = Callable[[Sample], int]


def one_each(_: Sample) -> int:
    """Return 1: the denominator of a proportion of all samples."""
    return 1


@dataclass(frozen=True)
class Metric:
    """A number of a run, with its name and its explanation.

    Attributes:
        name: the key in ``run.json``; the original's name where it has one.
        title: the display name, with a habit's words in braces, as in `Words.fill`.
        meaning: a one-line explanation, also with such words.
    """

    name: str
    title: str
    meaning: str


@dataclass(frozen=True)
class Measure(Metric):
    """A ratio over samples: the sum of their parts divided by the sum of their wholes.

    Attributes:
        part: a sample's contribution to the numerator, and ``whole`` to the denominator.
        pairs: every combination of part and whole that a sample can have.
        perfect: the value of a model that follows the rules perfectly.
        needs: the conditions whose answers the measure uses.
        remark: the remark printed beside the value, instead of the perfect value.
        compared: what the better model does, as a phrase; "" if `cdta compare` ignores the measure.
        bounded: whether the measure gets bounds, because unusable answers can change it.
        optional: whether runs in which it is undefined omit it.
        of_controls: whether it is computed over controls.
        column: the heading of its column in leaderboards; "" if it has none, or if
            `report.columns` declares one.
    """

    part: PerSample
    whole: PerSample = one_each
    pairs: Support = RATE
    perfect: float | None = None
    needs: tuple[str, ...] = (STANDARD_CONDITION, CHANGED_CONDITION)
    remark: str = ""
    compared: str = ""
    bounded: bool = False
    optional: bool = False
    of_controls: bool = False
    column: str = ""

    @property
    def signed(self) -> bool:
        """Whether the measure is a change (-1 to 1) instead of a proportion (0 to 1)."""
        return any(part < 0 for part, _ in self.pairs)

    def value(self, samples: Samples) -> Number:
        """Return the ratio, or None if the denominator is 0."""
        whole = sum(map(self.whole, samples))
        return sum(map(self.part, samples)) / whole if whole else None
