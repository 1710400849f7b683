"""Redact API keys from everything that a server sends back."""

import html
import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from .base import Answer

SHORTEST_SECRET = 8
"""What is shorter, such as EMPTY, is no key, and may be a part of any word."""
PIECE = 12
"""So many characters of a key in a row are hidden, however it is cut."""


class Redactor:
    """Hides keys, and every piece of them, in texts; what is shown anyway is no key.

    >>> Redactor("sk-1234567890abcdef")("Heard sk-1234567890ab... and c2stMTIzNDU2Nzg5MGFiY2RlZg==")
    'Heard ***... and ***=='
    """

    def __init__(self, *keys: str, shown: str = "") -> None:
        self._pieces = [
            _pieces(key) for key in keys if len(key) >= SHORTEST_SECRET and key not in shown
        ]

    def __call__(self, text: str) -> str:
        """The text without the keys."""
        for pieces in self._pieces:
            text = _without(text, pieces)
        return text

    def in_answer(self, answer: Answer) -> Answer:
        """The answer without the keys."""
        if not self._pieces:
            return answer
        return replace(
            answer,
            text=self(answer.text),
            reasoning=self(answer.reasoning),
            version=self(answer.version),
            error=self(answer.error),
        )


def _pieces(key: str) -> frozenset[str]:
    """All that is hidden of a key, in pieces of one length."""
    long = min(PIECE, len(key))
    return frozenset(
        form[start : start + long] for form in _forms(key) for start in range(len(form) - long + 1)
    )


def _without(text: str, pieces: frozenset[str]) -> str:
    long = len(next(iter(pieces)))
    shown, end = [], 0  # all before the end is shown, or was hidden
    for start in range(len(text) - long + 1):
        if text[start : start + long] in pieces:
            if start >= end:
                shown += [text[end:start], "***"]
            end = start + long
    return "".join(shown) + text[end:]


def _forms(key: str) -> Iterator[str]:
    """The key as it may come back."""
    in_json = json.dumps(key)[1:-1]
    yield from (key, key.upper(), key.lower(), key[::-1], html.escape(key))
    yield from (in_json, json.dumps(in_json)[1:-1], "".join(f"\\u{ord(c):04x}" for c in key))
    yield from ("".join(f"&#{ord(c)};" for c in key), "".join(f"&#x{ord(c):x};" for c in key))
    for hexadecimal in (
        quote(key, safe=""),
        "".join(f"%{ord(c):02X}" for c in key),
        key.encode().hex(),
    ):
        yield from (hexadecimal, hexadecimal.lower(), hexadecimal.upper())
    for before in ("", ".", ".."):  # it may begin anywhere in a group of three bytes
        packed = b64encode((before + key).encode()).decode().rstrip("=")
        for inner in (packed[2 * len(before) :], packed[2 * len(before) : -1]):
            yield from (inner, inner.replace("+", "-").replace("/", "_"))
