"""The scorer of a sample, and the metrics over all samples."""

from collections.abc import Callable
from math import nan
from typing import Any, get_args

from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    scorer,
)
from inspect_ai.solver import TaskState

from ..errors import UserError, unknown_value
from ..habits.base import Habit
from ..habits.catalog import restored_change
from ..metrics.compute import estimates_of, findings_of
from ..metrics.estimates import Estimate
from ..metrics.measures import MEASURES, UPTAKE
from ..providers.base import Answer, Usage
from ..task.conditions import conditions_for
from ..task.prompts import DEFAULT_WORDING, shipped_wording
from ..task.samples import Trial
from ..task.types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    Reading,
    Sample,
    Samples,
    ScoredAnswer,
)
from .arguments import click_errors

# Keys of a sample's metadata. DRAW numbers the repetitions of an item. RULES_KEY names the change
# that it was selected for, and CHANGE_KEY restores it.
GROUP, ITEM, DRAW, CONTROL_KEY = "group", "item", "draw", "control"
RULES_KEY, CHANGE_KEY = "rules", "change"
REPLIES = "replies"  # key of a score's metadata: what the metrics need of each reply


@metric(scores="unreduced")
def habit_metrics() -> Metric:
    """All measures with their 95% intervals, as ``cdta run`` computes them.

    Every epoch of a sample counts; no reducer over epochs applies.
    """

    def compute(scores: list[SampleScore]) -> Value:
        samples: list[Sample] = []
        controls: list[Sample] = []
        for score in scores:
            is_control = CONTROL_KEY in (score.sample_metadata or {})
            (controls if is_control else samples).append(_sample_in(score))
        numbers: dict[str, float] = {}
        for name, estimate in _estimates(samples, controls).items():
            numbers[name] = estimate.value if estimate else nan
            if estimate and estimate.low is not None and estimate.high is not None:
                numbers |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        return numbers

    return compute


def _estimates(samples: Samples, controls: Samples) -> dict[str, Estimate | None]:
    """Return all numbers, the rule uptake first."""
    names = list(samples[0].replies) if samples else [STANDARD_CONDITION, CHANGED_CONDITION]
    findings = findings_of(samples, controls, names)
    return {
        **dict.fromkeys(MEASURES),
        **estimates_of(samples, names),
        **{name: finding.estimate for name, finding in findings.items()},
    }


def _sample_in(score: SampleScore) -> Sample:
    """Return the sample of a score, without the texts of its answers."""
    info, metadata = score.score.metadata or {}, score.sample_metadata or {}
    replies, answers = {}, {}
    for name, (outcome, answer, under_change, tokens) in info[REPLIES].items():
        replies[name] = ScoredAnswer(outcome, answer, under_change)
        answers[name] = Answer(usage=Usage(thinking_tokens=tokens))
    return Sample(item_in(metadata), metadata[DRAW], replies, answers)


REQUEST_INFO = "asked_how"  # key of a sample's store: reading and conditions
NOT_SENT = Answer("", stop_reason="error", error="never asked")


@scorer(metrics=[habit_metrics()])
def habit(reading: Reading | None = None) -> Scorer:
    """Score 1 for a violation that the rule prevents, -1 for one that it causes, else 0.

    Args:
        reading: how replies are read; by default as in the task.
    """
    if reading not in (None, *get_args(Reading)):
        with click_errors():
            raise unknown_value("reading", str(reading), get_args(Reading))

    async def score(state: TaskState, target: Target) -> Score:
        sample = _scored(state, reading)
        if not sample.answered:
            return _unscored(sample)
        texts = _replies_text(sample, restored_change(state.metadata[CHANGE_KEY]).its_habit)
        return Score(
            value=UPTAKE.ratio([sample]).parts[0],
            answer=" / ".join(texts.values()),
            explanation="\n\n".join(
                f"**{name}:** {text} is {sample.replies[name].outcome}"
                for name, text in texts.items()
            ),
            metadata={REPLIES: {name: _facts(sample, name) for name in sample.replies}},
        )

    return score


@scorer(metrics=[])
def violation_before() -> Scorer:
    """1 if the answer under the standard rules breaks the changed rules."""
    return _number(lambda sample: UPTAKE.ratio([sample]).wholes[0])


@scorer(metrics=[])
def usual_before() -> Scorer:
    """1 if the model gave the usual answer under the standard rules."""
    return _number(lambda sample: sample.had_habit)


@scorer(metrics=[])
def usual_after() -> Scorer:
    """1 if the model gave the usual answer under the changed rules."""
    return _number(lambda sample: sample.kept_habit)


def _number(number: Callable[[Sample], float]) -> Scorer:
    """Return a scorer for one number of a sample: a column of ``samples_df``."""

    async def score(state: TaskState, target: Target) -> Score:
        sample = _scored(state)
        return Score(value=float(number(sample))) if sample.answered else _unscored(sample)

    return score


def _scored(state: TaskState, reading: Reading | None = None) -> Sample:
    """Return the sample with the outcome of each reply; by default, read as in the task."""
    with click_errors():
        info = _request_info(state)
    change = restored_change(state.metadata[CHANGE_KEY])
    # Any wording will do, since only the answers are read.
    wording = shipped_wording(DEFAULT_WORDING, change)
    conditions = conditions_for(info["conditions"], change, wording)
    answers = {name: _answer_in(state.store.get(name)) for name in info["conditions"]}
    trial = Trial(item_in(state.metadata), state.metadata[DRAW], conditions)
    return trial.sample(answers, reading or info["reading"])


def _unscored(sample: Sample) -> Score:
    answers = sample.answers.values()
    error = next(answer.error for answer in answers if answer.stop_reason == "error")
    return Score.unscored(reason="no_response", explanation=error)


def _request_info(state: TaskState) -> dict[str, Any]:
    """Return the reading and the conditions of a sample.

    Raises:
        UserError: if another solver than ours ran.
    """
    info: dict[str, Any] | None = state.store.get(REQUEST_INFO)
    if info is None:
        raise UserError(
            "there are no answers under both sets of rules; the scorer habit needs the solver "
            "every_condition, so leave out --solver"
        )
    return info


def item_in(metadata: dict[str, Any]) -> Any:
    """Return the item of a sample from its metadata."""
    return restored_change(metadata[CHANGE_KEY]).its_habit.item(metadata[ITEM])


def _answer_in(stored: dict[str, Any] | None) -> Answer:
    return Answer.from_json(stored) if stored else NOT_SENT


def _facts(sample: Sample, name: str) -> list[Any]:
    """Return what the metrics need of a reply."""
    reply, usage = sample.replies[name], sample.answers[name].usage
    return [reply.outcome, reply.answer, reply.under_change, usage.thinking_tokens]


def _replies_text(sample: Sample, habit: Habit) -> dict[str, str]:
    item, answers = sample.item, sample.answers
    return {
        name: habit.label(item, reply.answer) if reply.answer else repr(answers[name].text[:40])
        for name, reply in sample.replies.items()
    }
