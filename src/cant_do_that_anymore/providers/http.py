"""HTTP connections through aiohttp: proxies, reuse, and the error if there is none."""

import errno
import socket
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import AddrInfoType, ClientRequest, TCPConnector
from aiohttp.connector import Connection

from ..errors import UserError, error_reason

KEEPALIVE_SECONDS = 60  # routers drop connections that are idle for some minutes
_TOO_MANY_OPEN_FILES = {errno.EMFILE, errno.ENFILE}


class Connector(TCPConnector):
    """Connector that reuses connections over TLS only, and none with unread data.

    Unread data would be taken for the response to the next request. It may also arrive after that
    request is sent, so once a server has sent such data, no connection is reused. Without TLS,
    connecting is cheap, and none is reused at all.
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__(
            limit=0,
            socket_factory=keepalive_socket,
            force_close=not endpoint.startswith("https:"),
        )

    async def connect(self, req: ClientRequest, *args: Any, **kwargs: Any) -> Connection:
        """Return a connection without unread data."""
        while True:
            connection = await super().connect(req, *args, **kwargs)
            assert connection.protocol is not None
            if not connection.protocol.should_close:
                break
            connection.close()
            self._force_close = True
        if self.force_close:
            req.headers["Connection"] = "close"  # the server closes it and need not wait for more
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
