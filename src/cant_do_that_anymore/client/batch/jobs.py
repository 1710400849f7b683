"""Create, poll and recover batch jobs, with a journal of the requests in each.

A question is noted after its file was uploaded, which costs nothing, and before the batch is made.
A batch of which only the file is known may have been made: the provider can tell. An answer stays
here until all that it calls for is done, since it may be one that has to be asked for again.

Whatever happens on the way, the ledger knows what was sent: a batch whose making was not heard of
is looked for before it is made again, and its results can be fetched as often as it takes.
"""

import asyncio
import json
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import NamedTuple, TypeVar

from ...errors import Incomplete, Interrupted, UserError, pluralize
from ...progress import duration
from ...providers.base import (
    Answer,
    ModelInfo,
    RequestRejected,
    RequestVariant,
    TransientError,
    digest,
)
from ..client import PATIENCE, Tell, pause
from ..store import Store, texts_with_valid_checksum, with_checksum
from .api import BatchApi, NoBatches, State

ANOTHER_LOOK = 0.2
"""In seconds."""
LONGEST_BATCH = 48 * 3600.0
"""In seconds; providers promise 24 hours."""


class JournalEntry(NamedTuple):
    """What is known of a question in a batch: its file, and what came back, if anything has."""

    file: str
    answer: Answer | None


class BatchJournal:
    """The questions to one model that are in batches, by the keys of their answers."""

    def __init__(self, store: Store, model: ModelInfo) -> None:
        self._store = store
        self._model = digest(dict(model.identity))

    def find(self, key: str) -> JournalEntry | None:
        """What is known of a question, if it is in a batch."""
        rows = self._store.run("SELECT file, answer FROM batched WHERE key = ?", key)
        for file, answer in rows:
            if not answer:
                return JournalEntry(file, None)
            for text in texts_with_valid_checksum(key, [(answer,)]):
                with suppress(ValueError, KeyError, TypeError):
                    return JournalEntry(file, Answer.from_json(json.loads(text)))
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
            (key, self._model, file, "", with_checksum(key, json.dumps(form)), "", time.time())
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
        texts = ((key, texts_with_valid_checksum(key, [(form,)])) for key, form in rows)
        return {key: tuple(json.loads(*form)) for key, form in texts if form}

    def ended(self, file: str, answers: Mapping[str, Answer]) -> None:
        """Keep the answers that came of a batch, and forget its other questions."""
        texts = [
            (with_checksum(key, json.dumps(answer.to_json())), key)
            for key, answer in answers.items()
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


log = logging.getLogger(__name__)

LOOKS = 7
"""So often something is looked for before it is given up for lost."""
FIRST_POLL, LONGEST_POLL, SLOWER = 0.5, 60.0, 1.5
"""In seconds, and how quickly the one becomes the other."""

T = TypeVar("T")
StoppedWithin = Callable[[float], Awaitable[bool]]
"""Waits so many seconds, or until all is stopped: says whether it was."""


@dataclass(frozen=True)
class Ended:
    """What came of a batch.

    Attributes:
        results: an answer, or what went wrong, by key; a key that is missing was not answered.
        fault: why not, in words.
        paid: whether what is missing may have been paid.
    """

    results: Mapping[str, Answer | Exception]
    fault: str
    paid: bool


class Batches:
    """The batches of one model.

    Attributes:
        under_way: the id of the batch that is being followed; "" if none is.
    """

    def __init__(self, api: BatchApi, ledger: BatchJournal, stopped_within: StoppedWithin) -> None:
        self.under_way = ""
        self._api = api
        self._ledger = ledger
        self._stopped_within = stopped_within

    async def make(
        self,
        lines: Mapping[str, bytes],
        forms: Mapping[str, RequestVariant],
        are_wanted: Callable[[], bool],
    ) -> str | None:
        """Make a batch of requests by key; gives its file.

        None if not all of them are wanted any more, or another process has sent one of them.

        Raises:
            Incomplete: if the server is in trouble for long.
            UserError: if it takes no batches, or not this one.
        """
        file = await self._patiently(partial(self._api.upload, lines.values()))
        async with self._ledger.exclusive():
            if not (are_wanted() and self._ledger.enter(file, forms)):
                return None
            await self._make_of(file, may_exist=False)
        return file

    async def follow(
        self, file: str, forms: Mapping[str, RequestVariant], tell: Tell
    ) -> Ended | None:
        """Wait for the end of the batch of a file, and keep its answers; None if we are stopped.

        Args:
            file: its id.
            forms: the forms of the questions that are waited for, by key.
            tell: is told how far it is.
        """
        batch = self._ledger.batch_of(file)
        if not batch:  # whoever was about to make it did not live to tell
            async with self._ledger.exclusive():
                batch = self._ledger.batch_of(file) or await self._make_of(file, may_exist=True)
        self.under_way = batch
        forms = {**self._ledger.forms_in(file), **forms}
        told = partial(self._tell, tell, len(forms))
        state = await self._last_state(batch, told)
        if state and not state.has_ended:
            return None
        results = await self._results(state, forms) if state else {}
        answers = {key: each for key, each in results.items() if isinstance(each, Answer)}
        self._ledger.ended(file, answers)
        self.under_way = ""
        if not state:
            log.warning(
                "the batch %s with %s is not known there any more; what it held is asked again",
                *(batch, pluralize(len(forms), "question")),
            )
        status = state.status if state else "lost"
        fault = (state and state.fault) or f"nothing came of it in a batch that is {status}"
        return Ended(results, fault, paid=status == "completed")

    async def _make_of(self, file: str, *, may_exist: bool) -> str:
        """Make the batch of a file, unless it exists; after any doubt that is looked up first."""

        async def found_or_made() -> str:
            nonlocal may_exist
            found = await self._found(file) if may_exist else None
            may_exist = True
            return found or await self._made(file)

        try:
            batch = await self._patiently(found_or_made)
        except Incomplete:
            if await self._is_absent(file):
                self._ledger.ended(file, {})
            raise
        self._ledger.made(file, batch)
        return batch

    async def _made(self, file: str) -> str:
        try:
            return await self._api.create(file)
        except UserError:  # it was not taken, and will not be
            self._ledger.ended(file, {})
            raise

    async def _found(self, file: str) -> str | None:
        try:
            return await self._api.find(file)
        except NoBatches as problem:
            log.warning("it cannot be looked up whether a batch was sent before (%s)", problem)
            return None

    async def _is_absent(self, file: str) -> bool:
        """Whether the server knows for sure that no batch was made of a file."""
        try:
            return await self._api.find(file) is None
        except (TransientError, UserError):
            return False

    async def _last_state(self, batch: str, tell: Callable[[State], None]) -> State | None:
        """The state when the batch has ended or we are stopped; None if there is no such batch."""
        started, wait = time.monotonic(), FIRST_POLL
        while True:
            state = await self._if_there(partial(self._api.state, batch))
            if not state or state.has_ended:
                return state
            tell(state)
            if time.monotonic() - started > LONGEST_BATCH:
                raise Incomplete(
                    f"the batch {batch} has not ended in {duration(LONGEST_BATCH)}; cancel it "
                    "where it runs, and run the same command again to take what there is of it"
                )
            if await self._stopped_within(wait):
                return state
            wait = min(LONGEST_POLL, wait * SLOWER)

    @staticmethod
    def _tell(tell: Tell, total: int, state: State) -> None:
        failed = f", {state.failed:,} failed" if state.failed else ""
        status = state.status.replace("_", " ")
        tell(f"batch {status}: {state.done:,} of {state.total or total:,} answered{failed}")

    async def _results(
        self, state: State, forms: Mapping[str, RequestVariant]
    ) -> dict[str, Answer | Exception]:
        """What is in the files of a batch by key; where it says two things, the answer counts."""
        results: dict[str, Answer | Exception] = {}
        for file in state.files:
            found = await self._if_there(partial(self._api.results, file))
            if found is None:
                log.warning("the results in %s are lost; what they held is asked again", file)
            for result in found or ():
                key = result["custom_id"]
                if key not in forms or isinstance(results.get(key), Answer):
                    continue
                try:
                    results[key] = self._api.answer_in(result, forms[key])
                except (RequestRejected, TransientError, UserError) as fault:
                    results[key] = fault
        return results

    async def _if_there(self, call: Callable[[], Awaitable[T | None]]) -> T | None:
        """What a call gives; what is not there at once may be so soon."""
        for tries in range(LOOKS):
            found = await self._patiently(call)
            if found is not None:
                return found
            if await self._stopped_within(pause(tries, None)):
                raise _out_of_reach("stopped")
        return None

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """What a call gives, however often it fails, as long as there is hope."""
        started = time.monotonic()
        for tries in count():
            try:
                return await call()
            except TransientError as fault:
                stopped = await self._stopped_within(pause(tries, fault.retry_after))
                if stopped or time.monotonic() - started > PATIENCE:
                    raise _out_of_reach(str(fault)) from None
        raise AssertionError("there is always another try")


def _out_of_reach(why: str) -> Interrupted:
    return Interrupted(f"the batches cannot be reached ({why})", "what was sent goes on there")
