"""Adaptive concurrency limit: halved on overload, raised by one per round of successes (AIMD)."""

import asyncio
import time
from collections import deque


class AdaptiveLimiter:
    """Limits the requests in flight: halved on overload, raised by one per round of successes.

    Use as an asynchronous context manager around one request; it returns the time of entry.
    """

    def __init__(self, max_in_flight: int) -> None:
        self._max_in_flight = max_in_flight
        self._limit = float(max_in_flight)
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed_until = 0.0
        self._last_halved = 0.0

    async def __aenter__(self) -> float:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._admit_waiting()
        await turn
        return time.monotonic()

    async def __aexit__(self, *_: object) -> None:
        self._in_flight -= 1
        self._admit_waiting()

    def on_success(self) -> None:
        """Raise the limit after an answer."""
        self._limit = min(self._max_in_flight, self._limit + 1 / self._limit)

    def on_overload(self, entered: float, retry_after: float | None) -> None:
        """Halve the limit after an overload response, and obey its Retry-After."""
        now = time.monotonic()
        if retry_after:
            self._closed_until = max(self._closed_until, now + retry_after)
            # Slightly later, or the clock may still read as closed.
            asyncio.get_running_loop().call_later(retry_after + 0.001, self._admit_waiting)
        if entered > self._last_halved:  # a burst of overload responses halves the limit once
            self._limit = max(1.0, self._limit / 2)
            self._last_halved = now

    def release_all(self) -> None:
        """Admit all waiting requests; the caller has stopped and sends none of them."""
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            self._admit(turn)

    def _admit_waiting(self) -> None:
        if time.monotonic() < self._closed_until:
            return
        while self._waiting and self._in_flight < int(self._limit):
            self._admit(self._waiting.popleft())

    def _admit(self, turn: "asyncio.Future[None]") -> None:
        if not turn.done():  # not cancelled meanwhile
            self._in_flight += 1
            turn.set_result(None)
