"""Client that sends requests in batches: half the price, hours later.

Single requests go first: the first ones, those that probe which request variant a model accepts,
and those too few for a batch. All others wait until nothing else is left to do, and then form one
batch. Requests that a batch could not answer go into the next one, a few times.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

from ...errors import Stopped
from ...providers.base import (
    Answer,
    Model,
    Question,
    Request,
    RequestRejected,
    RequestVariant,
    Settings,
    TransientError,
)
from ...providers.openai_api import ServerModel
from ...providers.request_variants import fallbacks, limit_of
from ..budget import FREE, STOPPED, Budget, Meter, Price
from ..cache import ModelCache, request_key
from ..client import Client, OnStatus
from ..store import Store
from .api import MAX_BYTES, MAX_REQUESTS, TOO_MANY_TOKENS, BatchApi
from .jobs import Batches, BatchJournal, JournalEntry, StoppedWithin

# So few requests are sent singly, not in a batch.
MIN_BATCH = 20


@dataclass(eq=False)
class Pending:
    """A request that waits for a batch, in a given variant or in the current one."""

    request: Request
    settings: Settings
    variant: RequestVariant | None
    answer: "asyncio.Future[Answer]" = field(default_factory=asyncio.Future)

    def take(self, answer: Answer | Exception) -> None:
        """Resolve the request with an answer or an error."""
        if self.answer.done():
            return
        if isinstance(answer, Answer):
            self.answer.set_result(answer)
        else:
            self.answer.set_exception(answer)


@dataclass(frozen=True)
class BatchRequest:
    """A request in a batch, with the variant in which it is sent."""

    key: str
    variant: RequestVariant
    waiting: Pending

    @property
    def question(self) -> Question:
        """The question of the request."""
        return self.waiting.request.question

    def max_cost(self, price: Price) -> float:
        """Return the most that the request can cost."""
        return price.max_cost(self.question, limit_of(self.variant, self.waiting.settings))


class NotWorthBatching(Exception):
    """Too few requests are left for a batch."""


class BatchQueue:
    """Queues the requests to one model and sends them in batches, one at a time.

    Attributes:
        waiting: the requests that wait for an answer from a batch.
        batches: creates and follows the batches.
    """

    def __init__(
        self,
        model: ServerModel,
        store: Store,
        cache: ModelCache,
        meter: Meter,
        price: Price,
        stopped_within: StoppedWithin,
    ) -> None:
        self.waiting: list[Pending] = []
        self._model = model
        self._cache = cache
        self._meter = meter
        self._price = price
        self._api = BatchApi(model)
        self._journal = BatchJournal(store, model.info)
        self.batches = Batches(self._api, self._journal, stopped_within)
        self._max_requests = MAX_REQUESTS
        self._delivered: dict[tuple[str, Settings], list[str]] = {}
        self._saved_keys: list[str] = []

    def is_in_batch(self, waiting: Pending) -> bool:
        """Whether a request is or was in a batch."""
        return self._find_request(waiting)[1] is not None

    def mark_saved(self, request: Request, settings: Settings) -> None:
        """Record that the answer is in the cache, so that the journal can drop it."""
        self._saved_keys += self._delivered.pop((request.id, settings), [])

    def forget_saved(self) -> None:
        """Delete saved answers from the journal."""
        keys, self._saved_keys = self._saved_keys, []
        self._journal.forget(keys)

    async def advance(self, on_status: OnStatus) -> None:
        """Deliver known answers, or follow a pending batch, or send one, or release the rest."""
        self.forget_saved()
        new: list[BatchRequest] = []
        in_batches: dict[str, list[BatchRequest]] = {}
        for waiting in self.waiting:
            if answer := self._answer_by_another(waiting):
                waiting.take(answer)
                continue
            line, entry = self._find_request(waiting)
            if not entry:
                new.append(line)
            elif entry.answer:
                self._deliver(line, entry.answer)
            else:
                in_batches.setdefault(entry.file, []).append(line)
        if any(waiting.answer.done() for waiting in self.waiting):
            pass  # their callers may add requests
        elif in_batches:
            file, lines = next(iter(in_batches.items()))
            self._meter.budget.pay(await self._wait_for(file, lines, on_status) or 0.0)
        elif len(new) <= MIN_BATCH:
            for line in new:
                line.waiting.take(NotWorthBatching())
        else:
            await self._send(self._fit_batch(new), on_status)
        self.waiting = [waiting for waiting in self.waiting if not waiting.answer.done()]

    def _answer_by_another(self, waiting: Pending) -> Answer | None:
        """Return the answer that another process has saved meanwhile."""
        if waiting.variant is not None:
            return None
        return self._cache.answer(waiting.request, waiting.settings)

    def _find_request(self, waiting: Pending) -> tuple[BatchRequest, JournalEntry | None]:
        """Return the batch request, perhaps in an earlier variant, and its journal entry."""
        request, settings = waiting.request, waiting.settings
        variants = self._cache.variants(settings) if waiting.variant is None else [waiting.variant]
        lines = [
            BatchRequest(
                request_key(self._model.info, request, settings, variant), variant, waiting
            )
            for variant in (variants[:1] if request.same_limit_only else variants)
        ]
        matches = ((line, entry) for line in lines if (entry := self._journal.find(line.key)))
        return next(matches, (lines[0], None))

    def _fit_batch(self, lines: list[BatchRequest]) -> dict[BatchRequest, bytes]:
        """Return as many requests as one batch and the budget allow."""
        fitting: dict[BatchRequest, bytes] = {}
        size, cost = 0, 0.0
        for line in lines[: self._max_requests]:
            request = self._model.request(line.question, line.waiting.settings, line.variant)
            text = self._api.line(line.key, request)
            size += len(text)
            cost += line.max_cost(self._price)
            too_much = size > MAX_BYTES or cost > self._meter.budget.left
            if too_much and len(fitting) > MIN_BATCH:  # fewer are not worth a batch
                break
            fitting[line] = text
        return fitting

    async def _send(self, texts: Mapping[BatchRequest, bytes], on_status: OnStatus) -> None:
        """Create a batch and wait for it."""
        reserve = sum(line.max_cost(self._price) for line in texts)
        await self._meter.budget.reserve(reserve, "batch")
        cost: float | None = 0.0
        for settings, variant in {(line.waiting.settings, line.variant) for line in texts}:
            self._cache.record_variant(settings, variant)
        try:
            file = await self.batches.create(
                {line.key: text for line, text in texts.items()},
                {line.key: line.variant for line in texts},
                lambda: not any(self._answer_by_another(line.waiting) for line in texts),
            )
            if file:
                cost = reserve  # unless the actual cost is known
                cost = await self._wait_for(file, list(texts), on_status)
        finally:
            self._meter.budget.settle(reserve, reserve if cost is None else cost)

    async def _wait_for(
        self, file: str, lines: Sequence[BatchRequest], on_status: OnStatus
    ) -> float | None:
        """Wait for a batch, deliver its results and return its cost; None if stopped."""
        variants = {line.key: line.variant for line in lines}
        ended = await self.batches.follow(file, variants, on_status)
        if not ended:
            return None
        half = len(lines) // 2
        if TOO_MANY_TOKENS in ended.fault and not ended.results and half > MIN_BATCH:
            self._max_requests = half
            return 0.0
        max_cost = {line.key: line.max_cost(self._price) for line in lines}
        missing = {key: TransientError(ended.fault, maybe_billed=ended.paid) for key in variants}
        results = {**missing, **ended.results}
        for line in lines:
            self._deliver(line, results[line.key])
        return sum(self._cost_of(result, max_cost.get(key, 0.0)) for key, result in results.items())

    def _cost_of(self, result: Answer | Exception, max_cost: float) -> float:
        """Return the cost of a result: the maximum, if the actual cost is unknown."""
        if isinstance(result, Answer):
            return self._meter.record(result, self._price, max_cost)
        return max_cost if isinstance(result, TransientError) and result.maybe_billed else 0.0

    def _deliver(self, line: BatchRequest, result: Answer | Exception) -> None:
        """Deliver a result; the journal keeps an answer until it is saved."""
        waiting = line.waiting
        if isinstance(result, Answer):
            self._delivered.setdefault((waiting.request.id, waiting.settings), []).append(line.key)
        waiting.take(result)


# After each batch so many requests may probe singly which variant the model accepts.
PROBES = 3
# A request fails after so many batches without an answer.
MAX_BATCHES = 3
# When nothing has changed for so many seconds, all remaining requests wait for a batch.
QUIET_SECONDS = 0.02


class BatchClient(Client):
    """Sends requests to one model in batches, or singly where a batch is not worth it."""

    is_batched = True

    def __init__(
        self,
        model: Model,
        store: Store,
        connections: int | None = None,
        budget: Budget | None = None,
        price: Price = FREE,
    ) -> None:
        super().__init__(model, store, connections, budget, price)
        server = cast(ServerModel, model)  # its info says that it takes batches
        self._queue = BatchQueue(
            server, store, self.cache, self.meter, price.in_batch, self._stopped_within
        )
        self._open_requests = asyncio.Semaphore(MAX_REQUESTS)
        self._busy = 0
        self._started: Counter[Settings] = Counter()
        self._first: set[tuple[str, Settings]] = set()
        self._probes_left = PROBES

    async def answers(
        self,
        requests: Iterable[Request],
        settings: Settings,
        ahead: int | None = None,
        on_status: OnStatus = lambda _: None,
    ) -> AsyncGenerator[Answer]:
        """Send the requests, all at once, and yield their answers in the same order.

        Raises:
            Stopped: if the user stops while a batch is pending; the batch goes on.
            Incomplete, UserError: as `Client` does.
        """
        sending = asyncio.create_task(self._send_batches(on_status))
        try:
            async with aclosing(super().answers(requests, settings, ahead=None)) as answers:
                async for answer in answers:
                    yield answer
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
            self._queue.forget_saved()

    async def _start(self, request: Request, settings: Settings) -> "asyncio.Future[Answer]":
        self._started[settings] += 1
        if self._started[settings] <= MIN_BATCH:
            self._first.add((request.id, settings))
        return await super()._start(request, settings)

    async def _answer_with_retries(
        self, request: Request, settings: Settings, variant: RequestVariant | None
    ) -> Answer:
        """Return one answer, from a batch if possible."""
        send_now, fault = self._is_probe(request, settings, variant), ""
        for _ in range(MAX_BATCHES):
            waiting = Pending(request, settings, variant)
            if not send_now or self._queue.is_in_batch(waiting):
                self._queue.waiting.append(waiting)
                try:
                    return await waiting.answer
                except NotWorthBatching:
                    send_now = True
                except RequestRejected as rejected:
                    fault = str(rejected)
                    used = self.cache.variant(settings) if variant is None else variant
                    if not any(fallbacks(rejected.words, used, settings)):
                        return Answer("", stop_reason="error", error=fault)
                    send_now = self._may_probe()
                except TransientError as error:
                    fault = str(error)
            if self._stopping.is_set():
                return Answer("", stop_reason="error", error=STOPPED)
            if send_now:
                with self._count_busy():
                    return await super()._answer_with_retries(request, settings, variant)
        message = f"no answer in {MAX_BATCHES} batches, the last time: {fault}"
        return Answer("", stop_reason="error", error=message)

    async def _save(self, request: Request, settings: Settings, answer: Answer) -> Answer:
        with self._count_busy():
            saved = await super()._save(request, settings, answer)
        self._queue.mark_saved(request, settings)
        return saved

    def _count_failure(self, error: str) -> None:
        """Ignore it: a failure in a batch says nothing about later requests."""

    def _is_probe(
        self, request: Request, settings: Settings, variant: RequestVariant | None
    ) -> bool:
        """Whether to send it singly: one of the first requests, or in an untried variant."""
        if variant is None:
            return (request.id, settings) in self._first
        return set(variant) != set(self.cache.variant(settings)) and self._may_probe()

    def _may_probe(self) -> bool:
        self._probes_left -= 1
        return self._probes_left >= 0

    @contextmanager
    def _count_busy(self) -> Iterator[None]:
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    def _on_interrupt(self) -> None:
        batch = self._queue.batches.under_way
        if batch:
            raise Stopped(left=f"the batch {batch} goes on at its provider")
        super()._on_interrupt()

    def _stop(self) -> None:
        super()._stop()
        for pending in self._queue.waiting:
            pending.take(TransientError(STOPPED))

    async def _send_batches(self, on_status: OnStatus) -> None:
        """Send a batch whenever all remaining requests wait for one."""
        previous: list[Pending] = []
        try:
            while True:
                await asyncio.sleep(QUIET_SECONDS)
                waiting = self._queue.waiting
                if waiting and not self._busy and waiting == previous:
                    await self._queue.advance(on_status)
                    self._probes_left = PROBES
                previous = list(self._queue.waiting)
        except Exception as error:  # no request may wait forever
            self._error = error
            self._stop()
