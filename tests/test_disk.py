"""A full, read-only, damaged or unlockable disk, too little memory: one sentence, nothing lost."""

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
DISK = 240
"""How large the disk is, in kB: an empty store takes some of it."""


def respond(request: Body) -> str:
    return " " * 7_000 + habit(request)


@pytest.fixture
def server(serve: Serve) -> Loopback:
    return serve(respond)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for some answers."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def remount(disk: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(disk)], check=True)


def command(server: Loopback, out: Path) -> list[object]:
    options: list[object] = ["run", "--base-url", server.url, "--model", "m", "--quiet"]
    return [*options, "--dataset", positions(N), "-n", N, "--max-connections", 4, "--out", out]


def few(server: Loopback) -> list[object]:
    return ["--base-url", server.url, "--model", "m", "--pool", positions(N), "-n", 5]


def said(*command: object, code: int = 1, home: object = None) -> str:
    """The one sentence that a command ends with."""
    errors = cdta(*command, code=code, CDTA_HOME=str(home or os.environ["CDTA_HOME"])).stderr
    assert errors.startswith("cdta: ")
    assert "Traceback" not in errors
    return errors


def test_a_full_disk_stops_the_run_and_what_was_saved_counts_when_there_is_space_again(
    server: Loopback, small_disk: Path, tmp_path: Path
) -> None:
    run = command(server, tmp_path / "out")
    told = said(*run, home=small_disk)
    assert all(words in told for words in ("cannot save answers", "disk is full", "command again"))
    asked = len(server.requests)
    remount(small_disk, "size=8m")
    cdta(*run, code=0, CDTA_HOME=str(small_disk))
    repeated = len(server.requests) - 2 * N - 1  # is it the same model?
    assert asked - repeated > 5  # so many were saved before the disk was full
    assert results_in(tmp_path / "out")["metrics"]["n_samples"] == N


def test_what_finds_no_place_says_so_leaves_all_as_it_was_and_is_not_asked_again(
    server: Loopback, small_disk: Path, tmp_path: Path
) -> None:
    told = said(*command(server, small_disk / "out"))
    assert "cannot write the run" in told and "its answers are saved" in told
    assert not (small_disk / "out").exists()
    cdta(*command(server, tmp_path / "out"), code=0)
    assert len(server.requests) == 2 * N + 1  # is it the same model?
    page, older = small_disk / "page.html", "x" * 150_000
    page.write_text(older)
    told = said("report", tmp_path / "out", "-o", page)
    assert "cannot write the report" in told and "No space left" in told
    assert page.read_text() == older
    assert list(small_disk.iterdir()) == [page]


def test_a_built_dataset_that_cannot_be_written_is_one_sentence(
    server: Loopback, small_disk: Path, home: Path
) -> None:
    home.mkdir()
    (home / "datasets").symlink_to(small_disk)
    (small_disk / "filler").write_bytes(b"x" * DISK * 1000)
    run = ["run", *few(server)[:-1], N, "--quiet"]
    told = said(*run)
    assert "cannot save the dataset" in told and "No space left" in told
    asked = len(server.requests)
    (home / "datasets").unlink()
    cdta(*run, code=0)
    assert len(server.requests) - asked == 1 + 2 * N  # only what is left to measure, and who it is


def test_a_home_that_cannot_be_written_or_made_is_one_sentence(
    server: Loopback, small_disk: Path, tmp_path: Path
) -> None:
    remount(small_disk, "ro")
    for home, words in ((small_disk, "cannot"), (positions(N) / "home", "cannot use")):
        told = said(*command(server, tmp_path / "out"), home=home)
        assert words in told and "CDTA_HOME" in told
    assert not server.requests


def test_the_home_of_another_user_is_one_sentence(
    serve_http: Serve, home: Path, tmp_path: Path
) -> None:
    """Root without its privileges is a user like any other; the store is private in any folder."""
    if sys.platform == "win32" or os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("only root with setpriv can act as another user")
    server = serve_http(respond)
    cdta(*command(server, tmp_path / "out"), code=0)
    sent, open_to_all = len(server.requests), tmp_path / "open to all"
    shutil.copytree(home, open_to_all)
    for path in (home, *home.rglob("*"), open_to_all, *open_to_all.rglob("*")):
        os.chown(path, 12345, 12345)
    open_to_all.chmod(0o777)
    program = (
        "import sys, os; from cant_do_that_anymore.cli.main import main; home = sys.argv.pop()"
    )
    program += "; os.fork() or os.environ.update(CDTA_HOME=home); main()"
    python = ("setpriv", "--bounding-set=-all", sys.executable, "-c", program)
    arguments = map(str, (*command(server, tmp_path / "again"), open_to_all))
    done = subprocess.run([*python, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    sentences = done.stderr.splitlines()
    assert len(sentences) == 2
    for sentence in sentences:
        assert "Permission denied" in sentence and "set CDTA_HOME to" in sentence
    assert len(server.requests) == sent


def test_a_store_damaged_in_the_middle_costs_only_what_was_damaged(
    server: Loopback, home: Path, tmp_path: Path
) -> None:
    cdta(*command(server, tmp_path / "first"), code=0)
    store = home / "answers.sqlite"
    with store.open("r+b") as file:
        file.seek(store.stat().st_size // 2)
        file.write(b"\xff\x00garbage" * 900)
    told = said(*command(server, tmp_path / "second"), code=0)
    assert "was damaged" in told and "recovered" in told
    assert 0 < len(server.requests) - 2 * N < N
    assert samples_in(tmp_path / "first") == samples_in(tmp_path / "second")


def test_of_several_who_find_a_damaged_store_one_rescues_it(tmp_path: Path) -> None:
    path, answers = tmp_path / "answers.sqlite", 200

    async def filled() -> None:
        with closing(Store(path)) as store:
            await asyncio.gather(
                *(store.put(str(n), {"text": "e2e4 " * 40}) for n in range(answers))
            )

    asyncio.run(filled())
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff\x00garbage" * 400)
    together = Barrier(4)

    def opened(_: int) -> Store:
        together.wait()
        return Store(path)

    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(opened, range(4)))
    found = [
        sum(store.get("answer", str(n)) is not None for n in range(answers)) for store in stores
    ]
    for store in stores:
        store.close()
    assert len(set(found)) == 1
    assert answers // 2 < found[0] < answers
    assert len(list(tmp_path.glob("*.damaged-*"))) == 1


@needs_posix
def test_what_is_kept_is_for_the_user_alone(server: Loopback, home: Path) -> None:
    home.mkdir()  # somebody else made it, for all to read
    cdta("run", *few(server), "--quiet", code=0)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in home.iterdir()}
    folders = {"datasets": "0o700", "runs": "0o700"}
    assert modes == {"answers.sqlite": "0o600", "opening.lock": "0o600", **folders}


def test_an_estimate_needs_only_to_read(server: Loopback, small_disk: Path) -> None:
    remount(small_disk, "size=8m")
    cdta("run", *few(server), "--quiet", code=0, CDTA_HOME=str(small_disk))
    remount(small_disk, "ro")
    told = cdta("estimate", *few(server), code=0, CDTA_HOME=str(small_disk))
    assert "no requests to send" in told.stdout


def test_a_damaged_dataset_is_in_nobodys_way(server: Loopback, home: Path) -> None:
    run = ["run", *few(server), "--quiet"]
    cdta("dataset", "import", "other", positions(N), code=0)
    cdta(*run, code=0)
    for _ in range(2):  # both are moved aside
        next(home.glob("datasets/m.*/dataset.json")).write_text("{")
        assert "is damaged" in said("dataset", "list", code=0)
        told = said(*run, code=0)
        assert "is damaged" in told and "moved to" in told
        assert "other" in cdta("dataset", "list", code=0).stdout


def test_a_half_written_run_folder_is_one_sentence(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = ("run", "--model", "cdta/random", "--dataset", positions(N), "-n", 5, "--out", out)
    cdta(*run, code=0)
    for name in ("run.json", "samples.jsonl"):
        whole = (out / name).read_bytes()
        for kept in (0, len(whole) // 2, len(whole) - 3, whole.rindex(b"\n", 0, -1) + 1):
            (out / name).write_bytes(whole[:kept])
            with pytest.raises(InvalidInput, match=name):
                load_run(out)
        assert name in said("rescore", out, code=2)
        (out / name).write_bytes(whole)
    cdta("rescore", out, code=0)


def fake_locks(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Let SQLite fail like that whenever it is to lock a file."""
    really_connect = sqlite3.connect

    class Unlockable(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if statement == "BEGIN EXCLUSIVE":
                error = sqlite3.OperationalError("no lock")
                error.sqlite_errorcode = code
                raise error
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(really_connect, factory=Unlockable))


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_BUSY]
)
def test_a_network_drive_without_locks_is_one_sentence_at_once(
    code: int, fresh: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_locks(monkeypatch, code)
    began = time.monotonic()
    told = said("run", "-n", 3, "--quiet", *(["--fresh"] if fresh else []))
    assert "cannot be locked (no lock" in told and "as on some network drives" in told
    assert told.endswith(f"set {'TMPDIR' if fresh else 'CDTA_HOME'} to a folder on a local disk\n")
    assert time.monotonic() - began < module.LOCK_TIMEOUT / 2
    assert not [*home.rglob(".part-*"), *home.rglob("*.damaged-*")]


def test_a_home_that_another_process_never_releases_is_one_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT", 0.1)
    home.mkdir()
    with closing(sqlite3.connect(home / "opening.lock", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        told = said("run", "-n", 3, "--quiet")
    assert "another process has locked" in told and "stop it, or set CDTA_HOME" in told


@needs_posix
def test_a_deleted_working_folder_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert said("rules") == (
        "cdta: the current folder was deleted; change to another one and run the command again\n"
    )


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("can't start new thread"), RuntimeError("std::bad_alloc")],
    ids=repr,
)
def test_too_little_memory_is_one_sentence(
    error: Exception, server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cant_do_that_anymore.providers.openai_api.limit_of", Mock(side_effect=error)
    )
    assert said(*command(server, tmp_path / "out")) == (
        "cdta: not enough memory; close other programs or raise the memory limit, and run the same "
        "command again\n"
    )
