"""Numbers in words, the same in the terminal and on the page."""

from ..evaluation.intervals import Interval
from ..evaluation.run import Run


def number(value: float | int | None) -> str:
    """A metric as text; a dash where it does not exist."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def interval(bounds: Interval | None) -> str:
    """A 95 % interval as text."""
    return f"[{bounds.low:.3f}, {bounds.high:.3f}]" if bounds else ""


def percentage(share: float | int | None) -> str:
    """A share in per cent."""
    return "–" if share is None else f"{100 * share:.1f} %"


def p_value(p: float | None) -> str:
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


def headline(run: Run) -> str:
    """The plain sentence that says what the number means."""
    metrics = run.results.metrics
    before = percentage(metrics["predicted_move_proportion"])
    after = percentage(metrics["predicted_move_in_variant_proportion"])
    title = run.plan.rules.title
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
    impact = run.results.metrics["variant_impact_factor"]
    bounds = run.results.intervals.get("variant_impact_factor")
    if impact is None or bounds is None:
        return ""
    if bounds.low <= 0 <= bounds.high:
        return ": no sign that the habit yields"
    if impact > 0:
        return ": the habit grows instead of yielding"
    return f": the change of rules takes away {percentage(-impact)} of the habit"
