"""The SQLite file behind the cache: one table of values with checksums, shared by processes."""

import asyncio
import json
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from zlib import crc32

from ..errors import UserError, error_reason
from ..files import PARTIAL, answers_file
from ..formatting import duration

# What a value is: an answer, a request variant that a model accepts or has answers in, what a
# server says of a model's weights, a batch, or a request in a batch.
Kind = Literal["answer", "variant", "used variant", "fingerprint"]
# Kind, key, value as JSON, checksum.
Row = tuple[str, str, str, int]

log = logging.getLogger(__name__)

# The number is that of the format: a file with any other table is of another version.
_TABLE = "cache_2"
_SCHEMA = (
    f"CREATE TABLE {_TABLE} (kind TEXT NOT NULL, key TEXT NOT NULL, "
    "value TEXT NOT NULL, checksum INTEGER NOT NULL, UNIQUE (kind, key))"
)
_SELECT = f"SELECT * FROM {_TABLE}"
_INSERT = f"INSERT OR IGNORE INTO {_TABLE} VALUES (?, ?, ?, ?)"
_REPLACE = f"REPLACE INTO {_TABLE} VALUES (?, ?, ?, ?)"
_DELETE = f"DELETE FROM {_TABLE} WHERE kind = ? AND key = ?"

# SQLite error codes of a disk problem; any other error means a damaged file.
_DISK_ERRORS = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY),
)
# Extended error codes of a file system whose locks or shared memory do not work.
_LOCK_ERRORS = (
    *(sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_RDLOCK),
    *(sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK),
    *(sqlite3.SQLITE_IOERR_SHMLOCK, sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMOPEN),
)
# Seconds to wait for another process that uses the file.
LOCK_TIMEOUT = 60.0

_SAFE_ADVICE = (
    "earlier answers are safe; free some space, or set CDTA_HOME to a folder on a local disk "
    "that you can write to, and run the same command again"
)
_TEMPORARY_ADVICE = "set TMPDIR to a folder on a local disk with space that you can write to"


class Store:
    """Values by kind and key in one SQLite file, safe to share between processes.

    A separate thread writes answers, so that requests never wait for the disk. Answers that arrive
    while it is busy share the next transaction. A damaged file is moved away, its readable values
    are recovered, and a warning is logged. ``is_empty`` holds while the file had no answer at first
    and none was saved here.
    """

    def __init__(self, path: Path, *, permanent: bool = True) -> None:
        self._path = path
        self._permanent = permanent
        self._pending: list[tuple[Row, asyncio.Future[bool]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1)
        try:
            self._database = self._open_or_recover()
            self._writer = _connect(path)
            self._writer.execute("PRAGMA synchronous = FULL")
        except (sqlite3.Error, OSError) as error:
            raise self.unusable(error) from None
        self.is_empty = not self._read("kind = 'answer' LIMIT 1")

    def get(self, kind: Kind, key: str) -> Any:
        """Return the value saved under a key, or None; a damaged one is deleted."""
        for row in self._read("kind = ? AND key = ?", kind, key):
            if _is_intact(row):
                return json.loads(row[2])
            self.write(kind, {key: None})
        return None

    def group(self, kind: Kind, name: str) -> list[Any]:
        """Return the intact values whose keys begin with a group's name and a space."""
        rows = self._read("kind = ? AND key GLOB ?", kind, f"{name} *")
        return [json.loads(row[2]) for row in rows if _is_intact(row)]

    def write(self, kind: Kind, values: Mapping[str, Any], *, replace: bool = True) -> bool:
        """Save values by key, all or none; None deletes. Returns whether they were saved.

        They are not if ``replace`` is False and any of the keys has a value.
        """
        saved = [_row(kind, key, value) for key, value in values.items() if value is not None]
        deleted = [(kind, key) for key, value in values.items() if value is None]
        try:
            with self._database as database:
                database.executemany(_DELETE, deleted)
                n = database.executemany(_REPLACE if replace else _INSERT, saved).rowcount
                if not replace and n < len(saved):
                    database.rollback()
                    return False
        except sqlite3.Error as error:
            raise self.unusable(error) from None
        return True

    def put(self, key: str, answer: Mapping[str, Any]) -> "asyncio.Future[bool]":
        """Save an answer; the future resolves once it is on disk.

        It tells whether the answer is the first under its key. The first one stays.
        """
        self.is_empty = False
        saved = asyncio.get_running_loop().create_future()
        self._pending.append((_row("answer", key, answer), saved))
        if not self._writing or self._writing.done():
            self._writing = asyncio.create_task(self._write_pending())
        return saved

    def try_lock(self, name: str) -> sqlite3.Connection | None:
        """Take a lock that holds until it is closed or the process ends; None if another has it."""
        try:
            return _lock(self._path.with_name(name), 0.0)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise self.unusable(error) from None
        return None

    def close(self) -> None:
        """Write pending answers and close the file."""
        self._thread.shutdown()
        pending, self._pending = self._pending, []
        with suppress(sqlite3.Error):
            self._insert([row for row, _ in pending])
        self._writer.close()
        self._database.close()

    def unusable(self, error: Exception) -> UserError:
        """Return the error for a file that cannot be used."""
        reason, code = error_reason(error), getattr(error, "sqlite_errorcode", 0)
        if code in _LOCK_ERRORS:
            return self._without_locks(reason)
        if code & 0xFF == sqlite3.SQLITE_BUSY:
            return UserError(
                f"another process has locked {str(self._path)!r} for {duration(LOCK_TIMEOUT)}; "
                "stop it, or set CDTA_HOME to another folder"
            )
        message = f"cannot save answers in {str(self._path)!r} ({reason})"
        return UserError(f"{message}; {_SAFE_ADVICE if self._permanent else _TEMPORARY_ADVICE}")

    def _without_locks(self, reason: str) -> UserError:
        """Return the error for a file system whose locks do not work."""
        return UserError(
            f"files in {str(self._path.parent)!r} cannot be locked ({reason}), as on some network "
            f"drives; set {'CDTA_HOME' if self._permanent else 'TMPDIR'} to a folder on a local "
            "disk"
        )

    def _read(self, condition: str, *values: str) -> list[Row]:
        try:
            return self._database.execute(f"{_SELECT} WHERE {condition}", values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self.unusable(error) from None

    async def _write_pending(self) -> None:
        while self._pending:
            pending, self._pending = self._pending, []
            rows = [row for row, _ in pending]
            are_new, fault = list[bool](), None
            try:
                are_new = await asyncio.wrap_future(self._thread.submit(self._insert, rows))
            except Exception as error:  # nobody may wait forever, even if no thread can start
                fault = self.unusable(error) if isinstance(error, sqlite3.Error) else error
            for number, (_, saved) in enumerate(pending):
                if saved.done():  # the waiting task was cancelled
                    continue
                if fault:
                    saved.set_exception(fault)
                else:
                    saved.set_result(are_new[number])

    def _insert(self, rows: list[Row]) -> list[bool]:
        """Save rows in one transaction. Returns which were new."""
        with self._writer:
            return [self._writer.execute(_INSERT, row).rowcount > 0 for row in rows]

    def _open_or_recover(self) -> sqlite3.Connection:
        """Open the database, or recover a damaged one.

        A lock keeps other processes from opening a damaged file while it is moved: SQLite would
        write their log under the name of the new file.
        """
        path = self._path.with_name("opening.lock")
        if not (lock := self.try_lock(path.name)):
            self._check_locks()
            lock = _lock(path, LOCK_TIMEOUT)
        with closing(lock):
            return _open(self._path) or self._recover()

    def _check_locks(self) -> None:
        """Check that a new file, which no other process knows, can be locked.

        On a file system without locks, every file looks as if another process had locked it.
        """
        with TemporaryDirectory(prefix=PARTIAL, dir=self._path.parent) as folder:
            try:
                _lock(Path(folder) / "lock", 0.0).close()
            except sqlite3.OperationalError:
                raise self._without_locks("no locks available") from None

    def _recover(self) -> sqlite3.Connection:
        damaged = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                Path(f"{self._path}{suffix}").rename(f"{damaged}{suffix}")
        rows = intact_rows(damaged)
        database = _open(self._path)
        assert database, "a new file is not damaged"
        with database:
            database.executemany(_INSERT, rows)
        log.warning(
            "the cache %s was damaged; it was moved to %s, and %d readable answers were recovered",
            *(self._path, damaged, sum(kind == "answer" for kind, *_ in rows)),
        )
        return database


@contextmanager
def open_store(*, fresh: bool = False, to_read: bool = False) -> Iterator[Store]:
    """Open the store of all answers, or an empty temporary one for a fresh run.

    Who only reads gets a copy where the store's folder cannot be written.
    """
    is_copy = to_read and not fresh and not os.access(answers_file().parent, os.W_OK)
    with _temporary_path() if fresh or is_copy else nullcontext(answers_file()) as path:
        for suffix in ("", "-wal") if is_copy else ():
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{answers_file()}{suffix}", f"{path}{suffix}")
        with closing(Store(path, permanent=not (fresh or is_copy))) as store:
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


def _row(kind: Kind, key: str, value: Any) -> Row:
    text = json.dumps(value)
    return kind, key, text, _checksum(kind, key, text)


def _checksum(kind: str, key: str, text: str) -> int:
    """Return the checksum of a row. SQLite checks only its own structure."""
    return crc32(f"{kind} {key} {text}".encode())


def _is_intact(row: Row) -> bool:
    """Whether a row is unchanged since it was saved."""
    return _checksum(*row[:3]) == row[3]


def intact_rows(path: Path) -> Iterable[Row]:
    """Read the intact rows of a file that may be damaged, from both ends."""
    rows: dict[Row, None] = {}
    for order in ("ASC", "DESC"):
        with (
            suppress(sqlite3.DatabaseError, UnicodeDecodeError),
            closing(_connect(path)) as database,
        ):
            for row in database.execute(f"{_SELECT} ORDER BY rowid {order}"):
                if _is_intact(row):
                    rows[row] = None
    return rows


def _connect(path: Path) -> sqlite3.Connection:
    """Open a connection that returns even invalid text."""
    database = sqlite3.connect(path, timeout=LOCK_TIMEOUT, check_same_thread=False)
    # The checksum detects text that is no longer valid UTF-8.
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return database


def _open(path: Path) -> sqlite3.Connection | None:
    """Open the database and create its table; None if it is damaged."""
    path.touch(0o600)
    with ExitStack() as unless_intact:
        database = unless_intact.enter_context(closing(_connect(path)))
        try:
            # Readers do not block the writer.
            database.execute("PRAGMA journal_mode = WAL")
            schema = "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
            tables = dict(database.execute(schema).fetchall())
            if tables.keys() - {_TABLE}:
                raise UserError(
                    f"{str(path)!r} was written by another version of this package and cannot be "
                    "read; move it, or set CDTA_HOME to another folder"
                )
            if not tables:
                database.execute(_SCHEMA)
            is_intact = database.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
            if is_intact and tables.get(_TABLE, _SCHEMA) == _SCHEMA:
                unless_intact.pop_all()
                return database
        except UnicodeDecodeError:
            pass  # SQLite quotes the damaged bytes in its message
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in _DISK_ERRORS:
                raise
    return None


def _lock(path: Path, timeout: float) -> sqlite3.Connection:
    """Take a lock that holds until the connection is closed or the process ends."""
    path.touch(0o600)
    lock = sqlite3.connect(path, timeout=timeout, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        lock.close()
        raise
    return lock
