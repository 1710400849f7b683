"""Numbers and names in words, the same in the terminal and on the pages."""

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from ..errors import pluralize
from ..metrics.diagnosis import (
    CONTRASTS,
    GAP,
    KEPT_UNKNOWING,
    KNOWING_EFFECT,
    KNOWLEDGE,
    Contrast,
    range_of,
    unclaimed,
)
from ..metrics.measures import IMPACT, MEASURES, SHARES, VIOLATIONS
from ..metrics.stats.intervals import Interval
from ..metrics.thinking import LONGER, TOKENS
from ..metrics.types import Bounds, Measure, Results
from ..progress import duration
from ..runs.results import Run
from ..task.conditions import KNOWS_ALLOWED, KNOWS_FORBIDDEN, PLACEBO, QUESTIONS, REMINDED
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Number, Outcome

MEANINGS: dict[Outcome, str] = {
    "special": "the special move: the habit",
    "forbidden": "another move that only the change made illegal",
    "adapted": "a move that only the changed rules allow",
    "legal": "any other legal move",
    "illegal": "any other move",
    "right": "knows whether the move is legal",
    "wrong": "takes a legal move for illegal, or the other way round",
    "unreadable": "no move, or more than one, could be read",
    "truncated": "cut off before a move was named",
    "refused": "the model declined to answer",
    "error": "no answer came; left out of all numbers but the bounds",
}
ASKS = {
    STANDARD_CONDITION: "a move under the standard rules",
    CHANGED_CONDITION: "a move under the changed rules",
    PLACEBO: "a move under another change of the same form, which leaves the habit legal",
    REMINDED: "a move; the changed rule is stated once more",
    KNOWS_FORBIDDEN: "whether a move is legal that the change forbids",
    KNOWS_ALLOWED: "whether a move is legal that it allows",
}
"""What the conditions ask for."""
WORTH_THE_NAME = 0.1
"""A habit that yields by a tenth yields; by less, nobody would say so."""


def number(value: Number) -> str:
    """A metric as text; a dash where it does not exist."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def interval(bounds: Interval | None) -> str:
    """A 95 % interval as text."""
    return f"[{bounds.low:.3f}, {bounds.high:.3f}]" if bounds else ""


def bounds(found: Bounds) -> str:
    """What the number of these samples could be, whatever unusable answers would have said."""
    return (
        f"these samples alone [{number(found.low)}, {number(found.high)}], "
        f"complete cases {number(found.complete)}"
    )


def amount(value: Number) -> str:
    """A number of tokens as text.

    >>> amount(1234.5678), amount(None)
    ('1,235', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


def amount_interval(around: Interval | None) -> str:
    """The 95 % interval of such a number."""
    return f"[{amount(around.low)}, {amount(around.high)}]" if around else ""


def percentage(share: Number) -> str:
    """A share in per cent."""
    return "–" if share is None else f"{100 * share:.1f} %"


def p_value(p: Number) -> str:
    """A p-value as text; a dash where there is none."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def dollars(amount: float | None) -> str:
    """An amount of money as text; small ones to four places.

    >>> dollars(0.0123), dollars(12.3), dollars(None)
    ('$0.0123', '$12.30', 'cost unknown')
    """
    if amount is None:
        return "cost unknown"
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"


def minus(shown: str) -> str:
    """With a typographer's minus sign."""
    return shown.replace("-", "−")


def plain(value: object) -> str:
    """A setting or a fact about a model as text; a dash where it is not set.

    >>> plain(None), plain(1.0), plain("chat"), plain(["a"])
    ('–', '1', 'chat', '["a"]')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def named_fields(settings: Any) -> Iterator[tuple[str, object]]:
    """Every field of a dataclass with its title: a new one cannot be forgotten."""
    for each in fields(settings):
        spelled = each.name.replace("_", " ").capitalize()
        yield each.metadata.get("title", spelled), getattr(settings, each.name)


def condition_title(name: str) -> str:
    """A condition as a heading.

    >>> condition_title("standard"), condition_title("knows_allowed")
    ('Standard rules', 'Knows allowed')
    """
    spelled = name.replace("_", " ").capitalize()
    return f"{spelled} rules" if name in (STANDARD_CONDITION, CHANGED_CONDITION) else spelled


FILTERS: dict[str, Callable[..., object]] = {
    "number": number,
    "interval": interval,
    "bounds": bounds,
    "amount": amount,
    "amount_interval": amount_interval,
    "percentage": percentage,
    "p_value": p_value,
    "dollars": dollars,
    "duration": duration,
    "minus": minus,
    "plain": plain,
    "named_fields": named_fields,
}
"""What the templates know of these by."""


def main_measures(run: Run) -> list[Measure | Contrast]:
    """Those that a reader looks at: all that the run has, but for the original's violations."""
    told = run.results.metrics.keys() - {measure.name for measure in VIOLATIONS}
    known: tuple[Measure | Contrast, ...] = (*MEASURES.values(), *CONTRASTS.values())
    return [measure for measure in known if measure.name in told]


def thinking(results: Results) -> str:
    """The plain sentence that says how long the model thinks; "" of one that does not think."""
    more, around = results.metrics.get(LONGER), results.intervals.get(LONGER)
    if more is None:
        return ""
    if more < 0 and around:
        around = replace(around, low=-around.high, high=-around.low)
    before, after = (
        f"{amount(results.metrics[name])} {amount_interval(results.intervals.get(name))}".strip()
        for name in TOKENS.values()
    )
    by = f"{amount(abs(more))} {amount_interval(around)}".strip()
    return (
        f"thinks {before} tokens under the standard rules and {after} under the changed ones: "
        f"{by} {'fewer' if more < 0 else 'more'}"
    )


def headline(run: Run) -> str:
    """The plain sentence that says what the number means."""
    metrics = run.results.metrics
    before, after = (percentage(metrics[name]) for name in SHARES.values())
    title = run.plan.change.title
    change = f"when {title[0].lower()}{title[1:]}"
    n = pluralize(int(metrics["n_samples"] or 0), "position")
    n += f" of the pool {run.dataset.pool_name}" if run.dataset.pool_name else ""
    if not run.answered:
        asked = pluralize(len(run.samples), "position")
        return f"{run.version} was asked about {asked}, and none has an answer to every question."
    if run.plan.eval == "all_diagonal":
        return (
            f"{run.version} {run.plan.change.habit_label} in {after} of {n} {change}, and in "
            f"{before} "
            "of them under the standard rules; moving at random would give "
            f"{percentage(metrics['random_special_proportion'])}.{_knowing(run)}"
        )
    return (
        f"{run.version} plays its usual move in {before} of {n} under the standard rules and in "
        f"{after} {change}: {_meaning(run)}.{_knowing(run)}"
    )


def _knowing(run: Run) -> str:
    """More sentences, where it was asked why the habit stays."""
    results = run.results
    around = range_of(results, KNOWLEDGE)
    placebo = " The placebo alone changed the habit: see the notes." if unclaimed(results) else ""
    return placebo if around is None else placebo + _knowledge(results, *around)


def _knowledge(results: Results, low: float, high: float) -> str:
    if all(results.metrics[f"{name}_unusable_proportion"] == 1 for name in QUESTIONS):
        return (
            " We cannot tell whether it knows the rule: none of its yes/no answers could be read."
        )
    value = "" if KNOWLEDGE in results.bounds else f"{number(results.metrics[KNOWLEDGE])} "
    shown = f"J = {value}[{low:.3f}, {high:.3f}] (0 = guessing, 1 = always right)."
    if low > 0:
        told = f" It can tell legal from illegal moves under the new rule: {shown}"
        return told + _doing(results)
    if high < 0:
        return f" It is wrong about the new rule more often than by guessing: {shown}"
    if KNOWLEDGE in results.bounds:
        return f" Too few yes/no answers could be read to tell whether it knows the rule: {shown}"
    return f" There is no evidence that it knows the rule: {shown}"


def _doing(results: Results) -> str:
    """Whether knowing helps, as far as there are habits with and without it."""
    gap, others = (results.metrics[measure.name] for measure in (GAP, KEPT_UNKNOWING))
    around = range_of(results, KNOWING_EFFECT.name)
    if gap is None:
        return ""
    kept = f" Where it knows the rule, it plays the forbidden move in {percentage(gap)}"
    if others is None or around is None:
        return f"{kept} of the positions."
    return (
        f"{kept} of the positions, and elsewhere in {percentage(others)}: "
        f"a difference of {number(results.metrics[KNOWING_EFFECT.name])} "
        f"[{around[0]:.3f}, {around[1]:.3f}]."
    )


def _meaning(run: Run) -> str:
    impact, interval = run.results.metrics[IMPACT], run.results.intervals.get(IMPACT)
    if impact is None or interval is None:
        return "there was no habit to drop"
    taken, allowing, spread = percentage(-impact), "", 0.0
    bounds = run.results.bounds.get(IMPACT)
    if bounds and bounds.low is not None and bounds.high is not None:
        taken = f"between {_taken(interval.high)} and {_taken(interval.low)}"
        allowing = " (95% interval, allowing for the answers that name no move)"
        spread = bounds.high - bounds.low
    if interval.high < 0:
        return f"the change of rules takes away {taken} of the habit{allowing}"
    if interval.low > 0:
        return "the habit grows instead of yielding"
    if spread > WORTH_THE_NAME:
        return "too many answers name no move to tell whether the habit yields"
    if interval.low > -WORTH_THE_NAME:
        return "no sign that the habit yields"
    return "too few samples to tell whether the habit yields"


def _taken(impact: float) -> str:
    return percentage(min(1.0, max(0.0, -impact)))
