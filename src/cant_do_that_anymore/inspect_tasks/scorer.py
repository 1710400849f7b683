"""The scorer of a sample, and the metrics over all samples."""

from collections.abc import Callable
from dataclasses import astuple
from math import nan
from typing import Any

import click
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

from ..habits.base import Habit
from ..habits.catalog import restored_change
from ..metrics.compute import estimates_of
from ..metrics.diagnosis import findings_of
from ..metrics.estimates import Estimate
from ..metrics.measures import MEASURES, UPTAKE
from ..providers.base import Answer, Usage
from ..task.conditions import conditions_for
from ..task.prompts import DEFAULT_WORDING, shipped_wording
from ..task.samples import Trial
from ..task.spec import validate_option
from ..task.types import Reading, Sample, Samples, ScoredAnswer
from .arguments import click_errors

# Keys of a sample's metadata. DRAW numbers the repetitions of an item, CHANGE_KEY restores the
# change that it was selected for.
ITEM, DRAW, CONTROL_KEY, CHANGE_KEY = "item", "draw", "control", "change"
# Keys of a sample's store: how replies are read, and the answers, or None, by condition.
READING, ANSWERS = "reading", "answers"
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
    names = list(samples[0].replies) if samples else []
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
    for name, (*reply, tokens) in info[REPLIES].items():
        replies[name] = ScoredAnswer(*reply)
        answers[name] = Answer(usage=Usage(thinking_tokens=tokens))
    return Sample(item_in(metadata), metadata[DRAW], replies, answers)


@scorer(metrics=[habit_metrics()])
def habit(reading: Reading | None = None) -> Scorer:
    """Score 1 for a violation that the rule prevents, -1 for one that it causes, else 0.

    Args:
        reading: how replies are read; by default as in the task.
    """
    with click_errors():
        validated = reading and validate_option("reading", reading)
    return _scorer(_habit_score, validated)


def _habit_score(sample: Sample, habit: Habit) -> Score:
    answers, replies = sample.answers, sample.replies
    texts = {name: repr(answer.text[:40]) for name, answer in answers.items()}
    for name, reply in replies.items():
        if reply.answer:
            texts[name] = habit.label(sample.item, reply.answer)
    return Score(
        value=UPTAKE.pair(sample)[0],
        answer=" / ".join(texts.values()),
        explanation="\n\n".join(
            f"**{name}:** {texts[name]} ({habit.words.label(reply.outcome)})"
            for name, reply in replies.items()
        ),
        metadata={
            REPLIES: {
                name: [*astuple(reply), answers[name].usage.thinking_tokens]
                for name, reply in replies.items()
            }
        },
    )


@scorer(metrics=[])
def violation_before() -> Scorer:
    """1 if the answer under the standard rules breaks the changed rules."""
    return _number(lambda sample: UPTAKE.pair(sample)[1])


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
    return _scorer(lambda sample, _: Score(value=float(number(sample))))


def _scorer(score_of: Callable[[Sample, Habit], Score], reading: Reading | None = None) -> Scorer:
    """Return a scorer of samples with all their answers; by default, read as in the task."""

    async def score(state: TaskState, target: Target) -> Score:
        saved = state.store.get(ANSWERS)
        if saved is None:
            raise click.ClickException(
                "the scorer habit needs the solver every_condition; leave out --solver"
            )
        if not all(saved.values()):
            return Score.unscored(
                reason="no_response", explanation="not every request was answered"
            )
        change = restored_change(state.metadata[CHANGE_KEY])
        # Any wording will do, since only the answers are read.
        conditions = conditions_for(saved, change, shipped_wording(DEFAULT_WORDING, change))
        trial = Trial(item_in(state.metadata), state.metadata[DRAW], conditions)
        answers = {name: Answer.from_json(answer) for name, answer in saved.items()}
        sample = trial.sample(answers, reading or state.store.get(READING))
        return score_of(sample, change.its_habit)

    return score


def item_in(metadata: dict[str, Any]) -> Any:
    """Return the item of a sample from its metadata."""
    return restored_change(metadata[CHANGE_KEY]).its_habit.item(metadata[ITEM])
