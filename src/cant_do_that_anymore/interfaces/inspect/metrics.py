"""What Inspect computes from the scores of all samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import cast

from inspect_ai.scorer import Metric, MetricProtocol, SampleScore, Score, Value, metric, stderr

from ...metrics.bounds import joined
from ...metrics.diagnosis import CONTRASTS, DIAGNOSIS
from ...metrics.measures import HABIT, IMPACT, STRICT, UNUSABLE, UPTAKE
from ...metrics.stats.intervals import Difference
from ...metrics.thinking import TEMPTATION, TOKENS
from ...metrics.types import Measure, one_each

GAME, MOVES, DRAW, CONTROL = "game", "moves", "draw", "control"
"""Keys of a sample's metadata: game and moves, which asking of its questions, and for controls."""
LENGTH, RULES = "num_previous_moves", "rules"
"""Others: moves before the position, and the changed rules that it was chosen for."""
MEASURES: dict[str, Measure] = {m.name: m for m in (*HABIT, *STRICT, *TEMPTATION, *DIAGNOSIS)}
FIRST = (IMPACT, UPTAKE, "adaptation_rate")
"""What the others should not be read without, wherever Inspect shows few."""


@dataclass(frozen=True)
class Estimate:
    """A number, and how much each sample moves it: their mean's standard error is its own."""

    value: float
    influences: list[float]


@metric(scores="unreduced")
def habit_metrics() -> Metric:
    """Our measures and the spread of the games' lengths, each with its standard error.

    Standard errors are Inspect's for the mean of clustered samples, applied to the influence of
    each sample on the metric (the delta method), with games as clusters. Every epoch of a sample
    counts, and no reducer over epochs has a say.
    """

    def compute(scores: list[SampleScore]) -> Value:
        standard_error = cast(MetricProtocol, stderr(cluster=GAME))
        about = [score.sample_metadata or {} for score in scores]
        games = joined([(each[GAME], tuple(each[MOVES])) for each in about])
        numbers: dict[str, float] = {}
        for name, estimate in _estimates(scores).items():
            numbers[name] = estimate.value
            influences = [
                SampleScore(score=Score(value=influence), sample_metadata={GAME: game})
                for influence, game in zip(estimate.influences, games, strict=True)
            ]
            # Inspect takes a metric of this name for the error bar of the headline.
            error_name = "stderr" if name == IMPACT else f"{name}_stderr"
            numbers[error_name] = cast(float, standard_error(influences))
        return numbers

    return compute


def _estimates(scores: Sequence[SampleScore]) -> dict[str, Estimate]:
    """What the scores come to; a sample that has no part in a number adds nothing to it."""
    values = [score.score.as_dict() for score in scores]
    given = {name for value in values for name in value}
    about = [score.sample_metadata or {} for score in scores]

    def column(name: str) -> list[float]:
        return [cast(float, value.get(name, 0.0)) for value in values]

    ones = [float(CONTROL not in each) for each in about]
    lengths = [one * each[LENGTH] for one, each in zip(ones, about, strict=True)]
    found = {
        name: _ratio(
            column(name),
            ones if MEASURES[name].whole is one_each else column(whole_of(MEASURES[name])),
        )
        for name in (*FIRST, *(name for name in MEASURES if name not in FIRST))
        if name in given or name in FIRST  # Inspect looks for the headline before the first score
    }
    found |= {name: _ratio(column(name), ones) for name in UNUSABLE.values() if name in given}
    found |= {
        contrast.name: (_minus if contrast.kind is Difference else _left_of)(
            found[contrast.change.name], found[contrast.beside.name]
        )
        for contrast in CONTRASTS.values()
        if {contrast.change.name, contrast.beside.name} <= given
    }
    found |= _mean_thinking(scores)
    return found | {
        "avg_num_previous_moves": _ratio(lengths, ones),
        "std_num_previous_moves": _deviation(lengths, ones),
    }


def _mean_thinking(scores: Sequence[SampleScore]) -> dict[str, Estimate]:
    """The mean number of thinking tokens by condition, of samples that have thoughts."""
    told = [score.score.metadata or {} for score in scores]
    return {
        name: _ratio([each.get(name, 0) for each in told], [float(name in each) for each in told])
        for name in TOKENS.values()
        if any(name in each for each in told)
    }


def _ratio(parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
    """The sum of ``parts`` over the sum of ``wholes``, which does not exist where that is 0."""
    n, whole = len(wholes), sum(wholes)
    if not whole:
        return Estimate(nan, [nan] * n)
    ratio = sum(parts) / whole
    return Estimate(
        ratio,
        [(part - ratio * w) * n / whole for part, w in zip(parts, wholes, strict=True)],
    )


def _minus(one: Estimate, other: Estimate) -> Estimate:
    influences = (a - b for a, b in zip(one.influences, other.influences, strict=True))
    return Estimate(one.value - other.value, list(influences))


def _left_of(change: Estimate, beside: Estimate) -> Estimate:
    """What one change leaves over what the other leaves, less 1."""
    left, left_beside = 1 + change.value, 1 + beside.value
    if not left_beside:
        return Estimate(nan, [nan] * len(change.influences))
    quotient = left / left_beside
    return Estimate(
        quotient - 1,
        [
            (one - quotient * other) / left_beside
            for one, other in zip(change.influences, beside.influences, strict=True)
        ],
    )


def _deviation(values: Sequence[float], ones: Sequence[float]) -> Estimate:
    """The population's standard deviation."""
    mean = _ratio(values, ones).value
    squares = [one * (value - mean) ** 2 for value, one in zip(values, ones, strict=True)]
    variance = _ratio(squares, ones)
    deviation = sqrt(variance.value)
    if not deviation:
        return Estimate(0.0, [0.0] * len(values))
    return Estimate(deviation, [influence / (2 * deviation) for influence in variance.influences])


def whole_of(measure: Measure) -> str:
    """The key of the value that says whether a sample counts in its denominator."""
    return f"{measure.name}_of"
