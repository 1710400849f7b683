"""How sure a measure is: its interval, and its bounds where answers could not be used."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from .diagnosis import QUESTIONS
from .results import Bounds
from .statistics.intervals import Interval, Ratio, ratio_interval
from .vocabulary import Measure, Outcome, Reply, Sample

FEW = 0.01
"""Up to this share of unusable answers, none is missed; conditions then differ by no more."""


def answered(samples: Sequence[Sample]) -> list[Sample]:
    """Those of which every question got an answer: they enter the measures."""
    return [sample for sample in samples if sample.answered]


def interval_of(
    measure: Measure, samples: Sequence[Sample], stretch: float = 1.0
) -> Interval | None:
    """The 95 % interval of a measure; None where the measure does not exist."""
    return interval_in(ratio_of(measure, samples), games_of(samples), stretch)


def interval_in(ratio: Ratio, groups: Sequence[Hashable], stretch: float) -> Interval | None:
    """The same of a ratio whose samples are in these groups, which go together."""
    return ratio_interval(ratio.parts, ratio.wholes, groups, ratio.support, stretch)


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


def matters(samples: Sequence[Sample], conditions: Sequence[str]) -> bool:
    """Whether unusable answers are more than a few under any condition."""
    return any((unusable_share(samples, name) or 0.0) > FEW for name in conditions)


def bounds_of(measure: Measure, samples: Sequence[Sample], stretch: float = 1.0) -> Bounds | None:
    """What the measure would be, whatever the unusable answers would have said.

    None where they are too few to matter.
    """
    if not matters(samples, measure.needs):
        return None
    imagined = [answered(samples), *guesses(measure, samples)]
    values = [value for guess in imagined if (value := measure.value(guess)) is not None]
    intervals = [
        interval for guess in imagined if (interval := interval_of(measure, guess, stretch))
    ]
    return Bounds(
        low=min(values, default=None),
        high=max(values, default=None),
        lowest=min((interval.low for interval in intervals), default=None),
        highest=max((interval.high for interval in intervals), default=None),
        complete=measure.value(complete(samples, measure.needs)),
    )


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
            max(each, key=lambda s: sign * (measure.part(s) - value * measure.whole(s)))
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


def _as(reply: Reply, outcome: Outcome) -> Reply:
    return replace(reply, outcome=outcome, under_change=outcome)
