"""What is said of a run that ends early: that its answers are saved, if and only if they are."""

import os
import pickle
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from cant_do_that_anymore.client.store import open_store
from cant_do_that_anymore.errors import Interrupted, Stopped, UserError
from cant_do_that_anymore.oaieval.record import append_rows, begin_record
from testing import Body, Loopback, Serve, cdta, habit, needs_posix, oaieval

Early = Callable[[int, Path], int | None]
"""What a server does at its request of a number, with the folder of the run: a status, or none."""
MEASURING = ("--eval", "all_diagonal", "-n", 30)
NOTHING = "a --fresh run saves no answers, so it has to start over"


def dies(number: int, out: Path) -> int | None:
    return 418 if number > 9 else None


def fails_now_and_then(number: int, out: Path) -> int | None:
    return 418 if number % 5 == 0 else None


def is_stopped(number: int, out: Path) -> None:
    if number == 9:
        os.kill(os.getpid(), signal.SIGINT)


def takes_the_place(number: int, out: Path) -> None:
    if number == 9:
        out.write_text("mine")


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize(
    ("early", "options", "why"),
    [
        (dies, MEASURING, "m stopped answering"),
        (fails_now_and_then, MEASURING, "samples have no answer"),
        (fails_now_and_then, ("-n", 60), "requests to build the dataset have no answer"),
        (lambda *_: None, (*MEASURING, "--price", "9,9", "--max-cost", "0.05"), "--max-cost"),
        pytest.param(is_stopped, MEASURING, "cdta: stopped;", marks=needs_posix),
        (takes_the_place, MEASURING, "cannot write the run to"),
    ],
    ids=["dies", "fails", "fails to find", "spent", "stopped", "no place"],
)
def test_a_run_that_ends_early_says_what_is_saved_and_nothing_else(
    early: Early, options: tuple[object, ...], why: str, fresh: bool, serve: Serve, tmp_path: Path
) -> None:
    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        status = early(number, tmp_path / "out")
        return web.json_response({"error": "no"}, status=status) if status else None

    server = serve(habit, fault=fault)
    more = ["--fresh"] if fresh else []
    whom = ("--base-url", server.url, "--model", "m", "--max-connections", 2)
    done = cdta("run", *whom, *options, "--quiet", "--out", tmp_path / "out", *more)
    assert done.returncode == 1
    assert why in done.stderr
    assert ("saved" in done.stderr) != fresh
    assert (NOTHING in done.stderr) == fresh


@pytest.mark.parametrize(
    ("fresh", "advice"), [(True, "set TMPDIR"), (False, "earlier answers are safe")]
)
def test_the_error_of_a_full_disk_names_that_disk(fresh: bool, advice: str) -> None:
    with open_store(fresh=fresh) as store:
        told = str(store.unusable(OSError(28, "No space left on device")))
    assert advice in told
    assert ("CDTA_HOME" in told) != fresh


def test_a_record_that_cannot_be_written_says_so_too(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    for cached, told in (
        (True, "saved. Run the same command again with another"),
        (False, NOTHING),
    ):
        begin_record(path, {})
        path.unlink()
        path.mkdir()
        with pytest.raises(UserError, match=told):
            append_rows(path, [{}], cached=cached)
        path.rmdir()


def test_the_sentence_is_the_same_in_another_process() -> None:
    for problem in (
        Stopped(),
        Interrupted("why", "left", "go on"),
        Interrupted("why", cached=False),
    ):
        assert str(pickle.loads(pickle.dumps(problem))) == str(problem)


def whom(server: Loopback) -> list[object]:
    return ["--base-url", server.url, "--model", "m", *MEASURING, "--fresh", "--quiet"]


@pytest.mark.parametrize("name", ["file/out", "x" * 300])
@pytest.mark.parametrize("command", ["run", "experiment"])
def test_a_bad_place_is_refused(command: str, name: str, server: Loopback, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    refused = cdta(command, *whom(server), "--out", tmp_path / name, code=2)
    assert "cannot write to" in refused.stderr
    assert not server.requests


def test_a_home_that_takes_no_run_is_refused_at_once(server: Loopback, home: Path) -> None:
    home.mkdir()
    (home / "runs").write_text("in the way")
    assert "set CDTA_HOME" in cdta("run", *whom(server), code=2).stderr
    assert not server.requests
    refused = oaieval("cdta/random", "cant_do_that_anymore.all_small", "--no-cache")
    assert (refused.returncode, "set CDTA_HOME" in refused.stderr) == (2, True)


def test_a_run_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    nobody = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--quiet")
    failed = cdta("run", *nobody, "-n", 2, "--out", tmp_path / "new" / "out", code=1)
    assert "no server answers at http://127.0.0.1:9/v1" in failed.stderr
    assert not (tmp_path / "new").exists()
