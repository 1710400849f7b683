"""Adaptive concurrency limit: halved on overload, raised by one per full round of successes
(AIMD).
"""

import asyncio
import time
from collections import deque


class AdaptiveLimiter:
    """Limits the requests in flight: halved on overload, growing by one with every full round.

    Use as an asynchronous context manager around one request; it gives the time of entry.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed_until = 0.0
        self._last_fall = 0.0

    async def __aenter__(self) -> float:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._let_in()
        await turn
        return time.monotonic()

    async def __aexit__(self, *_: object) -> None:
        self._in_flight -= 1
        self._let_in()

    def on_success(self) -> None:
        """An answer came."""
        self._limit = min(self._most, self._limit + 1 / self._limit)

    def on_overload(self, entered: float, retry_after: float | None) -> None:
        """A request that entered then was told of overload, and perhaps when to come back."""
        now = time.monotonic()
        if retry_after:
            self._closed_until = max(self._closed_until, now + retry_after)
            # A hair later than the time said, or the clock may still read as closed.
            asyncio.get_running_loop().call_later(retry_after + 0.001, self._let_in)
        if entered > self._last_fall:  # a burst of refusals is one sign, not many
            self._limit = max(1.0, self._limit / 2)
            self._last_fall = now

    def release_all(self) -> None:
        """Let everyone in who waits: they will find that nothing more is to be asked."""
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            self._admit(turn)

    def _let_in(self) -> None:
        if time.monotonic() < self._closed_until:
            return
        while self._waiting and self._in_flight < int(self._limit):
            self._admit(self._waiting.popleft())

    def _admit(self, turn: "asyncio.Future[None]") -> None:
        if not turn.done():  # it was cancelled
            self._in_flight += 1
            turn.set_result(None)
