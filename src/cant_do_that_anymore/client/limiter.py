"""Adaptive concurrency limit: doubles while throughput rises, and halves on overload.

Once a server was overloaded, the limit recovers by one per round of answers (AIMD).
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

FIRST_LIMIT, MAX_LIMIT = 8, 256
# A round has as many answers as the limit, but at least so many.
SHORTEST_ROUND = 16
# The throughput must rise by this factor when the limit is doubled, or the limit goes back.
WORTHWHILE_FACTOR = 1.33
# Doubling is tried again after so many rounds, since the lengths of replies vary.
ROUNDS_BEFORE_RETRY = 3


class Limiter:
    """Limits the requests in flight; a fixed limit is only lowered on overload.

    Use as an asynchronous context manager around one request; it returns the time of entry.
    ``affordable`` returns how many requests the money that is left pays for.

    Attributes:
        in_flight: how many requests are in flight.
    """

    def __init__(self, fixed: int | None, affordable: Callable[[], float]) -> None:
        self._affordable = affordable
        self._max = fixed or MAX_LIMIT
        self._limit = float(fixed or FIRST_LIMIT)
        self._throughput = None if fixed else _Throughput(self._limit)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed_until = 0.0
        self._last_halved = 0.0
        self.in_flight = 0

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        return int(min(self._limit, self._affordable()))

    async def __aenter__(self) -> float:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self.admit()
        await turn
        return time.monotonic()

    async def __aexit__(self, *_: object) -> None:
        self.in_flight -= 1
        self.admit()

    def on_success(self) -> None:
        """Adapt the limit after an answer."""
        wanted = self._limit + 1 / self._limit
        if self._throughput:
            wanted = self._throughput.next_limit(self._limit)
        self._limit = min(self._max, wanted)

    def on_overload(self, entered: float, retry_after: float | None) -> None:
        """Halve the limit after an overload response, and obey its Retry-After."""
        now = time.monotonic()
        self._throughput = None  # from now on, the limit rises slowly
        if retry_after:
            self._closed_until = max(self._closed_until, now + retry_after)
            # Slightly later, or the clock may still read as closed.
            asyncio.get_running_loop().call_later(retry_after + 0.001, self.admit)
        if entered > self._last_halved:  # a burst of overload responses halves the limit once
            self._limit = max(1.0, self._limit / 2)
            self._last_halved = now

    def admit(self, *, everyone: bool = False) -> None:
        """Admit waiting requests while there is room, or everyone: a caller that stops sends none.

        Nobody else is admitted before the server's Retry-After.
        """
        is_open = time.monotonic() >= self._closed_until
        while self._waiting and (everyone or (is_open and self.in_flight < self.limit)):
            turn = self._waiting.popleft()
            if not turn.done():  # not cancelled meanwhile
                self.in_flight += 1
                turn.set_result(None)


class _Throughput:
    """Doubles a limit while that raises the answers per second, round by round."""

    def __init__(self, limit: float) -> None:
        self._good = limit  # the highest limit that was worth it
        self._rate = 0.0  # answers per second at that limit
        self._answers = 0
        self._since: float | None = None  # when the round began: at the first answer
        self._rounds_to_wait = 0

    def next_limit(self, limit: float) -> float:
        """Count an answer, and return the limit from now on."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            return limit
        self._answers += 1
        if self._answers < max(limit, SHORTEST_ROUND):
            return limit
        rate = self._answers / max(now - self._since, 1e-9)
        self._answers, self._since = 0, now
        if self._rounds_to_wait:
            self._rounds_to_wait -= 1
            self._rate = (self._rate + rate) / 2
            if self._rounds_to_wait:
                return limit
        elif rate < WORTHWHILE_FACTOR * self._rate:
            self._rounds_to_wait = ROUNDS_BEFORE_RETRY
            return self._good
        else:
            self._rate = rate
        self._good = limit
        return 2 * limit
