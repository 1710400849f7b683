"""Concurrent client for one model: retries with back-off, adaptive concurrency, an on-disk cache,
a budget.

Answers come back in the order of the questions, so nothing depends on which arrived first.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable

from ..errors import Interrupted, UserError
from ..progress import duration
from ..providers.base import Answer, Model, Request, RequestVariant, Settings, TransientError
from .budget import FREE, STOPPED, Budget, Meter, Price, metered
from .cache import ModelCache, with_request_seed
from .limiter import AdaptiveLimiter
from .negotiator import Negotiator
from .store import Store

Tell = Callable[[str], None]
"""Takes a remark for whoever waits."""

log = logging.getLogger(__name__)

FAILURES = 7
"""So many tries of one question may fail; being told of overload is no failure."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
LONG_WAIT = 60.0
"""Who waits longer for one answer is told why, once in that time."""
PATIENCE = 3600.0
"""So many seconds a question waits for its answer, whatever the reason."""
WINDOW, LOOKAHEAD = 4, 5_000
"""How many questions may be begun ahead of a slow one: so many times as many as go out at once, or
so many where all must be asked. Their answers wait in memory."""
FAILURES_IN_A_ROW = 10
"""So many questions without an answer, and none answered between them: the model is gone."""
KEPT_FOR_A_FAILURE = 10
"""Who goes on asks first what failed before: for so many kept answers one more may fail."""


class Client:
    """Asks one model, through one store, with a limited number of questions in flight.

    Attributes:
        model: who is asked.
        kept: the answers that need not be asked for again.
        asked: how many answers were new; the others came from the store.
        window: how many questions to begin ahead of a slow one, where not all need be asked.
        in_waves: whether many questions are answered together, hours later.
        till: where the new answers were paid, and those that were asked for again.
    """

    is_batched = False

    def __init__(
        self,
        model: Model,
        store: Store,
        connections: int | None = None,
        purse: Budget | None = None,
        price: Price = FREE,
    ) -> None:
        self.model = model
        self.asked = 0
        self._stopping = asyncio.Event()
        self.till = Meter(purse or Budget(), price, self._stopping)
        most = connections or model.connections
        self.window = WINDOW * most
        self.kept = ModelCache(model, store)
        self._forms = Negotiator(metered(model, self.till), self.kept)
        self._in_flight: dict[tuple[str, Settings], asyncio.Task[Answer]] = {}
        # As many again may wait for another try or for the disk, so that requests never wait. Who
        # takes one at a time is asked when what was said before is counted.
        self._open_questions = asyncio.Semaphore(2 * most if most > 1 else 1)
        self._pressure = AdaptiveLimiter(most)
        self._failures_in_a_row = 0
        self._taken = 0
        self._last_said = -LONG_WAIT
        self._problem: Exception | None = None

    async def answers(
        self,
        asks: Iterable[Request],
        settings: Settings,
        ahead: int | None = LOOKAHEAD,
        tell: Tell = lambda _: None,
    ) -> AsyncGenerator[Answer]:
        """Ask, and yield the answers in the order of the questions.

        However slow one answer is, no more than ``ahead`` questions are begun after it, if that is
        given. Where answers take hours, it is told how far they are.

        When the consumer stops early, or is cancelled, no new question is begun; those in flight
        are finished and saved.

        Raises:
            Interrupted: if the model stops answering or the purse is empty; all answers so far are
                saved, if any are.
            UserError: if the model cannot answer at all, or answers cannot be saved.
        """
        self._stopping.clear()
        begun: deque[asyncio.Future[Answer]] = deque()
        interrupted = False
        try:
            for ask in asks:
                begun.append(await self._begin(ask, settings))
                if self._problem:
                    raise self._problem
                while begun and (begun[0].done() or len(begun) == ahead):
                    yield await asyncio.shield(begun[0])
                    begun.popleft()
            while begun:
                answer = await asyncio.shield(begun[0])
                if self._problem:
                    raise self._problem
                yield answer
                begun.popleft()
        except asyncio.CancelledError:
            interrupted = True
            self._interrupted()
            raise
        finally:
            self._stop()
            in_flight = asyncio.gather(*begun, return_exceptions=True)
            try:
                await (in_flight if interrupted else asyncio.shield(in_flight))
            except asyncio.CancelledError:
                if not interrupted:  # the consumer had stopped, and the user has had enough now
                    self._interrupted()
                    await in_flight
                raise

    async def ask_uncached(self, ask: Request, settings: Settings, form: RequestVariant) -> Answer:
        """Ask at once and once, whatever is kept, and keep nothing.

        Raises:
            Passing, Problem: as the model does.
        """
        return await self._forms.answer(
            ask.question, with_request_seed(self.model, ask, settings), form
        )

    async def _begin(self, ask: Request, settings: Settings) -> "asyncio.Future[Answer]":
        which = ask.id, settings
        if which in self._in_flight:  # one question has one answer, however often it is needed
            return self._in_flight[which]
        if saved := self.kept.answer(ask, settings):
            self._taken += 1
            known = asyncio.get_running_loop().create_future()
            known.set_result(saved)
            return known
        await self._open_questions.acquire()
        task = asyncio.create_task(self._answered(ask, settings))
        self._in_flight[which] = task
        task.add_done_callback(lambda _: self._finished(which))
        return task

    def _finished(self, which: tuple[str, Settings]) -> None:
        del self._in_flight[which]
        self._open_questions.release()

    async def _answered(self, ask: Request, settings: Settings) -> Answer:
        async def ask_in(form: RequestVariant | None) -> Answer:
            return await self._asked(ask, settings, form)

        try:
            answer = await self._forms.ask_until_accepted(ask_in, settings)
            if answer.stop_reason == "error":
                self._count_failure(answer.error)
                return answer
            self._failures_in_a_row = 0
            self.asked += 1
            return await self._saved(ask, settings, answer)
        except UserError as problem:
            self._problem = problem
            self._stop()
            raise

    async def _saved(self, ask: Request, settings: Settings, answer: Answer) -> Answer:
        """The answer that counts, on disk."""
        return await self.kept.save(ask, settings, answer)

    async def _asked(self, ask: Request, settings: Settings, form: RequestVariant | None) -> Answer:
        """One answer, after as many tries as it takes or as make sense."""
        own = with_request_seed(self.model, ask, settings)
        started, tries, failures = time.monotonic(), 0, 0
        while not self._stopping.is_set():
            async with self._pressure as entered:
                if self._stopping.is_set():
                    break
                try:
                    answer = await self._forms.answer(ask.question, own, form)
                    self._pressure.on_success()
                    return answer
                except TransientError as passing:
                    fault = passing
                    if fault.overloaded:  # said before leaving, so that nobody else goes in
                        self._pressure.on_overload(entered, fault.retry_after)
            failures += not fault.overloaded
            waited = time.monotonic() - started
            out_of_patience = failures >= FAILURES or waited > PATIENCE
            to_wait = pause(tries, fault.retry_after)
            self._say_why(fault, waited + to_wait)
            if out_of_patience or await self._stopped_within(to_wait):
                return Answer("", stop_reason="error", error=str(fault))
            tries += 1
        return Answer("", stop_reason="error", error=STOPPED)

    def _say_why(self, fault: TransientError, waiting: float) -> None:
        """Tell now and then what is waited for, where it takes long."""
        now = time.monotonic()
        if waiting >= LONG_WAIT and now - self._last_said >= LONG_WAIT:
            self._last_said = now
            wait = fault.retry_after
            asked = f", which asks to wait {duration(wait)}" if wait else ""
            log.warning("waiting for %s%s (%s)", self.model.name, asked, fault)

    def _interrupted(self) -> None:
        """Say what happens now that the user has had enough."""
        log.warning("finishing the questions in flight; press Ctrl-C again to stop at once")

    def _stop(self) -> None:
        """Ask nothing more; what is in flight goes on."""
        self._stopping.set()
        self._pressure.release_all()

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _count_failure(self, error: str) -> None:
        self._failures_in_a_row += 1
        enough = FAILURES_IN_A_ROW + self._taken // KEPT_FOR_A_FAILURE
        if self._failures_in_a_row >= enough and not self._stopping.is_set():
            raise Interrupted(
                f"{self.model.name} stopped answering ({error})",
                f"the {self.asked} answers of this session are saved",
            )


def pause(tries: int, retry_after: float | None) -> float:
    """Exponential back-off with jitter, but never less than the other side asked for."""
    backoff = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(tries, 30)) * random.uniform(0.5, 1)
    return max(backoff, retry_after or 0)
