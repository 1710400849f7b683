"""Intervals of measures, and their bounds over unusable answers."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeVar

from ..formatting import Number
from ..task.conditions import QUESTIONS
from ..task.types import Outcome, Sample, ScoredAnswer
from .stats.intervals import BOUNDED, Interval, Ratio, ratio_interval
from .types import Bounds, Measure

NEGLIGIBLE = 0.1
"""Up to this share of the interval's width, unusable answers make no difference beside it."""

_Guess = TypeVar("_Guess")


def answered(samples: Sequence[Sample]) -> list[Sample]:
    """Those of which every question got an answer: they enter the measures."""
    return [sample for sample in samples if sample.answered]


def interval_of(
    measure: Measure, samples: Sequence[Sample], critical_factor: float = 1.0
) -> Interval | None:
    """The 95 % interval of a measure; None where the measure does not exist."""
    return interval_in(ratio_of(measure, samples), games_of(samples), critical_factor)


def interval_in(
    ratio: Ratio, groups: Sequence[Hashable], critical_factor: float
) -> Interval | None:
    """The same of a ratio whose samples are in these groups, which go together."""
    return ratio_interval(ratio.parts, ratio.wholes, groups, ratio.support, critical_factor)


def games_of(samples: Sequence[Sample]) -> list[Hashable]:
    """The game of each sample; those with a position in common are one."""
    return joined([(sample.position.game, sample.position.moves) for sample in samples])


def joined(games: Sequence[tuple[Hashable, Hashable]]) -> list[Hashable]:
    """The games, given with a position each, as one wherever two of them have one in common.

    >>> joined([(1, "a"), (2, "b"), (3, "b"), (2, "a"), (4, "c")])
    [1, 1, 1, 1, 4]
    """
    same_as: dict[Hashable, Hashable] = {}

    def first(game: Hashable) -> Hashable:
        while (before := same_as.get(game, game)) != game:
            same_as[game] = same_as.get(before, before)  # the way is half as long next time
            game = before
        return game

    held_by: dict[Hashable, Hashable] = {}
    for game, position in games:
        other = held_by.setdefault(position, game)
        if other != game and (one := first(other)) != (more := first(game)):
            same_as[more] = one
    return [first(game) for game, _ in games]


def special_moves_of(samples: Sequence[Sample]) -> list[Hashable]:
    """The special moves of each sample."""
    return [sample.position.special_moves for sample in samples]


def ratio_of(measure: Measure, samples: Sequence[Sample]) -> Ratio:
    """The parts and wholes of the samples."""
    return ratios_of([measure], samples)[measure.name]


def ratios_of(measures: Sequence[Measure], samples: Iterable[Sample]) -> dict[str, Ratio]:
    """Those of several measures, by name; each sample is looked at once for all of them."""
    columns: list[tuple[list[int], list[int]]] = [([], []) for _ in measures]
    for sample in samples:
        for measure, (parts, wholes) in zip(measures, columns, strict=True):
            parts.append(int(measure.part(sample)))
            wholes.append(int(measure.whole(sample)))
    return {m.name: Ratio(*column, m.pairs) for m, column in zip(measures, columns, strict=True)}


def unusable_share(samples: Sequence[Sample], condition: str) -> float | None:
    """The share of answers that do not tell what was asked for, or that never came."""
    unusable = sum(not sample.replies[condition].usable for sample in samples)
    return unusable / len(samples) if samples else None


def any_unusable(samples: Sequence[Sample], conditions: Sequence[str]) -> bool:
    """Whether an answer under one of these conditions is unusable or missing."""
    return any(_unusable(sample, conditions) for sample in samples)


def bounds_apply(as_scored: Interval, values: Sequence[float], around: Sequence[Interval]) -> bool:
    """Whether unusable answers matter: move the value, or widen the interval, by a tenth of it."""
    width = as_scored.high - as_scored.low
    widest = max(each.high for each in around) - min(each.low for each in around)
    return max(max(values) - min(values), widest - width) > NEGLIGIBLE * width


def bounds_of(
    measure: Measure, samples: Sequence[Sample], critical_factor: float = 1.0
) -> Bounds | None:
    """What the measure would be, whatever the unusable answers would have said.

    None where that makes no difference beside the interval.
    """
    if not any_unusable(samples, measure.needs):
        return None
    told, games = answered(samples), games_of(samples)
    guessed = [(ratio_of(measure, guess), games) for guess in guesses(measure, samples)]
    return bounds_over(
        [(ratio_of(measure, told), games_of(told)), *guessed],
        lambda guess: guess[0].value,
        lambda guess: interval_in(*guess, critical_factor),
        measure.value(complete(samples, measure.needs)),
    )


def bounds_over(
    guessed: Sequence[_Guess],
    value_of: Callable[[_Guess], Number],
    interval_of: Callable[[_Guess], Interval | None],
    complete: Number,
) -> Bounds | None:
    """Bounds over what the samples may have been, the first guess being what they are."""
    values = [value for guess in guessed if (value := value_of(guess)) is not None]
    intervals = [interval for guess in guessed if (interval := interval_of(guess))]
    as_scored = interval_of(guessed[0])
    always_exists = len(values) == len(guessed)
    if as_scored and always_exists and not bounds_apply(as_scored, values, intervals):
        return None
    return Bounds(
        low=min(values, default=None),
        high=max(values, default=None),
        lowest=min((interval.low for interval in intervals), default=None),
        highest=max((interval.high for interval in intervals), default=None),
        complete=complete,
    )


def widened(interval: Interval | None, bounds: Bounds | None) -> Interval | None:
    """The interval that is printed: that over all that unusable answers may have been."""
    if not interval or not bounds or bounds.lowest is None or bounds.highest is None:
        return interval
    return Interval(bounds.lowest, bounds.highest, BOUNDED[interval.method])


def complete(samples: Sequence[Sample], conditions: Sequence[str]) -> list[Sample]:
    """The samples of which every answer under these conditions is usable."""
    return [sample for sample in samples if not _unusable(sample, conditions)]


def guesses(measure: Measure, samples: Sequence[Sample]) -> Iterator[list[Sample]]:
    """What the unusable answers may have been.

    First the same under each condition for all: the special move or a legal one, right or wrong.
    Then, sample by sample, what makes the measure least, and what makes it greatest.
    """
    missing = [name for name in measure.needs if any(_unusable(s, [name]) for s in samples)]
    for said in product(*map(_either, missing)):
        yield [_filled(sample, dict(zip(missing, said, strict=True))) for sample in samples]
    options = [list(_options(sample, measure.needs)) for sample in samples]
    yield from (_furthest(measure, options, sign) for sign in (-1, 1))


def _furthest(measure: Measure, options: Sequence[Sequence[Sample]], sign: int) -> list[Sample]:
    """One option of each sample, such that the measure is greatest, or least if the sign is -1.

    Each sample takes what adds most to the sum of part - value * whole. If that lifts the sum above
    0, it lifts the value as well, and with the new value the choice is made again (Dinkelbach,
    1967).
    """
    chosen = [max(each, key=measure.whole) for each in options]
    while (value := measure.value(chosen)) is not None:
        better = [
            each[0]
            if len(each) == 1
            else max(each, key=lambda s: sign * (measure.part(s) - value * measure.whole(s)))
            for each in options
        ]
        if not any(map(measure.whole, better)):
            _keep_one_whole(measure, options, better, sign)
        if sign * ((measure.value(better) or 0.0) - value) <= 0:
            break
        chosen = better
    return chosen


def _keep_one_whole(
    measure: Measure, options: Sequence[Sequence[Sample]], chosen: list[Sample], sign: int
) -> None:
    """Let one sample take what leaves something to divide by, at the least loss."""
    losses = [
        (sign * (measure.part(chosen[place]) - measure.part(option)), place, option)
        for place, each in enumerate(options)
        for option in each
        if measure.whole(option)
    ]
    _, place, option = min(losses, key=lambda loss: loss[0])
    chosen[place] = option


def _options(sample: Sample, conditions: Sequence[str]) -> Iterator[Sample]:
    """The sample with everything that its unusable answers may have been."""
    missing = _unusable(sample, conditions)
    for said in product(*map(_either, missing)):
        yield _filled(sample, dict(zip(missing, said, strict=True)))


def _either(condition: str) -> tuple[Outcome, Outcome]:
    return ("right", "wrong") if condition in QUESTIONS else ("special", "legal")


def _unusable(sample: Sample, conditions: Sequence[str]) -> list[str]:
    return [name for name in conditions if not sample.replies[name].usable]


def _filled(sample: Sample, said: dict[str, Outcome]) -> Sample:
    missing = _unusable(sample, list(said))
    if not missing:
        return sample
    filled = {name: _as(sample.replies[name], said[name]) for name in missing}
    return replace(sample, replies={**sample.replies, **filled})


def _as(reply: ScoredAnswer, outcome: Outcome) -> ScoredAnswer:
    return replace(reply, outcome=outcome, under_change=outcome)
