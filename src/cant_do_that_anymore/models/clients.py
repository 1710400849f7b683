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

from aiohttp import AddrInfoType, ClientRequest, TCPConnector
from aiohttp.connector import Connection

from ..errors import UserError, error_reason

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
