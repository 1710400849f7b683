"""Runs that are stopped in any way go on where they were, and end with the same numbers."""

import asyncio
import random
import signal
from pathlib import Path

import pytest

from processes import forked, killed
from testing import (
    Body,
    Loopback,
    cdta,
    needs_posix,
    positions,
    process_of,
    results_in,
    samples_in,
    serving,
    wavering,
)

N, CONNECTIONS = 24, 4
MOST_OPEN = 2 * CONNECTIONS
"""Questions that can be asked and not yet on disk at any moment."""


def options(
    server: Loopback, out: Path, model: str = "m", connections: int = CONNECTIONS
) -> list[object]:
    return [
        *("run", "--base-url", server.url, "--model", model, "--dataset", positions(N), "--quiet"),
        *("-n", N, "--max-connections", connections, "--out", out),
    ]


def is_like_an_unbroken_run(ours: Path, server: Loopback) -> bool:
    """Whether it is the same as the same run that was never stopped, in a home of its own."""
    port, home = int(server.url.split(":")[2].removesuffix("/v1")), ours.with_name("fresh")
    with serving(wavering, port=port) as again:
        cdta(*options(again, home / "run"), code=0, CDTA_HOME=str(home))
    assert len(again.requests) == 2 * N
    return all(of(ours) == of(home / "run") for of in (samples_in, results_in))


@needs_posix
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_saves_what_is_in_flight(which: signal.Signals, tmp_path: Path) -> None:
    async def stop(request: Body, number: int) -> None:
        if number == 20:
            process.send_signal(which)

    with serving(wavering, delay=0.005, fault=stop) as server:
        process = process_of(*options(server, tmp_path / "out"))
        _, errors = process.communicate(timeout=60)
        assert process.returncode in (1, 130)
        assert "Run the same command again to continue" in errors
        assert "Traceback" not in errors
        assert len(server.requests) < 20 + MOST_OPEN
        server.fault = None
        cdta(*options(server, tmp_path / "out"), code=0)
    assert len(server.requests) == 2 * N + 1  # only the first is asked again: is it the same?
    assert is_like_an_unbroken_run(tmp_path / "out", server)


@needs_posix
def test_two_interruptions_stop_at_once(tmp_path: Path) -> None:
    """The server hangs from the twentieth question on; nobody waits for that."""

    async def hang(request: Body, number: int) -> None:
        if number == 30:
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                await asyncio.sleep(0.1)
        if number > 20:
            await asyncio.Event().wait()

    with serving(wavering, fault=hang) as server:
        process = process_of(*options(server, tmp_path / "out", connections=10))
        _, errors = process.communicate(timeout=30)
        assert process.returncode in (1, 130)
        assert "Traceback" not in errors
        server.fault, before = None, len(server.requests)
        cdta(*options(server, tmp_path / "out"), code=0)
    assert len(server.requests) - before == 2 * N - 20 + 1


@needs_posix
def test_ten_kills_at_random_moments_change_no_number(tmp_path: Path) -> None:
    chance = random.Random(7)
    with serving(wavering, delay=0.004) as server:
        command = options(server, tmp_path / "out")
        for _ in range(10):
            at = len(server.requests) + chance.randint(1, MOST_OPEN - 2)
            assert killed(at, server, *command) == -signal.SIGKILL
        cdta(*command, code=0)
    assert len(server.requests) <= 2 * N + 10 * MOST_OPEN
    assert is_like_an_unbroken_run(tmp_path / "out", server)


@pytest.mark.parametrize("names", [("m", "m"), ("m", "another")])
def test_two_runs_on_one_store_are_both_right(names: tuple[str, str], tmp_path: Path) -> None:
    both_ask = asyncio.Event()

    async def wait_for_both(_: Body, number: int) -> None:
        if number > 1:  # a server gets the first request of each alone
            both_ask.set()
        await both_ask.wait()

    outs = [tmp_path / "out-0", tmp_path / "out-1"]
    with serving(wavering, listed=names, delay=0.005, fault=wait_for_both) as server:
        both = [forked(*options(server, out, name)) for out, name in zip(outs, names, strict=True)]
        for process in both:
            process.start()
        for process in both:
            process.join(60)
            assert process.exitcode == 0
    assert results_in(outs[0]) == results_in(outs[1])
    assert is_like_an_unbroken_run(outs[0], server)
