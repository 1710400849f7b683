"""Access to a server: its address, key and headers, and their redaction. No HTTP client is used."""

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlsplit

from ..errors import InvalidInput
from .base import Answer

_NAME_AT_URL = re.compile(r"(.*?)@(https?://.*)", re.DOTALL)
_API_CALL = re.compile(r"/(chat/completions|completions|responses)$")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
ENV_PREFIX = "env:"  # marks a header value that is the name of an environment variable
_BEARER = "Bearer "
MIN_KEY_LENGTH = 8  # shorter values, such as EMPTY, are not keys and may be part of any word


def split_address(name: str | None, base_url: str | None = None) -> tuple[str | None, str | None]:
    """Split ``NAME@URL`` into the model's name and the server's address.

    >>> split_address("alpha@http://localhost:8000/v1")
    ('alpha', 'http://localhost:8000/v1')
    >>> split_address("vertex/claude@20250101")
    ('vertex/claude@20250101', None)

    Raises:
        InvalidInput: if ``base_url`` is another address.
    """
    match = _NAME_AT_URL.fullmatch(name or "")
    if not match:
        return name, base_url
    if base_url and base_url.rstrip("/") != match[2].rstrip("/"):
        raise InvalidInput(f"give one address: {name!r} has one, and --base-url is {base_url!r}")
    return match[1] or None, match[2]


def normalize_address(address: str) -> str:
    """Return the address without a final slash or the path of an API call.

    Runs store it, so it must contain no secret.

    >>> normalize_address("https://a.example/v1/chat/completions")
    'https://a.example/v1'

    Raises:
        InvalidInput: if it is not a server's address, or contains a user, query or fragment.
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        usable = usable and address.isprintable() and " " not in address
        may_be_secret = "@" in parts.netloc or parts.query or parts.fragment
    except ValueError:
        usable = False
    if not usable or may_be_secret:
        raise InvalidInput(
            "a server's address is like http://localhost:8000/v1, without user name, password or "
            "query; put the key into an environment variable"
        )
    path = _API_CALL.sub("", parts.path.rstrip("/"))
    return parts._replace(path=path).geturl()


@dataclass(frozen=True)
class Access:
    """The environment variable of an API key, and the headers that every request sends."""

    key_variable: str
    headers: Mapping[str, str] = field(repr=False)

    @property
    def secrets(self) -> list[str]:
        """The values to redact."""
        return [value.removeprefix(_BEARER) for value in self.headers.values()]


def key_header(variable: str) -> dict[str, str]:
    """Return the header for the key in an environment variable; none if it is not set.

    Raises:
        InvalidInput: if the key has characters that no key can have.
    """
    key = os.environ.get(variable, "").strip()
    if not _is_printable_ascii(key):
        raise InvalidInput(f"{variable} contains characters that a key cannot have")
    return {"Authorization": f"{_BEARER}{key}"} if key else {}


def resolve_headers(headers: Iterable[str]) -> dict[str, str]:
    """Return headers given as ``NAME=VALUE`` or ``NAME=env:VARIABLE``, with their values.

    Raises:
        InvalidInput: if one is invalid; the message does not contain its value.
    """
    resolved = {}
    for header in headers:
        name, equals, value = header.partition("=")
        if value.startswith(ENV_PREFIX):
            variable = value.removeprefix(ENV_PREFIX)
            value = os.environ.get(variable, "").strip()
            if not value:
                raise InvalidInput(f"a header needs {variable}, which is not set")
        if not (equals and _HEADER_NAME.fullmatch(name) and _is_printable_ascii(value)):
            raise InvalidInput(
                "a header must be NAME=VALUE or NAME=env:VARIABLE, in characters that headers have"
            )
        resolved[name] = value
    return resolved


def _is_printable_ascii(text: str) -> bool:
    return text.isascii() and text.isprintable()


class Redactor:
    """Redacts keys, also URL-quoted or in Base64; a key that is part of ``shown`` is not secret.

    >>> Redactor("sk-1234567890abcdef")("c2stMTIzNDU2Nzg5MGFiY2RlZg== for sk-1234567890abcdef")
    '***== for ***'
    """

    def __init__(self, *keys: str, shown: str = "") -> None:
        self._forms: list[str] = []
        for key in keys:
            if len(key) >= MIN_KEY_LENGTH and key not in shown:
                packed = b64encode(key.encode()).decode().rstrip("=")
                self._forms += [key, quote(key, safe=""), quote(key), packed]

    def __call__(self, text: str) -> str:
        """Redact the keys in a text."""
        for form in self._forms:
            text = text.replace(form, "***")
        return text

    def in_answer(self, answer: Answer) -> Answer:
        """Redact the keys in all texts of an answer."""
        if not self._forms:
            return answer
        names = ("text", "reasoning", "version")
        texts: dict[str, Any] = {name: self(getattr(answer, name)) for name in names}
        return replace(answer, **texts)
