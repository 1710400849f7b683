"""From judged samples to numbers: the original's metrics, the strict ones, and their intervals."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from ..game.position import Position
from ..game.rules import STANDARD, Rules
from ..models.model import Answer, Usage
from . import violations
from .intervals import Clusters, Interval, mcnemar
from .judging import LEGAL_OUTCOMES, OUTCOMES, Judgement, Reading, judge

Metrics = dict[str, float | int | None]


@dataclass(frozen=True)
class Sample:
    """One position asked under both rule sets."""

    position: Position
    standard: Answer
    variant: Answer
    standard_judgement: Judgement
    variant_judgement: Judgement

    @property
    def answered(self) -> bool:
        """Whether both questions got an answer; only such samples enter the metrics."""
        return "error" not in (self.standard_judgement.outcome, self.variant_judgement.outcome)

    @property
    def had_habit(self) -> bool:
        """Whether the special move was played under the standard rules."""
        return self.standard_judgement.outcome == "special"

    @property
    def kept_habit(self) -> bool:
        """Whether it was played under the changed rules."""
        return self.variant_judgement.outcome == "special"

    @property
    def adapted(self) -> bool:
        """Whether the answer under the changed rules was legal under them."""
        return self.variant_judgement.outcome in LEGAL_OUTCOMES


def judged(
    position: Position, standard: Answer, variant: Answer, rules: Rules, reading: Reading
) -> Sample:
    """The sample that two answers make."""
    return Sample(
        position=position,
        standard=standard,
        variant=variant,
        standard_judgement=judge(standard, position, STANDARD, reading),
        variant_judgement=judge(variant, position, rules, reading),
    )


@dataclass(frozen=True)
class Results:
    """Everything computed from the samples of a run.

    Attributes:
        metrics: numbers by name; None where a number does not exist.
        intervals: 95 % intervals of the rates and differences among them.
        outcomes: how many answers were what, under each rule set.
    """

    metrics: Metrics
    intervals: dict[str, Interval]
    outcomes: dict[str, dict[str, int]]


def compute(samples: Sequence[Sample]) -> Results:
    """Compute metrics, intervals and outcome counts; sound for any number of samples."""
    answered = [sample for sample in samples if sample.answered]
    games = [sample.position.game for sample in answered]
    clusters = Clusters(games)
    before = [sample.had_habit for sample in answered]
    after = [sample.kept_habit for sample in answered]
    legal = [sample.adapted for sample in answered]
    with_habit = [index for index, special in enumerate(before) if special]
    adapted = [legal[index] for index in with_habit]
    columns = {
        "predicted_move_proportion": before,
        "predicted_move_in_variant_proportion": after,
        "variant_legal_proportion": legal,
        **_violation_columns(answered),
    }
    intervals = {
        "variant_impact_factor": clusters.relative_change(before, after),
        "delta": clusters.difference(before, after),
        "adaptation_rate": Clusters([games[index] for index in with_habit]).rate(adapted),
        **{name: clusters.rate(column) for name, column in columns.items()},
    }
    metrics: Metrics = {
        **habit_metrics(answered),
        **_previous_moves(answered),
        "adaptation_rate": _share(adapted),
        "mcnemar_p": mcnemar(before, after) if answered else None,
        **{name: _share(column) for name, column in columns.items()},
        "n_samples": len(answered),
        "n_games": len(set(games)),
        "n_failed": len(samples) - len(answered),
        **_usage(samples),
    }
    return Results(
        metrics=metrics,
        intervals={name: interval for name, interval in intervals.items() if interval},
        outcomes=_outcomes(samples),
    )


def habit_metrics(answered: Sequence[Sample]) -> Metrics:
    """How often the special move was played under each rule set, and what that comes to."""
    p = _share([sample.had_habit for sample in answered])
    v = _share([sample.kept_habit for sample in answered])
    return {
        "variant_impact_factor": None if not p or v is None else (v - p) / p,
        "delta": None if p is None or v is None else v - p,
        "predicted_move_proportion": p,
        "predicted_move_in_variant_proportion": v,
    }


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


def _previous_moves(samples: Sequence[Sample]) -> Metrics:
    lengths = [len(sample.position.moves) for sample in samples]
    if not lengths:
        return {"avg_num_previous_moves": None, "std_num_previous_moves": None}
    mean = sum(lengths) / len(lengths)
    variance = sum((length - mean) ** 2 for length in lengths) / len(lengths)
    return {"avg_num_previous_moves": mean, "std_num_previous_moves": sqrt(variance)}


def _violation_columns(samples: Sequence[Sample]) -> dict[str, list[bool]]:
    columns: dict[str, list[bool]] = {
        f"{rule_set}_{name}_rate": []
        for rule_set in ("standard", "variant")
        for name in violations.NAMES
    }
    for sample in samples:
        board = sample.position.board()
        for rule_set, answer in (("standard", sample.standard), ("variant", sample.variant)):
            for name, found in violations.violations(answer.text, board).items():
                columns[f"{rule_set}_{name}_rate"].append(found)
    return columns


def _usage(samples: Sequence[Sample]) -> Metrics:
    usage = sum((sample.standard.usage + sample.variant.usage for sample in samples), Usage())
    return {
        "usage_prompt_tokens": usage.input_tokens,
        "usage_completion_tokens": usage.output_tokens,
        "usage_total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _outcomes(samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
    standard = Counter(sample.standard_judgement.outcome for sample in samples)
    variant = Counter(sample.variant_judgement.outcome for sample in samples)
    return {
        "standard": {outcome: standard[outcome] for outcome in OUTCOMES},
        "variant": {outcome: variant[outcome] for outcome in OUTCOMES},
    }
