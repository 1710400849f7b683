"""Every single request to a model is paid from a purse, also those whose answer never comes."""

import asyncio

from ..errors import UserError
from ..providers.base import (
    Answer,
    Model,
    Question,
    RequestRejected,
    RequestVariant,
    Settings,
    TransientError,
    Usage,
)
from ..providers.chain_of_thought import ThinkingModel
from ..providers.request_variants import limit_of
from .purse import Price, Purse

STOPPED = "stopped before it was asked"


class Till:
    """Where the requests of one command to one model are paid.

    Money is put aside for requests under way and for nothing else. These end by themselves, so
    whoever waits for money never waits for somebody who waits.

    Attributes:
        used: the tokens of all answers.
        spent: what they cost in US dollars; None if the tokens of any were not counted.
    """

    def __init__(self, purse: Purse, price: Price, stopping: asyncio.Event) -> None:
        self.used = Usage()
        self.spent: float | None = 0.0
        self.purse = purse
        self._price = price
        self._stopping = stopping

    async def call(
        self, model: Model, question: Question, settings: Settings, form: RequestVariant
    ) -> Answer:
        """Ask a model once, and pay for it: the most it can cost, unless it is known what it did.

        Raises:
            Spent: if the purse does not hold the most that it can cost.
            Refused, Passing, Problem: as the model does.
        """
        most = self._price.max_cost(question, limit_of(form, settings))
        waited = await self.purse.reserve(most)
        cost = most
        try:
            if waited and self._stopping.is_set():
                raise TransientError(STOPPED)
            answer = await model.answer(question, settings, form)
            cost = self.record(answer, self._price, most)
            return answer
        except (RequestRejected, UserError):
            cost = 0.0
            raise
        except TransientError as fault:
            cost = most if fault.maybe_billed else 0.0
            raise
        finally:
            self.purse.settle(most, cost)

    def record(self, answer: Answer, price: Price, most: float) -> float:
        """Count an answer; says what to pay for it: the most, if its tokens were not counted."""
        self.used += answer.usage
        if not price.is_metered(answer):
            self.spent = None
            return most
        cost = price.of(answer.usage, 1)
        self.spent = None if self.spent is None else self.spent + cost
        return cost


class Paid:
    """A model whose requests are paid at a till."""

    def __init__(self, model: Model, till: Till) -> None:
        self.name = model.name
        self.endpoint = model.endpoint
        self.provider = model.provider
        self.connections = model.connections
        self.max_tokens = model.max_tokens
        self.identity = model.identity
        self.may_think = model.may_think
        self._model = model
        self._till = till

    async def answer(
        self, question: Question, settings: Settings, form: RequestVariant = ()
    ) -> Answer:
        """Ask the model once."""
        return await self._till.call(self._model, question, settings, form)

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()


def paid(model: Model, till: Till) -> Model:
    """The same model, paid at that till; one that is let to think aloud sends two requests."""
    if isinstance(model, ThinkingModel):
        return ThinkingModel(paid(model.inner, till), model.thinking_tokens)
    return Paid(model, till)
