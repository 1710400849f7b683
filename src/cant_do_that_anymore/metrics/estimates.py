"""Estimates: values with their 95% intervals, which allow for unusable replies.

A measure compares how often two things happen. A reply that is unusable counts as scored for the
value. For the interval, it may have been either: once all unusable replies are read so that the
value is as low as possible, once so that it is as high as possible, and the interval reaches from
the lower end of the one to the upper end of the other.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from ..formatting import in_points, rounded
from ..task.types import Sample, Samples, ScoredAnswer
from .clusters import Tally
from .intervals import DIFFERENCE, DROP, SHARE, Ratio, difference_tally, value_of
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

    def holds(self, sample: Sample) -> bool:
        """Whether it is, as scored."""
        return self.test(sample.replies[self.condition])

    def least(self, sample: Sample) -> bool:
        """Whether it is, if an unusable reply is not."""
        return sample.replies[self.condition].usable and self.holds(sample)

    def most(self, sample: Sample) -> bool:
        """Whether it is, if an unusable reply is."""
        return not sample.replies[self.condition].usable or self.holds(sample)


# How to read the first and the second event of a measure: method names of `Event`.
Reading = tuple[str, str]
AS_SCORED, LOWEST, HIGHEST = ("holds", "holds"), ("least", "most"), ("most", "least")


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

    @property
    def conditions(self) -> set[str]:
        """The names of the conditions whose replies it needs."""
        return {event.condition for event in (self.first, self.second) if event}

    def ratio(self, samples: Samples, reading: Reading = AS_SCORED) -> Ratio:
        """Return a part and a whole for each sample."""
        firsts = [int(getattr(self.first, reading[0])(sample)) for sample in samples]
        wholes = firsts if self.relative else [1] * len(firsts)
        if not self.second:
            return Ratio(firsts, wholes, SHARE)
        seconds = (int(getattr(self.second, reading[1])(sample)) for sample in samples)
        parts = [a - b for a, b in zip(firsts, seconds, strict=True)]
        return Ratio(parts, wholes, DROP if self.relative else DIFFERENCE)

    def is_defined(self, samples: Samples) -> bool:
        """Whether it has a value, however unusable replies are read."""
        needed = [event.holds for event in (self.requires,) if event]
        needed += [self.first.least] if self.relative else []
        return bool(samples) and all(any(map(holds, samples)) for holds in needed)

    def estimate(self, samples: Samples) -> Estimate | None:
        """Return its value over the answered samples, with the interval; None if undefined."""
        scored = answered(samples)
        if not self.is_defined(scored):
            return None
        ratio = self.ratio(scored)
        tallies = [ratio.tally(groups_of(scored))]
        if any_unusable(samples, self.conditions):
            groups = groups_of(samples)
            tallies += [self.ratio(samples, reading).tally(groups) for reading in (LOWEST, HIGHEST)]
        low, high = _hull([tally.interval() for tally in tallies])
        estimate = Estimate(ratio.value, low, high, len(scored))
        return -estimate if self.negated else estimate


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
    others = samples if others is None else others
    pairs = list(zip(samples, others, strict=True))
    both = [pair for pair in pairs if all(sample.answered for sample in pair)]
    scored = [pair[0] for pair in both], [pair[1] for pair in both]
    if not first.is_defined(scored[0]) or not second.is_defined(scored[1]):
        return None

    def tally(of: tuple[Samples, Samples], readings: tuple[Reading, Reading]) -> Tally:
        ratios = first.ratio(of[0], readings[0]), second.ratio(of[1], readings[1])
        return difference_tally(*ratios, groups_of(of[0]))

    observed = tally(scored, (AS_SCORED, AS_SCORED))
    tallies = [observed]
    if any_unusable(samples, first.conditions) or any_unusable(others, second.conditions):
        everything = samples, others
        tallies += [tally(everything, ends) for ends in ((LOWEST, HIGHEST), (HIGHEST, LOWEST))]
    low, high = _hull([each.interval(ALPHA / comparisons) for each in tallies])
    return Estimate(value_of(observed), low, high, len(both))


def _hull(intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the interval that contains all of these."""
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def answered(samples: Samples) -> list[Sample]:
    """Return the samples with an answer to every request; only these enter the values."""
    return [sample for sample in samples if sample.answered]


def any_unusable(samples: Samples, conditions: set[str]) -> bool:
    """Whether any reply under these conditions is unusable or missing."""
    return any(not sample.replies[name].usable for sample in samples for name in conditions)


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

    def root_of(group: Hashable) -> Hashable:
        while (parent := parents.get(group, group)) != group:
            parents[group] = parents.get(parent, parent)  # path halving
            group = parent
        return group

    first_group: dict[Hashable, Hashable] = {}
    for group, subject in pairs:
        earlier = first_group.setdefault(subject, group)
        if earlier != group and (root := root_of(earlier)) != (other_root := root_of(group)):
            parents[other_root] = root
    return [root_of(group) for group, _ in pairs]
