"""The scorer of a sample, and the metrics over all samples."""

from itertools import product
from math import nan
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
from ..habits.base import Habit
from ..habits.catalog import restored_change
from ..metrics.bounds import games_of, ratio_of, unusable_share
from ..metrics.compute import Estimated, estimates_of
from ..metrics.diagnosis import DIAGNOSIS, Arms
from ..metrics.measures import (
    AMOUNTS,
    HABIT,
    IMPACT,
    STATISTICS,
    STRICT,
    TEMPTATION,
    UNUSABLE_SHARE,
    UPTAKE,
)
from ..metrics.types import Measure, one_each
from ..providers.base import Answer
from ..task.conditions import conditions_for
from ..task.prompts import DEFAULT_WORDING, shipped_wording
from ..task.samples import Trial
from ..task.types import UNUSABLE_OUTCOMES, Reading, Sample, Samples, ScoredAnswer
from .arguments import click_errors

# Keys of a sample's metadata. DRAW numbers the repetitions of an item. RULES_KEY names the change
# that it was selected for, and CHANGE_KEY restores it.
GROUP, ITEM, DRAW, CONTROL_KEY = "group", "item", "draw", "control"
RULES_KEY, CHANGE_KEY = "rules", "change"
SCORED: dict[str, Measure] = {m.name: m for m in (*HABIT, *STRICT, *TEMPTATION, *DIAGNOSIS)}
# First in the list of metrics, since Inspect sometimes shows only a few.
HEADLINE_NAMES = (UPTAKE, IMPACT, "adaptation_rate")
LENGTHS = ("avg_num_previous_moves", "std_num_previous_moves")
# End of keys of a score's metadata, by condition: its outcome. Others are the names of means.
OUTCOME = "_outcome"
# Further keys, by condition: the move, its outcome under the changed rules, and whether the
# reasoning, where it is shown, mentions the usual move.
PLAYED, UNDER_CHANGE, MENTIONS = "played", "under_change", "mentions_usual"


@metric(scores="unreduced")
def habit_metrics() -> Metric:
    """All measures with their 95% intervals, and mean and deviation of the games' lengths.

    Values and intervals are those of ``cdta run``: clustered by game, and extended to everything
    that unusable answers could have been. Every epoch of a sample counts; no reducer over epochs
    applies.
    """

    def compute(scores: list[SampleScore]) -> Value:
        arms: tuple[list[Sample], list[Sample]] = ([], [])
        for score in scores:
            arms[CONTROL_KEY in (score.sample_metadata or {})].append(_sample_in(score))
        numbers: dict[str, float] = {}
        for name, (value, interval, _) in _estimates(arms).items():
            numbers[name] = nan if value is None else value
            if name == UPTAKE:  # Inspect uses a metric of this name as the headline's error bar
                numbers["stderr"] = _standard_error(SCORED[name], arms[0])
            if interval:
                numbers |= {f"{name}_low": interval.low, f"{name}_high": interval.high}
        return numbers

    return compute


def _sample_in(score: SampleScore) -> Sample:
    """Return the sample of a score, without the texts of its answers."""
    info, metadata = score.score.metadata or {}, score.sample_metadata or {}
    names = [key.removesuffix(OUTCOME) for key in info if key.endswith(OUTCOME)]
    shown = info.get(MENTIONS, {})
    replies = {
        name: ScoredAnswer(
            info[name + OUTCOME],
            info[PLAYED][name],
            info[UNDER_CHANGE][name],
            shown.get(name, False),
        )
        for name in names
    }
    answers = {name: Answer(reasoning=MENTIONS if name in shown else "") for name in names}
    for amount, name in product(AMOUNTS.values(), names):
        answers[name] = amount.put(answers[name], info.get(amount.under(name), 0))
    return Sample(item_in(metadata), metadata[DRAW], replies, answers)


def _estimates(arms: Arms) -> dict[str, Estimated]:
    """Compute all metrics of samples and controls, the headlines first, with their intervals."""
    names = list(arms[0][0].replies) if arms[0] else list(UNUSABLE_SHARE)
    ordered = dict.fromkeys((*HEADLINE_NAMES, *SCORED))
    measures = [SCORED[name] for name in ordered if {*SCORED[name].needs} <= {*names}]
    estimates = estimates_of(measures, names, arms)  # no early stop
    unusable = {UNUSABLE_SHARE[name]: unusable_share(arms[0], name) for name in UNUSABLE_SHARE}
    statistics = [STATISTICS[name] for name in LENGTHS]
    lengths = {s.name: s.value(arms[0]) for s in statistics if s.applies(arms[0])}
    return {
        **{m.name: estimates[m.name] for m in measures if m.name in estimates},
        **{name: Estimated(value, None) for name, value in unusable.items()},
        **estimates,
        **{name: Estimated(value, None) for name, value in lengths.items()},
    }


def _standard_error(measure: Measure, samples: Samples) -> float:
    """Return Inspect's standard error, clustered by game, by the delta method."""
    parts, wholes, _ = ratio = ratio_of(measure, samples)
    if ratio.value is None:
        return nan
    scale = len(samples) / sum(wholes)
    influences = [
        SampleScore(
            score=Score(value=(part - ratio.value * whole) * scale), sample_metadata={GROUP: game}
        )
        for part, whole, game in zip(parts, wholes, games_of(samples), strict=True)
    ]
    return cast(float, cast(MetricProtocol, stderr(cluster=GROUP))(influences))


REQUEST_INFO = "asked_how"  # key of a sample's store: rules, reading and conditions
NOT_SENT = Answer("", stop_reason="error", error="never asked")


@scorer(metrics=[habit_metrics()])
def habit(rules: str | None = None, reading: Reading | None = None) -> Scorer:
    """Score whether the model gave the usual answer under the standard and the changed rules.

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
        change = restored_change(state.metadata[CHANGE_KEY])
        wording = shipped_wording(DEFAULT_WORDING, change)
        # Any wording will do, since only the answers are read.
        conditions = conditions_for(info["conditions"], change, wording)
        answers = [_answer_in(state.store.get(condition.name)) for condition in conditions]
        trial = Trial(item_in(state.metadata), state.metadata[DRAW])
        sample = trial.sample(answers, conditions, reading or info["reading"])
        if not sample.answered:
            error = next(answer.error for answer in answers if answer.stop_reason == "error")
            return Score.unscored(reason="no_response", explanation=error)
        texts = _replies_text(sample, change.its_habit)
        return Score(
            value=_values(sample, control=CONTROL_KEY in state.metadata),
            answer=" / ".join(texts.values()),
            explanation="\n\n".join(
                f"**{condition.rules.title if len(conditions) == 2 else condition.name}:** "
                f"{texts[condition.name]} is {sample.replies[condition.name].outcome}"
                for condition in conditions
            ),
            metadata=_metadata(sample),
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


def item_in(metadata: dict[str, Any]) -> Any:
    """Return the item of a sample from its metadata."""
    return restored_change(metadata[CHANGE_KEY]).its_habit.item(metadata[ITEM])


def _answer_in(stored: dict[str, Any] | None) -> Answer:
    return Answer.from_json(stored) if stored else NOT_SENT


def _values(sample: Sample, *, control: bool) -> dict[str, str | int | float | bool | None]:
    """Return the numerator of every measure, and its denominator where it is not 1."""
    has_reasoning = any(answer.has_reasoning for answer in sample.answers.values())
    measures = [
        m
        for m in SCORED.values()
        if m.of_controls == control
        and set(m.needs) <= sample.replies.keys()
        and (has_reasoning or not m.optional)
    ]
    parts = {measure.name: int(measure.part(sample)) for measure in measures}
    wholes = {f"{m.name}_of": int(m.whole(sample)) for m in measures if m.whole is not one_each}
    unusable = {
        name: int(sample.replies[condition].outcome in UNUSABLE_OUTCOMES)
        for condition, name in UNUSABLE_SHARE.items()
        if not control
    }
    headlines = {name: parts[name] for name in HEADLINE_NAMES if name in parts}
    return {**headlines, **parts, **unusable, **wholes}


def _metadata(sample: Sample) -> dict[str, Any]:
    """Return what the metrics need of a sample, besides its item."""
    answers, replies = sample.answers, sample.replies
    amounts = {
        amount.under(name): amount.of(answer)
        for amount in AMOUNTS.values()
        for name, answer in answers.items()
        if any(map(amount.of, answers.values()))
    }
    mentions = {
        name: reply.thought_of_usual for name, reply in replies.items() if answers[name].reasoning
    }
    return {
        **{name + OUTCOME: reply.outcome for name, reply in replies.items()},
        PLAYED: {name: reply.answer for name, reply in replies.items()},
        UNDER_CHANGE: {name: reply.under_change for name, reply in replies.items()},
        **amounts,
        **({MENTIONS: mentions} if mentions else {}),
    }


def _replies_text(sample: Sample, habit: Habit) -> dict[str, str]:
    item, answers = sample.item, sample.answers
    return {
        name: habit.label(item, reply.answer) if reply.answer else repr(answers[name].text[:40])
        for name, reply in sample.replies.items()
    }
