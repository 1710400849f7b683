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


def with_checksum(key: str, text: str) -> str:
    """A text behind its checksum, for a table that has no other place for that."""
    return f"{checksum_of(key, text):08x}{text}"


def texts_with_valid_checksum(key: str, rows: Iterable[tuple[object]]) -> list[str]:
    """The texts in rows of one column that are as they were when they were sealed."""
    texts = [(str(kept)[8:], kept) for (kept,) in rows]
    return [text for text, kept in texts if kept == with_checksum(key, text)]


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

_IS_SAFE = (
    "what was saved before is safe: free some space, or set CDTA_HOME to a folder you can write "
    "to, and run the same command again"
)
_ELSEWHERE = "set TMPDIR to a folder with space that you can write to"


class Store:
    """Answers by key in one SQLite file, safe to share between processes.

    A thread of its own writes, so that nobody waits for the disk; the answers that arrive while it
    is busy share the next transaction. A damaged file is moved aside, what can still be read is
    taken over, and the log says so. It ``is_empty`` while it had no answer at the beginning and
    none was saved here.
    """

    def __init__(self, path: Path, *, kept: bool = True) -> None:
        self.path = path
        self._kept = kept
        self._pending: list[tuple[Row, asyncio.Future[bool]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._ways: dict[str, list[str]] = {}
        self._thread = ThreadPoolExecutor(1)
        try:
            self._database = self._opened_or_rescued()
            self._writer = connected(path)
            self._writer.execute("PRAGMA synchronous = FULL")
        except (sqlite3.Error, OSError) as problem:
            raise self.unusable(problem) from None
        self.is_empty = not self.run("SELECT 1 FROM saved_answers LIMIT 1")

    def get(self, key: str) -> Answer | None:
        """The answer saved under ``key``, if there is one."""
        rows = self.run("SELECT answer, checksum FROM saved_answers WHERE key = ?", key)
        for text, checksum in rows:
            if is_whole(key, text, checksum):
                with suppress(ValueError, KeyError, TypeError):
                    return Answer.from_json(json.loads(text))
            self.run("DELETE FROM saved_answers WHERE key = ?", key)
        return None

    def put(self, key: str, model: str, answer: Answer) -> "asyncio.Future[bool]":
        """Save an answer; the future is done when it is on disk, and says if none was there before.

        The first answer under a key is the one that stays.
        """
        text = json.dumps(answer.to_json())
        self.is_empty = False
        printable = model.encode("ascii", "backslashreplace").decode()
        saved = asyncio.get_running_loop().create_future()
        self._pending.append(((key, printable, text, checksum_of(key, text), time.time()), saved))
        if not self._writing or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        return saved

    def form(self, model: str) -> RequestVariant:
        """The form in which a model was found to want its questions."""
        rows = self.run("SELECT form FROM forms WHERE model = ?", model)
        return tuple(json.loads(*texts_with_valid_checksum(model, rows) or ["[]"]))

    def learn(self, model: str, form: RequestVariant) -> None:
        """Remember that form."""
        self.run("REPLACE INTO forms VALUES (?, ?)", model, with_checksum(model, json.dumps(form)))

    def ways(self, model: str) -> list[str]:
        """The ways of asking a model in which it has answers here."""
        if model not in self._ways:
            kept = self.run("SELECT way FROM ways WHERE model = ?", model)
            self._ways[model] = texts_with_valid_checksum(model, kept)
        return self._ways[model]

    def note_way(self, model: str, way: str) -> None:
        """Remember that there is an answer to a question that was asked in this way."""
        if way not in self.ways(model):
            self.run("INSERT OR IGNORE INTO ways VALUES (?, ?)", model, with_checksum(model, way))
            self._ways[model].append(way)

    def close(self) -> None:
        """Write what is left and close the file."""
        self._thread.shutdown()
        left, self._pending = self._pending, []
        self._insert([row for row, _ in left])
        self._writer.close()
        self._database.close()

    def run(self, query: str, *values: str | float) -> list[Any]:
        """What the database says to a query; raises a `UserError` if the file cannot be used."""
        with self.transaction() as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The database, where all of what the body does is done or nothing; raises as `run`."""
        try:
            with self._database as database:
                yield database
        except (sqlite3.Error, UnicodeDecodeError) as problem:
            raise self.unusable(problem) from None

    async def _write(self) -> None:
        while self._pending:
            pending, self._pending = self._pending, []
            rows = [row for row, _ in pending]
            done = await asyncio.wrap_future(self._thread.submit(self._insert, rows))
            for number, (_, saved) in enumerate(pending):
                if saved.done():  # whoever waited for it was stopped
                    continue
                if isinstance(done, sqlite3.Error):
                    saved.set_exception(self.unusable(done))
                else:
                    saved.set_result(done[number])

    def _insert(self, rows: list[Row]) -> list[bool] | sqlite3.Error:
        """Save rows in one transaction; says which were not there before, or what went wrong."""
        try:
            with self._writer:
                return [self._writer.execute(_INSERT, row).rowcount > 0 for row in rows]
        except sqlite3.Error as problem:
            return problem

    def _opened_or_rescued(self) -> sqlite3.Connection:
        """The database, or what a damaged one still holds; of several processes one rescues it."""
        with suppress(sqlite3.Error, OSError):  # another may be moving it just now
            if database := opened(self.path, _SCHEMA):
                return database
        with closing(connected(self.path.with_name("rescue.lock"))) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            return opened(self.path, _SCHEMA) or self._taken_over()

    def _taken_over(self) -> sqlite3.Connection:
        aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
        for suffix in ("-wal", "-shm", ""):  # whoever comes meanwhile finds the damage still
            with suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").rename(f"{aside}{suffix}")
        rows = readable_rows(aside)
        database = opened(self.path, _SCHEMA)
        assert database, "a new file is not damaged"
        with database:
            database.executemany(_INSERT, rows.values())
            for table in ("forms", "ways", "marks", "batched"):
                for row in readable(aside, table):
                    values = ", ".join("?" * len(row))
                    database.execute(f"INSERT OR IGNORE INTO {table} VALUES ({values})", row)
        log.warning(
            "the store %s was damaged: it was moved to %s, and %d answers that could still be "
            "read were taken over",
            *(self.path, aside, len(rows)),
        )
        return database

    def unusable(self, problem: Exception) -> UserError:
        """What to say of a file that cannot be used."""
        what = f"cannot save answers in {str(self.path)!r} ({error_reason(problem)})"
        return UserError(f"{what}; {_IS_SAFE if self._kept else _ELSEWHERE}")


@contextmanager
def opened_store(*, fresh: bool) -> Iterator[Store]:
    """The store of all answers; an empty one where everything is asked anew and nothing kept."""
    place = _nowhere() if fresh else nullcontext(answers_file())
    with place as path, closing(Store(path, kept=not fresh)) as store:
        yield store


@contextmanager
def store_to_read() -> Iterator[Store]:
    """The same for who only looks: where nothing can be written, a copy."""
    kept = answers_file()
    if os.access(kept.parent, os.W_OK):
        with closing(Store(kept)) as store:
            yield store
        return
    with _nowhere() as path:
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{kept}{suffix}", f"{path}{suffix}")
        with closing(Store(path, kept=False)) as store:
            yield store


@contextmanager
def _nowhere() -> Iterator[Path]:
    """A place for a store that is soon forgotten."""
    try:
        folder = TemporaryDirectory()
    except OSError as problem:
        raise UserError(
            f"no folder for temporary files ({problem.strerror}); {_ELSEWHERE}"
        ) from None
    with folder as name:
        yield Path(name) / "answers.sqlite"
