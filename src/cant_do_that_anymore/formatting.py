"""Format numbers, percentages, money and settings for people to read."""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

Number = float | int | None


def format_points(value: Number, *, signed: bool = False) -> str:
    """Format a difference in percentage points, with the unit.

    >>> format_points(0.0671), format_points(-0.2, signed=True), format_points(None)
    ('6.7 points', '-20.0 points', '–')
    """
    return "–" if value is None else f"{in_points(value, signed=signed)} points"


def in_points(value: Number, *, signed: bool = True) -> str:
    """Format a difference in percentage points, without the unit.

    >>> in_points(0.0671), in_points(-0.2), in_points(0.0), in_points(None)
    ('+6.7', '-20.0', '0.0', '–')
    """
    if value is None:
        return "–"
    text = f"{100 * value:+.1f}" if signed else f"{100 * value:.1f}"
    return text.lstrip("+-") if text.lstrip("+-") == "0.0" else text


def range_in_points(low: float, high: float, between: str = " to ") -> str:
    """Format a range of differences in percentage points, without the unit.

    >>> range_in_points(-0.031, 0.2)
    '-3.1 to +20.0'
    """
    return f"{in_points(low)}{between}{in_points(high)}"


def format_p(p: float) -> str:
    """Format a p-value as a statement.

    >>> format_p(0.0351), format_p(0.0000002), format_p(1.0)
    ('p = 0.035', 'p < 0.001', 'p = 1.000')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def number(value: Number, missing: str = "–") -> str:
    """Format a metric; None is missing."""
    if value is None:
        return missing
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def amount(value: Number) -> str:
    """Format a number of tokens, with a dash for None.

    >>> amount(1234.5678), amount(None)
    ('1,235', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


def percentage(share: Number) -> str:
    """Format a share as a percentage, with a dash for None."""
    return "–" if share is None else f"{100 * share:.1f} %"


def p_value(p: Number) -> str:
    """Format a p-value for a table, with a dash for None."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def dollars(amount: float | None) -> str:
    """Format an amount of money; below a dollar with four decimals.

    >>> dollars(0.0123), dollars(12.3), dollars(None)
    ('$0.0123', '$12.30', 'cost unknown')
    """
    if amount is None:
        return "cost unknown"
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"


def minus(text: str) -> str:
    """Replace hyphens by the typographic minus sign."""
    return text.replace("-", "−")


def format_setting(value: object) -> str:
    """Format a setting or a fact about a model, with a dash for None.

    >>> format_setting(None), format_setting(1.0), format_setting("chat"), format_setting(["a"])
    ('–', '1', 'chat', '["a"]')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def named_fields(settings: Any) -> Iterator[tuple[str, object]]:
    """Yield the title and value of every field of a dataclass."""
    for field in fields(settings):
        title = field.name.replace("_", " ").capitalize()
        yield field.metadata.get("title", title), getattr(settings, field.name)
