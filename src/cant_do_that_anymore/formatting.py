"""Numbers, shares, money and text as people read them."""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

Number = float | int | None


def format_points(value: Number, *, signed: bool = False) -> str:
    """A difference, with its unit.

    >>> format_points(0.0671), format_points(-0.2, signed=True), format_points(None)
    ('6.7 points', '-20.0 points', '–')
    """
    return "–" if value is None else f"{in_points(value, signed=signed)} points"


def in_points(value: Number, *, signed: bool = True) -> str:
    """A difference where the unit stands elsewhere.

    >>> in_points(0.0671), in_points(-0.2), in_points(0.0), in_points(None)
    ('+6.7', '-20.0', '0.0', '–')
    """
    if value is None:
        return "–"
    shown = f"{100 * value:+.1f}" if signed else f"{100 * value:.1f}"
    return shown.lstrip("+-") if shown.lstrip("+-") == "0.0" else shown


def range_in_points(low: float, high: float, between: str = " to ") -> str:
    """From one difference to another, without the unit.

    >>> range_in_points(-0.031, 0.2)
    '-3.1 to +20.0'
    """
    return f"{in_points(low)}{between}{in_points(high)}"


def format_p(p: float) -> str:
    """A p-value as a statement.

    >>> format_p(0.0351), format_p(0.0000002), format_p(1.0)
    ('p = 0.035', 'p < 0.001', 'p = 1.000')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def number(value: Number) -> str:
    """A metric as text; a dash where it does not exist."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def amount(value: Number) -> str:
    """A number of tokens as text.

    >>> amount(1234.5678), amount(None)
    ('1,235', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


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


def format_setting(value: object) -> str:
    """A setting or a fact about a model as text; a dash where it is not set.

    >>> format_setting(None), format_setting(1.0), format_setting("chat"), format_setting(["a"])
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
