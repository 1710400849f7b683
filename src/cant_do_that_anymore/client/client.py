"""Asks one model. Every answer is sent for once, retried, limited, paid for, and on disk.

Answers come back in the order of the requests, so no result depends on which arrived first.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from ..errors import Interrupted, UserError
from ..formatting import duration, pluralize, warn_once
from ..providers.base import Answer, Model, Request, RequestRejected, Settings, TransientError
from .cache import Arrived, Cache, with_request_seed
from .limiter import Limiter
from .pricing import Spending
from .sender import Sender

log = logging.getLogger(__name__)
T = TypeVar("T")

# A request fails after so many failed attempts. An overload response is not counted as a failure.
MAX_FAILED_ATTEMPTS = 7
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
# A wait of so many seconds for one answer is logged.
LOG_WAIT_AFTER = 60.0
# Seconds after which a request is no longer retried, whatever the reason.
REQUEST_DEADLINE = 3600.0
# Seconds to wait after Ctrl-C for the requests in flight.
MAX_FINISHING = 30.0
# How many requests may be started ahead of a slow one. Their answers wait in memory.
AHEAD = 5_000
# So many times the limit of requests in flight may be open: others wait for a retry.
OPEN_PER_LIMIT = 2
# After so many requests in a row that no retry got through, the model counts as gone.
MAX_CONSECUTIVE_FAILURES = 10
# A resumed run first retries what failed before: for so many cached answers one more may fail.
CACHED_ANSWERS_PER_EXTRA_FAILURE = 10
# The first answers of a command tell whether another version answers than the cached ones.
ANSWERS_TO_COMPARE = 3
STOPPED = "stopped before the request was sent"


class StartOver(Exception):
    """The work must begin again from the cache: a new answer invalidates earlier ones."""


class Client:
    """Sends requests to one model, through one cache, with limited concurrency.

    Attributes:
        model: the model that answers.
        cache: the cached answers of the model.
        spending: what the command may spend, and what this client has spent.
        n_new: how many answers were new; the others came from the cache.
        remarks: what readers of the results must know of the answers.
    """

    def __init__(
        self, model: Model, cache: Cache, connections: int | None, spending: Spending
    ) -> None:
        self.model = model
        self.cache = cache
        self.spending = spending
        self.n_new = 0
        self.remarks: list[str] = []
        self._senders: dict[str | None, Sender] = {}
        self._limiter = Limiter(connections or model.info.connections, spending.affordable_answers)
        self._arrived: list[Arrived] = []
        self._saved: list[Answer] = []
        self._open: dict[str, asyncio.Task[Answer]] = {}
        self._may_open = asyncio.Event()
        self._stopping = asyncio.Event()
        self._error: Exception | None = None
        # A server gets its first request alone, which shows the form and the limit that suit it.
        self._is_unproven = not model.info.is_local
        self._known_versions, self._first_versions = cache.known_versions(), list[str]()
        self._failures_in_a_row = self._from_cache = 0

    async def answers(
        self,
        requests: Iterable[Request],
        settings: Settings,
        ahead: Callable[[], int] = lambda: AHEAD,
    ) -> AsyncGenerator[Answer]:
        """Send the requests, and yield their answers in the same order.

        At most ``ahead()`` requests are started after a slow one. When the consumer stops early, no
        new request is sent, and those in flight are finished and saved; after Ctrl-C, for at most
        `MAX_FINISHING` seconds.

        Raises:
            StartOver: if the same work must begin again from the cache.
            Interrupted: if the model stops answering or the spending limit is reached; all answers
                so far are saved.
            UserError: if the model cannot answer at all, or answers cannot be saved.
        """
        self._error, self._failures_in_a_row = None, 0
        self._sender(settings)
        started: deque[asyncio.Future[Answer]] = deque()
        try:
            for request in requests:
                started.append(await self._start(request, settings))
                if self._is_unproven and self._open:
                    await asyncio.wait(started)
                while started and (started[0].done() or len(started) >= ahead()):
                    yield await self._result(started.popleft())
            while started:
                yield await self._result(started.popleft())
        finally:
            await self._finish()

    def _sender(self, settings: Settings) -> Sender:
        """Return the sender for a reasoning effort; a new one gets its first request alone."""
        effort = settings.reasoning_effort
        if effort not in self._senders:
            self._senders[effort] = Sender(self.model, self.cache.token_limit(effort))
            self._is_unproven = not self.model.info.is_local
        return self._senders[effort]

    async def _start(self, request: Request, settings: Settings) -> "asyncio.Future[Answer]":
        """Return the future answer: cached, shared with an identical request, or sent for."""
        key = self.cache.key(request, settings)
        if key in self._open:
            return self._open[key]
        if saved := self._cached(request, settings):
            self._from_cache += 1
            self.spending.compare(saved)
            future = asyncio.get_running_loop().create_future()
            future.set_result(saved)
            return future
        while len(self._open) >= OPEN_PER_LIMIT * self._limiter.limit:
            self._may_open.clear()
            await self._may_open.wait()
        self._open[key] = asyncio.create_task(self._answer(key, request, settings))
        return self._open[key]

    def _cached(self, request: Request, settings: Settings) -> Answer | None:
        """Return the cached answer, unless it was cut off below the present token limit."""
        saved = self.cache.answer(request, settings)
        if saved and self._sender(settings).is_too_short(saved, settings, request.tokens):
            return None
        return saved

    async def _result(self, started: "asyncio.Future[Answer]") -> Answer:
        answer = await asyncio.shield(started)
        if self._error:
            raise self._error
        return answer

    async def _answer(self, key: str, request: Request, settings: Settings) -> Answer:
        """Send for an answer and save it."""
        try:
            answer = await self.ask(request, settings)
            return answer if answer.error else await self._save(request, settings, answer)
        except (UserError, StartOver) as error:  # raised by `answers`
            self._error = self._error or error
            self._stop()
            return Answer(stop_reason="error", error=STOPPED)
        finally:
            del self._open[key]
            self._may_open.set()

    async def _save(self, request: Request, settings: Settings, answer: Answer) -> Answer:
        """Save an answer, and return the one that counts.

        Raises:
            StartOver: if it shows that earlier answers were cut off too early, or that another
                model answers than the one whose answers are cached.
        """
        self._failures_in_a_row = 0
        self.n_new += 1
        sender = self._sender(settings)
        has_risen = sender.learn(answer, settings)
        self._is_unproven = has_risen
        has_changed = self._is_other_version(answer.version)
        saved = await self._save_together((request, settings, answer, sender.limit))
        if has_risen or has_changed:
            raise StartOver
        return saved

    async def _save_together(self, arrived: Arrived) -> Answer:
        """Save an answer together with all that are here by now."""
        group, place = self._arrived, len(self._arrived)
        group.append(arrived)
        await asyncio.sleep(0)
        if group is self._arrived:
            self._saved, self._arrived = self.cache.save(group), []
        return self._saved[place]

    def _is_other_version(self, version: str) -> bool:
        """Compare the first answers of the command with the versions of the cached ones.

        Returns whether all of them are of other versions, which count from now on.
        """
        known, first = self._known_versions, self._first_versions
        if not (known and version) or len(first) == ANSWERS_TO_COMPARE:
            return False
        first.append(version)
        if len(first) < ANSWERS_TO_COMPARE or not known.isdisjoint(first):
            return False
        earlier = ", ".join(sorted(known))
        self.cache.start_namespace(version)
        self.remarks.append(
            f"{self.model.info.name} now answers as {version}; cached answers of {earlier} do not "
            "count"
        )
        return True

    async def ask(self, request: Request, settings: Settings, *, fresh: bool = False) -> Answer:
        """Send one request until it is answered; give up after too many failures.

        Unless ``fresh``, an answer that another process saved while the request waited is used.

        Raises:
            CostLimitReached: if the answer could pass the limit.
            UserError: if the model cannot answer at all.
        """
        started, attempts, failures = time.monotonic(), 0, 0
        while not self._stopping.is_set():
            async with self._limiter as entered:
                if self._stopping.is_set():
                    break
                if not fresh and (saved := self._cached(request, settings)):
                    return saved
                self.spending.check(self._limiter.in_flight)
                try:
                    return await self._send(request, settings)
                except TransientError as error:
                    fault = error
                    if fault.maybe_billed:
                        self.spending.pay_lost()
                    if fault.overloaded:  # before another request can enter
                        self._limiter.on_overload(entered, fault.retry_after)
            failures += not fault.overloaded
            waited = time.monotonic() - started
            if failures >= MAX_FAILED_ATTEMPTS or waited > REQUEST_DEADLINE:
                self._count_failure(str(fault))
                return Answer(stop_reason="error", error=str(fault))
            delay = backoff_seconds(attempts, fault.retry_after)
            if waited + delay >= LOG_WAIT_AFTER:
                warn_once(f"waiting for {self.model.info.name} ({fault})")
            attempts += 1
            with suppress(TimeoutError):  # the work did not stop meanwhile
                await asyncio.wait_for(self._stopping.wait(), delay)
        return Answer(stop_reason="error", error=STOPPED)

    async def _send(self, request: Request, settings: Settings) -> Answer:
        """Send one request.

        Raises:
            TransientError: if it is worth a retry.
            UserError: if the model rejects even its first request.
        """
        seeded = with_request_seed(self.model.info, request, settings)
        try:
            answer = await self._sender(settings).send(request.question, seeded, request.tokens)
        except RequestRejected as rejected:
            if not (self._known_versions or self.n_new):  # it never answered
                raise UserError(str(rejected)) from None
            return Answer(stop_reason="error", error=str(rejected))
        self._limiter.on_success()
        return self.spending.paid(request, answer)

    def _count_failure(self, error: str) -> None:
        """Count requests in a row that no retry got through; a rejection is no failure.

        Raises:
            Interrupted: if the model is gone.
        """
        self._failures_in_a_row += 1
        extra = self._from_cache // CACHED_ANSWERS_PER_EXTRA_FAILURE
        if self._failures_in_a_row >= MAX_CONSECUTIVE_FAILURES + extra:
            raise Interrupted(f"{self.model.info.name} stopped answering ({error})")

    async def _finish(self) -> None:
        """Send nothing new, and wait for what is in flight, so that it is saved."""
        tasks, consumer = list(self._open.values()), asyncio.current_task()
        interrupted = consumer is not None and consumer.cancelling() > 0
        if interrupted and self._limiter.in_flight:
            log.warning(
                "finishing %s in flight, for at most %s; press Ctrl-C again to stop at once",
                pluralize(self._limiter.in_flight, "request"),
                duration(MAX_FINISHING),
            )
        self._stop()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=MAX_FINISHING if interrupted else None)
        except asyncio.CancelledError:
            if not interrupted:  # the consumer had stopped, and now the user pressed Ctrl-C
                await self._finish()
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._stopping.clear()

    def _stop(self) -> None:
        """Send no more requests; those in flight go on."""
        self._stopping.set()
        self._limiter.admit(everyone=True)


async def from_cache_again(work: Callable[[], Awaitable[T]]) -> T:
    """Do the work, and begin again from the cache whenever an answer calls for that."""
    while True:
        with suppress(StartOver):
            return await work()


def backoff_seconds(attempts: int, retry_after: float | None) -> float:
    """Exponential back-off with jitter, but never less than the server's Retry-After."""
    backoff = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempts, 30)) * random.uniform(0.5, 1)
    return max(backoff, retry_after or 0)
