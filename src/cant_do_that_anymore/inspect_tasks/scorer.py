"""The scorer of a sample, and the metrics over all of them."""

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
from .model import one_sentence

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


ASKED_HOW = "asked_how"
"""Key of a sample's store: under which rules it was asked, and how replies are read."""
NEVER_ASKED = Answer("", stop_reason="error", error="never asked")


@scorer(metrics=[habit_metrics()])
def habit(rules: str | None = None, reading: Reading | None = None) -> Scorer:
    """Whether the special move was played, under the standard rules and under the changed ones.

    Args:
        rules: those that the answers were given under; any others are refused.
        reading: how replies are read; by default as when they were given.
    """
    if reading not in (None, *get_args(Reading)):
        with one_sentence():
            raise unknown_value("reading", str(reading), get_args(Reading))

    async def score(state: TaskState, target: Target) -> Score:
        with one_sentence():
            how = _asked_how(state, rules)
        change = rules_named(how["rules"])
        conditions = conditions_for(how["conditions"], change, DEFAULT)  # the wording is read over
        answers = [_answer_in(state.store.get(condition.name)) for condition in conditions]
        draw = Trial(position_in(state.metadata), state.metadata[DRAW])
        sample = draw.sample(answers, conditions, reading or how["reading"])
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
            metadata={
                **{f"{name}_outcome": reply.outcome for name, reply in sample.replies.items()},
                **_thinking_tokens(sample),
            },
        )

    return score


def _asked_how(state: TaskState, rules: str | None) -> dict[str, Any]:
    """How the sample was asked.

    Raises:
        InvalidInput: if its answers were given under other rules than these.
        UserError: if it was not asked by our solver.
    """
    how: dict[str, Any] | None = state.store.get(ASKED_HOW)
    if how is None:
        raise UserError(
            "nothing was asked under both rule sets: the scorer habit reads the answers that "
            "the solver every_condition gets, so leave out --solver"
        )
    if rules not in (None, how["rules"]):
        raise InvalidInput(
            f"these answers were given under {how['rules']}, so they cannot be scored under "
            f"{rules!r}: leave out -S rules"
        )
    return how


def position_in(metadata: dict[str, Any]) -> Position:
    """The position a sample is about."""
    moves, special_moves = tuple(metadata[MOVES]), tuple(metadata["special_moves"])
    return Position(metadata[GAME], moves, special_moves, metadata["source"])


def _answer_in(stored: dict[str, Any] | None) -> Answer:
    return Answer.from_json(stored) if stored else NEVER_ASKED


def _values(sample: Sample, *, control: bool) -> dict[str, str | int | float | bool | None]:
    """The part of every measure, and its whole where that is not every sample."""
    thinks = any(answer.is_thoughtful for answer in sample.answers.values())
    measures = [
        m
        for m in MEASURES.values()
        if m.of_controls == control
        and set(m.needs) <= sample.replies.keys()
        and (thinks or not m.optional)
    ]
    parts = {measure.name: int(measure.part(sample)) for measure in measures}
    wholes = {whole_of(m): int(m.whole(sample)) for m in measures if m.whole is not one_each}
    junk = (
        {}
        if control
        else {
            name: int(sample.replies[condition].outcome in UNUSABLE_OUTCOMES)
            for condition, name in UNUSABLE.items()
        }
    )
    first = {name: parts[name] for name in FIRST if name in parts}
    return {**first, **parts, **junk, **wholes}


def _thinking_tokens(sample: Sample) -> dict[str, int]:
    """How long it thought, by condition; nothing of a sample without thoughts."""
    found = {TOKENS[name]: tokens(name, sample) for name in TOKENS if name in sample.replies}
    return found if any(found.values()) else {}


def _said(sample: Sample) -> dict[str, str]:
    board = sample.position.board()
    return {
        name: notate(board, reply.move) if reply.move else repr(sample.answers[name].text[:40])
        for name, reply in sample.replies.items()
    }
