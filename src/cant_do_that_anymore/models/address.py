"""``NAME@URL``: a model and the server that has it, in one word."""

import re

from ..errors import BadInput

_AT = re.compile(r"(.*?)@(https?://.*)", re.DOTALL)
_WITHOUT_HTTP = re.compile(r"(.*)@([\w.-]+:\d+(?:/.*)?)")


def with_address(name: str | None, base_url: str | None = None) -> tuple[str | None, str | None]:
    """A name without the address behind it, and the address, wherever it was given.

    >>> with_address("alpha@http://localhost:8000/v1")
    ('alpha', 'http://localhost:8000/v1')
    >>> with_address("vertex/claude@20250101")
    ('vertex/claude@20250101', None)

    Raises:
        BadInput: if two addresses are given, or one that is none.
    """
    found = _AT.fullmatch(name or "")
    if not found:
        if bare := _WITHOUT_HTTP.fullmatch(name or ""):
            raise BadInput(f"{name!r} has no http address (try {bare[1]}@http://{bare[2]})")
        return name, base_url
    if base_url and base_url.rstrip("/") != found[2].rstrip("/"):
        raise BadInput(f"{name!r} has an address, and --base-url another, {base_url!r}; give one")
    return found[1] or None, found[2]
