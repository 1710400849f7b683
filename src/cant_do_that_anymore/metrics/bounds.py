"""Intervals of measures, and their bounds over everything unusable answers could have been."""

import operator
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from ..formatting import Number
from ..task.conditions import CONDITIONS
from ..task.types import Outcome, Sample, Samples
from .stats.intervals import BOUNDED, Interval, Ratio, ends_of
from .types import Bounds, GroupValue, Measure

# Unusable answers are ignored if they change less than this share of the interval's width.
NEGLIGIBLE = 0.1


def answered(samples: Samples) -> list[Sample]:
    """Return the samples with an answer to every request; only these enter the measures."""
    return [sample for sample in samples if sample.answered]


def interval_of(measure: Measure, samples: Samples) -> Interval | None:
    """Return the 95% interval of a measure, clustered by game; None if the measure is undefined."""
    return ratio_of(measure, samples).interval(games_of(samples))


def group_value(measure: Measure, samples: Samples) -> GroupValue:
    """Return a measure over a group of samples."""
    interval = interval_of(measure, samples)
    return GroupValue(len(samples), measure.value(samples), *ends_of(interval))


def games_of(samples: Samples) -> list[Hashable]:
    """Return the group of each sample; groups that share a subject are merged into one."""
    return joined([(sample.item.group, sample.item.subject) for sample in samples])


def joined(games: Sequence[tuple[Hashable, Hashable]]) -> list[Hashable]:
    """Merge games that share a position, and return the merged game of each entry.

    Args:
        games: pairs of game and position.

    >>> joined([(1, "a"), (2, "b"), (3, "b"), (2, "a"), (4, "c")])
    [1, 1, 1, 1, 4]
    """
    parents: dict[Hashable, Hashable] = {}

    def root_of(game: Hashable) -> Hashable:
        while (parent := parents.get(game, game)) != game:
            parents[game] = parents.get(parent, parent)  # path halving
            game = parent
        return game

    first_game: dict[Hashable, Hashable] = {}
    for game, position in games:
        earlier = first_game.setdefault(position, game)
        if earlier != game and (root := root_of(earlier)) != (other_root := root_of(game)):
            parents[other_root] = root
    return [root_of(game) for game, _ in games]


def ratio_of(measure: Measure, samples: Samples) -> Ratio:
    """Return the parts and wholes of a measure over the samples."""
    return ratios_of([measure], samples)[measure.name]


def ratios_of(measures: Sequence[Measure], samples: Iterable[Sample]) -> dict[str, Ratio]:
    """Return the parts and wholes of several measures by name, in one pass over the samples.

    They are whole numbers; any other raises a ``TypeError``.
    """
    columns: list[tuple[list[int], list[int]]] = [([], []) for _ in measures]
    for sample in samples:
        for measure, (parts, wholes) in zip(measures, columns, strict=True):
            parts.append(int(operator.index(measure.part(sample))))
            wholes.append(int(operator.index(measure.whole(sample))))
    return {m.name: Ratio(*column, m.pairs) for m, column in zip(measures, columns, strict=True)}


def unusable_share(samples: Samples, condition: str) -> float | None:
    """Return the proportion of answers that are unusable or missing under a condition."""
    unusable = sum(not sample.replies[condition].usable for sample in samples)
    return unusable / len(samples) if samples else None


def any_unusable(samples: Samples, conditions: Sequence[str]) -> bool:
    """Whether any answer under these conditions is unusable or missing."""
    return any(_unusable(sample, conditions) for sample in samples)


def bounds_apply(
    as_scored: Interval, values: Sequence[float], intervals: Sequence[Interval]
) -> bool:
    """Whether unusable answers move the value or widen the interval by more than a tenth."""
    width = as_scored.high - as_scored.low
    lowest, highest = min(i.low for i in intervals), max(i.high for i in intervals)
    return max(max(values) - min(values), highest - lowest - width) > NEGLIGIBLE * width


def bounds_of(measure: Measure, samples: Samples) -> Bounds | None:
    """Return the bounds of a measure over everything its unusable answers could have been.

    None if they make no difference compared with the interval.
    """
    if not any_unusable(samples, measure.needs):
        return None
    scored, games = answered(samples), games_of(samples)
    guessed = [(ratio_of(measure, guess), games) for guess in imputations(measure, samples)]
    possible = [(ratio_of(measure, scored), games_of(scored)), *guessed]
    return bounds_over(
        [ratio.value for ratio, _ in possible],
        [ratio.interval(games) for ratio, games in possible],
        measure.value(complete_cases(samples, measure.needs)),
    )


def bounds_over(
    values: Sequence[Number], intervals: Sequence[Interval | None], complete_cases: Number
) -> Bounds | None:
    """Return bounds over several imputations of the samples; the first is the actual scoring.

    None if unusable answers make no difference compared with the interval.
    """
    defined = [value for value in values if value is not None]
    existing = [interval for interval in intervals if interval]
    always_exists = len(defined) == len(values)
    if intervals[0] and always_exists and not bounds_apply(intervals[0], defined, existing):
        return None
    return Bounds(
        low=min(defined, default=None),
        high=max(defined, default=None),
        lowest=min((interval.low for interval in existing), default=None),
        highest=max((interval.high for interval in existing), default=None),
        complete=complete_cases,
    )


def estimate_of(measure: Measure, samples: Samples) -> tuple[Number, Interval | None]:
    """Return the value of a measure and its interval, extended to its bounds if it has any."""
    scored = answered(samples)
    interval = interval_of(measure, scored)
    if interval and measure.bounded:
        interval = widened(interval, bounds_of(measure, samples))
    return measure.value(scored), interval


def widened(interval: Interval, bounds: Bounds | None) -> Interval:
    """Return the interval to report: extended to the bounds, if there are any."""
    if not bounds or bounds.lowest is None or bounds.highest is None:
        return interval
    return Interval(bounds.lowest, bounds.highest, BOUNDED[interval.method])


def complete_cases(samples: Samples, conditions: Sequence[str]) -> list[Sample]:
    """Return the samples whose answers under these conditions are all usable."""
    return [sample for sample in samples if not _unusable(sample, conditions)]


def imputations(measure: Measure, samples: Samples) -> Iterator[list[Sample]]:
    """Yield the samples with the unusable answers filled in, in several ways.

    First the same outcome for all samples per condition: usual or legal, right or wrong. Then,
    sample by sample, the outcomes that minimize the measure and those that maximize it.
    """
    missing = [name for name in measure.needs if any(_unusable(s, [name]) for s in samples)]
    for outcomes in product(*map(_either, missing)):
        yield [_filled(sample, dict(zip(missing, outcomes, strict=True))) for sample in samples]
    options = [list(_options(sample, measure.needs)) for sample in samples]
    yield from (_extreme_imputation(measure, options, sign) for sign in (-1, 1))


def _extreme_imputation(measure: Measure, options: Sequence[Samples], sign: int) -> list[Sample]:
    """Choose one option per sample that maximizes the measure, or minimizes it if the sign is -1.

    Each sample takes the option that adds most to the sum of part - value * whole. If that makes
    the sum positive, it also raises the value, and the choice is repeated with the new value
    (Dinkelbach, 1967).
    """
    chosen = [max(choices, key=measure.whole) for choices in options]
    while (value := measure.value(chosen)) is not None:
        better = [
            max(choices, key=lambda s: sign * (measure.part(s) - value * measure.whole(s)))
            for choices in options
        ]
        if not any(map(measure.whole, better)):
            _keep_one_whole(measure, options, better, sign)
        if sign * ((measure.value(better) or 0.0) - value) <= 0:
            break
        chosen = better
    return chosen


def _keep_one_whole(
    measure: Measure, options: Sequence[Samples], chosen: list[Sample], sign: int
) -> None:
    """Change one sample's option, at the least loss, so that the denominator is not 0."""
    losses = [
        (sign * (measure.part(chosen[index]) - measure.part(option)), index, option)
        for index, choices in enumerate(options)
        for option in choices
        if measure.whole(option)
    ]
    _, index, option = min(losses, key=lambda loss: loss[0])
    chosen[index] = option


def _options(sample: Sample, conditions: Sequence[str]) -> Iterator[Sample]:
    """Yield the sample with every combination of outcomes for its unusable answers."""
    missing = _unusable(sample, conditions)
    for outcomes in product(*map(_either, missing)):
        yield _filled(sample, dict(zip(missing, outcomes, strict=True)))


def _either(condition: str) -> tuple[Outcome, Outcome]:
    return (
        ("right", "wrong")
        if condition in CONDITIONS and CONDITIONS[condition].about
        else ("usual", "legal")
    )


def _unusable(sample: Sample, conditions: Sequence[str]) -> list[str]:
    return [name for name in conditions if not sample.replies[name].usable]


def _filled(sample: Sample, outcomes: dict[str, Outcome]) -> Sample:
    missing = _unusable(sample, list(outcomes))
    if not missing:
        return sample
    filled = {
        name: replace(sample.replies[name], outcome=outcomes[name], under_change=outcomes[name])
        for name in missing
    }
    return replace(sample, replies={**sample.replies, **filled})
