"""Interrupted runs say what is saved, and continue to the same numbers."""

import asyncio
import os
import random
import re
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from cant_do_that_anymore.client import client
from cant_do_that_anymore.errors import Interrupted
from cant_do_that_anymore.task.types import answers_of
from crashes import start, was_killed
from loopback import Fault
from testing import (
    Body,
    Loopback,
    Serve,
    cdta,
    checksum,
    error_when,
    habit,
    measure,
    moves_in,
    needs_posix,
    positions,
    results_in,
    samples_in,
    serving,
    start_cdta,
    wavering,
)

N, CONNECTIONS, KILLS = 24, 4, 3
MAX_UNSAVED = 2 * CONNECTIONS
"""Maximum number of requests that are sent and not yet saved."""


def run_command(server: Loopback, out: Path, connections: int = CONNECTIONS) -> list[object]:
    return [
        *("run", "--base-url", server.url, "--model", "m", "--dataset", positions(N), "--quiet"),
        *("-n", N, "--max-connections", connections, "--out", out),
    ]


def equals_uninterrupted_run(out: Path, server: Loopback) -> bool:
    """Whether the run equals the same run without interruption, in its own CDTA_HOME."""
    port, home = int(server.url.split(":")[2].removesuffix("/v1")), out.with_name("fresh")
    with serving(wavering, port=port) as fresh_server:
        cdta(*run_command(fresh_server, home / "run"), code=0, CDTA_HOME=str(home))
    assert len(fresh_server.requests) == 2 * N
    return all(read(out) == read(home / "run") for read in (samples_in, results_in))


@needs_posix
def test_one_signal_saves_requests_in_flight(tmp_path: Path) -> None:
    async def stop(request: Body, number: int) -> None:
        if number == 20:
            process.send_signal(signal.SIGTERM)

    with serving(wavering, delay=0.005, fault=stop) as server:
        process = start_cdta(*run_command(server, tmp_path / "out"))
        _, stderr = process.communicate(timeout=60)
        assert process.returncode in (1, 130) and "Traceback" not in stderr
        assert "Run the same command again to continue" in stderr
        assert re.search(r"finishing \d requests? in flight, for at most 30 s", stderr)
        assert len(server.requests) < 20 + MAX_UNSAVED
        server.fault = None
        cdta(*run_command(server, tmp_path / "out"), code=0)
    assert len(server.requests) == 2 * N
    assert equals_uninterrupted_run(tmp_path / "out", server)


@needs_posix
def test_two_interruptions_stop_at_once(tmp_path: Path) -> None:
    """The server hangs after the 20th request, and the run does not wait for it."""

    async def hang(request: Body, number: int) -> None:
        if number == 30:
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                await asyncio.sleep(0.1)
        if number > 20:
            await asyncio.Event().wait()

    with serving(wavering, fault=hang) as server:
        process = start_cdta(*run_command(server, tmp_path / "out", connections=10))
        _, stderr = process.communicate(timeout=30)
        assert process.returncode in (1, 130) and "Traceback" not in stderr
        server.fault, before = None, len(server.requests)
        cdta(*run_command(server, tmp_path / "out"), code=0)
    assert len(server.requests) - before == 2 * N - 20


@needs_posix
def test_kills_at_random_moments_change_no_number(tmp_path: Path) -> None:
    generator, process, at = random.Random(7), 0, 0

    async def kill(request: Body, number: int) -> None:
        if number == at:
            os.kill(process, signal.SIGKILL)

    with serving(wavering, delay=0.004, fault=kill) as server:
        command = run_command(server, tmp_path / "out")
        for _ in range(KILLS):
            at = len(server.requests) + generator.randint(1, MAX_UNSAVED - 2)
            process = start(partial(cdta, *command), tmp_path / "error")
            assert was_killed(process)
        cdta(*command, code=0)
    assert len(server.requests) <= 2 * N + KILLS * MAX_UNSAVED
    assert equals_uninterrupted_run(tmp_path / "out", server)


MEASURING = ("--eval", "all_diagonal", "-n", 30)


async def interrupt(request: Body, number: int) -> None:
    if number == 9:
        os.kill(os.getpid(), signal.SIGINT)


stop_answering = error_when(lambda _, number: number > 9)
fail_every_fifth = error_when(
    lambda request, number: number > 1 and checksum(moves_in(request)) % 5 == 0, status=418
)


@pytest.mark.usefixtures("no_retry_delay")
@pytest.mark.parametrize(
    ("fault", "options", "error"),
    [
        (stop_answering, MEASURING, "m stopped answering"),
        (fail_every_fifth, MEASURING, "samples have no answer"),
        (fail_every_fifth, ("-n", 60), "requests to build the dataset have no answer"),
        pytest.param(interrupt, MEASURING, "cdta: stopped;", marks=needs_posix),
    ],
    ids=["no answers", "failures", "failed selection", "interrupted"],
)
def test_a_run_that_ends_early_says_what_is_saved(
    fault: Fault, options: tuple[object, ...], error: str, serve: Serve
) -> None:
    server = serve(habit, fault=fault)
    model = ("--base-url", server.url, "--model", "m", "--max-connections", 2)
    done = cdta("run", *model, *options, code=1)
    assert error in done.stderr
    assert "all answers so far are saved (except with --fresh). Run the same" in done.stderr


@pytest.mark.parametrize("command", ["run", "experiment"])
def test_an_unwritable_folder_is_refused_at_once(
    command: str, server: Loopback, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    options = ["--base-url", server.url, "--model", "m", *MEASURING, "--fresh", "--quiet"]
    for name in ("file/out", "x" * 300):
        refused = cdta(command, *options, "--out", tmp_path / name, code=2)
        assert "cannot write to" in refused.stderr
    no_server = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--quiet")
    cdta(command, *no_server, "-n", 2, "--out", tmp_path / "new" / "out", code=1)
    assert command == "experiment" or not (tmp_path / "new").exists()
    home.mkdir(exist_ok=True)
    (home / "runs").write_text("in the way")
    assert "set CDTA_HOME" in cdta("run", *options, code=2).stderr
    assert not server.requests


def test_questions_that_always_fail_do_not_stop_a_resumed_run(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run asks them first, one after the other."""
    monkeypatch.setattr(client, "FIRST_WAIT", 0.0)

    async def refuse_some(request: Body, number: int) -> web.Response | None:
        return web.Response(status=502) if checksum(moves_in(request)) % 30 == 0 else None

    server = serve(habit, fault=refuse_some)
    with suppress(Interrupted):
        measure(server, dataset=positions(300), n=300)
    run = measure(server, dataset=positions(300), n=300)
    failed = sum(answer.stop_reason == "error" for answer in answers_of(run.samples))
    assert failed > client.MAX_CONSECUTIVE_FAILURES
