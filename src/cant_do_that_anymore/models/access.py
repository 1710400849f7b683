"""What lets one in at a server: a key, headers and a proxy. None of it is ever written down."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ..errors import InvalidInput

FROM_ENVIRONMENT = "env:"
"""Before the name of the variable that holds the value of a header."""
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True)
class Access:
    """A key, the variable that holds it, and more headers.

    Raises:
        InvalidInput: if the key cannot be one.
    """

    key_variable: str
    key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key.strip())
        if not _is_plain(self.key):
            raise InvalidInput(f"{self.key_variable} holds characters that cannot be part of a key")

    @property
    def sent(self) -> dict[str, str]:
        """The headers of every request."""
        key = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return {**key, **self.headers}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What is shown to nobody."""
        return (self.key, *self.headers.values())


def checked_headers(given: Iterable[str]) -> tuple[str, ...]:
    """What is given as ``NAME=VALUE``, if it can be a header; what is wrong shows no value.

    Raises:
        InvalidInput: if it cannot.
    """
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise InvalidInput("a header is given as NAME=VALUE or NAME=env:VARIABLE; one has no =")
        if not _NAME.fullmatch(name):
            raise InvalidInput(f"{name!r} cannot be the name of a header")
        if not _is_plain(value):
            raise InvalidInput(f"the header {name} holds characters that cannot be part of one")
    return tuple(given)


def headers_in(given: Iterable[str]) -> dict[str, str]:
    """Headers by name, with what the environment holds in place of ``env:VARIABLE``.

    Raises:
        InvalidInput: if a variable is not set, or holds what cannot be in a header.
    """
    found = dict(each.split("=", 1) for each in given)
    for name, value in found.items():
        variable = value.removeprefix(FROM_ENVIRONMENT)
        if variable == value:
            continue
        if not os.environ.get(variable):
            raise InvalidInput(f"the header {name} is to come from {variable}, which is not set")
        found[name] = os.environ[variable].strip()
        checked_headers([f"{name}={found[name]}"])
    return found


def proxy_for(address: str) -> str | None:
    """The proxy that the environment names for an address; this machine itself needs none.

    Passwords come from the proxy's address alone: a ``.netrc`` file is for other programs.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    if _is_here(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
