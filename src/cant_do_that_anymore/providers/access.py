"""Access to a server: its address, key and headers, and their redaction. No HTTP client is used."""

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlsplit

from ..errors import InvalidInput
from .base import Answer

_NAME_AT_URL = re.compile(r"(.*?)@(https?://.*)", re.DOTALL)
_API_CALL = re.compile(r"/(chat/completions|completions|responses)$")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile("[ -~]*")  # printable ASCII
ENV_PREFIX = "env:"  # marks a header value that is the name of an environment variable
BEARER = "Bearer "
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
    with suppress(ValueError):  # brackets or a port that no address can have
        parts = urlsplit(address)
        has_host = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        may_be_secret = "@" in parts.netloc or parts.query or parts.fragment
        if has_host and not may_be_secret and address.isprintable() and " " not in address:
            path = _API_CALL.sub("", parts.path.rstrip("/"))
            return parts._replace(path=path).geturl()
    raise InvalidInput(
        "a server's address is like http://localhost:8000/v1, without user name, password or "
        "query; put the key into an environment variable"
    )


@dataclass(frozen=True)
class Access:
    """The environment variable of an API key, and the headers that every request sends."""

    key_variable: str
    headers: Mapping[str, str] = field(repr=False)


def header_value(variable: str) -> str:
    """Return the value of an environment variable for a header, or "" if it is not set.

    Raises:
        InvalidInput: if it has characters that no header can have.
    """
    value = os.environ.get(variable, "").strip()
    if not _HEADER_VALUE.fullmatch(value):
        raise InvalidInput(f"{variable} contains characters that a key cannot have")
    return value


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
            value = header_value(variable)
            if not value:
                raise InvalidInput(f"a header needs {variable}, which is not set")
        if not (equals and _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)):
            raise InvalidInput(
                "a header must be NAME=VALUE or NAME=env:VARIABLE, in characters that headers have"
            )
        resolved[name] = value
    return resolved


class Redactor:
    """Redacts keys, also URL-quoted or in Base64; a key that is part of ``shown`` is not secret.

    >>> Redactor("Bearer sk-1234567890abcdef")("Incorrect API key provided: sk-1234567890abcdef")
    'Incorrect API key provided: ***'
    """

    def __init__(self, *header_values: str, shown: str = "") -> None:
        self._forms: list[str] = []
        for value in header_values:
            key = value.removeprefix(BEARER)
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
        names = ("text", "reasoning", "version")
        texts: dict[str, Any] = {name: self(getattr(answer, name)) for name in names}
        return replace(answer, **texts)
