"""HTTP access: addresses, keys, headers, proxies, time-outs, redirects and connection reuse.

Retries belong to this package's client. The OpenAI and Anthropic SDK clients that Inspect AI
creates would also retry by themselves, unseen but billed, and time out after ten minutes.
"""

import errno
import logging
import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import (
    AddrInfoType,
    ClientHandlerType,
    ClientMiddlewareType,
    ClientRequest,
    ClientResponse,
    TCPConnector,
)
from aiohttp.connector import Connection

from ..errors import InvalidInput, UserError, error_reason

_NAME_AT_URL = re.compile(r"(.*?)@(https?://.*)", re.DOTALL)
_API_VERSION = "api-version"  # the only allowed query parameter: Azure needs it in every request
_NAME_AT_HOST = re.compile(r"(.*)@([\w.-]+:\d+(?:/.*)?)")


def normalize_address(address: str) -> str:
    """Return the address without its final slash; runs store it, so it must contain no secret.

    >>> normalize_address("https://a.example/v1/?api-version=2024-10-21")
    'https://a.example/v1?api-version=2024-10-21'

    Raises:
        InvalidInput: if it is not a server's address, or contains a user, query or fragment.
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
        raise InvalidInput(
            f"not the address of a server: {address!r}; try http://localhost:8000/v1"
        )
    if "@" in parts.netloc or query.keys() - {_API_VERSION} or parts.fragment:
        message = f"the address of {parts.hostname} may hold no user name, password or query"
        raise InvalidInput(f"{message} but {_API_VERSION}; a key goes into an environment variable")
    return parts._replace(path=parts.path.rstrip("/")).geturl()


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
        raise InvalidInput(
            f"{name!r} has an address, and --base-url another, {base_url!r}; give one"
        )
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
            raise InvalidInput(f"{self.key_variable} holds characters that cannot be part of a key")

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
            raise InvalidInput("a header is given as NAME=VALUE or NAME=env:VARIABLE; one has no =")
        if not _HEADER_NAME.fullmatch(name):
            raise InvalidInput(f"{name!r} cannot be the name of a header")
        if not _is_printable_ascii(value):
            raise InvalidInput(f"the header {name} holds characters that cannot be part of one")
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
            raise InvalidInput(f"the header {name} is to come from {variable}, which is not set")
        resolved[name] = os.environ[variable].strip()
        validate_headers([f"{name}={resolved[name]}"])
    return resolved


def proxy_for(address: str) -> str | None:
    """Return the proxy that the environment sets for an address, or None for loopback addresses.

    Proxy passwords come from the proxy's address only; a ``.netrc`` file is ignored.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    if _is_loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_printable_ascii(text: str) -> bool:
    return text.isascii() and text.isprintable()


def same_origin_only(endpoint: str, path: str, hide: Callable[[str], str]) -> ClientMiddlewareType:
    """Return middleware that follows redirects within one origin and rejects all others.

    On a redirect to another origin aiohttp would drop the Authorization header, but send the other
    headers and the prompt.
    """

    origin: tuple[object, ...] = ()

    async def check_origin(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        nonlocal origin
        url = request.url
        target = url.scheme, url.host, url.port
        origin = origin or target  # the first request cannot be a redirect
        if target != origin:
            is_completion = url.raw_path.endswith(path)
            address = f"{url.origin()}{url.raw_path.removesuffix(path) if is_completion else ''}"
            raise UserError(
                f"{endpoint} redirects to another server, {hide(address)}, to which nothing was "
                "sent; if that one is meant, --base-url takes its address"
            )
        return await send(request)

    return check_origin


log = logging.getLogger(__name__)

MAX_RESPONSE_SECONDS = 1800  # some models reason for ten minutes and more
# After this many requests, answered faster than this, opening connections would take a good part
# of the time.
REUSE_AFTER_REQUESTS, QUICK_SECONDS = 50, 0.05
KEEPALIVE_SECONDS = 60  # routers drop connections that are idle for some minutes
_TIME_OUT = "INSPECT_HTTP_REQUEST_TIMEOUT"
_TOO_MANY_OPEN_FILES = {errno.EMFILE, errno.ENFILE}
_NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ClientConnectorError"}


def raise_inspect_timeout() -> None:
    """Raise the time-out of clients that Inspect AI creates from now on, unless the user set it."""
    os.environ.setdefault(_TIME_OUT, str(MAX_RESPONSE_SECONDS))


class Connector(TCPConnector):
    """Connector that reuses connections only where that saves time and is safe.

    On a reused connection, late data would be read as the response to the next request. So without
    TLS, where connecting is cheap, every request gets a new connection until many quick responses
    make reuse worthwhile. After unsolicited data, no connection is reused.
    """

    _requests = 0
    _is_quick = False

    async def connect(self, req: ClientRequest, *args: Any, **kwargs: Any) -> Connection:
        """Return a connection without unread data."""
        while True:
            connection = await super().connect(req, *args, **kwargs)
            protocol = connection.protocol
            assert protocol is not None  # not a truth test: a protocol without unread data is false
            if not protocol.should_close:
                break
            connection.close()
            if not self._force_close:
                self._force_close = True
                log.warning(
                    "the server said what nobody asked for: no connection is used twice now"
                )
        self._requests += 1
        once = not req.is_ssl() and (self._requests <= REUSE_AFTER_REQUESTS or not self._is_quick)
        if once:
            req.headers["Connection"] = "close"  # the server need not wait for more
        started = monotonic()

        def on_release() -> None:
            self._is_quick = monotonic() - started < QUICK_SECONDS
            if once:
                protocol.force_close()

        connection.add_callback(on_release)
        return connection


def keepalive_socket(address: AddrInfoType) -> socket.socket:
    """Create a socket with TCP keep-alive, for responses that take minutes to start."""
    connection = socket.socket(*address[:3])
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, name):  # not on all platforms
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), KEEPALIVE_SECONDS)
    return connection


def unreachable(endpoint: str, fault: BaseException) -> UserError:
    """Return the error for a server that cannot be reached."""
    if getattr(fault, "errno", None) in _TOO_MANY_OPEN_FILES:
        return UserError(
            f"this machine opens no more files or connections at once ({error_reason(fault)}); "
            "ask for fewer with --max-connections, or allow more with ulimit -n"
        )
    return UserError(
        f"no server answers at {endpoint} ({error_reason(fault)}); nothing was lost: start it, or "
        "correct the address, and run the same command again"
    )


def disable_client_retries(api: Any) -> None:
    """Disable the retries of the SDK client behind a provider's API."""
    client: Any = getattr(api, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0


def was_sent(fault: BaseException) -> bool:
    """Whether a failed request may have reached the provider."""
    return not {type(error).__name__ for error in (fault, fault.__cause__)} & _NOT_SENT


def unwrap_error(fault: Exception) -> Exception:
    """Return the provider's exception that Inspect may have wrapped in its own."""
    last_attempt = getattr(fault, "last_attempt", None)
    if last_attempt:
        fault = last_attempt.exception()
    if type(fault).__module__.startswith("inspect_ai") and isinstance(fault.__cause__, Exception):
        return fault.__cause__
    return fault
