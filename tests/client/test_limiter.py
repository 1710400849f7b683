"""The limit on concurrent requests to a server."""

import heapq
import time
from collections.abc import Callable
from math import inf
from random import Random

import pytest

from cant_do_that_anymore.client.limiter import Limiter

OVERLOAD, SUCCESSES = "o", "......"


def new_limiter(fixed: int | None = None) -> Limiter:
    return Limiter(fixed, affordable=lambda: inf)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (OVERLOAD, 4),  # rejections of concurrent requests count once
        (10 * OVERLOAD, 1),
        (OVERLOAD + SUCCESSES, 5),
        (OVERLOAD + 2 * SUCCESSES, 6),
        (OVERLOAD + 99 * SUCCESSES, 8),  # a fixed limit does not rise above itself
    ],
)
def test_overload_halves_the_limit_and_successes_raise_it(history: str, expected: int) -> None:
    limiter = new_limiter(8)
    for event in history:
        entered = time.monotonic()
        for _ in range(8 if event == OVERLOAD else 0):
            limiter.on_overload(entered, None)
        if event != OVERLOAD:
            limiter.on_success()
    assert limiter.limit == expected


class SimulatedServer:
    """Answers so many requests at once, each after a random time, on a clock of its own."""

    def __init__(self, slots: int, seconds: Callable[[Random], float]) -> None:
        self.slots, self.seconds, self.random = slots, seconds, Random(0)
        self.now = 0.0

    def serve(self, limiter: Limiter, requests: int) -> tuple[float, int]:
        """Return the seconds until all are answered, and the most requests in flight."""
        ends: list[float] = []
        waiting = most = done = 0
        while done < requests:
            left = requests - done - len(ends) - waiting
            waiting += max(0, min(left, limiter.limit - len(ends) - waiting))
            most = max(most, len(ends) + waiting)
            while waiting and len(ends) < self.slots:
                heapq.heappush(ends, self.now + self.seconds(self.random))
                waiting -= 1
            self.now = heapq.heappop(ends)
            done += 1
            limiter.on_success()
        return self.now, most


def with_lengths_that_vary(random: Random) -> float:
    return 0.2 * random.lognormvariate(0, 0.7)


@pytest.mark.parametrize(
    ("slots", "seconds", "requests", "most_seconds", "most_in_flight"),
    [
        # A fixed limit of 32 takes 19 s, and 256 from the beginning 2.3 s.
        (10**6, lambda _: 0.3, 2_000, 5.0, 256),
        # The server itself needs 30 s.
        (4, lambda _: 0.2, 600, 30.5, 16),
        (4, with_lengths_that_vary, 600, 42.0, 32),
    ],
)
def test_the_limit_finds_itself(
    slots: int,
    seconds: Callable[[Random], float],
    requests: int,
    most_seconds: float,
    most_in_flight: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = SimulatedServer(slots, seconds)
    monkeypatch.setattr("time.monotonic", lambda: server.now)
    taken, most = server.serve(new_limiter(), requests)
    assert taken <= most_seconds
    assert most <= most_in_flight
