"""Notes on a run: what a reader of the numbers must know, one sentence each."""

from collections import Counter
from collections.abc import Collection, Iterator

from ..formatting import percentage, pluralize
from ..habits.base import CHANGE, STATEMENTS
from ..providers.request_fields import SMALLER_LIMIT, advice_on_limit, notes_on_adjustments
from ..task.prompts import ORIGINAL_PREFIX
from ..task.types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    UNUSABLE_OUTCOMES,
    Plan,
    Samples,
    answers_of,
)
from .compute import Results

MIN_SAMPLES = 5  # with fewer, a run is a trial
NOTABLE_CUTS = 0.01  # share of replies that are cut off
NOTABLE_UNUSABLE = 0.05  # share of replies under a condition that are unusable


def notes_on(samples: Samples, controls: Samples, results: Results, plan: Plan) -> list[str]:
    """Return all notes on a run."""
    everything = [*samples, *controls]
    adjustments = _adjustments_of(everything)
    return [
        *_on_size(samples, results, plan),
        *_on_unusable_replies(results, plan),
        *_on_wording(plan),
        *notes_on_adjustments(adjustments),
        *_on_cut_off_replies(everything, adjustments),
        *_on_versions(versions_of(everything)),
    ]


def _on_size(samples: Samples, results: Results, plan: Plan) -> Iterator[str]:
    if len(samples) < plan.wanted:
        n, items = pluralize(len(samples), "sample"), plan.change.its_habit.words.items
        yield f"only {n} ({plan.wanted:,} wanted): there are no more {items} with the habit"
    if 0 < results.n < MIN_SAMPLES:
        yield f"too few samples for a measurement ({results.n}); treat the numbers as a trial run"
    if results.failed:
        consequence = "" if results.n else ", so nothing is left to measure"
        yield f"left out {pluralize(results.failed, 'sample')} without an answer{consequence}"


def _on_unusable_replies(results: Results, plan: Plan) -> Iterator[str]:
    for condition in (STANDARD_CONDITION, CHANGED_CONDITION):
        share, counts = results.share(condition, *UNUSABLE_OUTCOMES), results.outcomes[condition]
        if share > NOTABLE_UNUSABLE:
            unusable = [kind for kind in counts if kind in UNUSABLE_OUTCOMES and counts[kind]]
            kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in unusable)
            yield plan.change.its_habit.words.fill(
                f"{percentage(share, 0)} of the replies under the {condition} rules contain no "
                f"{{answer}} ({kinds}); the intervals allow for anything they could have meant"
            )


def _on_wording(plan: Plan) -> Iterator[str]:
    for name, prompt in zip(plan.wordings, plan.conditions[1].prompts, strict=True):
        states = any(plan.change.texts[name] in prompt.text for name in STATEMENTS)
        if not states and not name.startswith(ORIGINAL_PREFIX):
            yield (f"the wording {name} lacks {CHANGE}; check that it states {plan.change.key}")


def _adjustments_of(samples: Samples) -> set[str]:
    answers = [answer for answer in answers_of(samples) if not answer.error]
    adjustments = {made for answer in answers for made in answer.adjustments}
    if not any(answer.stop_reason == "length" for answer in answers):
        adjustments.discard(SMALLER_LIMIT)  # nothing was cut off by it
    return adjustments


def _on_cut_off_replies(samples: Samples, adjustments: set[str]) -> Iterator[str]:
    outcomes = [reply.outcome for sample in samples for reply in sample.replies.values()]
    cut_off = outcomes.count("truncated")
    if cut_off > NOTABLE_CUTS * len(outcomes):
        limit = max(answer.limit for answer in answers_of(samples))
        yield (
            f"the limit of {limit:,} tokens cut off {cut_off:,} of {len(outcomes):,} replies; "
            f"{advice_on_limit(adjustments)}"
        )


def versions_of(samples: Samples) -> Counter[str]:
    """Count the answers by the model version that they name."""
    return Counter(
        answer.version for answer in answers_of(samples) if answer.version and not answer.error
    )


def version_of_all(versions: Collection[str], name: str) -> str:
    """Return the version that all answers name, or else the requested model name."""
    return next(iter(versions)) if len(versions) == 1 else name


def _on_versions(versions: Counter[str]) -> Iterator[str]:
    if len(versions) > 1:
        listed = ", ".join(f"{version} ({count})" for version, count in versions.most_common())
        yield f"more than one model version answered: {listed}"
