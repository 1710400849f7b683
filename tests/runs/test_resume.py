"""Runs that are stopped in any way go on where they were, and end with the same numbers."""

import asyncio
import random
import signal
from pathlib import Path

import pytest
from aiohttp import web

from cant_do_that_anymore.game.position import shipped_pool, write_positions
from loopback import Body, Loopback, serving
from machines import needs_posix
from players import wavering
from processes import cdta, killed, process_of, results_in, samples_in

N = 60
POOL = shipped_pool("pool")[:N]
CONNECTIONS = 4
MOST_OPEN = 2 * CONNECTIONS
"""Questions that can be asked and not yet on disk at any moment."""


@pytest.fixture
def positions(tmp_path: Path) -> Path:
    file = tmp_path / "positions.jsonl"
    write_positions(file, POOL)
    return file


def options(server: Loopback, positions: Path, out: Path, model: str = "m") -> list[object]:
    return [
        *("run", "--base-url", server.url, "--model", model, "--dataset", positions, "--quiet"),
        *("-n", N, "--max-connections", CONNECTIONS, "--out", out),
    ]


def unbroken(positions: Path, folder: Path, port: int) -> Path:
    """The same run, never stopped, in a home of its own."""
    with serving(Loopback(wavering), port) as server:
        run = cdta(*options(server, positions, folder / "whole"), CDTA_HOME=str(folder / "fresh"))
    assert run.returncode == 0, run.stderr
    assert len(server.requests) == 2 * N
    return folder / "whole"


def same_run(ours: Path, theirs: Path) -> bool:
    return samples_in(ours) == samples_in(theirs) and results_in(ours) == results_in(theirs)


def port_of(server: Loopback) -> int:
    return int(server.url.split(":")[2].removesuffix("/v1"))


def started_and_stopped(
    which: signal.Signals, at: int, server: Loopback, *options: object
) -> tuple[int, str]:
    """Start a run, which the server stops at its request of that number: exit code and errors."""

    async def stop(request: Body, number: int) -> web.StreamResponse | None:
        if number == at:
            process.send_signal(which)
        return None

    server.fault = stop
    process = process_of(*options)
    _, errors = process.communicate(timeout=60)
    server.fault = None
    return process.returncode, errors


@needs_posix
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_saves_what_is_in_flight_and_says_how_to_go_on(
    which: signal.Signals, positions: Path, tmp_path: Path
) -> None:
    with serving(Loopback(wavering, delay=0.005)) as server:
        command = options(server, positions, tmp_path / "out")
        code, errors = started_and_stopped(which, 50, server, *command)
        assert code in (1, 130)
        assert "run the same command again to go on" in errors
        assert "Traceback" not in errors
        assert len(server.requests) < 50 + MOST_OPEN
        resumed = cdta(*command)
    assert resumed.returncode == 0, resumed.stderr
    assert len(server.requests) == 2 * N + 1  # only the first is asked again: is it the same?
    assert same_run(tmp_path / "out", unbroken(positions, tmp_path, port_of(server)))


@needs_posix
def test_two_interruptions_stop_at_once(positions: Path, tmp_path: Path) -> None:
    """The server hangs from the fiftieth question on; nobody waits for that."""

    async def hang(request: Body, number: int) -> web.StreamResponse | None:
        if number == 60:
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                await asyncio.sleep(0.1)
        if number > 50:
            await asyncio.Event().wait()
        return None

    with serving(Loopback(wavering)) as server:
        server.fault = hang
        process = process_of(*options(server, positions, tmp_path / "out"), "--max-connections", 10)
        _, errors = process.communicate(timeout=30)
        assert process.returncode in (1, 130)
        assert "Traceback" not in errors
        server.fault = None
        before = len(server.requests)
        assert cdta(*options(server, positions, tmp_path / "out")).returncode == 0
    assert len(server.requests) - before == 2 * N - 50 + 1


@needs_posix
def test_ten_kills_at_random_moments_change_no_number(positions: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    with serving(Loopback(wavering, delay=0.004)) as server:
        command = options(server, positions, tmp_path / "out")
        for _ in range(10):
            at = len(server.requests) + chance.randint(1, MOST_OPEN + 2)
            assert killed(at, server, *command) == -signal.SIGKILL
        last = cdta(*command)
        assert last.returncode == 0, last.stderr
    assert len(server.requests) <= 2 * N + 10 * MOST_OPEN
    assert same_run(tmp_path / "out", unbroken(positions, tmp_path, port_of(server)))


@pytest.mark.parametrize("names", [("m", "m"), ("m", "another")])
def test_two_runs_at_once_on_one_store_are_both_right(
    names: tuple[str, str], positions: Path, tmp_path: Path
) -> None:
    both_ask = asyncio.Event()

    async def wait_for_both(_: Body, number: int) -> web.StreamResponse | None:
        if number > CONNECTIONS:
            both_ask.set()
        await both_ask.wait()
        return None

    with serving(Loopback(wavering, delay=0.005, fault=wait_for_both)) as server:
        both = [
            process_of(*options(server, positions, tmp_path / f"out-{n}", name))
            for n, name in enumerate(names)
        ]
        for process in both:
            _, err = process.communicate(timeout=60)
            assert (process.returncode, err) == (0, "")
    first, second = tmp_path / "out-0", tmp_path / "out-1"
    assert results_in(first) == results_in(second)
    assert same_run(first, unbroken(positions, tmp_path, port_of(server)))
