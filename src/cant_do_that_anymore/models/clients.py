"""Clients that wait long for an answer and ask for it once, and what their faults may cost.

How often to ask is for `asking` to say. The clients of OpenAI's and Anthropic's kind that Inspect
AI makes ask again by themselves, which is paid and not told, and wait ten minutes at most.
"""

import errno
import logging
import os
import socket
from time import monotonic
from typing import Any

from aiohttp import AddrInfoType, TCPConnector
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from ..errors import Problem, reason_of

log = logging.getLogger(__name__)

LONGEST_THOUGHT = 1800
"""In seconds; some models think for ten minutes and more."""
REST, MOST_AT_REST = 1.0, 64
"""So many seconds a connection is silent before it is used again, unless so many others are. Where
answers take longer, a new one costs little beside them."""
SIGN_OF_LIFE = 60
"""In seconds; routers forget a connection on which nothing is said for some minutes."""
_TIME_OUT = "INSPECT_HTTP_REQUEST_TIMEOUT"
_NO_FILES_LEFT = {errno.EMFILE, errno.ENFILE}
_NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ClientConnectorError"}


def wait_long() -> None:
    """Let clients that Inspect AI makes from now on wait long, unless the user says how long."""
    os.environ.setdefault(_TIME_OUT, str(LONGEST_THOUGHT))


class Connector(TCPConnector):
    """Connections that are used again after a rest, if nothing came on them that nobody asked for.

    What comes late would be taken for the answer to the next question. Where that happens once,
    every question has a connection of its own from then on.
    """

    async def connect(self, *args: Any, **kwargs: Any) -> Connection:
        """A connection on which nothing waits; it is closed after an answer that took long."""
        while True:
            connection = await super().connect(*args, **kwargs)
            protocol = connection.protocol
            assert protocol is not None  # it is false while nothing waits on it
            if not protocol.should_close:
                break
            connection.close()
            if not self._force_close:
                self._force_close = True
                log.warning(
                    "the server said what nobody asked for: no connection is used twice now"
                )
        began = monotonic()

        def rest() -> None:
            if monotonic() - began > REST:
                protocol.force_close()

        connection.add_callback(rest)
        return connection

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        """The one that has rested longest, if that is long enough."""
        resting = self._conns.get(key)
        if resting and len(resting) < MOST_AT_REST and monotonic() - resting[0][1] < REST:
            return None
        return await super()._get(key, traces)


def kept_alive(address: AddrInfoType) -> socket.socket:
    """A socket for a connection that lasts while a model thinks and says nothing."""
    made = socket.socket(*address[:3])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, name):  # not everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), SIGN_OF_LIFE)
    return made


def unreachable(endpoint: str, fault: BaseException) -> Problem:
    """What to say where no server answers."""
    if getattr(fault, "errno", None) in _NO_FILES_LEFT:
        return Problem(
            f"this machine opens no more files or connections at once ({reason_of(fault)}); "
            "ask for fewer with --max-connections, or allow more with ulimit -n"
        )
    return Problem(
        f"no server answers at {endpoint} ({reason_of(fault)}); nothing was lost: start it, or "
        "correct the address, and run the same command again"
    )


def ask_once(api: Any) -> None:
    """Let the client of a provider not ask again by itself."""
    client: Any = getattr(api, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0


def was_sent(fault: BaseException) -> bool:
    """Whether a request that no answer came to may have reached the provider."""
    return not {type(each).__name__ for each in (fault, fault.__cause__)} & _NOT_SENT


def own_fault(fault: Exception) -> Exception:
    """The provider's exception, where Inspect put one of its own around it."""
    last_attempt = getattr(fault, "last_attempt", None)
    if last_attempt:
        fault = last_attempt.exception()
    if type(fault).__module__.startswith("inspect_ai") and isinstance(fault.__cause__, Exception):
        return fault.__cause__
    return fault
