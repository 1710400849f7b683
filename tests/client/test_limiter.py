"""How hard a server is pressed."""

import asyncio

from cant_do_that_anymore.client.limiter import AdaptiveLimiter

LONG_AGO = -1.0


async def admitted(pressure: AdaptiveLimiter, requests: int) -> int:
    """How many of so many requests are let in at once."""
    inside = 0

    async def request() -> None:
        nonlocal inside
        async with pressure:
            inside += 1
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(request()) for _ in range(requests)]
    for _ in range(3):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return inside


def test_as_many_as_allowed_are_let_in() -> None:
    assert asyncio.run(admitted(AdaptiveLimiter(8), 20)) == 8


def test_overload_halves_and_a_burst_of_refusals_counts_once() -> None:
    async def scenario() -> int:
        pressure = AdaptiveLimiter(8)
        async with pressure as entered:
            pass
        for _ in range(8):
            pressure.on_overload(entered, None)
        return await admitted(pressure, 20)

    assert asyncio.run(scenario()) == 4


def test_at_least_one_is_always_let_in() -> None:
    async def scenario() -> int:
        pressure = AdaptiveLimiter(4)
        for _ in range(10):
            async with pressure as entered:
                pass
            pressure.on_overload(entered, None)
        return await admitted(pressure, 20)

    assert asyncio.run(scenario()) == 1


def test_pressure_rises_again_by_one_with_a_full_round_of_answers() -> None:
    async def scenario() -> list[int]:
        pressure = AdaptiveLimiter(8)
        async with pressure as entered:
            pass
        pressure.on_overload(entered, None)
        seen = []
        for _ in range(6):
            for _ in range(6):
                pressure.on_success()
            seen.append(await admitted(pressure, 20))
        return seen

    assert asyncio.run(scenario()) == [5, 6, 7, 8, 8, 8]


def test_nobody_is_let_in_before_the_time_the_server_gave() -> None:
    async def scenario() -> tuple[int, float]:
        pressure = AdaptiveLimiter(8)
        loop = asyncio.get_running_loop()
        fallen = loop.time()
        pressure.on_overload(LONG_AGO, 0.05)
        early = await admitted(pressure, 20)
        async with pressure:
            return early, loop.time() - fallen

    early, waited = asyncio.run(scenario())
    assert early == 0
    assert waited >= 0.05


def test_those_who_wait_can_be_let_in_to_be_sent_home() -> None:
    async def scenario() -> None:
        pressure = AdaptiveLimiter(1)
        pressure.on_overload(LONG_AGO, 600)

        async def request() -> None:
            async with pressure:
                pass

        waiting = [asyncio.create_task(request()) for _ in range(5)]
        await asyncio.sleep(0)
        pressure.release_all()
        await asyncio.gather(*waiting)

    asyncio.run(asyncio.wait_for(scenario(), 5))
