"""HTTP connections through aiohttp: proxies, reuse, and the error if there is none."""

import errno
import logging
import socket
from ipaddress import ip_address
from time import monotonic
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import AddrInfoType, ClientRequest, TCPConnector
from aiohttp.connector import Connection

from ..errors import UserError, error_reason

log = logging.getLogger(__name__)

# If so many responses arrive within so many seconds, opening connections would take a good part of
# the time.
QUICK_RESPONSES, QUICK_SECONDS = 50, 0.1
KEEPALIVE_SECONDS = 60  # routers drop connections that are idle for some minutes
_TOO_MANY_OPEN_FILES = {errno.EMFILE, errno.ENFILE}


class Connector(TCPConnector):
    """Connector that reuses connections only where that saves time and is safe.

    On a reused connection, late data would be read as the response to the next request. So without
    TLS, where connecting is cheap, every request gets a new connection until many responses arrive
    in a short time. After unsolicited data, no connection is reused.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._responses, self._counted_from, self._is_quick = 0, monotonic(), False

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
                log.warning("the server sent unsolicited data; connections are no longer reused")
        once = not (req.is_ssl() or self._is_quick)
        if once:
            req.headers["Connection"] = "close"  # the server need not wait for more

        def on_release() -> None:
            self._responses += 1
            if self._responses % QUICK_RESPONSES == 0:
                now = monotonic()
                self._is_quick = now - self._counted_from < QUICK_SECONDS
                self._counted_from = now
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


def unreachable(endpoint: str, fault: BaseException) -> UserError:
    """Return the error for a server that cannot be reached."""
    if getattr(fault, "errno", None) in _TOO_MANY_OPEN_FILES:
        return UserError(
            f"this machine cannot open more files or connections ({error_reason(fault)}); "
            "lower --max-connections, or raise the limit with ulimit -n"
        )
    return UserError(
        f"no server answers at {endpoint} ({error_reason(fault)}); start it or correct the "
        "address. No answers were lost, so run the same command again"
    )
