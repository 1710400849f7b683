"""What a reader of the numbers should know, in plain sentences."""

from collections import Counter
from collections.abc import Sequence

from ..models.concessions import notes_on as notes_on_form
from .measures import HABIT
from .results import Results
from .samples import reread
from .vocabulary import AFTER, LEGAL_OUTCOMES, UNUSABLE_OUTCOMES, Number, Plan, Reading, Sample

MANY = 0.2
"""Above this share of answers without a move, a reader should know."""


def notes_on(samples: Sequence[Sample], results: Results, plan: Plan) -> list[str]:
    """All notes on a run."""
    return [
        *_on_size(samples, results.metrics, plan.wanted),
        *_on_broken_answers(samples, plan),
        *_on_unusable_answers(results),
        *_on_reading(samples, results.metrics, plan),
        *_on_model(samples),
    ]


def _on_size(samples: Sequence[Sample], metrics: dict[str, Number], wanted: int) -> list[str]:
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


def _on_broken_answers(samples: Sequence[Sample], plan: Plan) -> list[str]:
    dropped = [
        sample.replies[AFTER].outcome
        for sample in samples
        if sample.answered and sample.had_habit and not sample.kept_habit
    ]
    broken = [outcome for outcome in dropped if outcome not in LEGAL_OUTCOMES]
    if len(broken) * 2 <= len(dropped):
        return []
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(broken).most_common())
    return [
        f"the drop is not adapting: of the {len(dropped)} times the habit was dropped, "
        f"{len(broken)} answers were no legal move under {plan.change.key} ({kinds}); "
        "trust adaptation_rate, not the impact factor"
    ]


def _on_unusable_answers(results: Results) -> list[str]:
    notes = []
    for condition, counts in results.outcomes.items():
        unusable = {kind: n for kind, n in counts.items() if n and kind in UNUSABLE_OUTCOMES}
        if sum(unusable.values()) > MANY * sum(counts.values()):
            kinds = ", ".join(f"{count} {kind}" for kind, count in unusable.items())
            notes.append(f"many answers under the {condition} rules name no move: {kinds}")
    return notes


def _on_reading(samples: Sequence[Sample], metrics: dict[str, Number], plan: Plan) -> list[str]:
    other: Reading = "exact" if plan.reading == "lenient" else "lenient"
    theirs = [sample for sample in reread(samples, plan, other) if sample.answered]
    would_be = {measure.name: measure.value(theirs) for measure in HABIT}
    return [
        f"read {'exactly, as the original does' if other == 'exact' else 'leniently'}, "
        f"{name} would be {_number(value)} instead of {_number(metrics[name])}"
        for name, value in would_be.items()
        if value != metrics[name]
    ]


def _on_model(samples: Sequence[Sample]) -> list[str]:
    replies = (reply for sample in samples for reply in sample.replies.values())
    answers = [reply.answer for reply in replies if not reply.answer.error]
    notes = notes_on_form(form for answer in answers for form in answer.conceded)
    versions = Counter(answer.version for answer in answers)
    if len(versions) > 1:
        names = ", ".join(f"{version} ({count})" for version, count in versions.most_common())
        notes.append(f"more than one model version answered: {names}")
    return notes


def _number(value: Number) -> str:
    return "none" if value is None else f"{value:.3f}"
