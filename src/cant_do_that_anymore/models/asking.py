"""Many questions to one model: many at once, patiently, and each answer on disk before it counts.

Answers come back in the order of the questions, so nothing depends on which arrived first.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable

from ..errors import Problem, Unfinished
from .asks import Ask, seeded
from .concessions import limit_of
from .forms import Forms
from .kept import Kept
from .model import Answer, Form, Model, Passing, Question, Settings, Usage
from .pressure import Pressure
from .purse import FREE, Aside, Price, Purse
from .store import Store

log = logging.getLogger(__name__)

FAILURES = 7
"""So many tries of one question may fail; being told of overload is no failure."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
PATIENCE = 3600.0
"""So many seconds a question waits for its answer, whatever the reason."""
FAILURES_IN_A_ROW = 10
"""So many questions without an answer, and none answered between them: the model is gone."""


class Asking:
    """Asks one model, through one store, with a limited number of questions in flight.

    Attributes:
        model: who is asked.
        kept: the answers that need not be asked for again.
        asked: how many answers were new; the others came from the store.
        used: the tokens of the new answers, and of those that were asked for again.
    """

    def __init__(
        self,
        model: Model,
        store: Store,
        connections: int | None = None,
        purse: Purse | None = None,
        price: Price = FREE,
    ) -> None:
        self.model = model
        self.asked = 0
        self.used = Usage()
        self._purse = purse or Purse()
        self._price = price
        most = connections or model.connections
        self.kept = Kept(model, store)
        self._forms = Forms(model, self.kept)
        self._in_flight: dict[tuple[str, Settings], asyncio.Task[Answer]] = {}
        # As many again may wait for another try or for the disk, so that requests never wait.
        self._open_questions = asyncio.Semaphore(2 * most)
        self._pressure = Pressure(most)
        self._stopping = asyncio.Event()
        self._failures_in_a_row = 0
        self._problem: Problem | None = None

    async def answers(self, asks: Iterable[Ask], settings: Settings) -> AsyncGenerator[Answer]:
        """Ask, and yield the answers in the order of the questions.

        When the consumer stops early, or is cancelled, no new question is begun; those in flight
        are finished and saved.

        Raises:
            Unfinished: if the model stops answering or the purse is empty; all answers so far are
                saved.
            Problem: if the model cannot answer at all, or answers cannot be saved.
        """
        self._stopping.clear()
        begun: deque[asyncio.Future[Answer]] = deque()
        try:
            for ask in asks:
                begun.append(await self._begin(ask, settings))
                if self._problem:
                    raise self._problem
                while begun and begun[0].done():
                    yield begun.popleft().result()
            while begun:
                yield await asyncio.shield(begun[0])
                begun.popleft()
        except asyncio.CancelledError:
            log.warning("finishing the questions in flight; press Ctrl-C again to stop at once")
            raise
        finally:
            self._stop()
            await asyncio.gather(*begun, return_exceptions=True)

    async def _begin(self, ask: Ask, settings: Settings) -> "asyncio.Future[Answer]":
        which = ask.id, settings
        if which in self._in_flight:  # one question has one answer, however often it is needed
            return self._in_flight[which]
        saved = self.kept.answer(ask, settings)
        if saved:
            known = asyncio.get_running_loop().create_future()
            known.set_result(saved)
            return known
        await self._open_questions.acquire()
        most = self._most(ask, settings, self.kept.form(settings))
        task = asyncio.create_task(self._answered(ask, settings, await self._purse.put_aside(most)))
        self._in_flight[which] = task
        task.add_done_callback(lambda _: self._finished(which))
        return task

    def _most(self, ask: Ask, settings: Settings, form: Form) -> float:
        """The most that the question can cost."""
        return self._price.most(ask.question, limit_of(form, settings))

    def _finished(self, which: tuple[str, Settings]) -> None:
        del self._in_flight[which]
        self._open_questions.release()

    async def _answered(self, ask: Ask, settings: Settings, aside: Aside) -> Answer:
        async def paid(form: Form | None) -> Answer:
            if form is None:
                return await self._paid(ask, settings, aside, form)
            more = await self._purse.put_aside(self._most(ask, settings, form))
            return await self._paid(ask, settings, more, form)

        try:
            answer = await self._forms.satisfied(paid, settings)
            if answer.stop_reason == "error":
                self._count_failure(answer.error)
            else:
                self._failures_in_a_row = 0
                self.asked += 1
                answer = await self.kept.save(ask, settings, answer)
        except Problem as problem:
            self._problem = problem
            self._stop()
            raise
        return answer

    async def _paid(self, ask: Ask, settings: Settings, aside: Aside, form: Form | None) -> Answer:
        """One answer, asked patiently and paid from what was put aside."""
        try:
            own = seeded(self.model, ask, settings)
            answer = await self._patiently_asked(ask.question, own, aside, form)
            if answer.stop_reason != "error":
                self.used += answer.usage
                counted = answer.usage.input_tokens or answer.usage.output_tokens
                aside.pay(self._price.of(answer.usage, 1) if counted else aside.most)
            return answer
        finally:
            aside.pay(0.0)

    async def _patiently_asked(
        self, question: Question, settings: Settings, aside: Aside, form: Form | None
    ) -> Answer:
        """One answer, after as many tries as it takes or as make sense."""
        started, tries, failures = time.monotonic(), 0, 0
        while not self._stopping.is_set():
            async with self._pressure as entered:
                if self._stopping.is_set():
                    break
                try:
                    answer = await self._forms.answer(question, settings, form)
                    self._pressure.rise()
                    return answer
                except Passing as passing:
                    fault = passing
                    if fault.overloaded:  # said before leaving, so that nobody else goes in
                        self._pressure.fall(entered, fault.retry_after)
            failures += not fault.overloaded
            waited = time.monotonic() - started
            if fault.given_up:
                aside.pay(aside.most)
            out_of_patience = failures >= FAILURES or waited > PATIENCE
            if out_of_patience or await self._stopped_within(_wait(tries, fault.retry_after)):
                return Answer("", stop_reason="error", error=str(fault))
            await aside.renew()
            tries += 1
        return Answer("", stop_reason="error", error="stopped before it was asked")

    def _stop(self) -> None:
        """Ask nothing more; what is in flight goes on."""
        self._stopping.set()
        self._pressure.let_all_in()

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _count_failure(self, error: str) -> None:
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= FAILURES_IN_A_ROW and not self._stopping.is_set():
            raise Unfinished(
                f"{self.model.name} stopped answering ({error}); the {self.asked} answers of this "
                "session are saved, run the same command again to go on"
            )


def _wait(tries: int, retry_after: float | None) -> float:
    """Exponential back-off with jitter, but never less than the other side asked for."""
    backoff = min(LONGEST_WAIT, FIRST_WAIT * 2.0**tries) * random.uniform(0.5, 1)
    return max(backoff, retry_after or 0)
