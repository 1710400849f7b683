"""A full, read-only, damaged or unlockable disk, or too little memory: one error, nothing lost."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cant_do_that_anymore.client import cache
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

N, N_OF_POOL = 20, 5
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
    options: list[object] = ["--base-url", server.url, "--model", "m", "--quiet"]
    return [*options, "--pool", positions(N), "-n", N_OF_POOL]


def message_from(*command: object, code: int = 1, home: object = None) -> str:
    """The message that a command prints on stderr."""
    message = cdta(*command, code=code, CDTA_HOME=str(home or os.environ["CDTA_HOME"])).stderr
    assert message.startswith("cdta: ") and message.count("\n") == 1
    return message


def test_run_resumes_after_a_full_disk(server: Loopback, small_disk: Path, tmp_path: Path) -> None:
    run = run_command(server, tmp_path / "out")
    message = message_from(*run, home=small_disk)
    for words in ("answers.sqlite' cannot be used", "disk is full", "CDTA_HOME", "command again"):
        assert words in message
    n_sent = len(server.requests)
    remount(small_disk, "size=8m")
    cdta(*run, code=0, CDTA_HOME=str(small_disk))
    repeated = len(server.requests) - 2 * N
    assert n_sent - repeated > 5  # saved before the disk was full
    assert results_in(tmp_path / "out")["n"] == N


def test_a_full_output_disk_loses_no_answers_and_leaves_no_partial_files(
    server: Loopback, small_disk: Path, tmp_path: Path
) -> None:
    message = message_from(*run_command(server, small_disk / "out"))
    assert "cannot write the run" in message and "answers so far are saved" in message
    assert not (small_disk / "out").exists()
    cdta(*run_command(server, tmp_path / "out"), code=0)
    assert len(server.requests) == 2 * N


def test_a_dataset_that_cannot_be_saved_gives_a_one_sentence_error(
    server: Loopback, small_disk: Path, home: Path
) -> None:
    home.mkdir()
    (home / "datasets").symlink_to(small_disk)
    (small_disk / "filler").write_bytes(b"x" * DISK_KB * 1000)
    message = message_from("run", *pool_options(server))
    assert "cannot save the dataset" in message and "No space left" in message


def test_an_unusable_home_gives_a_one_sentence_error(
    server: Loopback, small_disk: Path, tmp_path: Path
) -> None:
    remount(small_disk, "ro")
    for home, words in ((small_disk, "cannot"), (positions(N) / "home", "cannot use")):
        message = message_from(*run_command(server, tmp_path / "out"), home=home)
        assert words in message and "CDTA_HOME" in message
    assert not server.requests


def test_a_damaged_cache_is_one_sentence_that_says_how_to_save_it(
    server: Loopback, home: Path, tmp_path: Path
) -> None:
    cdta(*run_command(server, tmp_path / "first"), code=0)
    store, n_sent = home / "answers.sqlite", len(server.requests)
    intact = store.read_bytes()
    garbage = b"\xff\x00garbage" * (len(intact) // 20)
    for damaged in (garbage, intact[: len(intact) // 2] + garbage):
        store.write_bytes(damaged)
        message = message_from(*run_command(server, tmp_path / "second"))
        assert "answers.sqlite' cannot be used" in message
        assert "sqlite3 FILE .recover saves what is readable" in message
    assert len(server.requests) <= n_sent + 2 * 2 * 4
    store.write_bytes(intact)
    cdta(*run_command(server, tmp_path / "third"), code=0)
    assert samples_in(tmp_path / "first") == samples_in(tmp_path / "third")


@needs_posix
def test_only_the_user_can_read_the_home_and_a_damaged_dataset_is_built_again(
    server: Loopback, home: Path, tmp_path: Path
) -> None:
    run = ["run", *pool_options(server), "--out"]
    cdta(*run, tmp_path / "first", code=0)
    folders = (home, home / "datasets")
    assert {oct(folder.stat().st_mode & 0o777) for folder in folders} == {"0o700"}
    n_sent = len(server.requests)
    for file, n_lines in (("dataset.json", 0), ("items.jsonl", 3)):
        (path,) = home.glob(f"datasets/m.*/{file}")
        path.write_text("\n".join(path.read_text().splitlines()[:n_lines]))
        message = message_from(*run, tmp_path / file, code=0)
        assert "is damaged" in message and "it is built again" in message
        assert samples_in(tmp_path / "first") == samples_in(tmp_path / file)
    assert len(server.requests) == n_sent + 2 * 3  # the identity check


def test_a_home_locked_by_another_process_gives_a_one_sentence_error(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LOCK_TIMEOUT", 0.1)
    run = ["run", "--model", "cdta/random", "-n", 3, "--quiet", "--seed"]
    cdta(*run, 1, code=0)
    with closing(sqlite3.connect(home / "answers.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        message = message_from(*run, 2)
    assert "locked" in message and "set CDTA_HOME" in message
