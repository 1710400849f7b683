"""Concurrent client for one model: retries, adaptive concurrency, an on-disk cache, a cost limit.

Answers come back in the order of the requests, so no result depends on which arrived first.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from dataclasses import replace

from ..errors import Interrupted, UserError
from ..formatting import dollars, duration, pluralize
from ..providers.base import (
    Answer,
    Model,
    Request,
    RequestVariant,
    Settings,
    TransientError,
    add_costs,
)
from .cache import ModelCache, with_request_seed
from .limiter import AdaptiveLimiter
from .negotiator import Negotiator
from .pricing import FREE, CostLimit, CostLimitReached, Price, is_counted, rough_usage
from .store import Store

log = logging.getLogger(__name__)

STOPPED = "stopped before the request was sent"
# A request fails after so many failed attempts. An overload response is not counted as a failure.
MAX_FAILED_ATTEMPTS = 7
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
# A wait of so many seconds for one answer is logged, once in that time.
LOG_WAIT_AFTER = 60.0
# Seconds after which a request is no longer retried, whatever the reason.
REQUEST_DEADLINE = 3600.0
# How many requests may be started ahead of a slow one: WINDOW times the connections, or LOOKAHEAD
# where all answers are needed. Their answers wait in memory.
WINDOW, LOOKAHEAD = 4, 5_000
# After so many failed requests in a row the model counts as gone.
MAX_CONSECUTIVE_FAILURES = 10
# A resumed run first retries what failed before: for so many cached answers one more may fail.
CACHED_ANSWERS_PER_EXTRA_FAILURE = 10


class Client:
    """Sends requests to one model, through one store, with limited concurrency.

    Attributes:
        model: the model that answers.
        cache: the cached answers of the model.
        n_new: how many answers were new; the others came from the cache.
        seconds_of_new: the time during which requests for them were in flight.
        window: how many requests to start ahead of a slow one, where not all may be needed.
        limit: what the command may spend, and has spent.
        spent: the dollars that this client spent; None if unknown.
        dearest: the cost of the dearest answer so far, new or cached.
        lost: how many answers were lost, and may have been billed.
    """

    def __init__(
        self,
        model: Model,
        store: Store,
        connections: int | None = None,
        limit: CostLimit | None = None,
        price: Price | None = None,
    ) -> None:
        self.model = model
        self.n_new, self.seconds_of_new = 0, 0.0
        self.limit, self._price = limit or CostLimit(), price
        self.spent: float | None = 0.0
        self.dearest, self.lost, self._sending = 0.0, 0, 0
        self._last_answered = 0.0
        self._stopping = asyncio.Event()
        self._max_connections = max_connections = connections or model.info.connections
        self.window = WINDOW * max_connections
        self.cache = ModelCache(model.info, store)
        self._negotiator = Negotiator(model, self.cache)
        self._in_flight: dict[tuple[str, Settings], asyncio.Task[Answer]] = {}
        # As many again may wait for a retry or for the disk, so that connections stay busy. A model
        # with one connection gets each request only after the previous answer is counted.
        self._open_requests = asyncio.Semaphore(2 * max_connections if max_connections > 1 else 1)
        self._limiter = AdaptiveLimiter(max_connections)
        # The first request is sent alone: the server may be one that cannot answer at all, and the
        # answer shows what others cost.
        is_free = not model.info.endpoint and price in (None, FREE)
        self._was_contacted = is_free
        self._consecutive_failures = 0
        self._from_cache = 0
        self._last_logged = -LOG_WAIT_AFTER
        self._error: Exception | None = None

    async def answers(
        self,
        requests: Iterable[Request],
        settings: Settings,
        ahead: int = LOOKAHEAD,
    ) -> AsyncGenerator[Answer]:
        """Send the requests, and yield their answers in the same order.

        At most ``ahead`` requests are started after a slow one.

        When the consumer stops early or is cancelled, no new request is started. Those in flight
        are finished and saved.

        Raises:
            Interrupted: if the model stops answering or the cost limit is reached; all answers so
                far are saved, unless the store is temporary.
            UserError: if the model cannot answer at all, or answers cannot be saved.
        """
        self._stopping.clear()
        started: deque[asyncio.Future[Answer]] = deque()
        interrupted = False
        try:
            for request in requests:
                started.append(await self._start(request, settings))
                if self._in_flight and not self._was_contacted:
                    self._was_contacted = True
                    probing = asyncio.ensure_future(self._negotiator.probe_started.wait())
                    both = (started[-1], probing)
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                    probing.cancel()
                if self._error:
                    raise self._error
                while started and (started[0].done() or len(started) == ahead):
                    yield await asyncio.shield(started[0])
                    started.popleft()
            while started:
                answer = await asyncio.shield(started[0])
                if self._error:
                    raise self._error
                yield answer
                started.popleft()
        except asyncio.CancelledError:
            interrupted = True
            self._on_interrupt()
            raise
        finally:
            self._stop()
            in_flight = asyncio.gather(*started, return_exceptions=True)
            try:
                await (in_flight if interrupted else asyncio.shield(in_flight))
            except asyncio.CancelledError:
                if not interrupted:  # the consumer had stopped, and now the user pressed Ctrl-C
                    self._on_interrupt()
                    await in_flight
                raise

    async def ask_uncached(
        self, request: Request, settings: Settings, variant: RequestVariant
    ) -> Answer:
        """Send one request at once, without retries and without reading or writing the cache.

        Raises:
            TransientError, UserError: as the model does.
        """
        return await self._send(request, settings, variant)

    async def _start(self, request: Request, settings: Settings) -> "asyncio.Future[Answer]":
        settings = request.settings(settings)
        key = request.id, settings
        if key in self._in_flight:  # identical requests share one answer
            return self._in_flight[key]
        if saved := self.cache.answer(request, settings):
            self._from_cache += 1
            self._compare_cost(self._cost_of(saved))
            self._negotiator.observe(saved, settings)
            future = asyncio.get_running_loop().create_future()
            future.set_result(saved)
            return future
        await self._open_requests.acquire()
        if not self._in_flight:
            self._last_answered = time.monotonic()
        task = asyncio.create_task(self._answer_and_save(request, settings))
        self._in_flight[key] = task
        task.add_done_callback(lambda _: self._on_done(key))
        return task

    def _on_done(self, key: tuple[str, Settings]) -> None:
        del self._in_flight[key]
        self._open_requests.release()

    async def _answer_and_save(self, request: Request, settings: Settings) -> Answer:
        attempts: list[Answer] = []

        async def answer_in(variant: RequestVariant | None) -> Answer:
            attempts.append(await self._answer_with_retries(request, settings, variant))
            return attempts[-1]

        try:
            answer = await self._negotiator.ask_until_accepted(answer_in, settings)
            if answer.stop_reason == "error":
                self._count_failure(answer.error)
                return answer
            self._consecutive_failures = 0
            self.n_new += 1
            received = [attempt.cost for attempt in attempts if not attempt.error]
            answer = replace(answer, cost=add_costs(*received))
            return await self._save(request, settings, self._timed(answer))
        except UserError as error:
            self._error = error
            self._stop()
            raise

    def _timed(self, answer: Answer) -> Answer:
        now = time.monotonic()
        seconds, self._last_answered = now - self._last_answered, now
        self.seconds_of_new += seconds
        return replace(answer, seconds=round(seconds, 4))

    async def _save(self, request: Request, settings: Settings, answer: Answer) -> Answer:
        """Save an answer; return the one that counts."""
        return await self.cache.save(request, settings, answer)

    async def _answer_with_retries(
        self, request: Request, settings: Settings, variant: RequestVariant | None
    ) -> Answer:
        """Return one answer, retrying as often as it makes sense."""
        started, attempts, failures, lost = time.monotonic(), 0, 0, 0
        while not self._stopping.is_set():
            async with self._limiter as entered:
                if self._stopping.is_set():
                    break
                try:
                    answer = await self._send(request, settings, variant)
                    self._limiter.on_success()
                    # Those that were lost are taken to have cost as much.
                    return replace(answer, cost=add_costs(*[answer.cost] * (1 + lost)))
                except TransientError as error:
                    fault = error
                    if fault.overloaded:  # before another request can enter
                        self._limiter.on_overload(entered, fault.retry_after)
            failures += not fault.overloaded
            lost += fault.maybe_billed
            waited = time.monotonic() - started
            out_of_patience = failures >= MAX_FAILED_ATTEMPTS or waited > REQUEST_DEADLINE
            delay = backoff_seconds(attempts, fault.retry_after)
            self._log_wait(fault, waited + delay)
            if out_of_patience or await self._stopped_within(delay):
                return Answer("", stop_reason="error", error=str(fault))
            attempts += 1
        return Answer("", stop_reason="error", error=STOPPED)

    async def _send(
        self, request: Request, settings: Settings, variant: RequestVariant | None
    ) -> Answer:
        """Send one request, and pay for its answer, also if it was lost."""
        seeded = with_request_seed(self.model.info, request, settings)
        self._check_dollars()
        self._sending += 1
        try:
            answer = await self._negotiator.answer(request.question, seeded, variant)
        except TransientError as fault:
            if fault.maybe_billed:
                self.lost += 1
                self._pay(self.dearest)
            raise
        finally:
            self._sending -= 1
        return self._paid(request, answer)

    def _check_dollars(self) -> None:
        """Stop if the answers in flight and the next, at the dearest so far, pass the limit.

        Raises:
            CostLimitReached: if they do.
        """
        at_most = self.limit.spent + (self._sending + 1) * self.dearest
        if at_most > self.limit.limit:
            raise CostLimitReached("stopped at the cost limit")

    def _paid(self, request: Request, answer: Answer) -> Answer:
        """Pay for an answer; return it with its cost, if its tokens are counted."""
        if answer.error:
            return answer
        cost = self._cost_of(answer) if is_counted(answer) or self._price == FREE else None
        if cost is None:
            rough = replace(answer, usage=rough_usage(request.question.messages, answer))
            self._pay(self._cost_of(rough) or 0.0)
            self.spent = None
        else:
            self._pay(cost)
        return replace(answer, cost=cost)

    def _cost_of(self, answer: Answer) -> float | None:
        """Return what an answer costs by its tokens; None if the price is unknown."""
        requests = self.model.info.requests_per_answer
        return self._price.of(answer.usage, requests) if self._price else None

    def _pay(self, amount: float) -> None:
        self.limit.spent += amount
        self.spent = add_costs(self.spent, amount)
        self._compare_cost(amount)

    def _compare_cost(self, cost: float | None) -> None:
        """Remember the cost of the dearest answer."""
        self.dearest = max(self.dearest, cost or 0.0)
        in_flight = (self._max_connections + 1) * self.dearest
        self.limit.in_flight = max(self.limit.in_flight, in_flight)

    @property
    def spent_so_far(self) -> list[str]:
        """What the command has spent, for a progress line; nothing if that is free or unknown."""
        return [f"{dollars(self.limit.spent)} spent"] if self.spent else []

    @property
    def notes(self) -> list[str]:
        """How lost answers are counted, if there are any."""
        counted = "; each counts like the dearest that arrived" if self.spent else ""
        lost = f"{pluralize(self.lost, 'answer')} got lost in transit and may have been billed"
        return [lost + counted] if self.lost else []

    def _log_wait(self, fault: TransientError, waited: float) -> None:
        """Log the reason for a long wait, at most once per `LOG_WAIT_AFTER` seconds."""
        now = time.monotonic()
        if waited >= LOG_WAIT_AFTER and now - self._last_logged >= LOG_WAIT_AFTER:
            self._last_logged = now
            retry_after = fault.retry_after
            advice = f", which asks to wait {duration(retry_after)}" if retry_after else ""
            log.warning("waiting for %s%s (%s)", self.model.info.name, advice, fault)

    def _on_interrupt(self) -> None:
        """Log what happens after Ctrl-C."""
        log.warning("finishing the requests in flight; press Ctrl-C again to stop immediately")

    def _stop(self) -> None:
        """Start no more requests; those in flight go on."""
        self._stopping.set()
        self._limiter.release_all()

    async def _stopped_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return self._stopping.is_set()

    def _count_failure(self, error: str) -> None:
        self._consecutive_failures += 1
        extra = self._from_cache // CACHED_ANSWERS_PER_EXTRA_FAILURE
        is_gone = self._consecutive_failures >= MAX_CONSECUTIVE_FAILURES + extra
        if is_gone and not self._stopping.is_set():
            raise Interrupted(
                f"{self.model.info.name} stopped answering ({error})",
                f"the {self.n_new} answers of this session are saved",
            )


def backoff_seconds(attempts: int, retry_after: float | None) -> float:
    """Exponential back-off with jitter, but never less than the server's Retry-After."""
    backoff = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempts, 30)) * random.uniform(0.5, 1)
    return max(backoff, retry_after or 0)
