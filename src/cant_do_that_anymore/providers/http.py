"""HTTP access: keys, headers, proxies, time-outs, redirects and connection reuse.

How often to ask is for the client to say. The clients of OpenAI's and Anthropic's kind that Inspect
AI makes ask again by themselves, which is paid and not told, and wait ten minutes at most.
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


def same_origin_only(endpoint: str, path: str, hide: Callable[[str], str]) -> ClientMiddlewareType:
    """Follows redirects within an origin, and refuses all others before anything is sent.

    The client itself leaves out keys on the way to another origin, but neither what stands in
    other headers nor the question.
    """

    origin: tuple[object, ...] = ()

    async def stay(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        nonlocal origin
        url = request.url
        asked = url.scheme, url.host, url.port
        origin = origin or asked  # nobody is redirected before the first request
        if asked != origin:
            is_answering = url.raw_path.endswith(path)
            found = f"{url.origin()}{url.raw_path.removesuffix(path) if is_answering else ''}"
            raise UserError(
                f"{endpoint} redirects to another server, {hide(found)}, to which nothing was "
                "sent; if that one is meant, --base-url takes its address"
            )
        return await send(request)

    return stay


log = logging.getLogger(__name__)

LONGEST_THOUGHT = 1800
"""In seconds; some models think for ten minutes and more."""
MANY, QUICK = 50, 0.05
"""After so many questions whose answers take fewer seconds than that, a new connection for each
would be a good part of the time."""
SIGN_OF_LIFE = 60
"""In seconds; routers forget a connection on which nothing is said for some minutes."""
_TIME_OUT = "INSPECT_HTTP_REQUEST_TIMEOUT"
_NO_FILES_LEFT = {errno.EMFILE, errno.ENFILE}
_NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ClientConnectorError"}


def wait_long() -> None:
    """Let clients that Inspect AI makes from now on wait long, unless the user says how long."""
    os.environ.setdefault(_TIME_OUT, str(LONGEST_THOUGHT))


class Connector(TCPConnector):
    """Connections that are used again only where that saves time, and nothing comes unasked.

    What comes late would be taken for the answer to the next question on the same connection. So
    without encryption, where a new one is made in no time, every question has its own, until many
    were answered so quickly that the time counts. Where something came that nobody asked for, every
    question has its own from then on.
    """

    _asked = 0
    _is_quick = False

    async def connect(self, req: ClientRequest, *args: Any, **kwargs: Any) -> Connection:
        """A connection on which nothing waits."""
        while True:
            connection = await super().connect(req, *args, **kwargs)
            protocol = connection.protocol
            assert protocol is not None  # where nothing waits on it, it is false
            if not protocol.should_close:
                break
            connection.close()
            if not self._force_close:
                self._force_close = True
                log.warning(
                    "the server said what nobody asked for: no connection is used twice now"
                )
        self._asked += 1
        once = not req.is_ssl() and (self._asked <= MANY or not self._is_quick)
        if once:
            req.headers["Connection"] = "close"  # so that the server need not wait for more
        began = monotonic()

        def answered() -> None:
            self._is_quick = monotonic() - began < QUICK
            if once:
                protocol.force_close()

        connection.add_callback(answered)
        return connection


def kept_alive(address: AddrInfoType) -> socket.socket:
    """A socket for a connection that lasts while a model thinks and says nothing."""
    made = socket.socket(*address[:3])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, name):  # not everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), SIGN_OF_LIFE)
    return made


def unreachable(endpoint: str, fault: BaseException) -> UserError:
    """What to say where no server answers."""
    if getattr(fault, "errno", None) in _NO_FILES_LEFT:
        return UserError(
            f"this machine opens no more files or connections at once ({error_reason(fault)}); "
            "ask for fewer with --max-connections, or allow more with ulimit -n"
        )
    return UserError(
        f"no server answers at {endpoint} ({error_reason(fault)}); nothing was lost: start it, or "
        "correct the address, and run the same command again"
    )


def disable_client_retries(api: Any) -> None:
    """Let the client of a provider not ask again by itself."""
    client: Any = getattr(api, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0


def was_sent(fault: BaseException) -> bool:
    """Whether a request that no answer came to may have reached the provider."""
    return not {type(each).__name__ for each in (fault, fault.__cause__)} & _NOT_SENT


def unwrap_error(fault: Exception) -> Exception:
    """The provider's exception, where Inspect put one of its own around it."""
    last_attempt = getattr(fault, "last_attempt", None)
    if last_attempt:
        fault = last_attempt.exception()
    if type(fault).__module__.startswith("inspect_ai") and isinstance(fault.__cause__, Exception):
        return fault.__cause__
    return fault
