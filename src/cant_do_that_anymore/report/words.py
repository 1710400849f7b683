"""Numbers and names in words, the same in the terminal and on the pages."""

import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from ..evaluation.intervals import Interval
from ..evaluation.measures import IMPACT, MEASURES, SHARES, VIOLATIONS
from ..evaluation.results import Run
from ..evaluation.vocabulary import AFTER, BEFORE, Measure, Number, Outcome

MEANINGS: dict[Outcome, str] = {
    "special": "the special move: the habit",
    "forbidden": "another move that only the change made illegal",
    "adapted": "a move that only the changed rules allow",
    "legal": "any other legal move",
    "illegal": "any other move",
    "unreadable": "no move, or more than one, could be read",
    "truncated": "cut off before a move was named",
    "refused": "the model declined to answer",
    "error": "no answer came; left out of all metrics",
}


def number(value: Number) -> str:
    """A metric as text; a dash where it does not exist."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def interval(bounds: Interval | None) -> str:
    """A 95 % interval as text."""
    return f"[{bounds.low:.3f}, {bounds.high:.3f}]" if bounds else ""


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
    ('$0.0123', '$12.30', 'price unknown')
    """
    if amount is None:
        return "price unknown"
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"


def minus(shown: str) -> str:
    """With a typographer's minus sign."""
    return shown.replace("-", "−")


def plain(value: object) -> str:
    """A setting or a fact about a model as text.

    >>> plain(None), plain(1.0), plain("chat"), plain(["a"])
    ('none', '1', 'chat', '["a"]')
    """
    if value is None:
        return "none"
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
    return f"{spelled} rules" if name in (BEFORE, AFTER) else spelled


FILTERS: dict[str, Callable[..., object]] = {
    "number": number,
    "interval": interval,
    "percentage": percentage,
    "p_value": p_value,
    "dollars": dollars,
    "minus": minus,
    "plain": plain,
    "named_fields": named_fields,
}
"""What the templates know of these by."""


def main_measures(run: Run) -> list[Measure]:
    """Those that a reader looks at: all that the run has, but for the original's violations."""
    apart = {measure.name for measure in VIOLATIONS}
    return [m for m in MEASURES.values() if m.name in run.results.metrics.keys() - apart]


def headline(run: Run) -> str:
    """The plain sentence that says what the number means."""
    metrics = run.results.metrics
    before, after = (percentage(metrics[name]) for name in SHARES.values())
    title = run.plan.change.title
    change = f"when {title[0].lower()}{title[1:]}"
    n = f"{metrics['n_samples']:,} positions"
    if run.plan.eval == "all_diagonal":
        return (
            f"{run.version} tries a move that the changed rules forbid in {after} of {n} {change}, "
            f"and in {before} of them under the standard rules."
        )
    return (
        f"{run.version} plays its usual move in {before} of {n} under the standard rules and in "
        f"{after} {change}{_meaning(run)}."
    )


def _meaning(run: Run) -> str:
    impact, bounds = run.results.metrics[IMPACT], run.results.intervals.get(IMPACT)
    if impact is None or bounds is None:
        return ""
    if bounds.low <= 0 <= bounds.high:
        return ": no sign that the habit yields"
    if impact > 0:
        return ": the habit grows instead of yielding"
    return f": the change of rules takes away {percentage(-impact)} of the habit"
