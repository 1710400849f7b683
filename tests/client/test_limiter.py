"""The limit on concurrent requests to a server."""

import asyncio

import pytest

from cant_do_that_anymore.client.limiter import AdaptiveLimiter

LONG_AGO = -1.0


async def admitted(limiter: AdaptiveLimiter) -> int:
    """How many of 20 concurrent requests enter."""
    entered = 0

    async def request() -> None:
        nonlocal entered
        async with limiter:
            entered += 1
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(request()) for _ in range(20)]
    for _ in range(3):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return entered


OVERLOAD, SUCCESSES = "o", "......"


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("", 8),
        (OVERLOAD, 4),  # rejections of concurrent requests count once
        (10 * OVERLOAD, 1),
        *((OVERLOAD + rounds * SUCCESSES, 4 + rounds) for rounds in range(1, 5)),
        (OVERLOAD + 9 * SUCCESSES, 8),
    ],
)
def test_overload_halves_the_limit_and_successes_raise_it(history: str, expected: int) -> None:
    async def scenario() -> int:
        limiter = AdaptiveLimiter(8)
        for event in history:
            async with limiter as entered_at:
                pass
            for _ in range(8 if event == OVERLOAD else 0):
                limiter.on_overload(entered_at, None)
            if event != OVERLOAD:
                limiter.on_success()
        return await admitted(limiter)

    assert asyncio.run(scenario()) == expected


def test_no_request_enters_before_retry_after() -> None:
    async def scenario() -> tuple[int, float]:
        limiter, loop = AdaptiveLimiter(8), asyncio.get_running_loop()
        start = loop.time()
        limiter.on_overload(LONG_AGO, 0.05)
        early = await admitted(limiter)
        async with limiter:
            return early, loop.time() - start

    early, waited = asyncio.run(scenario())
    assert early == 0
    assert waited >= 0.05


def test_release_all_ends_the_wait() -> None:
    async def scenario() -> None:
        limiter = AdaptiveLimiter(1)
        limiter.on_overload(LONG_AGO, 600)

        async def request() -> None:
            async with limiter:
                pass

        tasks = [asyncio.create_task(request()) for _ in range(5)]
        await asyncio.sleep(0)
        limiter.release_all()
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(scenario(), 5))
