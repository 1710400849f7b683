"""Estimates: values with their 95% intervals, which allow for unusable replies.

A measure compares how often two things happen. A reply that is unusable counts as scored for the
value. For the interval, it may have been either: once all unusable replies are read so that the
value is as low as possible, once so that it is as high as possible, and the interval reaches from
the lower end of the one to the upper end of the other.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import compress

from ..formatting import in_points, rounded
from ..task.types import Sample, Samples, ScoredAnswer
from .intervals import DIFFERENCE, DROP, SHARE, Ratio, difference_of
from .score_interval import ALPHA

# An interval that reaches at most so far on either side is narrow enough.
REACH = 0.05


@dataclass(frozen=True)
class Estimate:
    """A number of a run or a comparison.

    Attributes:
        value: the number.
        low: with ``high``, its 95% interval; None if it has none.
        n: the number of samples that it comes from.
    """

    value: float
    low: float | None
    high: float | None
    n: int

    @property
    def sign(self) -> int:
        """1 if the interval is above 0, -1 if it is below 0, and 0 if it includes 0."""
        if self.low is None or self.high is None:
            return 0
        return (self.low > 0) - (self.high < 0)

    @property
    def reach(self) -> float:
        """How far the interval reaches on either side, on average."""
        return 0.0 if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def as_share(self) -> str:
        """The number with its interval, in percent.

        >>> Estimate(0.44, 0.401, 0.49, 1000).as_share
        '44% [40%, 49%]'
        """
        return self.text(rounded)

    @property
    def as_points(self) -> str:
        """The number with its interval, as a difference in points.

        >>> Estimate(0.422, -0.371, 0.48, 1000).as_points
        '+42 points [−37, +48]'
        """
        is_one = in_points(abs(self.value), signed=False) == "1"
        return self.text(in_points, " point" if is_one else " points")

    @property
    def as_difference(self) -> str:
        """The difference with its interval where the unit is said elsewhere."""
        return self.text(in_points)

    def text(self, text: Callable[[float], str], unit: str = "") -> str:
        """Format the number and the ends of its interval."""
        value = f"{text(self.value)}{unit}"
        if self.low is None or self.high is None:
            return value
        return f"{value} [{text(self.low)}, {text(self.high)}]"

    def __neg__(self) -> "Estimate":
        low, high = (None if end is None else 0.0 - end for end in (self.high, self.low))
        return Estimate(0.0 - self.value, low, high, self.n)  # never -0.0


@dataclass(frozen=True)
class Event:
    """What a reply under a condition may be, such as the usual answer."""

    condition: str
    test: Callable[[ScoredAnswer], bool]

    def holds(self, sample: Sample, if_unusable: bool | None = None) -> bool:
        """Whether it is, as scored or, of an unusable reply, as given."""
        reply = sample.replies[self.condition]
        return self.test(reply) if reply.usable or if_unusable is None else if_unusable


# Whether the first and the second event of a measure are assumed of an unusable reply.
Reading = tuple[bool | None, bool | None]
AS_SCORED, LOWEST, HIGHEST = (None, None), (False, True), (True, False)


@dataclass(frozen=True)
class Measure:
    """The share of samples with one event, minus the share with another.

    Attributes:
        name: the key in files; the original's name where it has one.
        first: the event whose share it is.
        second: the event whose share is subtracted, if any.
        relative: whether the difference is divided by the share of the first event.
        negated: whether the sign is turned, as in the original's numbers.
        requires: an event without which there is nothing to measure.
        meaning: an explanation in one line, for exports.
    """

    name: str
    first: Event
    second: Event | None = None
    relative: bool = False
    negated: bool = False
    requires: Event | None = None
    meaning: str = ""

    def pair(self, sample: Sample, reading: Reading = AS_SCORED) -> tuple[int, int]:
        """Return the part and the whole of a sample."""
        first = int(self.first.holds(sample, reading[0]))
        second = int(self.second.holds(sample, reading[1])) if self.second else 0
        return first - second, first if self.relative else 1

    def ratio(self, samples: Samples, reading: Reading = AS_SCORED) -> Ratio:
        """Return the pairs of all samples."""
        support = SHARE if not self.second else DROP if self.relative else DIFFERENCE
        return Ratio([self.pair(sample, reading) for sample in samples], support)

    def is_defined(self, samples: Samples) -> bool:
        """Whether it has a value, however unusable replies are read."""
        needed = [self.requires, self.first if self.relative else None]
        return bool(samples) and all(
            any(event.holds(sample, if_unusable=False) for sample in samples)
            for event in needed
            if event
        )

    def has_unusable(self, samples: Samples) -> bool:
        """Whether any reply that it needs is unusable or missing."""
        names = [event.condition for event in (self.first, self.second) if event]
        return any(not sample.replies[name].usable for sample in samples for name in names)

    def estimate(self, samples: Samples) -> Estimate | None:
        """Return its value over the answered samples, with the interval; None if undefined."""
        found = _estimate([(self, samples)], ALPHA)
        return -found if found and self.negated else found


def difference(
    first: Measure,
    second: Measure,
    samples: Samples,
    others: Samples | None = None,
    comparisons: int = 1,
) -> Estimate | None:
    """Return a relative measure minus another, over the same items; None if one is undefined.

    Args:
        samples: the samples of the first measure.
        others: those of the second, in the same order; by default the same.
        comparisons: of so many intervals, all contain their true values with 95% probability.
    """
    sides = [(first, samples), (second, samples if others is None else others)]
    return _estimate(sides, ALPHA / comparisons)


# A measure with its samples. A number has one side, and a difference has two.
Sides = Sequence[tuple[Measure, Samples]]


def _estimate(sides: Sides, alpha: float) -> Estimate | None:
    """Return the number over the answered samples, with the interval; None if undefined."""
    rows = zip(*(samples for _, samples in sides), strict=True)
    is_answered = [all(sample.answered for sample in row) for row in rows]
    scored = [(measure, [*compress(samples, is_answered)]) for measure, samples in sides]
    if not all(measure.is_defined(samples) for measure, samples in scored):
        return None
    intervals = [_interval(scored, (AS_SCORED, AS_SCORED), alpha)]
    if any(measure.has_unusable(samples) for measure, samples in sides):
        ends = (LOWEST, HIGHEST), (HIGHEST, LOWEST)
        intervals += [_interval(sides, readings, alpha) for readings in ends]
    value, *subtracted = (measure.ratio(samples).value for measure, samples in scored)
    low, high = min(low for low, _ in intervals), max(high for _, high in intervals)
    return Estimate(value - sum(subtracted), low, high, sum(is_answered))


def _interval(sides: Sides, readings: tuple[Reading, Reading], alpha: float) -> tuple[float, float]:
    """Return the interval of the number, with a reading of unusable replies for each side."""
    pairs = zip(sides, readings, strict=False)
    ratios = [measure.ratio(samples, reading) for (measure, samples), reading in pairs]
    ratio = difference_of(*ratios) if len(ratios) > 1 else ratios[0]
    return ratio.interval(groups_of(sides[0][1]), alpha)


def answered(samples: Samples) -> list[Sample]:
    """Return the samples with an answer to every request; only these enter the values."""
    return [sample for sample in samples if sample.answered]


def groups_of(samples: Samples) -> list[Hashable]:
    """Return the group of each sample; groups that share a subject are merged into one."""
    return joined([(sample.item.group, sample.item.subject) for sample in samples])


def joined(pairs: Sequence[tuple[Hashable, Hashable]]) -> list[Hashable]:
    """Merge groups that share a subject, and return the merged group of each entry.

    Args:
        pairs: of group and subject.

    >>> joined([(1, "a"), (2, "b"), (3, "b"), (2, "a"), (4, "c")])
    [1, 1, 1, 1, 4]
    """
    parents: dict[Hashable, Hashable] = {}
    first_group: dict[Hashable, Hashable] = {}

    def root_of(group: Hashable) -> Hashable:
        while group in parents:
            group = parents[group]
        return group

    for group, subject in pairs:
        root, other_root = root_of(first_group.setdefault(subject, group)), root_of(group)
        if root != other_root:
            parents[other_root] = root
    return [root_of(group) for group, _ in pairs]
