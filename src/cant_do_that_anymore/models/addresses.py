"""What a user says of a server's address, perhaps behind a model's name."""

import re
from urllib.parse import parse_qs, urlsplit

from ..errors import InvalidInput

_AT = re.compile(r"(.*?)@(https?://.*)", re.DOTALL)
_API_VERSION = "api-version"
"""The only thing that may be asked for by an address: Azure wants it in every request."""
_WITHOUT_HTTP = re.compile(r"(.*)@([\w.-]+:\d+(?:/.*)?)")


def checked_address(address: str) -> str:
    """The address without a slash at its end; it is written into runs, so it may hold no secret.

    >>> checked_address("https://a.example/v1/?api-version=2024-10-21")
    'https://a.example/v1?api-version=2024-10-21'

    Raises:
        InvalidInput: if it is no address, or holds more than that.
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        parts.netloc.encode("idna")  # no part of a name is empty or too long
        usable = usable and address.isprintable() and " " not in address
        asked_for = parse_qs(parts.query, keep_blank_values=True)
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(
            f"not the address of a server: {address!r}; try http://localhost:8000/v1"
        )
    if "@" in parts.netloc or asked_for.keys() - {_API_VERSION} or parts.fragment:
        told = f"the address of {parts.hostname} may hold no user name, password or query"
        raise InvalidInput(f"{told} but {_API_VERSION}; a key goes into an environment variable")
    return parts._replace(path=parts.path.rstrip("/")).geturl()


def below(address: str, path: str) -> str:
    """The address of something at a server.

    >>> below("https://a.example/v1?api-version=1", "/models")
    'https://a.example/v1/models?api-version=1'
    """
    base, _, query = address.partition("?")
    return base + path + (f"{'&' if '?' in path else '?'}{query}" if query else "")


def with_address(name: str | None, base_url: str | None = None) -> tuple[str | None, str | None]:
    """A name without the address behind it, and the address, wherever it was given.

    >>> with_address("alpha@http://localhost:8000/v1")
    ('alpha', 'http://localhost:8000/v1')
    >>> with_address("vertex/claude@20250101")
    ('vertex/claude@20250101', None)

    Raises:
        InvalidInput: if two addresses are given, or one that is none.
    """
    found = _AT.fullmatch(name or "")
    if not found:
        if bare := _WITHOUT_HTTP.fullmatch(name or ""):
            raise InvalidInput(f"{name!r} has no http address (try {bare[1]}@http://{bare[2]})")
        return name, base_url
    if base_url and base_url.rstrip("/") != found[2].rstrip("/"):
        raise InvalidInput(
            f"{name!r} has an address, and --base-url another, {base_url!r}; give one"
        )
    return found[1] or None, found[2]
