"""Rows as CSV."""

import csv
from collections.abc import Sequence
from io import StringIO
from itertools import chain

from ..rows import Row

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def as_csv(rows: Sequence[Row]) -> str:
    """Format rows as CSV. A text that a spreadsheet would run as a formula gets a quote before."""
    flat = [as_flat(row) for row in rows]
    names = dict.fromkeys(chain(*flat))
    text = StringIO()
    table = csv.DictWriter(text, list(names), restval="", lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in flat)
    return text.getvalue()


def as_flat(row: Row, prefix: str = "") -> Row:
    """Return a row in which objects are spread over columns; an estimate's value has its name."""
    flat: Row = {}
    for key, value in row.items():
        name = prefix[:-1] if key == "value" and prefix else f"{prefix}{key}"
        flat |= as_flat(value, f"{name}_") if isinstance(value, dict) else {name: value}
    return flat


def _cell(value: object) -> str:
    if isinstance(value, list):
        value = " | ".join(map(str, value))
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
    return f"{value:.6f}" if isinstance(value, float) else "" if value is None else str(value)
