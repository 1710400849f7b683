"""Format numbers, percentages, money, durations and settings for people to read."""

import json
import logging
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import PureWindowsPath
from typing import Any
from unicodedata import category

Number = float | int | None
_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
# Absolute paths up to the name of the file, but not addresses.
_FOLDERS = re.compile(r"(?<![\w:/.])(?:/|[A-Za-z]:\\)(?:[^\s/\\'\"]+[/\\])+")


def in_points(value: float, *, signed: bool = True) -> str:
    """Format a difference in percentage points, without the unit.

    A difference is not rounded to 0.

    >>> in_points(0.0671), in_points(-0.2), in_points(0.003), in_points(0.05, signed=False)
    ('+7', '−20', '+0.3', '5')
    """
    points = round(100 * value, 1 if abs(value) < 0.005 else 0)
    text = f"{points:+g}" if signed else f"{points:g}"
    return minus(text) if points else "0"


def number(value: Number) -> str:
    """Format a metric, with a dash for None."""
    if value is None:
        return "–"
    return minus(f"{value:,}" if isinstance(value, int) else f"{value:.3f}")


def amount(value: Number) -> str:
    """Format a number of tokens, with a dash for None.

    >>> amount(1234.5678), amount(None)
    ('1,235', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


def percentage(share: Number, digits: int = 1) -> str:
    """Format a share as a percentage, with a dash for None.

    >>> percentage(0.25), percentage(0.25, 0), percentage(None)
    ('25.0%', '25%', '–')
    """
    return "–" if share is None else f"{100 * share:.{digits}f}%"


def rounded(share: float | None) -> str:
    """Format a share in whole percent, but never round to "none" or "all".

    >>> rounded(0.314), rounded(0.997), rounded(1.0), rounded(-0.004)
    ('31%', '99.7%', '100%', '−0.4%')
    """
    if share is None:
        return percentage(None)
    nearly = round(share, 2) in (0, 1) and share not in (0, 1)
    return minus(percentage(share, 1 if nearly else 0))


def dollars(amount: float | None) -> str:
    """Format an amount of money in dollars and cents.

    >>> dollars(0.0123), dollars(12.3), dollars(0.0001), dollars(None)
    ('$0.01', '$12.30', '<$0.01', 'cost unknown')
    """
    if amount is None:
        return "cost unknown"
    return "<$0.01" if 0 < amount < 0.005 else f"${amount:,.2f}"


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


def duration(seconds: float) -> str:
    """Format a duration in the unit that suits it.

    >>> duration(45), duration(300), duration(10_800), duration(250_000)
    ('45 s', '5 min', '3 h', '2.9 days')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.2g} h" if hours < 48 else f"{hours / 24:,.1f} days"


def pluralize(n: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1.

    >>> pluralize(1, "sample"), pluralize(1200, "sample")
    ('1 sample', '1,200 samples')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def join_words(items: Sequence[str], last: str = "and") -> str:
    """Join items as in a sentence.

    >>> join_words(["a"]), join_words(["a", "b", "c"]), join_words(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    return f" {last} ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def last_part(name: str) -> str:
    """Return the name of a model; of one that is a file's path, the last part.

    >>> last_part("/data/models/Qwen3-4B/"), last_part("Qwen/Qwen3-4B")
    ('Qwen3-4B', 'Qwen/Qwen3-4B')
    """
    path = PureWindowsPath(name)  # knows both separators
    return path.name if path.root else name


def visible(text: str) -> str:
    """Replace control characters by their code points: none can steer a terminal or hide text.

    >>> visible("e2" + chr(0x202E) + "e4")
    'e2⟨U+202E⟩e4'
    """
    hidden = {c for c in set(text) - {"\n", "\t"} if category(c) in _INVISIBLE}
    return str.translate(text, {ord(c): spelled(c) for c in hidden})


def spelled(character: str) -> str:
    """Return a character as its code point."""
    return f"⟨U+{ord(character):04X}⟩"


class VisibleFormatter(logging.Formatter):
    """Log formatter that makes control characters visible."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        return visible(super().format(record))


def log_to(handler: logging.Handler, line: str) -> None:
    """Send all log messages from warnings up to a handler, in the format ``line``."""
    handler.setFormatter(VisibleFormatter(line))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


@cache
def warn_once(message: str) -> None:
    """Log a warning, once in all runs of a command."""
    logging.getLogger(__name__).warning(message)


def without_folders(value: Any) -> Any:
    """Return JSON values with absolute paths cut to their file names.

    >>> without_folders(["at /home/me/a.jsonl", "http://a/b/c"])
    ['at a.jsonl', 'http://a/b/c']
    """
    return map_texts(lambda text: _FOLDERS.sub("", text), value)


def map_texts(change: Callable[[str], str], value: Any) -> Any:
    """Return JSON values with all texts changed, except the keys of objects."""
    if isinstance(value, dict):
        return {key: map_texts(change, item) for key, item in value.items()}
    if isinstance(value, list):
        return [map_texts(change, item) for item in value]
    return change(value) if isinstance(value, str) else value
