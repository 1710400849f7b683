"""SQLite files that may be damaged, and what can still be read of them."""

import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

Row = tuple[str, str, str, int, float]
"""Of an answer: key, model, answer, checksum, time."""
_NOT_THE_FILE = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY),
)
"""What SQLite says when the disk is at fault; all else that it says of a file is damage."""
PATIENCE = 60.0
"""So many seconds one process waits for another that uses the file."""


def connected(path: Path) -> sqlite3.Connection:
    """A connection that says whatever the file holds."""
    database = sqlite3.connect(path, timeout=PATIENCE, check_same_thread=False)
    # What is no text any more is for the checksum to find.
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return database


def opened(path: Path, schema: str) -> sqlite3.Connection | None:
    """The database, or None if it is damaged."""
    path.touch(0o600)
    database = connected(path)
    try:
        _write_ahead(database)
        database.executescript(schema)
        if database.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok":
            return database
    except UnicodeDecodeError:
        pass  # SQLite quotes the damage in what it says
    except sqlite3.DatabaseError as problem:
        if problem.sqlite_errorcode & 0xFF in _NOT_THE_FILE:
            database.close()
            raise
    database.close()
    return None


def _write_ahead(database: sqlite3.Connection) -> None:
    """Let many read while one writes. SQLite waits for no other who is just doing the same."""
    began = time.monotonic()
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            busy = problem.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() - began > PATIENCE:
                raise
        time.sleep(0.01)


def readable_rows(path: Path) -> dict[str, Row]:
    """Read a damaged file from both ends, as far as it goes."""
    rows: dict[str, Row] = {}
    for order in ("ASC", "DESC"):
        with (
            suppress(sqlite3.DatabaseError, UnicodeDecodeError),
            closing(connected(path)) as database,
        ):
            for row in database.execute(f"SELECT * FROM saved_answers ORDER BY rowid {order}"):
                if is_whole(row[0], row[2], row[3]):
                    rows[row[0]] = row
    return rows


def readable(path: Path, table: str) -> list[Any]:
    """The rows of a table in a damaged file, if they can be read."""
    with (
        suppress(sqlite3.DatabaseError, UnicodeDecodeError),
        closing(connected(path)) as database,
    ):
        return database.execute(f"SELECT * FROM {table}").fetchall()
    return []


def checksum_of(key: str, text: str) -> int:
    """Tells an answer from one that the disk has changed; SQLite checks only its own structure."""
    return crc32((key + text).encode())


def is_whole(key: str, text: str, checksum: int) -> bool:
    """Whether an answer is as it was when it was saved."""
    return isinstance(text, str) and checksum_of(key, text) == checksum


def sealed(key: str, text: str) -> str:
    """A text behind its checksum, for a table that has no other place for that."""
    return f"{checksum_of(key, text):08x}{text}"


def unsealed(key: str, rows: Iterable[tuple[object]]) -> list[str]:
    """The texts in rows of one column that are as they were when they were sealed."""
    texts = [(str(kept)[8:], kept) for (kept,) in rows]
    return [text for text, kept in texts if kept == sealed(key, text)]
