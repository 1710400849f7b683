"""The SQLite file behind the cache: schema, checksums, recovery of damaged files."""

import asyncio
import json
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

from ..errors import UserError, error_reason
from ..files import answers_file
from ..providers.base import Answer, RequestVariant

# A saved answer: key, model, answer, checksum, time.
Row = tuple[str, str, str, int, float]
# SQLite error codes of a disk problem; any other error means a damaged file.
_DISK_ERRORS = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY),
)
# Seconds to wait for another process that uses the file.
LOCK_TIMEOUT = 60.0


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection that returns even invalid text."""
    database = sqlite3.connect(path, timeout=LOCK_TIMEOUT, check_same_thread=False)
    # The checksum detects text that is no longer valid UTF-8.
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return database


def open_database(path: Path, schema: str) -> sqlite3.Connection | None:
    """Open the database; None if it is damaged."""
    path.touch(0o600)
    database = connect(path)
    try:
        _enable_wal(database)
        database.executescript(schema)
        if database.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok":
            return database
    except UnicodeDecodeError:
        pass  # SQLite quotes the damaged bytes in its message
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in _DISK_ERRORS:
            database.close()
            raise
    database.close()
    return None


def _enable_wal(database: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, so that readers do not block the writer.

    SQLite does not wait for another process that is doing the same, so this retries.
    """
    started = time.monotonic()
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() - started > LOCK_TIMEOUT:
                raise
        time.sleep(0.01)


def recover_answers(path: Path) -> dict[str, Row]:
    """Read the intact answers of a damaged file, from both ends."""
    rows: dict[str, Row] = {}
    for order in ("ASC", "DESC"):
        with (
            suppress(sqlite3.DatabaseError, UnicodeDecodeError),
            closing(connect(path)) as database,
        ):
            for row in database.execute(f"SELECT * FROM saved_answers ORDER BY rowid {order}"):
                if is_intact(row[0], row[2], row[3]):
                    rows[row[0]] = row
    return rows


def recover_rows(path: Path, table: str) -> list[Any]:
    """Read the rows of a table in a damaged file, as far as possible."""
    with (
        suppress(sqlite3.DatabaseError, UnicodeDecodeError),
        closing(connect(path)) as database,
    ):
        return database.execute(f"SELECT * FROM {table}").fetchall()
    return []


def checksum_of(key: str, text: str) -> int:
    """Return the checksum of an answer. SQLite checks only its own structure."""
    return crc32((key + text).encode())


def is_intact(key: str, text: str, checksum: int) -> bool:
    """Whether an answer is unchanged since it was saved."""
    return isinstance(text, str) and checksum_of(key, text) == checksum


def with_checksum(key: str, text: str) -> str:
    """Prefix a text with its checksum, for a table without a checksum column."""
    return f"{checksum_of(key, text):08x}{text}"


def texts_with_valid_checksum(key: str, rows: Iterable[tuple[object]]) -> list[str]:
    """Return the texts, in rows of one column, whose checksum prefix is valid."""
    texts = [(str(stored)[8:], stored) for (stored,) in rows]
    return [text for text, stored in texts if stored == with_checksum(key, text)]


log = logging.getLogger(__name__)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS saved_answers (
    key TEXT NOT NULL UNIQUE, model TEXT NOT NULL, answer TEXT NOT NULL, checksum INTEGER NOT NULL,
    saved_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS forms (model TEXT NOT NULL PRIMARY KEY, form TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS ways (model TEXT NOT NULL, way TEXT NOT NULL, UNIQUE (model, way));
CREATE TABLE IF NOT EXISTS marks (model TEXT NOT NULL, mark TEXT NOT NULL, UNIQUE (model, mark));
CREATE TABLE IF NOT EXISTS batched (
    key TEXT NOT NULL UNIQUE, model TEXT NOT NULL, file TEXT NOT NULL, batch TEXT NOT NULL,
    form TEXT NOT NULL, answer TEXT NOT NULL, sent_at REAL NOT NULL
);
"""
_INSERT = "INSERT OR IGNORE INTO saved_answers VALUES (?, ?, ?, ?, ?)"

_SAFE_ADVICE = (
    "what was saved before is safe: free some space, or set CDTA_HOME to a folder you can write "
    "to, and run the same command again"
)
_TEMPORARY_ADVICE = "set TMPDIR to a folder with space that you can write to"


class Store:
    """Answers by key in one SQLite file, safe to share between processes.

    A separate thread writes, so that requests never wait for the disk. Answers that arrive while it
    is busy share the next transaction. A damaged file is moved away, its readable answers are
    recovered, and a warning is logged. ``is_empty`` holds while the file had no answer at first and
    none was saved here.
    """

    def __init__(self, path: Path, *, permanent: bool = True) -> None:
        self.path = path
        self._permanent = permanent
        self._pending: list[tuple[Row, asyncio.Future[bool]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._cached_variants: dict[str, list[str]] = {}
        self._thread = ThreadPoolExecutor(1)
        try:
            self._database = self._open_or_recover()
            self._writer = connect(path)
            self._writer.execute("PRAGMA synchronous = FULL")
        except (sqlite3.Error, OSError) as error:
            raise self.unusable(error) from None
        self.is_empty = not self.run("SELECT 1 FROM saved_answers LIMIT 1")

    def get(self, key: str) -> Answer | None:
        """Return the answer saved under ``key``, if there is one."""
        rows = self.run("SELECT answer, checksum FROM saved_answers WHERE key = ?", key)
        for text, checksum in rows:
            if is_intact(key, text, checksum):
                with suppress(ValueError):
                    return Answer.from_json(text)
            self.run("DELETE FROM saved_answers WHERE key = ?", key)
        return None

    def put(self, key: str, model: str, answer: Answer) -> "asyncio.Future[bool]":
        """Save an answer; the future resolves once it is on disk.

        It tells whether the answer is the first under its key. The first one stays.
        """
        text = json.dumps(answer.to_json())
        self.is_empty = False
        printable = model.encode("ascii", "backslashreplace").decode()
        saved = asyncio.get_running_loop().create_future()
        self._pending.append(((key, printable, text, checksum_of(key, text), time.time()), saved))
        if not self._writing or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        return saved

    def variant(self, model: str) -> RequestVariant:
        """Return the request variant that a model accepts."""
        rows = self.run("SELECT form FROM forms WHERE model = ?", model)
        return tuple(json.loads(*texts_with_valid_checksum(model, rows) or ["[]"]))

    def set_variant(self, model: str, variant: RequestVariant) -> None:
        """Save the request variant that a model accepts."""
        self.run(
            "REPLACE INTO forms VALUES (?, ?)", model, with_checksum(model, json.dumps(variant))
        )

    def cached_variants(self, model: str) -> list[str]:
        """Return the request variants, as JSON, in which a model has cached answers."""
        if model not in self._cached_variants:
            rows = self.run("SELECT way FROM ways WHERE model = ?", model)
            self._cached_variants[model] = texts_with_valid_checksum(model, rows)
        return self._cached_variants[model]

    def record_variant(self, model: str, recorded: str) -> None:
        """Record that a model has a cached answer in this request variant."""
        if recorded not in self.cached_variants(model):
            self.run(
                "INSERT OR IGNORE INTO ways VALUES (?, ?)", model, with_checksum(model, recorded)
            )
            self._cached_variants[model].append(recorded)

    def close(self) -> None:
        """Write pending answers and close the file."""
        self._thread.shutdown()
        pending, self._pending = self._pending, []
        self._insert([row for row, _ in pending])
        self._writer.close()
        self._database.close()

    def run(self, query: str, *values: str | float) -> list[Any]:
        """Run a query and return its rows; raises `UserError` if the file cannot be used."""
        with self.transaction() as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the body in one transaction; raises as `run` does."""
        try:
            with self._database as database:
                yield database
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self.unusable(error) from None

    async def _write(self) -> None:
        while self._pending:
            pending, self._pending = self._pending, []
            rows = [row for row, _ in pending]
            inserted = await asyncio.wrap_future(self._thread.submit(self._insert, rows))
            for number, (_, saved) in enumerate(pending):
                if saved.done():  # the waiting task was cancelled
                    continue
                if isinstance(inserted, sqlite3.Error):
                    saved.set_exception(self.unusable(inserted))
                else:
                    saved.set_result(inserted[number])

    def _insert(self, rows: list[Row]) -> list[bool] | sqlite3.Error:
        """Save rows in one transaction. Returns which were new, or the error."""
        try:
            with self._writer:
                return [self._writer.execute(_INSERT, row).rowcount > 0 for row in rows]
        except sqlite3.Error as error:
            return error

    def _open_or_recover(self) -> sqlite3.Connection:
        """Open the database, or recover a damaged one; only one process recovers at a time."""
        with suppress(sqlite3.Error, OSError):  # another process may be moving it
            if database := open_database(self.path, _SCHEMA):
                return database
        with closing(connect(self.path.with_name("rescue.lock"))) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            return open_database(self.path, _SCHEMA) or self._recover()

    def _recover(self) -> sqlite3.Connection:
        damaged = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
        for suffix in ("-wal", "-shm", ""):  # the database last: others see the damage until then
            with suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").rename(f"{damaged}{suffix}")
        rows = recover_answers(damaged)
        database = open_database(self.path, _SCHEMA)
        assert database, "a new file is not damaged"
        with database:
            database.executemany(_INSERT, rows.values())
            for table in ("forms", "ways", "marks", "batched"):
                for row in recover_rows(damaged, table):
                    values = ", ".join("?" * len(row))
                    database.execute(f"INSERT OR IGNORE INTO {table} VALUES ({values})", row)
        log.warning(
            "the store %s was damaged: it was moved to %s, and %d answers that could still be "
            "read were taken over",
            *(self.path, damaged, len(rows)),
        )
        return database

    def unusable(self, error: Exception) -> UserError:
        """Return the error for a file that cannot be used."""
        message = f"cannot save answers in {str(self.path)!r} ({error_reason(error)})"
        return UserError(f"{message}; {_SAFE_ADVICE if self._permanent else _TEMPORARY_ADVICE}")


@contextmanager
def opened_store(*, fresh: bool) -> Iterator[Store]:
    """Open the store of all answers, or an empty temporary one for a fresh run."""
    location = _temporary_path() if fresh else nullcontext(answers_file())
    with location as path, closing(Store(path, permanent=not fresh)) as store:
        yield store


@contextmanager
def store_to_read() -> Iterator[Store]:
    """Open the store of all answers for reading, or a copy if its folder is read-only."""
    original = answers_file()
    if os.access(original.parent, os.W_OK):
        with closing(Store(original)) as store:
            yield store
        return
    with _temporary_path() as path:
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{original}{suffix}", f"{path}{suffix}")
        with closing(Store(path, permanent=False)) as store:
            yield store


@contextmanager
def _temporary_path() -> Iterator[Path]:
    """Yield a path for a temporary store."""
    try:
        folder = TemporaryDirectory()
    except OSError as error:
        raise UserError(
            f"no folder for temporary files ({error.strerror}); {_TEMPORARY_ADVICE}"
        ) from None
    with folder as name:
        yield Path(name) / "answers.sqlite"
