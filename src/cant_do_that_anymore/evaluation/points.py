"""Differences between shares, or between factors, in words: always in points, a hundredth each."""

from ..task.types import Number


def points(value: Number, *, signed: bool = False) -> str:
    """A difference, with its unit.

    >>> points(0.0671), points(-0.2, signed=True), points(None)
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


def chance(p: float) -> str:
    """A p-value as a statement.

    >>> chance(0.0351), chance(0.0000002), chance(1.0)
    ('p = 0.035', 'p < 0.001', 'p = 1.000')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
