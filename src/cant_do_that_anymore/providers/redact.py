"""Redact API keys from everything that a server sends back."""

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from .base import Answer

MIN_KEY_LENGTH = 8  # shorter values, such as EMPTY, are not keys and may be part of any word
PIECE_LENGTH = 12  # any substring of a key of this length is redacted


class Redactor:
    """Redacts keys, and every long piece of them; a key that is part of ``shown`` is not secret.

    >>> Redactor("sk-1234567890abcdef")("Heard sk-1234567890ab... and c2stMTIzNDU2Nzg5MGFiY2RlZg==")
    'Heard ***... and ***=='
    """

    def __init__(self, *keys: str, shown: str = "") -> None:
        self._pieces = [
            _pieces(key) for key in keys if len(key) >= MIN_KEY_LENGTH and key not in shown
        ]

    def __call__(self, text: str) -> str:
        """Redact the keys in a text."""
        for pieces in self._pieces:
            text = _redact(text, pieces)
        return text

    def in_answer(self, answer: Answer) -> Answer:
        """Redact the keys in all texts of an answer."""
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
    """Return every substring of one length of every encoding of a key."""
    length = min(PIECE_LENGTH, len(key))
    return frozenset(
        encoded[start : start + length]
        for encoded in _encodings(key)
        for start in range(len(encoded) - length + 1)
    )


def _redact(text: str, pieces: frozenset[str]) -> str:
    length = len(next(iter(pieces)))
    parts, end = [], 0  # text[:end] is copied or redacted already
    for start in range(len(text) - length + 1):
        if text[start : start + length] in pieces:
            if start >= end:
                parts += [text[end:start], "***"]
            end = start + length
    return "".join(parts) + text[end:]


def _encodings(key: str) -> Iterator[str]:
    """Yield the key in the encodings in which a server may send it back."""
    yield from (key, json.dumps(key)[1:-1], quote(key, safe=""))
    for before in ("", ".", ".."):  # the key may start anywhere in a group of three bytes
        packed = b64encode((before + key).encode()).decode().rstrip("=")
        for inner in (packed[2 * len(before) :], packed[2 * len(before) : -1]):
            yield from (inner, inner.replace("+", "-").replace("/", "_"))
