"""The cached answers of one model: keys, and a SQLite table that processes share."""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, UserError, error_reason
from ..files import home
from ..providers.base import Answer, ModelInfo, Request, Settings, digest, prompt_texts

# The seed of a bundled model's answer depends on this number or on the request's own token limit,
# if that is larger. It does not depend on the limit of the run.
SEED_TOKENS = 16
# An answer to save, with the token limit that is settled by now.
Arrived = tuple[Request, Settings, Answer, int | None]
# Seconds to wait for another process that writes.
LOCK_TIMEOUT = 60.0
# A checkpoint waits for the disk, for as long as hundreds of answers take.
CHECKPOINT_PAGES = 10_000
# A version is known if so many answers have it: fewer may have arrived before a run that would
# have started over was interrupted.
MIN_ANSWERS_OF_VERSION = 3

_TABLE = "answers_5"  # the number is that of the format
_SCHEMA = f"""
    CREATE TABLE IF NOT EXISTS {_TABLE} (
        key TEXT NOT NULL, model TEXT NOT NULL, namespace TEXT NOT NULL, version TEXT NOT NULL,
        effort TEXT, token_limit INTEGER, answer TEXT NOT NULL, PRIMARY KEY (key, namespace)
    );
    CREATE INDEX IF NOT EXISTS {_TABLE}_of_model ON {_TABLE} (model, namespace, version);
"""


def with_request_seed(model: ModelInfo, request: Request, settings: Settings) -> Settings:
    """Return the settings with a seed derived from the request, stable across versions.

    Only the bundled models use it.
    """
    if not model.is_local:
        return settings
    parts = [model.name, model.endpoint, prompt_texts(request), settings.temperature]
    parts += [max(SEED_TOKENS, request.tokens), settings.seed, request.purpose, request.draw]
    return replace(settings, seed=int(digest(parts)[:12], 16))


class Cache:
    """The answers of one model by request; the first answer to a request stays.

    Answers belong to a namespace. A model whose version changed gets a new one.

    Attributes:
        namespace: the one that is read and written: at first, that of the newest answer.
    """

    def __init__(self, path: Path | str, model: ModelInfo) -> None:
        self._path = path
        identity = dict(model.identity)
        self._model = digest(identity)
        self._digest_with = cache(lambda settings: digest([identity, settings.non_defaults]))
        try:
            if isinstance(path, Path):
                path.touch(0o600)
            self._database = sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None)
            with suppress(sqlite3.OperationalError):  # another process may be doing the same
                self._database.execute("PRAGMA journal_mode = WAL")
            self._execute("PRAGMA synchronous = NORMAL")
            self._execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            self._database.executescript(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from None
        self.namespace: str = self._newest("namespace", "") or ""

    def token_limit(self, effort: str | None) -> int | None:
        """Return the limit that the newest answer at a reasoning effort settled, if any."""
        condition = "AND token_limit NOTNULL AND effort IS ?"
        limit: int | None = self._newest("token_limit", condition, effort)
        return limit

    def _newest(self, column: str, condition: str, *values: object) -> Any:
        """Return a column of the model's newest answer that meets a condition, or None."""
        query = f"SELECT {column} FROM {_TABLE} WHERE model = ? {condition}"
        rows = self._execute(f"{query} ORDER BY rowid DESC LIMIT 1", self._model, *values)
        return rows[0][0] if rows else None

    def key(self, request: Request, settings: Settings) -> str:
        """Return the key of an answer: a digest of everything that can change it."""
        return sha256(f"{self._digest_with(settings)} {request.id}".encode()).hexdigest()

    def answer(self, request: Request, settings: Settings) -> Answer | None:
        """Return the cached answer to a request, if there is one."""
        query = f"SELECT answer FROM {_TABLE} WHERE key = ? AND namespace = ?"
        rows = self._execute(query, self.key(request, settings), self.namespace)
        try:
            return Answer.from_json(rows[0][0]) if rows else None
        except InvalidInput as error:
            raise self._unusable(error) from None

    def save(self, arrived: Iterable[Arrived]) -> list[Answer]:
        """Save answers in one transaction, and return those that count.

        An earlier answer stays, unless it was cut off at a lower token limit.
        """
        self._execute("BEGIN IMMEDIATE")
        try:
            return [self._save(*each) for each in arrived]
        finally:
            self._execute("COMMIT")

    def _save(
        self, request: Request, settings: Settings, answer: Answer, token_limit: int | None
    ) -> Answer:
        earlier = self.answer(request, settings)
        if earlier and not (earlier.stop_reason == "length" and earlier.limit < answer.limit):
            return earlier
        key, effort = self.key(request, settings), settings.reasoning_effort
        version = json.dumps(answer.version)  # a server may send what is no text for SQLite
        text = json.dumps(answer.to_json())
        row = key, self._model, self.namespace, version, effort, token_limit, text
        self._execute(f"REPLACE INTO {_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
        return answer

    def known_versions(self) -> set[str]:
        """Return the versions in the namespace that more than a few answers have."""
        query = f"SELECT version, COUNT(*) FROM {_TABLE} WHERE model = ? AND namespace = ?"
        counts = self._execute(f"{query} GROUP BY version", self._model, self.namespace)
        return {json.loads(version) for version, n in counts if n >= MIN_ANSWERS_OF_VERSION}

    def start_namespace(self, version: str) -> None:
        """Switch to the namespace of a version, and move its answers there."""
        version = self.namespace = json.dumps(version)
        elsewhere = "WHERE model = ? AND version = ? AND namespace != ?"
        others = self._model, version, version
        self._execute(f"UPDATE OR IGNORE {_TABLE} SET namespace = ? {elsewhere}", version, *others)
        self._execute(f"DELETE FROM {_TABLE} {elsewhere}", *others)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _unusable(self, error: Exception) -> UserError:
        """Return the error for a file that cannot be used."""
        return UserError(
            f"the cache {str(self._path)!r} cannot be used ({error_reason(error)[:80]}); free some "
            "space, or set CDTA_HOME to a folder on a local disk that you can write to, and run "
            "the same command again; sqlite3 FILE .recover saves what is readable of a damaged one"
        )


def open_cache(model: ModelInfo, *, fresh: bool = False) -> AbstractContextManager[Cache]:
    """Open the cached answers of a model, or an empty cache in memory for a fresh run."""
    return closing(Cache(":memory:" if fresh else home() / "answers.sqlite", model))
