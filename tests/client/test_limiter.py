"""How hard a server is pressed."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cant_do_that_anymore.client.limiter import AdaptiveLimiter

LONG_AGO = -1.0


async def admitted(limiter: AdaptiveLimiter) -> int:
    """How many of twenty requests are let in at once."""
    inside = 0

    async def request() -> None:
        nonlocal inside
        async with limiter:
            inside += 1
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(request()) for _ in range(20)]
    for _ in range(3):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return inside


async def nothing(limiter: AdaptiveLimiter) -> None:
    """As many as allowed are let in."""


async def burst(limiter: AdaptiveLimiter) -> None:
    """Many refusals of requests that were under way together count once."""
    async with limiter as entered:
        pass
    for _ in range(8):
        limiter.on_overload(entered, None)


async def again_and_again(limiter: AdaptiveLimiter) -> None:
    """At least one is always let in."""
    for _ in range(10):
        await burst(limiter)


def rounds(number: int) -> Callable[[AdaptiveLimiter], Awaitable[None]]:
    """The limit rises by one with a full round of answers, up to the first one."""

    async def rise(limiter: AdaptiveLimiter) -> None:
        await burst(limiter)
        for _ in range(6 * number):
            limiter.on_success()

    return rise


@pytest.mark.parametrize(
    ("happens", "let_in"),
    [
        (nothing, 8),
        (burst, 4),
        (again_and_again, 1),
        (rounds(1), 5),
        (rounds(2), 6),
        (rounds(9), 8),
    ],
)
def test_overload_halves_what_is_let_in_and_answers_raise_it(
    happens: Callable[[AdaptiveLimiter], Awaitable[None]], let_in: int
) -> None:
    async def scenario() -> int:
        limiter = AdaptiveLimiter(8)
        await happens(limiter)
        return await admitted(limiter)

    assert asyncio.run(scenario()) == let_in


def test_nobody_is_let_in_before_the_time_the_server_gave() -> None:
    async def scenario() -> tuple[int, float]:
        limiter, loop = AdaptiveLimiter(8), asyncio.get_running_loop()
        fallen = loop.time()
        limiter.on_overload(LONG_AGO, 0.05)
        early = await admitted(limiter)
        async with limiter:
            return early, loop.time() - fallen

    early, waited = asyncio.run(scenario())
    assert early == 0
    assert waited >= 0.05


def test_those_who_wait_can_be_let_in_to_be_sent_home() -> None:
    async def scenario() -> None:
        limiter = AdaptiveLimiter(1)
        limiter.on_overload(LONG_AGO, 600)

        async def request() -> None:
            async with limiter:
                pass

        waiting = [asyncio.create_task(request()) for _ in range(5)]
        await asyncio.sleep(0)
        limiter.release_all()
        await asyncio.gather(*waiting)

    asyncio.run(asyncio.wait_for(scenario(), 5))
