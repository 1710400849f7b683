"""Every number of a run, in one table: the original's metrics under their names, and strict ones.

The terminal, the page, comparisons, experiments, Inspect's scores and the docs read this table, so
a measure is one entry here.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import sqrt

from ..models.model import Usage
from . import violations
from .intervals import Clusters, Interval, mcnemar
from .results import Results
from .vocabulary import (
    AFTER,
    BEFORE,
    OUTCOMES,
    Eval,
    Measure,
    Number,
    Outcome,
    Plan,
    Sample,
    Statistic,
)

IMPACT = "variant_impact_factor"
"""The headline."""
SHARES = {
    BEFORE: "predicted_move_proportion",
    AFTER: "predicted_move_in_variant_proportion",
}
"""The share of special moves, by condition."""


def _change(sample: Sample) -> int:
    return sample.kept_habit - sample.had_habit


HABIT = (
    Measure(
        IMPACT,
        "Impact factor",
        "the difference as a share of the habit",
        part=_change,
        whole=lambda sample: sample.had_habit,
        pairs=((0, 0), (1, 0), (-1, 1), (0, 1)),
        perfect=-1,
    ),
    Measure(
        "delta",
        "Difference",
        "special moves under the changed rules minus the standard ones",
        part=_change,
        pairs=((-1, 1), (0, 1), (1, 1)),
    ),
    Measure(
        SHARES[BEFORE],
        "Special move, standard rules",
        "the habit, asked for again",
        part=lambda sample: sample.had_habit,
        needs=(BEFORE,),
        remark="standard rules",
        played="the special move under the standard rules",
        short="special, standard rules",
    ),
    Measure(
        SHARES[AFTER],
        "Special move, changed rules",
        "the habit although it is illegal now",
        part=lambda sample: sample.kept_habit,
        perfect=0,
        needs=(AFTER,),
        remark="changed rules",
        played="the special move under the changed rules",
        short="special, changed rules",
    ),
)
"""What the original makes of the special moves alone."""

STRICT = (
    Measure(
        "adaptation_rate",
        "Adaptation rate",
        "a legal move instead, where there was a habit",
        part=lambda sample: sample.had_habit and sample.adapted,
        whole=lambda sample: sample.had_habit,
        pairs=((0, 0), (0, 1), (1, 1)),
        perfect=1,
    ),
    Measure(
        "variant_legal_proportion",
        "Legal answers, changed rules",
        "of all samples",
        part=lambda sample: sample.adapted,
        perfect=1,
        needs=(AFTER,),
        remark="changed rules",
        played="a legal move under the changed rules",
        short="legal, changed rules",
    ),
)


def _violates(name: str, condition: str, sample: Sample) -> bool:
    reply = sample.replies[condition].answer.text
    return name in violations.violations(reply, sample.position.moves)


VIOLATIONS = tuple(
    Measure(
        f"{prefix}_{name}_rate",
        f"{name.replace('_', ' ').capitalize()}, {condition} rules",
        "by the original's definition, which is weaker than legality",
        part=partial(_violates, name, condition),
        needs=(condition,),
    )
    for prefix, condition in (("standard", BEFORE), ("variant", AFTER))
    for name in violations.NAMES
)


def _mean_length(samples: Sequence[Sample]) -> Number:
    return sum(_lengths(samples)) / len(samples) if samples else None


def _spread_of_lengths(samples: Sequence[Sample]) -> Number:
    mean = _mean_length(samples)
    if mean is None:
        return None
    return sqrt(sum((length - mean) ** 2 for length in _lengths(samples)) / len(samples))


def _lengths(samples: Sequence[Sample]) -> list[int]:
    return [len(sample.position.moves) for sample in samples]


def _chance(samples: Sequence[Sample]) -> Number:
    before, after = [s.had_habit for s in samples], [s.kept_habit for s in samples]
    return mcnemar(before, after) if samples else None


ALSO = (
    Statistic("avg_num_previous_moves", "Earlier moves", "mean over the samples", _mean_length),
    Statistic(
        "std_num_previous_moves", "Earlier moves, spread", "standard deviation", _spread_of_lengths
    ),
    Statistic(
        "mcnemar_p", "McNemar’s p", "how likely chance alone makes such a difference", _chance
    ),
)

MEASURES: dict[str, Measure] = {m.name: m for m in (*HABIT, *STRICT, *VIOLATIONS)}
STATISTICS: dict[str, Statistic] = {s.name: s for s in ALSO}


TILES: dict[Eval, tuple[str, ...]] = {
    "all": (IMPACT, SHARES[BEFORE], SHARES[AFTER], "adaptation_rate"),
    "all_diagonal": (SHARES[AFTER], SHARES[BEFORE], "variant_legal_proportion", IMPACT),
}
TILES["all_small"] = TILES["all"]
"""The numbers that a page shows first."""


def measures_for(conditions: Sequence[str]) -> list[Measure]:
    """The measures whose replies are at hand."""
    return [m for m in MEASURES.values() if set(m.needs) <= set(conditions)]


def compute(samples: Sequence[Sample], plan: Plan) -> Results:
    """Compute everything; sound for any number of samples."""
    answered = [sample for sample in samples if sample.answered]
    names = [condition.name for condition in plan.conditions]
    measures = measures_for(names)
    intervals = {measure.name: interval_of(measure, answered) for measure in measures}
    return Results(
        metrics={
            **{measure.name: measure.value(answered) for measure in measures},
            **{statistic.name: statistic.value(answered) for statistic in STATISTICS.values()},
            "n_samples": len(answered),
            "n_games": len({sample.position.game for sample in answered}),
            "n_failed": len(samples) - len(answered),
            **_usage(samples),
        },
        intervals={name: interval for name, interval in intervals.items() if interval},
        outcomes={name: _outcomes(samples, name) for name in names},
    )


def interval_of(measure: Measure, samples: Sequence[Sample]) -> Interval | None:
    """The 95 % interval of a measure; None where the measure does not exist."""
    held = [sample for sample in samples if measure.whole(sample)]
    if measure.pairs[0] == (0, 0) and measure.pairs[-1] == (1, 1):
        samples = held
    clusters = Clusters([sample.position.game for sample in samples])
    before, after = [s.had_habit for s in samples], [s.kept_habit for s in samples]
    if measure.name == IMPACT:
        return clusters.relative_change(before, after)
    if measure.name == "delta":
        return clusters.difference(before, after)
    return clusters.rate([bool(measure.part(sample)) for sample in samples])


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
