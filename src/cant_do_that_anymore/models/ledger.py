"""Which questions are in a batch, so that whatever happens to us none is sent, or paid, twice.

A question is noted after its file was uploaded, which costs nothing, and before the batch is made.
A batch of which only the file is known may have been made: the provider can tell. An answer stays
here until all that it calls for is done, since it may be one that has to be asked for again.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from typing import NamedTuple

from ..providers.base import Answer, ModelInfo, RequestVariant, digest
from .rescue import sealed, unsealed
from .store import Store

ANOTHER_LOOK = 0.2
"""In seconds."""
LONGEST_BATCH = 48 * 3600.0
"""In seconds; providers promise 24 hours."""


class Noted(NamedTuple):
    """What is known of a question in a batch: its file, and what came back, if anything has."""

    file: str
    answer: Answer | None


class Ledger:
    """The questions to one model that are in batches, by the keys of their answers."""

    def __init__(self, store: Store, model: ModelInfo) -> None:
        self._store = store
        self._model = digest(dict(model.identity))

    def find(self, key: str) -> Noted | None:
        """What is known of a question, if it is in a batch."""
        rows = self._store.run("SELECT file, answer FROM batched WHERE key = ?", key)
        for file, answer in rows:
            if not answer:
                return Noted(file, None)
            for text in unsealed(key, [(answer,)]):
                with suppress(ValueError, KeyError, TypeError):
                    return Noted(file, Answer.from_json(json.loads(text)))
            self.forget([key])  # the disk has changed it
        return None

    def under_way(self) -> int:
        """How many questions to the model may have an answer soon that is not there yet."""
        query = (
            "SELECT COUNT(*) FROM batched WHERE model = ? AND answer = '' AND sent_at > ? "
            "AND key NOT IN (SELECT key FROM saved_answers)"
        )
        return int(self._store.run(query, self._model, time.time() - LONGEST_BATCH)[0][0])

    def enter(self, file: str, forms: Mapping[str, RequestVariant]) -> bool:
        """Note the questions in a file and their forms; False if another has one of them."""
        rows = [
            (key, self._model, file, "", sealed(key, json.dumps(form)), "", time.time())
            for key, form in forms.items()
        ]
        with self._store.transaction() as database:
            try:
                database.executemany("INSERT INTO batched VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError:
                database.rollback()
                return False
        return True

    def made(self, file: str, batch: str) -> None:
        """Note which batch was made of a file."""
        query = "UPDATE batched SET batch = ? WHERE model = ? AND file = ?"
        self._store.run(query, batch, self._model, file)

    def batch_of(self, file: str) -> str:
        """The batch that was made of a file, if that is known."""
        query = "SELECT batch FROM batched WHERE model = ? AND file = ? LIMIT 1"
        return "".join(batch for (batch,) in self._store.run(query, self._model, file))

    def forms_in(self, file: str) -> dict[str, RequestVariant]:
        """The forms of the questions in a file, by key, without what the disk has changed."""
        query = "SELECT key, form FROM batched WHERE model = ? AND file = ?"
        rows = self._store.run(query, self._model, file)
        texts = ((key, unsealed(key, [(form,)])) for key, form in rows)
        return {key: tuple(json.loads(*form)) for key, form in texts if form}

    def ended(self, file: str, answers: Mapping[str, Answer]) -> None:
        """Keep the answers that came of a batch, and forget its other questions."""
        texts = [
            (sealed(key, json.dumps(answer.to_json())), key) for key, answer in answers.items()
        ]
        with self._store.transaction() as database:
            database.executemany("UPDATE batched SET answer = ? WHERE key = ?", texts)
            database.execute(
                "DELETE FROM batched WHERE model = ? AND file = ? AND answer = ''",
                (self._model, file),
            )

    def forget(self, keys: Iterable[str]) -> None:
        """Forget questions whose answers are saved."""
        with self._store.transaction() as database:
            database.executemany("DELETE FROM batched WHERE key = ?", [(key,) for key in keys])

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Wait until no other process makes a batch, and let none do so while the body runs.

        Whoever dies lets go: what is noted without a batch here is nobody's business any more.
        """
        path = self._store.path.with_name("batches.lock")
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as lock:
            while True:
                try:
                    lock.execute("BEGIN EXCLUSIVE")
                    break
                except sqlite3.OperationalError as problem:
                    if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                        raise self._store.unusable(problem) from None
                await asyncio.sleep(ANOTHER_LOOK)
            yield
