"""Processes that are killed while they write: half a file, or a statement that is not executed."""

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

_CHANGES = ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.truncate")
_WRITING = os.O_WRONLY | os.O_RDWR
_STATEMENTS = ("BEGIN", "COMMIT", "CREATE", "DELETE", "INSERT", "PRAGMA")


def started(work: Callable[[], object], said: Path, die_at: int | None = None) -> int:
    """A copy of this process that does some work: its id.

    It dies before its step of writing of that number, and at most half of what it was about to make
    sure of is on disk. What it ends with, if that is no death and no result, is in a file: a
    sentence, or a stack trace.
    """
    process = os.fork()
    if process:
        return process
    try:
        if die_at:
            _die(die_at)
        work()
    except UserError as problem:
        said.write_text(f"{type(problem).__name__}: {problem}")
    except BaseException:
        said.write_text(traceback.format_exc())
    finally:
        os._exit(0)


def has_died(process: int) -> bool:
    """Wait for its end: whether it was killed."""
    _, status = os.waitpid(process, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _die(at: int) -> None:
    """Kill this process before its step of writing of that number."""
    steps, really_sync, really_connect = count(1), os.fsync, sqlite3.connect

    def step() -> bool:
        return next(steps) == at

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def sync(file: int) -> None:
        if step():
            os.ftruncate(file, os.fstat(file).st_size // 2)
            kill()
        really_sync(file)

    def see(statement: str) -> None:
        if statement.lstrip().upper().startswith(_STATEMENTS) and step():
            kill()

    def connect(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = really_connect(*given, **named)
        connection.set_trace_callback(see)
        return connection

    def audit(event: str, facts: tuple[Any, ...]) -> None:
        writes = event in _CHANGES or (event == "open" and (facts[2] or 0) & _WRITING)
        if writes and step():
            kill()

    os.fsync, sqlite3.connect = sync, connect  # type: ignore[assignment]
    sys.addaudithook(audit)
