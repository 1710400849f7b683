"""Answers on disk: whatever was paid for is kept, and nothing is asked twice."""

import asyncio
import json
import logging
import sqlite3
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from ..errors import Problem
from .model import Answer, Usage

log = logging.getLogger(__name__)

GATHERING_SECONDS = 0.03
"""Answers that arrive within this time share one transaction."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT NOT NULL UNIQUE, model TEXT NOT NULL, answer TEXT NOT NULL, saved_at REAL NOT NULL
)"""

_Row = tuple[str, str, str, float]


class Store:
    """Answers by key in one SQLite file, safe to share between processes.

    A damaged file is moved aside, what can still be read is taken over, and the log says so.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending: list[tuple[_Row, asyncio.Future[None]]] = []
        try:
            self._database = self._opened()
        except sqlite3.OperationalError as problem:
            raise self._unusable(problem) from None
        except sqlite3.DatabaseError:
            self._database = self._rescued()

    def get(self, key: str) -> Answer | None:
        """The answer saved under ``key``, if there is one."""
        row = self._database.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return _answer_from(row[0]) if row else None

    def put(self, key: str, model: str, answer: Answer) -> "asyncio.Future[None]":
        """Save an answer; the future is done when it is on disk."""
        loop = asyncio.get_running_loop()
        if not self._pending:
            loop.call_later(GATHERING_SECONDS, self.flush)
        saved: asyncio.Future[None] = loop.create_future()
        self._pending.append(((key, model, json.dumps(asdict(answer)), time.time()), saved))
        return saved

    def flush(self) -> None:
        """Write what has gathered, in one transaction."""
        pending, self._pending = self._pending, []
        try:
            with self._database:
                self._database.executemany(
                    "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", (row for row, _ in pending)
                )
        except sqlite3.Error as problem:
            for _, saved in pending:
                if not saved.done():
                    saved.set_exception(self._unusable(problem))
        else:
            for _, saved in pending:
                if not saved.done():
                    saved.set_result(None)

    def close(self) -> None:
        """Write what is left and close the file."""
        self.flush()
        self._database.close()

    def _opened(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=60)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute(_SCHEMA)
            verdict = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _rescued(self) -> sqlite3.Connection:
        aside = self._path.with_name(f"{self._path.name}.damaged-{int(time.time())}")
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{self._path}{suffix}").rename(f"{aside}{suffix}")
        rows = _readable_rows(aside)
        database = self._opened()
        with database:
            database.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", rows.values())
        log.warning(
            "the store %s was damaged: it was moved to %s, and %d answers that could still be "
            "read were taken over",
            *(self._path, aside, len(rows)),
        )
        return database

    def _unusable(self, problem: sqlite3.Error) -> Problem:
        return Problem(
            f"cannot save answers in {str(self._path)!r} ({problem}); what was saved before is "
            "safe: free some space, or set CDTA_HOME to a folder you can write to, and run the "
            "same command again"
        )


def _readable_rows(path: Path) -> dict[str, _Row]:
    """Read a damaged file from both ends, as far as it goes."""
    rows: dict[str, _Row] = {}
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.DatabaseError):
            database = sqlite3.connect(path)
            for row in database.execute(f"SELECT * FROM answers ORDER BY rowid {order}"):
                with suppress(ValueError, TypeError, KeyError):
                    _answer_from(row[2])
                    rows[row[0]] = row
    return rows


def _answer_from(text: str) -> Answer:
    fields = json.loads(text)
    fields["usage"] = Usage(**fields["usage"])
    fields["notes"] = tuple(fields["notes"])
    return Answer(**fields)
