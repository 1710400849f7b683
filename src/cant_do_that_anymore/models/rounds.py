"""Rounds of asking in batches: who waits, what is known of it already, what is sent and paid."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..providers.base import Answer, Question, Request, RequestVariant, Settings, TransientError
from ..providers.openai_api import ServerModel
from ..providers.request_variants import limit_of
from .asking import Tell
from .asks import key_of
from .batch_api import MOST_BYTES, MOST_REQUESTS, TOO_MANY_TOKENS, BatchApi
from .batches import Batches, StoppedWithin
from .kept import Kept
from .ledger import Ledger, Noted
from .paying import Till
from .purse import Price
from .store import Store

FEW = 20
"""So few questions are no batch: they are asked at once."""


@dataclass(eq=False)
class Waiting:
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
class Line:
    """A question in a batch, in the form in which it is asked there."""

    key: str
    form: RequestVariant
    waiting: Waiting

    @property
    def question(self) -> Question:
        """What is asked."""
        return self.waiting.ask.question

    def most(self, price: Price) -> float:
        """The most that it can cost."""
        return price.max_cost(self.question, limit_of(self.form, self.waiting.settings))


class AtOnce(Exception):
    """There is too little left for a batch."""


class Rounds:
    """What is asked of one model in batches, round by round.

    Attributes:
        waiting: the questions that wait for an answer from a batch.
        batches: the batches themselves.
    """

    def __init__(
        self,
        model: ServerModel,
        store: Store,
        kept: Kept,
        till: Till,
        price: Price,
        stopped_within: StoppedWithin,
    ) -> None:
        self.waiting: list[Waiting] = []
        self._model = model
        self._kept = kept
        self._till = till
        self._price = price
        self._api = BatchApi(model)
        self._ledger = Ledger(store, model)
        self.batches = Batches(self._api, self._ledger, stopped_within)
        self._most = MOST_REQUESTS
        self._given: dict[tuple[str, Settings], list[str]] = {}
        self._saved: list[str] = []

    def is_known(self, waiting: Waiting) -> bool:
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
        new: list[Line] = []
        under_way: dict[str, list[Line]] = {}
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
        elif len(new) <= FEW:
            for line in new:
                line.waiting.take(AtOnce())
        else:
            await self._send(self._as_many_as_fit(new), tell)
        self.waiting = [waiting for waiting in self.waiting if not waiting.answer.done()]

    def _saved_by_another(self, waiting: Waiting) -> Answer | None:
        """The answer that another process has got meanwhile."""
        if waiting.form is not None:
            return None
        return self._kept.answer(waiting.ask, waiting.settings)

    def _line(self, waiting: Waiting) -> tuple[Line, Noted | None]:
        """The line of a question in a batch, and what is known of it if it was in one.

        It may have been asked in another form than the one that is known by now.
        """
        ask, settings = waiting.ask, waiting.settings
        forms = self._kept.forms(settings) if waiting.form is None else [waiting.form]
        lines = [
            Line(key_of(self._model, ask, settings, form), form, waiting)
            for form in (forms[:1] if ask.same_limit_only else forms)
        ]
        found = ((line, noted) for line in lines if (noted := self._ledger.find(line.key)))
        return next(found, (lines[0], None))

    def _as_many_as_fit(self, lines: list[Line]) -> dict[Line, bytes]:
        """The requests of so many questions as a batch takes and the purse can pay."""
        fitting: dict[Line, bytes] = {}
        size, cost = 0, 0.0
        for line in lines[: self._most]:
            request = self._model.request(line.question, line.waiting.settings, line.form)
            text = self._api.line(line.key, request)
            size += len(text)
            cost += line.most(self._price)
            too_much = size > MOST_BYTES or cost > self._till.purse.left
            if too_much and len(fitting) > FEW:  # fewer are no batch
                break
            fitting[line] = text
        return fitting

    async def _send(self, texts: Mapping[Line, bytes], tell: Tell) -> None:
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

    async def _followed(self, file: str, lines: Sequence[Line], tell: Tell) -> float | None:
        """Wait for a batch and let go on who waits for it.

        Returns:
            What it cost; None if we were stopped.
        """
        forms = {line.key: line.form for line in lines}
        ended = await self.batches.follow(file, forms, tell)
        if not ended:
            return None
        half = len(lines) // 2
        if TOO_MANY_TOKENS in ended.fault and not ended.results and half > FEW:
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

    def _give(self, line: Line, result: Answer | Exception) -> None:
        """Let go on who waits; what was given is kept in the ledger until all is done with it."""
        waiting = line.waiting
        if isinstance(result, Answer):
            self._given.setdefault((waiting.ask.id, waiting.settings), []).append(line.key)
        waiting.take(result)
