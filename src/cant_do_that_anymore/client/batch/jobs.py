"""Create, poll and recover batch jobs, with a journal of the requests in each.

The journal records a request after its file was uploaded, which costs nothing, and before the batch
is created. If only the file is known, the batch may exist: the provider's list tells. So no batch
is created twice, and results can be fetched again. An answer stays in the journal until it is
saved, since it may have to be requested again in another variant.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeVar

from ...errors import Incomplete, Interrupted, UserError
from ...formatting import duration, pluralize
from ...providers.base import (
    Answer,
    ModelInfo,
    RequestRejected,
    RequestVariant,
    TransientError,
    digest,
)
from ..client import REQUEST_DEADLINE, OnStatus, backoff_seconds
from ..store import Store
from .api import BatchApi, NoBatches, State

log = logging.getLogger(__name__)

# How often to look something up before it counts as lost.
MAX_LOOKUPS = 7
# Seconds between polls: the first, the longest, and the growth factor.
FIRST_POLL, LONGEST_POLL, POLL_FACTOR = 0.5, 60.0, 1.5
LOCK_POLL = 0.2  # seconds
LONGEST_BATCH = 48 * 3600.0  # seconds; providers promise 24 hours

T = TypeVar("T")
# Waits so many seconds, or until the client stops; returns whether it has.
StoppedWithin = Callable[[float], Awaitable[bool]]


class JournalEntry(NamedTuple):
    """A request in a batch: its file, and its answer once there is one."""

    file: str
    answer: Answer | None


class BatchJournal:
    """The requests to one model that are in batches, by cache key, and the batches by file."""

    def __init__(self, store: Store, model: ModelInfo) -> None:
        self._store = store
        self._model = digest(dict(model.identity))

    def find(self, key: str) -> JournalEntry | None:
        """Return the entry of a request, if it is in a batch."""
        if not (entry := self._store.get("batched", key)):
            return None
        return JournalEntry(entry["file"], entry["answer"] and Answer.from_json(entry["answer"]))

    def under_way(self) -> int:
        """Return how many requests to the model are in batches that may still answer."""
        latest = time.time() - LONGEST_BATCH
        batches = self._store.group("batch", self._model)
        keys = (key for batch in batches if batch["sent_at"] > latest for key in batch["variants"])
        entries = (self.find(key) for key in keys if not self._store.get("answer", key))
        return sum(entry is not None and not entry.answer for entry in entries)

    def enter(self, file: str, variants: Mapping[str, RequestVariant]) -> bool:
        """Record the requests in a file and their variants; False if another process has any."""
        entry = {"file": file, "answer": None}
        if not self._store.write("batched", dict.fromkeys(variants, entry), replace=False):
            return False
        self.record(file, variants=variants, sent_at=time.time())
        return True

    def record(self, file: str, **facts: Any) -> None:
        """Record what is known of a file's batch, such as its id."""
        self._store.write("batch", {self._key(file): self._batch(file) | facts})

    def batch_of(self, file: str) -> str:
        """Return the batch that was created from a file, or an empty string."""
        return str(self._batch(file)["id"])

    def variants_in(self, file: str) -> dict[str, RequestVariant]:
        """Return the variants of the requests in a file, by key."""
        return {key: tuple(variant) for key, variant in self._batch(file)["variants"].items()}

    def ended(self, file: str, results: Mapping[str, Answer | Exception]) -> None:
        """Save the answers of a batch, and delete its other requests."""
        entries: dict[str, Any] = dict.fromkeys((*self.variants_in(file), *results))
        for key, result in results.items():
            if isinstance(result, Answer):
                entries[key] = {"file": file, "answer": result.to_json()}
        self._store.write("batched", entries)
        self._store.write("batch", {self._key(file): None})

    def forget(self, keys: Iterable[str]) -> None:
        """Delete requests whose answers are saved."""
        self._store.write("batched", dict.fromkeys(keys))

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Hold the lock for creating batches, so that only one process does.

        A process that dies releases the lock. So under it, an entry without a batch has no owner.
        """
        while not (lock := self._store.try_lock("batches.lock")):
            await asyncio.sleep(LOCK_POLL)
        with closing(lock):
            yield

    def _batch(self, file: str) -> dict[str, Any]:
        """Return what is known of a file's batch; nothing if its creator died, or if damaged."""
        nothing = {"id": "", "variants": {}, "sent_at": 0.0}
        return self._store.get("batch", self._key(file)) or nothing

    def _key(self, file: str) -> str:
        return f"{self._model} {digest(file)}"


@dataclass
class Batches:
    """The batches of one model.

    Attributes:
        under_way: the id of the batch that is being followed, or an empty string.
        on_status: gets its progress.
    """

    _api: BatchApi
    _journal: BatchJournal
    _stopped_within: StoppedWithin
    under_way: str = ""
    on_status: OnStatus = lambda _: None

    async def create(
        self,
        lines: Mapping[str, bytes],
        variants: Mapping[str, RequestVariant],
        are_needed: Callable[[], bool],
    ) -> str | None:
        """Create a batch of requests by key and return its file.

        Returns None if not all of them are needed any more, or another process has sent one of
        them.

        Raises:
            Incomplete: if the server fails for too long.
            UserError: if it has no batch API, or rejects this batch.
        """
        file = await self._with_retries(partial(self._api.upload, lines.values()))
        async with self._journal.exclusive():
            if not (are_needed() and self._journal.enter(file, variants)):
                return None
            await self._create_from(file, may_exist=False)
        return file

    async def follow(
        self, file: str, variants: Mapping[str, RequestVariant]
    ) -> dict[str, Answer | Exception] | None:
        """Wait until a file's batch has ended, and record its answers.

        Args:
            file: the id of the file.
            variants: the variants of the requests that are waited for, by key.

        Returns:
            An answer or an error for every request in the file, by key; None if stopped.
        """
        if not self._journal.batch_of(file):  # the process that was creating it died
            async with self._journal.exclusive():
                if not self._journal.batch_of(file):
                    await self._create_from(file, may_exist=True)
        self.under_way = batch = self._journal.batch_of(file)
        variants = {**self._journal.variants_in(file), **variants}
        state = await self._last_state(batch, len(variants))
        if state and not state.has_ended:
            return None
        results = await self._results(state, variants)
        self._journal.ended(file, results)
        self.under_way = ""
        if not state:
            log.warning(
                "the provider no longer has the batch %s with %s; its requests are sent again",
                *(batch, pluralize(len(variants), "request")),
            )
        return results

    async def _create_from(self, file: str, *, may_exist: bool) -> None:
        """Create the batch of a file, unless it exists; after any error, look it up first."""

        async def find_or_create() -> str:
            nonlocal may_exist
            existing = await self._find(file) if may_exist else None
            may_exist = True
            try:
                return existing or await self._api.create(file)
            except UserError:  # rejected for good
                self._journal.ended(file, {})
                raise

        try:
            batch = await self._with_retries(find_or_create)
        except Incomplete:
            with suppress(TransientError, UserError):
                if not await self._api.find(file):  # surely
                    self._journal.ended(file, {})
            raise
        self._journal.record(file, id=batch)

    async def _find(self, file: str) -> str | None:
        try:
            return await self._api.find(file)
        except NoBatches as error:
            log.warning("cannot check whether a batch was sent before (%s)", error)
            return None

    async def _last_state(self, batch: str, size: int) -> State | None:
        """Poll until the batch has ended or the client stops; None if it does not exist."""
        started, wait = time.monotonic(), FIRST_POLL
        while True:
            state = await self._with_retries(partial(self._api.state, batch))
            if not state or state.has_ended:
                return state
            status = state.status.replace("_", " ")
            done, failed, total = (state.counts.get(n) for n in ("completed", "failed", "total"))
            failures = f", {failed:,} failed" if failed else ""
            self.on_status(f"batch {status}: {done or 0:,} of {total or size:,} answered{failures}")
            if time.monotonic() - started > LONGEST_BATCH:
                raise Incomplete(
                    f"the batch {batch} has not finished in {duration(LONGEST_BATCH)}; cancel it "
                    "at the provider, then run the same command again to use the answers it has"
                )
            if await self._stopped_within(wait):
                return state
            wait = min(LONGEST_POLL, wait * POLL_FACTOR)

    async def _results(
        self, state: State | None, variants: Mapping[str, RequestVariant]
    ) -> dict[str, Answer | Exception]:
        """Return the results in a batch's files by key; an answer wins over an error."""
        status = state.status if state else "lost"
        fault = (state and state.fault) or f"no result in a batch with the status {status}"
        results: dict[str, Answer | Exception] = {
            key: TransientError(fault, maybe_billed=status == "completed") for key in variants
        }
        for file in state.files if state else ():
            contents = await self._with_retries(partial(self._api.results, file))
            if contents is None:
                log.warning(
                    "the provider no longer has the results in %s; their requests are sent again",
                    file,
                )
            for result in contents or ():
                key = result["custom_id"]
                if key not in variants or isinstance(results[key], Answer):
                    continue
                try:
                    results[key] = self._api.answer_in(result, variants[key])
                except (RequestRejected, TransientError, UserError) as error:
                    results[key] = error
        return results

    async def _with_retries(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retry a call on transient errors up to `REQUEST_DEADLINE`, and on None a few times.

        The server may list an object only some time after it was created.
        """
        started, lookups = time.monotonic(), 0
        for attempts in count():
            fault = None
            try:
                value, lookups = await call(), lookups + 1
                if value is not None or lookups == MAX_LOOKUPS:
                    return value
            except TransientError as error:
                fault = error
            delay = backoff_seconds(attempts, fault.retry_after if fault else None)
            stopped = await self._stopped_within(delay)
            if stopped or (fault and time.monotonic() - started > REQUEST_DEADLINE):
                why = f"cannot reach the batch API ({fault or 'stopped'})"
                raise Interrupted(why, "the batches that were sent continue there")
        raise AssertionError("there is always another try")
