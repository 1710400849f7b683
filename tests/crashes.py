"""Processes that are killed while writing, in the middle of a file or before a SQL statement."""

import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from cant_do_that_anymore.errors import UserError

WRITE_EVENTS = ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.truncate")
WRITE_FLAGS = os.O_WRONLY | os.O_RDWR
STATEMENTS = ("BEGIN", "COMMIT", "CREATE", "DELETE", "INSERT", "PRAGMA")


def start(work: Callable[[], object], error_file: Path, die_at: int | None = None) -> int:
    """Do some work in a fork of this process and return its process id.

    The fork is killed before its write step number ``die_at``. If it was about to sync a file, only
    half of the file is on disk. If the work raises an exception, its message or traceback is
    written to ``error_file``.
    """
    if process := os.fork():
        return process
    try:
        if die_at:
            _kill_at(die_at)
        work()
    except UserError as problem:
        error_file.write_text(f"{type(problem).__name__}: {problem}")
    except BaseException:
        error_file.write_text(traceback.format_exc())
    finally:
        os._exit(0)


def was_killed(process: int) -> bool:
    """Wait for a process to end and return whether it was killed."""
    _, status = os.waitpid(process, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _kill_at(at: int) -> None:
    """Kill this process before its write step of this number."""
    steps, original_fsync, original_connect = count(1), os.fsync, sqlite3.connect

    def step(prepare: Callable[[], object] = lambda: None) -> None:
        if next(steps) == at:
            prepare()
            os.kill(os.getpid(), signal.SIGKILL)

    def fsync(file: int) -> None:
        step(lambda: os.ftruncate(file, os.fstat(file).st_size // 2))
        original_fsync(file)

    def trace(statement: str) -> None:
        if statement.lstrip().upper().startswith(STATEMENTS):
            step()

    def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = original_connect(*args, **kwargs)
        connection.set_trace_callback(trace)
        return connection

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in WRITE_EVENTS or (event == "open" and (arguments[2] or 0) & WRITE_FLAGS):
            step()

    os.fsync, sqlite3.connect = fsync, connect  # type: ignore[assignment]
    sys.addaudithook(audit)
