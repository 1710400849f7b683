"""Client that sends requests in batches: half the price, hours later.

Single requests go first: the first ones, those that probe which request variant a model accepts,
and those too few for a batch. All others wait until nothing else is left to do, and then form one
batch. Requests that a batch could not answer go into the next one, a few times.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ...errors import Stopped
from ...providers.base import (
    Answer,
    Model,
    Request,
    RequestRejected,
    RequestVariant,
    Settings,
    TransientError,
)
from ...providers.openai_api import ServerModel
from ...providers.request_variants import fallbacks
from ..budget import STOPPED
from ..cache import request_key, with_request_seed
from ..client import Client, OnStatus
from ..pricing import BATCH_RATE, FREE
from ..store import Store
from .api import MAX_BYTES, MAX_REQUESTS, TOO_MANY_TOKENS, BatchApi
from .jobs import Batches, BatchJournal, JournalEntry

# So few requests are sent singly, not in a batch.
MIN_BATCH = 20
# After each batch so many requests may probe singly which variant the model accepts.
MAX_VARIANT_PROBES = 3
# A request fails after so many batches without an answer.
MAX_BATCHES = 3
# When nothing has changed for so many seconds, all remaining requests wait for a batch.
QUIET_SECONDS = 0.02


@dataclass(eq=False)
class Pending:
    """A request that waits for a batch.

    Attributes:
        wanted: the request variant to use; None for the current one.
        key: its cache key in the variant in which it is sent, or was sent earlier.
        variant: that variant.
        max_cost: the most that it can cost.
    """

    request: Request
    settings: Settings
    wanted: RequestVariant | None
    key: str = ""
    variant: RequestVariant = ()
    max_cost: float = 0.0
    result: "asyncio.Future[Answer | Exception | None]" = field(default_factory=asyncio.Future)

    def resolve(self, result: Answer | Exception | None) -> None:
        """Resolve the request with an answer or an error; with None, it is sent singly."""
        if not self.result.done():
            self.result.set_result(result)


class BatchClient(Client):
    """Sends requests to one model in batches, or singly where a batch is not worth it."""

    is_batched = True

    def __init__(self, model: Model, store: Store, *args: Any) -> None:
        super().__init__(model, store, *args)
        self._api = BatchApi(cast(ServerModel, model))  # the models that can answer in batches
        pricing = self.meter.pricing
        self._pricing = pricing.in_batch if pricing else None
        self._price = self._pricing.dearest if self._pricing else FREE
        self._journal = BatchJournal(store, model.info)
        self._batches = Batches(self._api, self._journal, self._stopped_within)
        self._open_requests = asyncio.Semaphore(MAX_REQUESTS)
        self._max_requests = MAX_REQUESTS
        self._waiting: list[Pending] = []
        self._busy = 0
        self._first: dict[Settings, set[str]] = {}
        self._probes_left = MAX_VARIANT_PROBES
        self._delivered: list[Pending] = []  # their answers are in the journal until saved

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
        self._batches.on_status = on_status
        sending = asyncio.create_task(self._send_batches())
        try:
            async with aclosing(super().answers(requests, settings, ahead=None)) as answers:
                async for answer in answers:
                    yield answer
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
            self._forget_saved()

    async def _start(self, request: Request, settings: Settings) -> "asyncio.Future[Answer]":
        first = self._first.setdefault(request.settings(settings), set())
        if len(first) < MIN_BATCH:
            first.add(request.id)
        return await super()._start(request, settings)

    async def _answer_with_retries(
        self, request: Request, settings: Settings, variant: RequestVariant | None
    ) -> Answer:
        """Return one answer, from a batch if possible."""
        send_now, fault, lost = self._is_probe(request, settings, variant), "", 0
        for _ in range(MAX_BATCHES):
            pending = Pending(request, settings, variant)
            if not send_now or self._find(pending):
                self._waiting.append(pending)
                result = await pending.result
                fault, send_now = str(result), result is None
                match result:
                    case Answer():
                        return self.meter.with_lost(result, lost)
                    case TransientError():
                        lost += result.maybe_billed
                    case RequestRejected():
                        used = self.cache.variant(settings) if variant is None else variant
                        if not any(fallbacks(result.server_message, used, settings)):
                            return Answer("", stop_reason="error", error=fault)
                        send_now = self._may_probe()
                    case Exception():
                        raise result
            if self._stopping.is_set():
                return Answer("", stop_reason="error", error=STOPPED)
            if send_now:
                with self._count_busy():
                    answer = await super()._answer_with_retries(request, settings, variant)
                return self.meter.with_lost(answer, lost, BATCH_RATE)  # lost in batches
        message = f"no answer in {MAX_BATCHES} batches; the last error: {fault}"
        return Answer("", stop_reason="error", error=message)

    async def _save(self, request: Request, settings: Settings, answer: Answer) -> Answer:
        with self._count_busy():
            return await super()._save(request, settings, answer)

    def _count_failure(self, error: str) -> None:
        """Ignore it: a failure in a batch says nothing about later requests."""

    def _is_probe(
        self, request: Request, settings: Settings, variant: RequestVariant | None
    ) -> bool:
        """Whether to send it singly: one of the first requests, or in an untried variant."""
        if variant is None:
            return request.id in self._first[settings]
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
        if batch := self._batches.under_way:
            raise Stopped(left=f"the batch {batch} continues at the provider")
        super()._on_interrupt()

    def _stop(self) -> None:
        super()._stop()
        for pending in self._waiting:
            pending.resolve(TransientError(STOPPED))

    async def _send_batches(self) -> None:
        """Send a batch whenever all remaining requests wait for one."""
        previous: list[Pending] = []
        try:
            while True:
                await asyncio.sleep(QUIET_SECONDS)
                if self._waiting and not self._busy and self._waiting == previous:
                    await self._advance()
                    self._probes_left = MAX_VARIANT_PROBES
                previous = list(self._waiting)
        except Exception as error:  # no request may wait forever
            self._error = error
            self._stop()

    async def _advance(self) -> None:
        """Deliver known answers, or follow a pending batch, or send one, or release the rest."""
        self._forget_saved()
        new: list[Pending] = []
        in_batches: dict[str, list[Pending]] = {}
        for pending in self._waiting:
            if answer := self._answer_by_another(pending):
                pending.resolve(answer)
            elif not (entry := self._find(pending)):
                new.append(pending)
            elif entry.answer:  # an earlier command paid for it, and ended before it was saved
                cost = self._pricing.of(entry.answer) if self._pricing else None
                self.cost_of_new -= cost or 0.0
                self._deliver(pending, replace(entry.answer, cost=cost))
            else:
                in_batches.setdefault(entry.file, []).append(pending)
        if any(pending.result.done() for pending in self._waiting):
            pass  # their callers may add requests
        elif in_batches:
            file, in_batch = next(iter(in_batches.items()))
            self.meter.budget.pay(*await self._follow(file, in_batch) or (0.0, 0.0))
        elif len(new) <= MIN_BATCH:
            for pending in new:
                pending.resolve(None)
        else:
            await self._send(self._fit_batch(new))
        self._waiting = [pending for pending in self._waiting if not pending.result.done()]

    def _answer_by_another(self, pending: Pending) -> Answer | None:
        """Return the answer that another process has saved meanwhile."""
        request, settings = pending.request, pending.settings
        return self.cache.answer(request, settings) if pending.wanted is None else None

    def _find(self, pending: Pending) -> JournalEntry | None:
        """Return the journal entry of a request, perhaps in an earlier variant, and set its key."""
        request, settings = pending.request, pending.settings
        variants = self.cache.variants(settings) if pending.wanted is None else [pending.wanted]
        keys = {
            request_key(self.model.info, request, settings, variant): variant
            for variant in (variants[:1] if request.same_limit_only else variants)
        }
        entries = ((key, entry) for key in keys if (entry := self._journal.find(key)))
        pending.key, entry = next(entries, (next(iter(keys)), None))
        pending.variant = keys[pending.key]
        pending.max_cost = self._price.max_cost(
            request.question, settings, pending.variant, self.meter.input_factor
        )
        return entry

    def _fit_batch(self, requests: list[Pending]) -> dict[Pending, bytes]:
        """Return as many requests as one batch and the budget allow, with their lines."""
        lines: dict[Pending, bytes] = {}
        size, cost = 0, 0.0
        for pending in requests[: self._max_requests]:
            question = pending.request.question
            settings = with_request_seed(self.model.info, pending.request, pending.settings)
            line = self._api.line(pending.key, question, settings, pending.variant)
            size += len(line)
            cost += pending.max_cost
            too_much = size > MAX_BYTES or cost > self.meter.budget.left
            if too_much and len(lines) > MIN_BATCH:  # fewer are not worth a batch
                break
            lines[pending] = line
        return lines

    async def _send(self, lines: Mapping[Pending, bytes]) -> None:
        """Create a batch and wait for it."""
        reserve = sum(pending.max_cost for pending in lines)
        await self.meter.budget.reserve(reserve, "batch")
        costs: tuple[float, float] | None = 0.0, 0.0
        for settings, variant in {(pending.settings, pending.variant) for pending in lines}:
            self.cache.record_variant(settings, variant)
        try:
            file = await self._batches.create(
                {pending.key: line for pending, line in lines.items()},
                {pending.key: pending.variant for pending in lines},
                lambda: not any(map(self._answer_by_another, lines)),
            )
            if file:
                costs = None  # unless the actual cost is known
                costs = await self._follow(file, list(lines))
        finally:
            self.meter.budget.settle(reserve, *costs or (0.0, reserve))

    async def _follow(self, file: str, in_batch: Sequence[Pending]) -> tuple[float, float] | None:
        """Wait for a batch, deliver its results and return its costs; None if stopped."""
        results = await self._batches.follow(file, {p.key: p.variant for p in in_batch})
        if results is None:
            return None
        half = len(in_batch) // 2
        if half > MIN_BATCH and all(TOO_MANY_TOKENS in str(result) for result in results.values()):
            self._max_requests = half
            return 0.0, 0.0
        max_cost = {pending.key: pending.max_cost for pending in in_batch}
        known = unknown = 0.0
        for key, result in results.items():
            if isinstance(result, Answer):
                results[key] = self.meter.record(result, self._pricing)
            cost, at_most = self.meter.charge(results[key], max_cost.get(key, 0.0))
            known, unknown = known + cost, unknown + at_most
        for pending in in_batch:
            self._deliver(pending, results[pending.key])
        return known, unknown

    def _deliver(self, pending: Pending, result: Answer | Exception) -> None:
        """Deliver a result; the journal keeps an answer until it is saved."""
        if isinstance(result, Answer):
            self._delivered.append(pending)
        pending.resolve(result)

    def _forget_saved(self) -> None:
        """Delete saved answers from the journal."""
        saved = {p: self.cache.answer(p.request, p.settings) for p in self._delivered}
        self._journal.forget(pending.key for pending, answer in saved.items() if answer)
        self._delivered = [pending for pending, answer in saved.items() if not answer]
