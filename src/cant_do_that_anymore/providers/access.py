"""Access to a server: addresses, keys, headers, and their redaction. It imports no HTTP client."""

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from ..errors import InvalidInput
from .base import Answer

_NAME_AT_URL = re.compile(r"(.*?)@(https?://.*)", re.DOTALL)
_API_VERSION = "api-version"  # the only allowed query parameter: Azure needs it in every request
_API_CALL = re.compile(r"/(chat/completions|completions|responses)$")
_NAME_AT_HOST = re.compile(r"(.*)@([\w.-]+:\d+(?:/.*)?)")


def normalize_address(address: str) -> str:
    """Return the address without its final slash; runs store it, so it must contain no secret.

    >>> normalize_address("https://a.example/v1/?api-version=2024-10-21")
    'https://a.example/v1?api-version=2024-10-21'

    Raises:
        InvalidInput: if it is not a server's address, or contains a user, query or fragment, or
            the path of an API call.
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        parts.netloc.encode("idna")  # fails if a label of the host name is empty or too long
        usable = usable and address.isprintable() and " " not in address
        query = parse_qs(parts.query, keep_blank_values=True)
    except ValueError:
        usable = False
    if not usable:
        shown = re.sub("(?<=//)[^/]*@", "", address)  # without a password
        raise InvalidInput(f"not the address of a server: {shown!r}; try http://localhost:8000/v1")
    if "@" in parts.netloc or query.keys() - {_API_VERSION} or parts.fragment:
        raise InvalidInput(
            f"the address of {parts.hostname} may contain no user name, password or query except "
            f"{_API_VERSION}; put the key into an environment variable"
        )
    path = parts.path.rstrip("/")
    normalized = parts._replace(path=_API_CALL.sub("", path)).geturl()
    if _API_CALL.search(path):
        raise InvalidInput(
            f"{address!r} is the address of an API call; give that of the server: {normalized}"
        )
    return normalized


def url_for(address: str, path: str) -> str:
    """Return the URL of a path below a server's address, with its query.

    >>> url_for("https://a.example/v1?api-version=1", "/models")
    'https://a.example/v1/models?api-version=1'
    """
    base, _, query = address.partition("?")
    return base + path + (f"{'&' if '?' in path else '?'}{query}" if query else "")


def split_address(name: str | None, base_url: str | None = None) -> tuple[str | None, str | None]:
    """Split ``NAME@URL`` into the model's name and the server's address.

    >>> split_address("alpha@http://localhost:8000/v1")
    ('alpha', 'http://localhost:8000/v1')
    >>> split_address("vertex/claude@20250101")
    ('vertex/claude@20250101', None)

    Raises:
        InvalidInput: if ``base_url`` is another address, or the address lacks ``http://``.
    """
    match = _NAME_AT_URL.fullmatch(name or "")
    if not match:
        if bare := _NAME_AT_HOST.fullmatch(name or ""):
            raise InvalidInput(f"{name!r} has no http address (try {bare[1]}@http://{bare[2]})")
        return name, base_url
    if base_url and base_url.rstrip("/") != match[2].rstrip("/"):
        raise InvalidInput(f"give one address: {name!r} has one, and --base-url is {base_url!r}")
    return match[1] or None, match[2]


ENV_PREFIX = "env:"  # marks a header value that is the name of an environment variable
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True)
class Access:
    """An API key, its environment variable, and extra headers.

    Raises:
        InvalidInput: if the key has characters that no key can have.
    """

    key_variable: str
    key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key.strip())
        if not _is_printable_ascii(self.key):
            raise InvalidInput(f"{self.key_variable} contains characters that a key cannot have")

    @property
    def sent(self) -> dict[str, str]:
        """The headers that every request sends."""
        key = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return {**key, **self.headers}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values to redact."""
        return (self.key, *self.headers.values())


def validate_headers(headers: Iterable[str]) -> tuple[str, ...]:
    """Validate headers given as ``NAME=VALUE``.

    Raises:
        InvalidInput: if one is invalid; the message does not contain its value.
    """
    for header in headers:
        name, equals, value = header.partition("=")
        if not equals:
            raise InvalidInput("a header must be NAME=VALUE or NAME=env:VARIABLE; one has no =")
        if not _HEADER_NAME.fullmatch(name):
            raise InvalidInput(f"{name!r} is not a valid header name")
        if not _is_printable_ascii(value):
            raise InvalidInput(f"the header {name} contains characters that a header cannot have")
    return tuple(headers)


def resolve_headers(headers: Iterable[str]) -> dict[str, str]:
    """Return header values by name, reading ``env:VARIABLE`` from the environment.

    Raises:
        InvalidInput: if a variable is not set, or its value is invalid in a header.
    """
    resolved = dict(header.split("=", 1) for header in headers)
    for name, value in resolved.items():
        variable = value.removeprefix(ENV_PREFIX)
        if variable == value:
            continue
        if not os.environ.get(variable):
            raise InvalidInput(f"the header {name} needs the variable {variable}, which is not set")
        resolved[name] = os.environ[variable].strip()
        validate_headers([f"{name}={resolved[name]}"])
    return resolved


def _is_printable_ascii(text: str) -> bool:
    return text.isascii() and text.isprintable()


MIN_KEY_LENGTH = 8  # shorter values, such as EMPTY, are not keys and may be part of any word


class Redactor:
    """Redacts keys, also URL-quoted or in Base64; a key that is part of ``shown`` is not secret.

    >>> Redactor("sk-1234567890abcdef")("c2stMTIzNDU2Nzg5MGFiY2RlZg== for sk-1234567890abcdef")
    '***== for ***'
    """

    def __init__(self, *keys: str, shown: str = "") -> None:
        secrets = [key for key in keys if len(key) >= MIN_KEY_LENGTH and key not in shown]
        self._forms = [form for key in secrets for form in _encodings(key)]

    def __call__(self, text: str) -> str:
        """Redact the keys in a text."""
        for form in self._forms:
            text = text.replace(form, "***")
        return text

    def in_answer(self, answer: Answer) -> Answer:
        """Redact the keys in all texts of an answer."""
        if not self._forms:
            return answer
        names = ("text", "reasoning", "version", "fingerprint", "error")
        texts: dict[str, Any] = {name: self(getattr(answer, name)) for name in names}
        return replace(answer, **texts)


def _encodings(key: str) -> tuple[str, ...]:
    """Return the key in the encodings in which a server may send it back."""
    packed = b64encode(key.encode()).decode().rstrip("=")
    return key, quote(key, safe=""), quote(key), packed
