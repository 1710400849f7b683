"""How hard to press a server: as hard as it lets us, and less when it says so."""

import asyncio
import time


class Pressure:
    """Limits the requests in flight: halved on overload, growing again while answers come.

    Use as an asynchronous context manager around one request.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._in_flight = 0
        self._changed = asyncio.Condition()
        self._resume_at = 0.0
        self._last_fall = 0.0

    async def __aenter__(self) -> None:
        while True:
            if (pause := self._resume_at - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            elif self._in_flight < int(self._limit):
                self._in_flight += 1
                return
            else:
                async with self._changed:
                    await self._changed.wait()

    async def __aexit__(self, *_: object) -> None:
        self._in_flight -= 1
        async with self._changed:
            self._changed.notify(2)

    def rise(self) -> None:
        """An answer came."""
        self._limit = min(self._most, self._limit + 1 / self._limit)

    def fall(self, retry_after: float | None) -> None:
        """The server is overloaded; it may have said how long to leave it alone."""
        now = time.monotonic()
        self._resume_at = max(self._resume_at, now + (retry_after or 0))
        if now - self._last_fall > 1:  # one burst of refusals is one sign, not many
            self._limit = max(1.0, self._limit / 2)
            self._last_fall = now
