"""Client that sends requests in batches: half the price, hours later.

The first questions, those that teach in what form a model is to be asked, and what is too little
for a batch go the usual way. All others wait until nothing else is left to do, and then make one
batch. What a batch could not answer goes into the next one, some times.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field

from ...errors import InvalidInput, Stopped
from ...providers.base import (
    Answer,
    ModelInfo,
    Question,
    Request,
    RequestRejected,
    RequestVariant,
    Settings,
    TransientError,
)
from ...providers.catalogue import OUR_MODELS
from ...providers.chain_of_thought import Thinker
from ...providers.openai_api import ServerModel
from ...providers.request_variants import fallbacks, limit_of
from ..budget import FREE, STOPPED, Budget, Meter, Price
from ..cache import ModelCache, request_key
from ..client import Client, Tell
from ..store import Store
from .api import MOST_BYTES, MOST_REQUESTS, TOO_MANY_TOKENS, BatchApi
from .jobs import Batches, BatchJournal, JournalEntry, StoppedWithin

MIN_BATCH = 20
"""So few questions are no batch: they are asked at once."""


@dataclass(eq=False)
class Pending:
    """A question that waits for a batch, in a form that is wanted or in the one that is known."""

    ask: Request
    settings: Settings
    form: RequestVariant | None
    answer: "asyncio.Future[Answer]" = field(default_factory=asyncio.Future)

    def take(self, answer: Answer | Exception) -> None:
        """Let whoever waits go on."""
        if self.answer.done():
            return
        if isinstance(answer, Answer):
            self.answer.set_result(answer)
        else:
            self.answer.set_exception(answer)


@dataclass(frozen=True)
class BatchRequest:
    """A question in a batch, in the form in which it is asked there."""

    key: str
    form: RequestVariant
    waiting: Pending

    @property
    def question(self) -> Question:
        """What is asked."""
        return self.waiting.ask.question

    def most(self, price: Price) -> float:
        """The most that it can cost."""
        return price.max_cost(self.question, limit_of(self.form, self.waiting.settings))


class NotWorthBatching(Exception):
    """There is too little left for a batch."""


class BatchQueue:
    """What is asked of one model in batches, round by round.

    Attributes:
        waiting: the questions that wait for an answer from a batch.
        batches: the batches themselves.
    """

    def __init__(
        self,
        model: ServerModel,
        store: Store,
        kept: ModelCache,
        till: Meter,
        price: Price,
        stopped_within: StoppedWithin,
    ) -> None:
        self.waiting: list[Pending] = []
        self._model = model
        self._kept = kept
        self._till = till
        self._price = price
        self._api = BatchApi(model)
        self._ledger = BatchJournal(store, model)
        self.batches = Batches(self._api, self._ledger, stopped_within)
        self._most = MOST_REQUESTS
        self._given: dict[tuple[str, Settings], list[str]] = {}
        self._saved: list[str] = []

    def is_known(self, waiting: Pending) -> bool:
        """Whether a question is or was in a batch."""
        return self._line(waiting)[1] is not None

    def saved(self, ask: Request, settings: Settings) -> None:
        """The ledger need not keep what came of a question any longer."""
        self._saved += self._given.pop((ask.id, settings), [])

    def tidy_up(self) -> None:
        """Forget in the ledger what is saved."""
        saved, self._saved = self._saved, []
        self._ledger.forget(saved)

    async def round(self, tell: Tell) -> None:
        """Take what is there already, or follow a batch under way, or send one, or ask at once."""
        self.tidy_up()
        new: list[BatchRequest] = []
        under_way: dict[str, list[BatchRequest]] = {}
        for waiting in self.waiting:
            if saved := self._saved_by_another(waiting):
                waiting.take(saved)
                continue
            line, noted = self._line(waiting)
            if not noted:
                new.append(line)
            elif noted.answer:
                self._give(line, noted.answer)
            else:
                under_way.setdefault(noted.file, []).append(line)
        if any(waiting.answer.done() for waiting in self.waiting):
            pass  # who goes on may want more
        elif under_way:
            file, lines = next(iter(under_way.items()))
            self._till.purse.pay(await self._followed(file, lines, tell) or 0.0)
        elif len(new) <= MIN_BATCH:
            for line in new:
                line.waiting.take(NotWorthBatching())
        else:
            await self._send(self._as_many_as_fit(new), tell)
        self.waiting = [waiting for waiting in self.waiting if not waiting.answer.done()]

    def _saved_by_another(self, waiting: Pending) -> Answer | None:
        """The answer that another process has got meanwhile."""
        if waiting.form is not None:
            return None
        return self._kept.answer(waiting.ask, waiting.settings)

    def _line(self, waiting: Pending) -> tuple[BatchRequest, JournalEntry | None]:
        """The line of a question in a batch, and what is known of it if it was in one.

        It may have been asked in another form than the one that is known by now.
        """
        ask, settings = waiting.ask, waiting.settings
        forms = self._kept.forms(settings) if waiting.form is None else [waiting.form]
        lines = [
            BatchRequest(request_key(self._model, ask, settings, form), form, waiting)
            for form in (forms[:1] if ask.same_limit_only else forms)
        ]
        found = ((line, noted) for line in lines if (noted := self._ledger.find(line.key)))
        return next(found, (lines[0], None))

    def _as_many_as_fit(self, lines: list[BatchRequest]) -> dict[BatchRequest, bytes]:
        """The requests of so many questions as a batch takes and the purse can pay."""
        fitting: dict[BatchRequest, bytes] = {}
        size, cost = 0, 0.0
        for line in lines[: self._most]:
            request = self._model.request(line.question, line.waiting.settings, line.form)
            text = self._api.line(line.key, request)
            size += len(text)
            cost += line.most(self._price)
            too_much = size > MOST_BYTES or cost > self._till.purse.left
            if too_much and len(fitting) > MIN_BATCH:  # fewer are no batch
                break
            fitting[line] = text
        return fitting

    async def _send(self, texts: Mapping[BatchRequest, bytes], tell: Tell) -> None:
        """Make a batch, and wait for it."""
        reserve = sum(line.most(self._price) for line in texts)
        await self._till.purse.reserve(reserve, "batch")
        cost: float | None = 0.0
        for settings, form in {(line.waiting.settings, line.form) for line in texts}:
            self._kept.note(settings, form)
        try:
            file = await self.batches.make(
                {line.key: text for line, text in texts.items()},
                {line.key: line.form for line in texts},
                lambda: not any(self._saved_by_another(line.waiting) for line in texts),
            )
            if file:
                cost = reserve  # unless it is known what it was
                cost = await self._followed(file, list(texts), tell)
        finally:
            self._till.purse.settle(reserve, reserve if cost is None else cost)

    async def _followed(self, file: str, lines: Sequence[BatchRequest], tell: Tell) -> float | None:
        """Wait for a batch and let go on who waits for it.

        Returns:
            What it cost; None if we were stopped.
        """
        forms = {line.key: line.form for line in lines}
        ended = await self.batches.follow(file, forms, tell)
        if not ended:
            return None
        half = len(lines) // 2
        if TOO_MANY_TOKENS in ended.fault and not ended.results and half > MIN_BATCH:
            self._most = half
            return 0.0
        most = {line.key: line.most(self._price) for line in lines}
        missing = {key: TransientError(ended.fault, maybe_billed=ended.paid) for key in forms}
        results = {**missing, **ended.results}
        for line in lines:
            self._give(line, results[line.key])
        return sum(self._paid(result, most.get(key, 0.0)) for key, result in results.items())

    def _paid(self, result: Answer | Exception, most: float) -> float:
        """What a result cost, which may be unknown."""
        if isinstance(result, Answer):
            return self._till.record(result, self._price, most)
        return most if isinstance(result, TransientError) and result.maybe_billed else 0.0

    def _give(self, line: BatchRequest, result: Answer | Exception) -> None:
        """Let go on who waits; what was given is kept in the ledger until all is done with it."""
        waiting = line.waiting
        if isinstance(result, Answer):
            self._given.setdefault((waiting.ask.id, waiting.settings), []).append(line.key)
        waiting.take(result)


PROBES = 3
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


class BatchClient(Client):
    """Asks one model in batches, and where that makes no sense at once."""

    is_batched = True

    def __init__(
        self,
        model: ServerModel,
        store: Store,
        connections: int | None = None,
        purse: Budget | None = None,
        price: Price = FREE,
    ) -> None:
        super().__init__(model, store, connections, purse, price)
        self._rounds = BatchQueue(
            model, store, self.kept, self.till, price.in_batch, self._stopped_within
        )
        self._open_questions = asyncio.Semaphore(MOST_REQUESTS)
        self._busy = 0
        self._begun: Counter[Settings] = Counter()
        self._first: set[tuple[str, Settings]] = set()
        self._lessons = PROBES

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
            Unfinished, Problem: as `Client` does.
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
        if self._begun[settings] <= MIN_BATCH:
            self._first.add((ask.id, settings))
        return await super()._begin(ask, settings)

    async def _asked(self, ask: Request, settings: Settings, form: RequestVariant | None) -> Answer:
        """One answer, from a batch if it can be."""
        at_once, fault = self._is_a_lesson(ask, settings, form), ""
        for _ in range(TRIES):
            waiting = Pending(ask, settings, form)
            if not at_once or self._rounds.is_known(waiting):
                self._rounds.waiting.append(waiting)
                try:
                    return await waiting.answer
                except NotWorthBatching:
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
        before: list[Pending] = []
        try:
            while True:
                await asyncio.sleep(A_MOMENT)
                waiting = self._rounds.waiting
                if waiting and not self._busy and waiting == before:
                    await self._rounds.round(tell)
                    self._lessons = PROBES
                before = list(self._rounds.waiting)
        except Exception as problem:  # who waits for a batch must not wait for ever
            self._problem = problem
            self._stop()
