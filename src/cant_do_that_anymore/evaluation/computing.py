"""From samples to results: values, intervals, bounds, counts."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from ..models.model import Usage
from .measures import STATISTICS, measures_for
from .results import Bounds, Results
from .statistics.intervals import Interval, ratio_interval
from .thinking import amounts_for
from .vocabulary import (
    AFTER,
    BEFORE,
    OUTCOMES,
    UNUSABLE_OUTCOMES,
    Measure,
    Number,
    Outcome,
    Plan,
    Reply,
    Sample,
)

FEW = 0.01
"""Up to this share of unusable answers, none is missed; conditions then differ by no more."""


def compute(samples: Sequence[Sample], plan: Plan) -> Results:
    """Compute everything; sound for any number of samples."""
    answered = [sample for sample in samples if sample.answered]
    names = [condition.name for condition in plan.conditions]
    amounts = amounts_for(names, answered)
    measures = [m for m in measures_for(names) if not m.optional or m.value(answered) is not None]
    intervals = {measure.name: interval_of(measure, answered) for measure in measures}
    intervals |= {amount.name: amount.interval(answered) for amount in amounts}
    bounded = [measure for measure in measures if measure.bounded]
    return Results(
        metrics={
            **{measure.name: measure.value(answered) for measure in measures},
            **{amount.name: amount.value(answered) for amount in amounts},
            **{statistic.name: statistic.value(answered) for statistic in STATISTICS.values()},
            "n_samples": len(answered),
            "n_games": len({sample.position.game for sample in answered}),
            "n_failed": len(samples) - len(answered),
            **{f"{name}_unusable_proportion": unusable_share(samples, name) for name in names},
            **_usage(samples),
        },
        intervals=_existing(intervals),
        by_special_move=_existing({m.name: interval_by_special_move(m, answered) for m in bounded}),
        bounds=(
            {measure.name: bounds_of(measure, samples) for measure in bounded}
            if matters(samples, names)
            else {}
        ),
        outcomes={name: _outcomes(samples, name) for name in names},
    )


def interval_of(measure: Measure, samples: Sequence[Sample]) -> Interval | None:
    """The 95 % interval of a measure; None where the measure does not exist."""
    return _interval(measure, samples, [sample.position.game for sample in samples])


def interval_by_special_move(measure: Measure, samples: Sequence[Sample]) -> Interval | None:
    """The same if samples with the same special move went together, as games do."""
    return _interval(measure, samples, [sample.position.special_moves for sample in samples])


def _interval(
    measure: Measure, samples: Sequence[Sample], groups: Sequence[Hashable]
) -> Interval | None:
    parts, wholes = ([int(of(s)) for s in samples] for of in (measure.part, measure.whole))
    return ratio_interval(parts, wholes, groups, measure.pairs)


def unusable_share(samples: Sequence[Sample], condition: str) -> float | None:
    """The share of answers that name no move, those included that never came."""
    unusable = sum(sample.replies[condition].outcome in UNUSABLE_OUTCOMES for sample in samples)
    return unusable / len(samples) if samples else None


def matters(samples: Sequence[Sample], conditions: Sequence[str]) -> bool:
    """Whether unusable answers are more than a few under any condition."""
    return any((unusable_share(samples, name) or 0.0) > FEW for name in conditions)


def bounds_of(measure: Measure, samples: Sequence[Sample]) -> Bounds:
    """What the measure would be, whatever the unusable answers would have said."""
    imagined = [[sample for sample in samples if sample.answered], *guesses(samples)]
    values = [value for guess in imagined if (value := measure.value(guess)) is not None]
    intervals = [interval for guess in imagined if (interval := interval_of(measure, guess))]
    return Bounds(
        low=min(values, default=None),
        high=max(values, default=None),
        lowest=min((interval.low for interval in intervals), default=None),
        highest=max((interval.high for interval in intervals), default=None),
        complete=measure.value([sample for sample in samples if sample.usable]),
    )


def guesses(samples: Sequence[Sample]) -> Iterator[list[Sample]]:
    """What the unusable answers may have been: every way that can make a number least or greatest.

    Under the changed rules all are the special move, or all are legal. Under the standard rules
    that may depend on the other answer: to adapt is to have had the habit and to be legal after.
    """
    either: tuple[Outcome, ...] = ("special", "legal")
    for after, if_adapted, if_not in product(either, either, either):
        yield [_guessed(sample, after, if_adapted, if_not) for sample in samples]


def _guessed(sample: Sample, after: Outcome, if_adapted: Outcome, if_not: Outcome) -> Sample:
    if sample.usable:
        return sample
    now = _filled(sample, AFTER, after)
    return _filled(now, BEFORE, if_adapted if now.adapted else if_not)


def _filled(sample: Sample, condition: str, outcome: Outcome) -> Sample:
    reply = sample.replies[condition]
    if reply.outcome not in UNUSABLE_OUTCOMES:
        return sample
    return replace(sample, replies={**sample.replies, condition: _as(reply, outcome)})


def _as(reply: Reply, outcome: Outcome) -> Reply:
    return replace(reply, judgement=replace(reply.judgement, outcome=outcome), under_change=outcome)


def _existing(intervals: dict[str, Interval | None]) -> dict[str, Interval]:
    return {name: interval for name, interval in intervals.items() if interval}


def _usage(samples: Sequence[Sample]) -> dict[str, Number]:
    answers = [reply.answer for sample in samples for reply in sample.replies.values()]
    usage = sum((answer.usage for answer in answers), Usage())
    return {
        "usage_prompt_tokens": usage.input_tokens,
        "usage_completion_tokens": usage.output_tokens,
        "usage_total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _outcomes(samples: Sequence[Sample], condition: str) -> dict[Outcome, int]:
    counts = Counter(sample.replies[condition].outcome for sample in samples)
    return {outcome: counts[outcome] for outcome in OUTCOMES}
