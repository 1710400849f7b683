"""How hard a server is pressed."""

import asyncio

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


OVERLOAD, ROUND = "o", "......"


@pytest.mark.parametrize(
    ("history", "let_in"),
    [
        ("", 8),
        (OVERLOAD, 4),  # refusals of requests that were under way together count once
        (10 * OVERLOAD, 1),
        *((OVERLOAD + rounds * ROUND, 4 + rounds) for rounds in range(1, 5)),
        (OVERLOAD + 9 * ROUND, 8),
    ],
)
def test_overload_halves_the_limit_and_a_round_raises_it_by_one(history: str, let_in: int) -> None:
    async def scenario() -> int:
        limiter = AdaptiveLimiter(8)
        for event in history:
            async with limiter as entered:
                pass
            for _ in range(8 if event == OVERLOAD else 0):
                limiter.on_overload(entered, None)
            if event != OVERLOAD:
                limiter.on_success()
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
