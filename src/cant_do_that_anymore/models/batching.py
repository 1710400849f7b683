"""Many questions to one model in batches: for half the price, some hours later.

The first questions, those that teach in what form a model is to be asked, and what is too little
for a batch go the usual way. All others wait until nothing else is left to do, and then make one
batch. What a batch could not answer goes into the next one, some times.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress

from ..errors import InvalidInput, Stopped
from ..providers.base import (
    Answer,
    ModelInfo,
    Request,
    RequestRejected,
    RequestVariant,
    Settings,
    TransientError,
)
from ..providers.catalogue import OUR_MODELS
from ..providers.chain_of_thought import Thinker
from ..providers.openai_api import ServerModel
from ..providers.request_variants import fallbacks
from .asking import Asking, Tell
from .batch_api import MOST_REQUESTS
from .paying import STOPPED
from .purse import FREE, Price, Purse
from .rounds import FEW, AtOnce, Rounds, Waiting
from .store import Store

LESSONS = 3
"""So many questions after each batch may find out at once what the model wants."""
TRIES = 3
"""In so many batches a question may fail."""
A_MOMENT = 0.02
"""In seconds; when nothing has changed for so long, all that is left waits for a batch."""


def check_batch(model: ModelInfo, *, fresh: bool) -> None:
    """Refuse to ask in batches where that cannot be.

    Raises:
        InvalidInput: saying what can.
    """
    if model.name in OUR_MODELS:
        raise InvalidInput(f"{model.name} answers here and for nothing; leave out --batch")
    if isinstance(model, Thinker):
        raise InvalidInput(
            f"{model.name} is asked twice, the second time by what it said the first time, which a "
            "batch cannot do; leave out --batch, or cot/"
        )
    if not isinstance(model, ServerModel):
        raise InvalidInput(
            f"{model.name} is reached by Inspect AI, which has batches of its own: inspect eval "
            f"cant_do_that_anymore/all --model {model.name} --batch"
        )
    if fresh:
        raise InvalidInput(
            "what is in a batch is kept until it is there; leave out --fresh or --batch"
        )


class Batching(Asking):
    """Asks one model in batches, and where that makes no sense at once."""

    is_batched = True

    def __init__(
        self,
        model: ServerModel,
        store: Store,
        connections: int | None = None,
        purse: Purse | None = None,
        price: Price = FREE,
    ) -> None:
        super().__init__(model, store, connections, purse, price)
        self._rounds = Rounds(
            model, store, self.kept, self.till, price.in_batch, self._stopped_within
        )
        self._open_questions = asyncio.Semaphore(MOST_REQUESTS)
        self._busy = 0
        self._begun: Counter[Settings] = Counter()
        self._first: set[tuple[str, Settings]] = set()
        self._lessons = LESSONS

    async def answers(
        self,
        asks: Iterable[Request],
        settings: Settings,
        ahead: int | None = None,
        tell: Tell = lambda _: None,
    ) -> AsyncGenerator[Answer]:
        """Ask, and yield the answers in the order of the questions; all of them are begun at once.

        Raises:
            Stopped: if the user has had enough while a batch is under way; it goes on.
            Unfinished, Problem: as `Asking` does.
        """
        sending = asyncio.create_task(self._send_when_quiet(tell))
        try:
            async with aclosing(super().answers(asks, settings, ahead=None)) as answers:
                async for answer in answers:
                    yield answer
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
            self._rounds.tidy_up()

    async def _begin(self, ask: Request, settings: Settings) -> "asyncio.Future[Answer]":
        self._begun[settings] += 1
        if self._begun[settings] <= FEW:
            self._first.add((ask.id, settings))
        return await super()._begin(ask, settings)

    async def _asked(self, ask: Request, settings: Settings, form: RequestVariant | None) -> Answer:
        """One answer, from a batch if it can be."""
        at_once, fault = self._is_a_lesson(ask, settings, form), ""
        for _ in range(TRIES):
            waiting = Waiting(ask, settings, form)
            if not at_once or self._rounds.is_known(waiting):
                self._rounds.waiting.append(waiting)
                try:
                    return await waiting.answer
                except AtOnce:
                    at_once = True
                except RequestRejected as refused:
                    fault = str(refused)
                    tried = self.kept.form(settings) if form is None else form
                    if not any(fallbacks(refused.words, tried, settings)):
                        return Answer("", stop_reason="error", error=fault)
                    at_once = self._may_learn()
                except TransientError as passing:
                    fault = str(passing)
            if self._stopping.is_set():
                return Answer("", stop_reason="error", error=STOPPED)
            if at_once:
                with self._being_busy():
                    return await super()._asked(ask, settings, form)
        told = f"no answer in {TRIES} batches, the last time: {fault}"
        return Answer("", stop_reason="error", error=told)

    async def _saved(self, ask: Request, settings: Settings, answer: Answer) -> Answer:
        with self._being_busy():
            saved = await super()._saved(ask, settings, answer)
        self._rounds.saved(ask, settings)
        return saved

    def _count_failure(self, error: str) -> None:
        """What a batch could not answer says nothing of the questions after it."""

    def _is_a_lesson(self, ask: Request, settings: Settings, form: RequestVariant | None) -> bool:
        """Whether it is one of the first questions, or in a form that was never tried."""
        if form is None:
            return (ask.id, settings) in self._first
        return set(form) != set(self.kept.form(settings)) and self._may_learn()

    def _may_learn(self) -> bool:
        self._lessons -= 1
        return self._lessons >= 0

    @contextmanager
    def _being_busy(self) -> Iterator[None]:
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    def _interrupted(self) -> None:
        batch = self._rounds.batches.under_way
        if batch:
            raise Stopped(left=f"the batch {batch} goes on at its provider")
        super()._interrupted()

    def _stop(self) -> None:
        super()._stop()
        for each in self._rounds.waiting:
            each.take(TransientError(STOPPED))

    async def _send_when_quiet(self, tell: Tell) -> None:
        """Send a batch whenever all questions that are left wait for one."""
        before: list[Waiting] = []
        try:
            while True:
                await asyncio.sleep(A_MOMENT)
                waiting = self._rounds.waiting
                if waiting and not self._busy and waiting == before:
                    await self._rounds.round(tell)
                    self._lessons = LESSONS
                before = list(self._rounds.waiting)
        except Exception as problem:  # who waits for a batch must not wait for ever
            self._problem = problem
            self._stop()
