"""Notes on a result: warnings and remarks for readers of the numbers."""

from collections import Counter
from collections.abc import Collection, Iterable
from functools import partial

from ..formatting import Number, number, percentage, pluralize
from ..habits.base import CHANGE
from ..providers.base import Answer
from ..providers.request_fields import SMALLER_LIMIT, advice_on_limit, notes_on_adjustments
from ..task.conditions import QUESTIONS
from ..task.prompts import ORIGINAL_PREFIX
from ..task.types import (
    CHANGED_CONDITION,
    LEGAL_OUTCOMES,
    STANDARD_CONDITION,
    UNUSABLE_OUTCOMES,
    Outcome,
    Plan,
    Sample,
    Samples,
    answers_of,
)
from .diagnosis import (
    COLLATERAL,
    CORRECTED,
    KNOWLEDGE,
    PLACEBO_IMPACT,
    SPECIFIC,
    confounded,
    range_of,
)
from .measures import IMPACT
from .types import Results

# At most this many versions are listed in a note.
MAX_LISTED = 3


def versions_of(samples: Iterable[Sample]) -> Counter[str]:
    """Count the answers by the model version that they name."""
    return Counter(
        answer.version for answer in answers_of(samples) if answer.version and not answer.error
    )


def version_of_all(versions: Collection[str], name: str) -> str:
    """Return the version that all answers name, or else the requested model name."""
    return next(iter(versions)) if len(versions) == 1 else name


def version_notes(versions: Counter[str]) -> list[str]:
    """Return a note if more than one version answered."""
    if len(versions) < 2:
        return []
    listed = [f"{version} ({count})" for version, count in versions.most_common(MAX_LISTED)]
    n_others = len(versions) - len(listed)
    text = ", ".join(listed) + f" and {n_others:,} more" * bool(n_others)
    return [f"more than one model version answered: {text}"]


# A habit is weak below this share of usual answers under the standard rules.
WEAK_HABIT_SHARE = 0.3
# With fewer samples, no note describes the habit or what replaced it.
MIN_SAMPLES_FOR_NOTES = 20


def notes_on(samples: Samples, results: Results, plan: Plan, controls: Samples) -> list[str]:
    """Return all notes on a run, in the words of its habit."""
    notes = [
        *_on_size(samples, results.metrics, plan),
        *_on_habit_and_drop(samples, results, plan),
        *_on_unusable_answers(results),
        *_on_knowledge(results),
        *_on_placebo(results),
        *_on_controls(samples, controls, results.metrics),
        *_on_wording(plan),
    ]
    return [*map(plan.change.its_habit.words.fill, notes), *_on_model([*samples, *controls])]


def _on_size(samples: Samples, metrics: dict[str, Number], plan: Plan) -> list[str]:
    notes = []
    if len(samples) < plan.wanted:
        n = pluralize(len(samples), "sample")
        notes.append(f"only {n} ({plan.wanted:,} wanted): there are no more {{items}}")
    if metrics["n_failed"]:
        failed = pluralize(int(metrics["n_failed"]), "sample")
        consequence = "" if metrics["n_samples"] else ", so nothing is left to measure"
        notes.append(f"left out {failed} without an answer{consequence}")
    if metrics["n_samples"] and metrics[IMPACT] is None:
        notes.append(
            "the model never {past} the usual {answer} under the standard rules, so it had no "
            "habit to drop and the impact factor is undefined"
        )
    return notes


def _on_habit_and_drop(samples: Samples, results: Results, plan: Plan) -> list[str]:
    """Return notes on the habit and on what replaced it, or one note that samples are too few."""
    notes = [*_on_habit(results, plan), *_on_broken_answers(samples, plan)]
    n = int(results.metrics["n_samples"] or 0)
    if notes and n < MIN_SAMPLES_FOR_NOTES:
        few = "1 sample is" if n == 1 else f"{n} samples are"
        return [f"{few} too few to tell how strong the habit is or what replaces it"]
    return notes


def _on_habit(results: Results, plan: Plan) -> list[str]:
    metrics = results.metrics
    p, impact = metrics["predicted_move_proportion"], metrics[IMPACT]
    notes = []
    if p and p < WEAK_HABIT_SHARE and plan.eval != "all_diagonal":
        chance = metrics.get("random_usual_proportion")
        at_random = f"; random play gives {percentage(chance)}" if chance is not None else ""
        notes.append(
            f"the habit is weak: the model {{past}} the usual {{answer}} {{place}} {percentage(p)} "
            f"of the {{items}} under the standard rules{at_random}"
        )
    if impact is not None and impact > 0:
        notes.append(
            "the impact factor is above 0: the model {past} the usual {answer} more often after it "
            "was forbidden than before"
        )
    return notes


def _on_broken_answers(samples: Samples, plan: Plan) -> list[str]:
    if not is_broken(samples):
        return []
    dropped = _dropped(samples)
    labels = plan.change.its_habit.words.labels
    named = {outcome: f"with {label}" for outcome, label in labels.items()}
    broken = [named.get(kind, kind) for kind in dropped if kind not in LEGAL_OUTCOMES]
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(broken).most_common())
    return [
        f"the drop is not adaptation: of {len(dropped)} answers that dropped the habit, "
        f"{len(broken)} are not {{allowed}} {{answer}}s under {plan.change.key} ({kinds}); trust "
        "the rule uptake, not the impact factor"
    ]


def is_broken(samples: Samples) -> bool:
    """Whether most dropped habits were replaced by answers that are not legal."""
    dropped = _dropped(samples)
    return 2 * sum(outcome not in LEGAL_OUTCOMES for outcome in dropped) > len(dropped)


def _dropped(samples: Samples) -> list[Outcome]:
    """Return the outcomes of the answers that replaced a habit."""
    return [
        sample.replies[CHANGED_CONDITION].outcome
        for sample in samples
        if sample.answered and sample.had_habit and not sample.kept_habit
    ]


def _on_unusable_answers(results: Results) -> list[str]:
    if IMPACT not in results.bounds:
        return []
    parts = []
    for condition in (STANDARD_CONDITION, CHANGED_CONDITION):
        counts = results.outcomes[condition]
        unusable = {kind: n for kind, n in counts.items() if n and kind in UNUSABLE_OUTCOMES}
        kinds = ", ".join(f"{count} {kind}" for kind, count in unusable.items())
        share = percentage(results.metrics[f"{condition}_unusable_proportion"] or 0.0)
        parts.append(f"{share} under the {condition} rules" + f" ({kinds})" * bool(kinds))
    bounds = results.bounds[IMPACT]
    missing = " and leaves out missing answers" if results.metrics["n_failed"] else ""
    return [
        f"replies without a {{answer}}: {', '.join(parts)}. The original's definition counts them "
        f"as dropped habits{missing}. Depending on how they are read, the impact factor of these "
        f"samples is between {_number(bounds.low)} and {_number(bounds.high)}. The 95% interval "
        "allows for that"
    ]


def _on_knowledge(results: Results) -> list[str]:
    if KNOWLEDGE not in results.bounds:
        return []
    forbidden, allowed = (
        percentage(results.metrics[f"{name}_unusable_proportion"]) for name in QUESTIONS
    )
    low, high = range_of(results, KNOWLEDGE) or (None, None)
    return [
        f"unreadable yes/no answers: {forbidden} about the forbidden {{answer}}, {allowed} about "
        f"the allowed one. The 95% interval of the knowledge of the rule (J), {_number(low)} to "
        f"{_number(high)}, allows for every reading of them"
    ]


def _on_placebo(results: Results) -> list[str]:
    if not confounded(results):
        return []
    low, high = range_of(results, PLACEBO_IMPACT) or (None, None)
    titles = [measure.title.lower() for measure in (CORRECTED, SPECIFIC)]
    return [
        f"the placebo alone changed the habit (95% interval of its impact factor: {_number(low)} "
        f"to {_number(high)}), so the {' and the '.join(titles)} do not show the effect of the "
        "rule"
    ]


def _on_controls(samples: Samples, controls: Samples, metrics: dict[str, Number]) -> list[str]:
    if "n_controls" not in metrics:
        return []
    collateral, specific = COLLATERAL.title.lower(), SPECIFIC.title.lower()
    missing = f"so the {collateral} and the {specific} are missing"
    if not controls:
        return [
            f"no control {{items}}, {missing}. Controls come from building the dataset: {{items}} "
            "where the model {past} a {answer} that stays {allowed}"
        ]
    notes = []
    if len(controls) < len(samples):
        n, wanted = pluralize(len(controls), "control {item}"), pluralize(len(samples), "sample")
        notes.append(f"only {n} ({wanted} wanted): building the dataset produced no more")
    if failed := sum(not control.answered for control in controls):
        left_out = f"left out {pluralize(failed, 'control')} without an answer"
        notes.append(f"{left_out}, {missing}" if failed == len(controls) else left_out)
    return notes


def _on_wording(plan: Plan) -> list[str]:
    prompts = plan.conditions[1].prompts
    return [
        f"the wording {name} states the change in its own words, without {CHANGE}; check that they "
        f"mean {plan.change.key}"
        for name, prompt in zip(plan.wordings, prompts, strict=True)
        if not name.startswith(ORIGINAL_PREFIX)
        if not any(part in prompt.text for part in plan.change.statements)
    ]


# A note says so if more replies than this share are cut off.
NOTABLE_CUTS = 0.01


def _on_model(samples: Samples) -> list[str]:
    answers = [answer for answer in answers_of(samples) if not answer.error]
    adjustments = _adjustments_of(answers)
    if not any(answer.stop_reason == "length" for answer in answers):
        adjustments.discard(SMALLER_LIMIT)  # nothing was cut off by it
    return [
        *notes_on_adjustments(adjustments),
        *_on_cut_off_replies(samples),
        *version_notes(versions_of(samples)),
        *_on_fingerprints(answers),
    ]


def _adjustments_of(answers: Iterable[Answer]) -> set[str]:
    return {made for answer in answers for made in answer.adjustments}


def _on_cut_off_replies(samples: Samples) -> list[str]:
    """Return a note if the token limit cut off more than a few replies."""
    outcomes = [reply.outcome for sample in samples for reply in sample.replies.values()]
    cut_off = outcomes.count("truncated")
    if cut_off <= NOTABLE_CUTS * len(outcomes):
        return []
    answers = list(answers_of(samples))
    limit = max(answer.limit for answer in answers)
    advice = advice_on_limit(_adjustments_of(answers))
    return [
        f"{cut_off} of {len(outcomes):,} replies were cut off (the limit is {limit:,} tokens); "
        + advice
    ]


def _on_fingerprints(answers: Iterable[Answer]) -> list[str]:
    """Return a note if the provider changed its system while it answered."""
    fingerprints = {answer.fingerprint for answer in answers if answer.fingerprint}
    if len(fingerprints) < 2:
        return []
    return [f"answers come from {len(fingerprints)} system fingerprints of the provider"]


_number = partial(number, missing="none")
