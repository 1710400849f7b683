"""What a reader of the numbers should know, in plain sentences."""

from collections import Counter
from collections.abc import Sequence

from ..game.rules import Rules
from ..models.concessions import notes_on as notes_on_form
from .judging import LEGAL_OUTCOMES, Reading
from .metrics import Metrics, Results, Sample, habit_metrics, judged

MANY = 0.2
"""Above this share of answers without a move, a reader should know."""


def notes_on(
    samples: Sequence[Sample], results: Results, rules: Rules, reading: Reading, wanted: int
) -> list[str]:
    """All notes on a run."""
    return [
        *_on_size(samples, results.metrics, wanted),
        *_on_broken_answers(samples, rules),
        *_on_unusable_answers(results.outcomes),
        *_on_reading(samples, results.metrics, rules, reading),
        *_on_model(samples),
    ]


def _on_size(samples: Sequence[Sample], metrics: Metrics, wanted: int) -> list[str]:
    notes = []
    if len(samples) < wanted:
        notes.append(
            f"{len(samples)} samples instead of the {wanted} asked for: there are no more positions"
        )
    if metrics["n_failed"]:
        notes.append(f"{metrics['n_failed']} samples have no answer and are left out")
    if metrics["variant_impact_factor"] is None:
        notes.append(
            "the model never played the special move under the standard rules, so there was no "
            "habit to drop and the impact factor does not exist"
        )
    return notes


def _on_broken_answers(samples: Sequence[Sample], rules: Rules) -> list[str]:
    dropped = [
        sample.variant_judgement.outcome
        for sample in samples
        if sample.answered and sample.had_habit and sample.variant_judgement.outcome != "special"
    ]
    broken = [outcome for outcome in dropped if outcome not in LEGAL_OUTCOMES]
    if len(broken) * 2 <= len(dropped):
        return []
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(broken).most_common())
    return [
        f"the drop is not adapting: of the {len(dropped)} times the habit was dropped, "
        f"{len(broken)} answers were no legal move under {rules.key} ({kinds}); "
        "trust adaptation_rate, not the impact factor"
    ]


def _on_unusable_answers(outcomes: dict[str, dict[str, int]]) -> list[str]:
    notes = []
    for rule_set, counts in outcomes.items():
        unusable = {kind: counts[kind] for kind in ("unreadable", "truncated", "refused")}
        if sum(unusable.values()) > MANY * sum(counts.values()):
            kinds = ", ".join(f"{count} {kind}" for kind, count in unusable.items() if count)
            notes.append(f"many answers under the {rule_set} rules name no move: {kinds}")
    return notes


def _on_reading(
    samples: Sequence[Sample], metrics: Metrics, rules: Rules, reading: Reading
) -> list[str]:
    other: Reading = "exact" if reading == "lenient" else "lenient"
    reread = [judged(s.position, s.standard, s.variant, rules, other) for s in samples]
    theirs = habit_metrics([sample for sample in reread if sample.answered])
    return [
        f"read {'exactly, as the original does' if other == 'exact' else 'leniently'}, "
        f"{name} would be {_number(theirs[name])} instead of {_number(metrics[name])}"
        for name in theirs
        if theirs[name] != metrics[name]
    ]


def _on_model(samples: Sequence[Sample]) -> list[str]:
    answers = [answer for s in samples for answer in (s.standard, s.variant) if not answer.error]
    notes = notes_on_form(form for answer in answers for form in answer.conceded)
    versions = Counter(answer.version for answer in answers)
    if len(versions) > 1:
        names = ", ".join(f"{version} ({count})" for version, count in versions.most_common())
        notes.append(f"more than one model version answered: {names}")
    return notes


def _number(value: float | int | None) -> str:
    return "none" if value is None else f"{value:.3f}"
