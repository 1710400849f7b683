"""The scorer of a sample, and the metrics over all samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any, cast, get_args

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

from ..errors import InvalidInput, UserError, unknown_value
from ..game.notation import notate
from ..game.position import Position
from ..game.rules import rules_named
from ..metrics.bounds import joined
from ..metrics.diagnosis import CONTRASTS, DIAGNOSIS
from ..metrics.measures import HABIT, IMPACT, STRICT, UNUSABLE, UPTAKE
from ..metrics.stats.intervals import Difference
from ..metrics.thinking import TEMPTATION, TOKENS, tokens
from ..metrics.types import Measure, one_each
from ..providers.base import Answer
from ..task.conditions import conditions_for
from ..task.prompts import DEFAULT
from ..task.samples import Trial
from ..task.types import UNUSABLE_OUTCOMES, Reading, Sample
from .model import click_errors

# Keys of a sample's metadata. DRAW numbers the repetitions of a position, CONTROL marks controls,
# LENGTH is the number of moves before the position, RULES the changed rules it was selected for.
GAME, MOVES, DRAW, CONTROL = "game", "moves", "draw", "control"
LENGTH, RULES = "num_previous_moves", "rules"
MEASURES: dict[str, Measure] = {m.name: m for m in (*HABIT, *STRICT, *TEMPTATION, *DIAGNOSIS)}
# First in the list of metrics, since Inspect sometimes shows only a few.
HEADLINES = (IMPACT, UPTAKE, "adaptation_rate")


@dataclass(frozen=True)
class Estimate:
    """A metric, and the influence of each sample: the standard error of their mean is its own."""

    value: float
    influences: list[float]


@metric(scores="unreduced")
def habit_metrics() -> Metric:
    """All measures, and mean and deviation of the games' lengths, each with its standard error.

    Standard errors are Inspect's for the mean of clustered samples, applied to the influence of
    each sample on the metric (the delta method), with games as clusters. Every epoch of a sample
    counts; no reducer over epochs applies.
    """

    def compute(scores: list[SampleScore]) -> Value:
        standard_error = cast(MetricProtocol, stderr(cluster=GAME))
        metadata = [score.sample_metadata or {} for score in scores]
        games = joined([(entry[GAME], tuple(entry[MOVES])) for entry in metadata])
        numbers: dict[str, float] = {}
        for name, estimate in _estimates(scores).items():
            numbers[name] = estimate.value
            influences = [
                SampleScore(score=Score(value=influence), sample_metadata={GAME: game})
                for influence, game in zip(estimate.influences, games, strict=True)
            ]
            # Inspect uses a metric of this name as the error bar of the headline.
            error_name = "stderr" if name == IMPACT else f"{name}_stderr"
            numbers[error_name] = cast(float, standard_error(influences))
        return numbers

    return compute


def _estimates(scores: Sequence[SampleScore]) -> dict[str, Estimate]:
    """Compute all metrics; a sample without a value adds nothing to its metric."""
    values = [score.score.as_dict() for score in scores]
    present = {name for value in values for name in value}
    metadata = [score.sample_metadata or {} for score in scores]

    def column(name: str) -> list[float]:
        return [cast(float, value.get(name, 0.0)) for value in values]

    weights = [float(CONTROL not in entry) for entry in metadata]
    lengths = [weight * entry[LENGTH] for weight, entry in zip(weights, metadata, strict=True)]
    estimates = {
        name: _ratio(
            column(name),
            weights
            if MEASURES[name].whole is one_each
            else column(denominator_key(MEASURES[name])),
        )
        for name in (*HEADLINES, *(name for name in MEASURES if name not in HEADLINES))
        # Inspect looks for the headline before the first score.
        if name in present or name in HEADLINES
    }
    estimates |= {
        name: _ratio(column(name), weights) for name in UNUSABLE.values() if name in present
    }
    estimates |= {
        contrast.name: (_difference if contrast.kind is Difference else _quotient_minus_one)(
            estimates[contrast.change.name], estimates[contrast.beside.name]
        )
        for contrast in CONTRASTS.values()
        if {contrast.change.name, contrast.beside.name} <= present
    }
    estimates |= _mean_thinking(scores)
    return estimates | {
        "avg_num_previous_moves": _ratio(lengths, weights),
        "std_num_previous_moves": _deviation(lengths, weights),
    }


def _mean_thinking(scores: Sequence[SampleScore]) -> dict[str, Estimate]:
    """Compute the mean reasoning tokens by condition, over samples with reasoning."""
    metadata = [score.score.metadata or {} for score in scores]
    return {
        name: _ratio(
            [entry.get(name, 0) for entry in metadata], [float(name in entry) for entry in metadata]
        )
        for name in TOKENS.values()
        if any(name in entry for entry in metadata)
    }


def _ratio(parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
    """Return the sum of ``parts`` over the sum of ``wholes``, NaN if that is 0."""
    n, whole = len(wholes), sum(wholes)
    if not whole:
        return Estimate(nan, [nan] * n)
    ratio = sum(parts) / whole
    return Estimate(
        ratio, [(part - ratio * w) * n / whole for part, w in zip(parts, wholes, strict=True)]
    )


def _difference(first: Estimate, second: Estimate) -> Estimate:
    influences = (a - b for a, b in zip(first.influences, second.influences, strict=True))
    return Estimate(first.value - second.value, list(influences))


def _quotient_minus_one(change: Estimate, beside: Estimate) -> Estimate:
    """Return (1 + change) / (1 + beside) - 1, the corrected impact factor."""
    left, left_beside = 1 + change.value, 1 + beside.value
    if not left_beside:
        return Estimate(nan, [nan] * len(change.influences))
    quotient = left / left_beside
    return Estimate(
        quotient - 1,
        [
            (influence - quotient * influence_beside) / left_beside
            for influence, influence_beside in zip(
                change.influences, beside.influences, strict=True
            )
        ],
    )


def _deviation(values: Sequence[float], weights: Sequence[float]) -> Estimate:
    """Return the population standard deviation."""
    mean = _ratio(values, weights).value
    squares = [weight * (value - mean) ** 2 for value, weight in zip(values, weights, strict=True)]
    variance = _ratio(squares, weights)
    deviation = sqrt(variance.value)
    if not deviation:
        return Estimate(0.0, [0.0] * len(values))
    return Estimate(deviation, [influence / (2 * deviation) for influence in variance.influences])


def denominator_key(measure: Measure) -> str:
    """Return the key of the value that counts a sample in the denominator of a measure."""
    return f"{measure.name}_of"


REQUEST_INFO = "asked_how"  # key of a sample's store: rules, reading and conditions
NOT_SENT = Answer("", stop_reason="error", error="never asked")


@scorer(metrics=[habit_metrics()])
def habit(rules: str | None = None, reading: Reading | None = None) -> Scorer:
    """Score whether the model played the special move under the standard and the changed rules.

    Args:
        rules: the rules of the answers; any others are rejected.
        reading: how replies are read; by default as in the task.
    """
    if reading not in (None, *get_args(Reading)):
        with click_errors():
            raise unknown_value("reading", str(reading), get_args(Reading))

    async def score(state: TaskState, target: Target) -> Score:
        with click_errors():
            info = _request_info(state, rules)
        change = rules_named(info["rules"])
        # Any wording will do, since only the answers are read.
        conditions = conditions_for(info["conditions"], change, DEFAULT)
        answers = [_answer_in(state.store.get(condition.name)) for condition in conditions]
        trial = Trial(position_in(state.metadata), state.metadata[DRAW])
        sample = trial.sample(answers, conditions, reading or info["reading"])
        if not sample.answered:
            error = next(answer.error for answer in answers if answer.stop_reason == "error")
            return Score.unscored(reason="no_response", explanation=error)
        texts = _replies_text(sample)
        return Score(
            value=_values(sample, control=CONTROL in state.metadata),
            answer=" / ".join(texts.values()),
            explanation="\n\n".join(
                f"**{condition.rules.title if len(conditions) == 2 else condition.name}:** "
                f"{texts[condition.name]} is {sample.replies[condition.name].outcome}"
                for condition in conditions
            ),
            metadata={
                **{f"{name}_outcome": reply.outcome for name, reply in sample.replies.items()},
                **_thinking_tokens(sample),
            },
        )

    return score


def _request_info(state: TaskState, rules: str | None) -> dict[str, Any]:
    """Return the rules, reading and conditions of a sample.

    Raises:
        InvalidInput: if its answers were given under other rules.
        UserError: if another solver than ours ran.
    """
    info: dict[str, Any] | None = state.store.get(REQUEST_INFO)
    if info is None:
        raise UserError(
            "there are no answers under both sets of rules; the scorer habit needs the solver "
            "every_condition, so leave out --solver"
        )
    if rules not in (None, info["rules"]):
        raise InvalidInput(
            f"these answers were given under {info['rules']}, so they cannot be scored under "
            f"{rules!r}; leave out -S rules"
        )
    return info


def position_in(metadata: dict[str, Any]) -> Position:
    """Return the position of a sample from its metadata."""
    moves, special_moves = tuple(metadata[MOVES]), tuple(metadata["special_moves"])
    return Position(metadata[GAME], moves, special_moves, metadata["source"])


def _answer_in(stored: dict[str, Any] | None) -> Answer:
    return Answer.from_json(stored) if stored else NOT_SENT


def _values(sample: Sample, *, control: bool) -> dict[str, str | int | float | bool | None]:
    """Return the numerator of every measure, and its denominator where it is not 1."""
    has_reasoning = any(answer.is_thoughtful for answer in sample.answers.values())
    measures = [
        m
        for m in MEASURES.values()
        if m.of_controls == control
        and set(m.needs) <= sample.replies.keys()
        and (has_reasoning or not m.optional)
    ]
    parts = {measure.name: int(measure.part(sample)) for measure in measures}
    wholes = {denominator_key(m): int(m.whole(sample)) for m in measures if m.whole is not one_each}
    unusable = (
        {}
        if control
        else {
            name: int(sample.replies[condition].outcome in UNUSABLE_OUTCOMES)
            for condition, name in UNUSABLE.items()
        }
    )
    headlines = {name: parts[name] for name in HEADLINES if name in parts}
    return {**headlines, **parts, **unusable, **wholes}


def _thinking_tokens(sample: Sample) -> dict[str, int]:
    """Return reasoning tokens by condition, empty for a sample without reasoning."""
    counts = {TOKENS[name]: tokens(name, sample) for name in TOKENS if name in sample.replies}
    return counts if any(counts.values()) else {}


def _replies_text(sample: Sample) -> dict[str, str]:
    board = sample.position.board()
    return {
        name: notate(board, reply.move) if reply.move else repr(sample.answers[name].text[:40])
        for name, reply in sample.replies.items()
    }
