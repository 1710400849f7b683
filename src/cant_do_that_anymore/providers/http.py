"""HTTP connections through aiohttp: sockets, proxies, and the error if there is none."""

import errno
import socket
import sys
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import AddrInfoType

from ..errors import UserError, error_reason

KEEPALIVE_SECONDS = 60  # routers drop connections that are idle for some minutes
_TOO_MANY_OPEN_FILES = {errno.EMFILE, errno.ENFILE}


def keepalive_socket(address: AddrInfoType) -> socket.socket:
    """Create a socket with TCP keep-alive, for responses that take minutes to start.

    On Linux it begins to connect. On one machine that takes no time, so asyncio, which connects it
    again, need not wait until it is connected.
    """
    connection = socket.socket(*address[:3])
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, name):  # not on all platforms
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), KEEPALIVE_SECONDS)
    if sys.platform == "linux":  # elsewhere, a connected socket cannot be connected again
        connection.setblocking(False)
        connection.connect_ex(address[4])
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
        "address, then run the same command again"
    )
