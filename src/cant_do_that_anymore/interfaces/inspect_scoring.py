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

from ..evaluation.judging import Judgement, Reading
from ..evaluation.metrics import Sample, judged
from ..game.position import Position
from ..game.rules import STANDARD, Rules, rules_named
from ..models.model import Answer
from ..report.notation import written

HEADLINE = "variant_impact_factor"
GAME = "game"
"""The key of a sample's metadata that tells which game it is from."""
RULE_SETS = ("standard", "variant")
"""Where the solver leaves the answers in a sample's store."""


@dataclass(frozen=True)
class Estimate:
    """A number, and how much each sample moves it: their mean's standard error is its own."""

    value: float
    influences: list[float]


@metric
def habit_metrics() -> Metric:
    """The original's six metrics and the adaptation rate, each with its standard error.

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
            error_name = "stderr" if name == HEADLINE else f"{name}_stderr"
            numbers[error_name] = cast(float, standard_error(influences))
        return numbers

    return compute


@scorer(metrics=[habit_metrics()])
def habit(rules: str, reading: Reading = "lenient") -> Scorer:
    """Whether the special move was played, under the standard rules and under the changed ones."""
    changed = rules_named(rules)

    async def score(state: TaskState, target: Target) -> Score:
        standard, variant = (_answer_in(state.store.get(rule_set)) for rule_set in RULE_SETS)
        sample = judged(position_in(state.metadata), standard, variant, changed, reading)
        if not sample.answered:
            return Score.unscored(reason="no_response", explanation=standard.error or variant.error)
        return Score(
            value=_values(sample),
            answer=" / ".join(_said(sample)),
            explanation=_explanation(sample, changed),
            metadata={
                "standard_outcome": sample.standard_judgement.outcome,
                "variant_outcome": sample.variant_judgement.outcome,
            },
        )

    return score


def position_in(metadata: dict[str, Any]) -> Position:
    """The position a sample is about."""
    moves, special_moves = tuple(metadata["moves"]), tuple(metadata["special_moves"])
    return Position(metadata[GAME], moves, special_moves, metadata["source"])


def _answer_in(stored: dict[str, Any] | None) -> Answer:
    return Answer(**stored) if stored else Answer("", stop_reason="error", error="never asked")


def _values(sample: Sample) -> dict[str, str | int | float | bool | None]:
    return {
        "predicted_move": int(sample.had_habit),
        "predicted_move_in_variant": int(sample.kept_habit),
        "adapted": int(sample.had_habit and sample.adapted),
        "num_previous_moves": len(sample.position.moves),
    }


def _said(sample: Sample) -> list[str]:
    board = sample.position.board()
    return [
        written(board, judgement.move) if judgement.move else repr(answer.text[:40])
        for answer, judgement in _answers(sample)
    ]


def _explanation(sample: Sample, changed: Rules) -> str:
    return "\n\n".join(
        f"**{rules.title}:** {said} is {judgement.outcome}"
        for rules, said, (_, judgement) in zip(
            (STANDARD, changed), _said(sample), _answers(sample), strict=True
        )
    )


def _answers(sample: Sample) -> list[tuple[Answer, Judgement]]:
    return [
        (sample.standard, sample.standard_judgement),
        (sample.variant, sample.variant_judgement),
    ]


def _estimates(scores: Sequence[SampleScore]) -> dict[str, Estimate]:
    before, after, adapted, lengths = (
        [cast(float, score.score.as_dict()[name]) for score in scores]
        for name in (
            "predicted_move",
            "predicted_move_in_variant",
            "adapted",
            "num_previous_moves",
        )
    )
    change = [a - b for a, b in zip(after, before, strict=True)]
    return {
        HEADLINE: _ratio(change, before),
        "delta": _mean(change),
        "predicted_move_proportion": _mean(before),
        "predicted_move_in_variant_proportion": _mean(after),
        "avg_num_previous_moves": _mean(lengths),
        "std_num_previous_moves": _deviation(lengths),
        "adaptation_rate": _ratio(adapted, before),
    }


def _mean(values: Sequence[float]) -> Estimate:
    return _ratio(values, [1.0] * len(values))


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


def _deviation(values: Sequence[float]) -> Estimate:
    """The population's standard deviation."""
    mean = _mean(values).value
    squares = [(value - mean) ** 2 for value in values]
    deviation = sqrt(_mean(squares).value)
    if not deviation:
        return Estimate(0.0, [0.0] * len(values))
    return Estimate(deviation, [(square - deviation**2) / (2 * deviation) for square in squares])
