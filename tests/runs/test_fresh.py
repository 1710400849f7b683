"""The message of a run that ends early says that answers are saved if and only if they are."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from testing import Body, Loopback, Serve, cdta, checksum, habit, moves_in, needs_posix

Event = Callable[[Body, int, Path], int | None]
"""Called with a request, its number and the run's folder; returns an HTTP status, or None."""
MEASURING = ("--eval", "all_diagonal", "-n", 30)
NOTHING_SAVED = "a --fresh run saves no answers, so it has to start over"


def stop_answering(request: Body, number: int, out: Path) -> int | None:
    return 418 if number > 9 else None


def fail_every_fifth(request: Body, number: int, out: Path) -> int | None:
    return 418 if number > 1 and checksum(moves_in(request)) % 5 == 0 else None


def interrupt(request: Body, number: int, out: Path) -> None:
    if number == 9:
        os.kill(os.getpid(), signal.SIGINT)


def occupy_folder(request: Body, number: int, out: Path) -> None:
    if number == 9:
        out.write_text("mine")


@pytest.mark.usefixtures("no_retry_delay")
@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize(
    ("event", "options", "error"),
    [
        (stop_answering, MEASURING, "m stopped answering"),
        (fail_every_fifth, MEASURING, "samples have no answer"),
        (fail_every_fifth, ("-n", 60), "requests to build the dataset have no answer"),
        pytest.param(interrupt, MEASURING, "cdta: stopped;", marks=needs_posix),
        (occupy_folder, MEASURING, "cannot write the run to"),
    ],
    ids=["no answers", "failures", "failed selection", "interrupted", "no folder"],
)
def test_a_run_that_ends_early_says_what_is_saved(
    event: Event, options: tuple[object, ...], error: str, fresh: bool, serve: Serve, tmp_path: Path
) -> None:
    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        status = event(request, number, tmp_path / "out")
        return web.json_response({"error": "no"}, status=status) if status else None

    server = serve(habit, fault=fault)
    fresh_option = ["--fresh"] if fresh else []
    model = ("--base-url", server.url, "--model", "m", "--max-connections", 2)
    done = cdta("run", *model, *options, "--out", tmp_path / "out", *fresh_option, code=1)
    assert error in done.stderr
    assert ("saved" in done.stderr) != fresh
    assert (NOTHING_SAVED in done.stderr) == fresh


@pytest.mark.parametrize("command", ["run", "experiment"])
def test_an_unwritable_folder_is_refused_at_once(
    command: str, server: Loopback, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    options = ["--base-url", server.url, "--model", "m", *MEASURING, "--fresh", "--quiet"]
    for name in ("file/out", "x" * 300):
        refused = cdta(command, *options, "--out", tmp_path / name, code=2)
        assert "cannot write to" in refused.stderr
    home.mkdir()
    (home / "runs").write_text("in the way")
    assert "set CDTA_HOME" in cdta("run", *options, code=2).stderr
    assert not server.requests


def test_a_run_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    no_server = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--quiet")
    failed = cdta("run", *no_server, "-n", 2, "--out", tmp_path / "new" / "out", code=1)
    assert "no server answers at http://127.0.0.1:9/v1" in failed.stderr
    assert not (tmp_path / "new").exists()
