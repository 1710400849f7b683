"""A full, read-only, damaged or unlockable disk, or too little memory: one error, nothing lost."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any
from unittest.mock import Mock

import pytest

from cant_do_that_anymore.client import store as module
from cant_do_that_anymore.client.store import Store
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.runs.storage import load_run
from testing import (
    Body,
    Loopback,
    Serve,
    cdta,
    habit,
    needs_posix,
    positions,
    results_in,
    samples_in,
)

N = 20
DISK_KB = 240
"""Size of the small disk; an empty store takes part of it."""


def respond(request: Body) -> str:
    return " " * 7_000 + habit(request)


@pytest.fixture
def server(serve: Serve) -> Loopback:
    return serve(respond)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for a few answers."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_KB}k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def remount(disk: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(disk)], check=True)


def run_command(server: Loopback, out: Path) -> list[object]:
    options: list[object] = ["run", "--base-url", server.url, "--model", "m", "--quiet"]
    return [*options, "--dataset", positions(N), "-n", N, "--max-connections", 4, "--out", out]


def pool_options(server: Loopback) -> list[object]:
    return ["--base-url", server.url, "--model", "m", "--pool", positions(N), "-n", 5]


def message_from(*command: object, code: int = 1, home: object = None) -> str:
    """The message that a command prints on stderr."""
    message = cdta(*command, code=code, CDTA_HOME=str(home or os.environ["CDTA_HOME"])).stderr
    assert message.startswith("cdta: ") and message.count("\n") == 1
    return message


def test_run_resumes_after_a_full_disk(server: Loopback, small_disk: Path, tmp_path: Path) -> None:
    run = run_command(server, tmp_path / "out")
    message = message_from(*run, home=small_disk)
    for words in ("cannot save answers", "disk is full", "command again"):
        assert words in message
    n_sent = len(server.requests)
    remount(small_disk, "size=8m")
    cdta(*run, code=0, CDTA_HOME=str(small_disk))
    repeated = len(server.requests) - 2 * N - 1  # without the identity check
    assert n_sent - repeated > 5  # saved before the disk was full
    assert results_in(tmp_path / "out")["metrics"]["n_samples"] == N


def test_a_full_output_disk_loses_no_answers_and_leaves_no_partial_files(
    server: Loopback, small_disk: Path, tmp_path: Path
) -> None:
    message = message_from(*run_command(server, small_disk / "out"))
    assert "cannot write the run" in message and "its answers are saved" in message
    assert not (small_disk / "out").exists()
    cdta(*run_command(server, tmp_path / "out"), code=0)
    assert len(server.requests) == 2 * N + 1  # the identity check


def test_a_dataset_that_cannot_be_saved_gives_a_one_sentence_error(
    server: Loopback, small_disk: Path, home: Path
) -> None:
    home.mkdir()
    (home / "datasets").symlink_to(small_disk)
    (small_disk / "filler").write_bytes(b"x" * DISK_KB * 1000)
    run = ["run", *pool_options(server)[:-1], N, "--quiet"]
    message = message_from(*run)
    assert "cannot save the dataset" in message and "No space left" in message
    n_sent = len(server.requests)
    (home / "datasets").unlink()
    cdta(*run, code=0)
    assert len(server.requests) - n_sent == 1 + 2 * N  # identity check and measurement


def test_an_unusable_home_gives_a_one_sentence_error(
    server: Loopback, small_disk: Path, tmp_path: Path
) -> None:
    remount(small_disk, "ro")
    for home, words in ((small_disk, "cannot"), (positions(N) / "home", "cannot use")):
        message = message_from(*run_command(server, tmp_path / "out"), home=home)
        assert words in message and "CDTA_HOME" in message
    assert not server.requests


def test_another_users_home_gives_a_one_sentence_error(
    serve_http: Serve, home: Path, tmp_path: Path
) -> None:
    """Root without privileges is like any other user. The store is private in any folder."""
    if sys.platform == "win32" or os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("only root with setpriv can act as another user")
    server = serve_http(respond)
    cdta(*run_command(server, tmp_path / "out"), code=0)
    n_sent, open_to_all = len(server.requests), tmp_path / "open to all"
    shutil.copytree(home, open_to_all)
    for path in (home, *home.rglob("*"), open_to_all, *open_to_all.rglob("*")):
        os.chown(path, 12345, 12345)
    open_to_all.chmod(0o777)
    program = (
        "import sys, os; from cant_do_that_anymore.cli.main import main; home = sys.argv.pop()"
    )
    program += "; os.fork() or os.environ.update(CDTA_HOME=home); main()"
    python = ("setpriv", "--bounding-set=-all", sys.executable, "-c", program)
    arguments = map(str, (*run_command(server, tmp_path / "again"), open_to_all))
    result = subprocess.run([*python, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode in (1, 2)
    lines = result.stderr.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "Permission denied" in line and "set CDTA_HOME to" in line
    assert len(server.requests) == n_sent


def test_a_damaged_store_loses_only_damaged_answers(
    server: Loopback, home: Path, tmp_path: Path
) -> None:
    cdta(*run_command(server, tmp_path / "first"), code=0)
    store = home / "answers.sqlite"
    with store.open("r+b") as file:
        file.seek(store.stat().st_size // 2)
        file.write(b"\xff\x00garbage" * 900)
    message = message_from(*run_command(server, tmp_path / "second"), code=0)
    assert "was damaged" in message and "recovered" in message
    assert 0 < len(server.requests) - 2 * N < N
    assert samples_in(tmp_path / "first") == samples_in(tmp_path / "second")


def test_a_damaged_store_is_recovered_once(tmp_path: Path) -> None:
    path, n_answers = tmp_path / "answers.sqlite", 200

    async def fill() -> None:
        with closing(Store(path)) as store:
            await asyncio.gather(
                *(store.put(str(n), {"text": "e2e4 " * 40}) for n in range(n_answers))
            )

    asyncio.run(fill())
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff\x00garbage" * 400)
    barrier = Barrier(4)

    def open_store(_: int) -> Store:
        barrier.wait()
        return Store(path)

    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(open_store, range(4)))
    n_recovered = [
        sum(store.get("answer", str(n)) is not None for n in range(n_answers)) for store in stores
    ]
    for store in stores:
        store.close()
    assert len(set(n_recovered)) == 1
    assert n_answers // 2 < n_recovered[0] < n_answers
    assert len(list(tmp_path.glob("*.damaged-*"))) == 1


@needs_posix
def test_only_the_user_can_read_the_home(server: Loopback, home: Path) -> None:
    home.mkdir()  # made by somebody else, readable by all
    cdta("run", *pool_options(server), "--quiet", code=0)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in home.iterdir()}
    folders = {"datasets": "0o700", "runs": "0o700"}
    assert modes == {"answers.sqlite": "0o600", "opening.lock": "0o600", **folders}


def test_an_estimate_needs_no_write_access(server: Loopback, small_disk: Path) -> None:
    remount(small_disk, "size=8m")
    cdta("run", *pool_options(server), "--quiet", code=0, CDTA_HOME=str(small_disk))
    remount(small_disk, "ro")
    stdout = cdta("estimate", *pool_options(server), code=0, CDTA_HOME=str(small_disk)).stdout
    assert "no requests to send" in stdout


def test_a_damaged_dataset_is_moved_aside(server: Loopback, home: Path) -> None:
    run = ["run", *pool_options(server), "--quiet"]
    cdta(*run, code=0)
    for _ in range(2):  # the dataset built in its place, too
        next(home.glob("datasets/m.*/dataset.json")).write_text("{")
        assert "is damaged" in message_from("dataset", "list", code=0)
        message = message_from(*run, code=0)
        assert "is damaged" in message and "moved to" in message


def test_a_half_written_run_folder_gives_a_one_sentence_error(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = ("run", "--model", "cdta/random", "--dataset", positions(N), "-n", 5, "--out", out)
    cdta(*run, code=0)
    for name in ("run.json", "samples.jsonl"):
        content = (out / name).read_bytes()
        for length in (0, len(content) // 2, len(content) - 3, content.rindex(b"\n", 0, -1) + 1):
            (out / name).write_bytes(content[:length])
            with pytest.raises(InvalidInput, match=name):
                load_run(out)
        assert name in message_from("show", out, code=2)
        (out / name).write_bytes(content)
    cdta("show", out, code=0)


def break_locks(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Make SQLite fail with this code whenever it locks a file."""
    connect = sqlite3.connect

    class Unlockable(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if statement == "BEGIN EXCLUSIVE":
                error = sqlite3.OperationalError("no lock")
                error.sqlite_errorcode = code
                raise error
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Unlockable))


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_BUSY]
)
def test_a_drive_without_locks_gives_a_one_sentence_error_at_once(
    code: int, fresh: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_locks(monkeypatch, code)
    start = time.monotonic()
    message = message_from("run", "-n", 3, "--quiet", *(["--fresh"] if fresh else []))
    assert "cannot be locked (no lock" in message and "as on some network drives" in message
    variable = "TMPDIR" if fresh else "CDTA_HOME"
    assert message.endswith(f"set {variable} to a folder on a local disk\n")
    assert time.monotonic() - start < module.LOCK_TIMEOUT / 2
    assert not [*home.rglob(".part-*"), *home.rglob("*.damaged-*")]


def test_a_home_locked_by_another_process_gives_a_one_sentence_error(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT", 0.1)
    home.mkdir()
    with closing(sqlite3.connect(home / "opening.lock", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        message = message_from("run", "-n", 3, "--quiet")
    assert "another process has locked" in message and "stop it, or set CDTA_HOME" in message


@needs_posix
def test_a_deleted_working_folder_gives_a_one_sentence_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert message_from("rules") == (
        "cdta: the current folder was deleted; change to another one and run the command again\n"
    )


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("can't start new thread"), RuntimeError("std::bad_alloc")],
    ids=repr,
)
def test_too_little_memory_gives_a_one_sentence_error(
    error: Exception, server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cant_do_that_anymore.providers.openai_api.limit_of", Mock(side_effect=error)
    )
    assert message_from(*run_command(server, tmp_path / "out")) == (
        "cdta: not enough memory; close other programs or raise the memory limit, and run the same "
        "command again\n"
    )
