"""How Inspect scores a sample, and what it computes from the scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any, cast

from inspect_ai.scorer import (
    Metric,
    MetricProtocol,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState

from ...evaluation.conditions import conditions_for
from ...evaluation.contrasts import CONTRASTS
from ...evaluation.diagnosis import ASKED, ASKED_OF_CONTROLS, DIAGNOSIS
from ...evaluation.measures import HABIT, IMPACT, STRICT
from ...evaluation.samples import Draw
from ...evaluation.vocabulary import AFTER, BEFORE, Condition, Measure, Reading, Sample, every
from ...evaluation.wordings import wording_named
from ...game.notation import written
from ...game.position import Position
from ...game.rules import rules_named
from ...models.model import Answer

GAME, DRAW, CONTROL = "game", "draw", "control"
"""Keys of a sample's metadata: its game, which asking of its questions it is, and for controls."""
LENGTH = "num_previous_moves"
MEASURES: tuple[Measure, ...] = (*HABIT, *STRICT, *DIAGNOSIS)
NEVER_ASKED = Answer("", stop_reason="error", error="never asked")


def conditions_of(rules: str, wording: str, diagnose: bool = False) -> tuple[Condition, ...]:
    """What positions are asked under."""
    names = ASKED if diagnose else (BEFORE, AFTER)
    return conditions_for(names, rules_named(rules), wording_named(wording))


def of_sample(conditions: Sequence[Condition], metadata: dict[str, Any]) -> list[Condition]:
    """Those that a sample is asked under: of a control, few."""
    control = CONTROL in metadata
    return [each for each in conditions if not control or each.name in ASKED_OF_CONTROLS]


@dataclass(frozen=True)
class Estimate:
    """A number, and how much each sample moves it: their mean's standard error is its own."""

    value: float
    influences: list[float]


@metric
def habit_metrics() -> Metric:
    """Our measures and the spread of the games' lengths, each with its standard error.

    Standard errors are Inspect's for the mean of clustered samples, applied to the influence of
    each sample on the metric (the delta method), with games as clusters.
    """

    def compute(scores: list[SampleScore]) -> Value:
        standard_error = cast(MetricProtocol, stderr(cluster=GAME))
        numbers: dict[str, float] = {}
        for name, estimate in _estimates(scores).items():
            numbers[name] = estimate.value
            influences = [
                SampleScore(score=Score(value=influence), sample_metadata=score.sample_metadata)
                for influence, score in zip(estimate.influences, scores, strict=True)
            ]
            # Inspect takes a metric of this name for the error bar of the headline.
            error_name = "stderr" if name == IMPACT else f"{name}_stderr"
            numbers[error_name] = cast(float, standard_error(influences))
        return numbers

    return compute


@scorer(metrics=[habit_metrics()])
def habit(
    rules: str, wording: str = "default", reading: Reading = "lenient", diagnose: bool = False
) -> Scorer:
    """Whether the special move was played, under the standard rules and under the changed ones."""
    asked = conditions_of(rules, wording, diagnose)

    async def score(state: TaskState, target: Target) -> Score:
        conditions = of_sample(asked, state.metadata)
        answers = [_answer_in(state.store.get(condition.name)) for condition in conditions]
        draw = Draw(position_in(state.metadata), state.metadata[DRAW])
        sample = draw.sample(answers, conditions, reading)
        if not sample.answered:
            error = next(answer.error for answer in answers if answer.stop_reason == "error")
            return Score.unscored(reason="no_response", explanation=error)
        said = _said(sample)
        return Score(
            value=_values(sample, control=CONTROL in state.metadata),
            answer=" / ".join(said.values()),
            explanation="\n\n".join(
                f"**{condition.rules.title if len(conditions) == 2 else condition.name}:** "
                f"{said[condition.name]} is {sample.replies[condition.name].outcome}"
                for condition in conditions
            ),
            metadata={f"{name}_outcome": reply.outcome for name, reply in sample.replies.items()},
        )

    return score


def position_in(metadata: dict[str, Any]) -> Position:
    """The position a sample is about."""
    moves, special_moves = tuple(metadata["moves"]), tuple(metadata["special_moves"])
    return Position(metadata[GAME], moves, special_moves, metadata["source"])


def _answer_in(stored: dict[str, Any] | None) -> Answer:
    return Answer.from_json(stored) if stored else NEVER_ASKED


def _values(sample: Sample, *, control: bool) -> dict[str, str | int | float | bool | None]:
    """The part of every measure, and its whole where that is not every sample."""
    measures = [
        m for m in MEASURES if m.of_controls == control and set(m.needs) <= sample.replies.keys()
    ]
    parts = {measure.name: int(measure.part(sample)) for measure in measures}
    wholes = {_whole(m): int(m.whole(sample)) for m in measures if m.whole is not every}
    return {**parts, **wholes, **({} if control else {LENGTH: len(sample.position.moves)})}


def _whole(measure: Measure) -> str:
    return f"{measure.name}_of"


def _said(sample: Sample) -> dict[str, str]:
    board = sample.position.board()
    return {
        name: written(board, reply.move) if reply.move else repr(reply.answer.text[:40])
        for name, reply in sample.replies.items()
    }


def _estimates(scores: Sequence[SampleScore]) -> dict[str, Estimate]:
    """What the scores come to; a sample that has no part in a number adds nothing to it."""
    values = [score.score.as_dict() for score in scores]
    given = {name for value in values for name in value}

    def column(name: str) -> list[float]:
        return [cast(float, value.get(name, 0.0)) for value in values]

    ones = [float(LENGTH in value) for value in values]
    lengths = column(LENGTH)
    found = {
        measure.name: _ratio(
            column(measure.name), ones if measure.whole is every else column(_whole(measure))
        )
        for measure in MEASURES
        if measure.name in given
    }
    found |= {
        contrast.name: _left_of(found[contrast.change.name], found[contrast.beside.name])
        for contrast in CONTRASTS.values()
        if {contrast.change.name, contrast.beside.name} <= given
    }
    return found | {
        "avg_num_previous_moves": _ratio(lengths, ones),
        "std_num_previous_moves": _deviation(lengths, ones),
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
