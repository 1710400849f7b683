"""Prices, a budget that reserves before it spends, and metering of every request."""

import asyncio
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from math import ceil, inf
from typing import Any

from ..errors import Interrupted, UserError
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

MOST_TOKENS_A_TURN = 8
"""No chat layout wraps a turn in more tokens than this."""
LONGEST_MOVE = 5
BATCH_RATE = 0.5
"""What OpenAI, Together and most others take for a question in a batch, of the usual price."""


@dataclass(frozen=True)
class Price:
    """US dollars for one input token, one output token, and for asking at all.

    Input from the provider's cache and thoughts cost the same as other tokens, unless they have a
    price of their own.
    """

    input: float
    output: float
    request: float = 0.0
    cached: float | None = None
    thinking: float | None = None

    def of(self, usage: Usage, requests: int) -> float:
        """What so many requests cost that used so many tokens together."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        thought = min(usage.thinking_tokens, usage.output_tokens)
        return (
            (usage.input_tokens - cached) * self.input
            + cached * (self.input if self.cached is None else self.cached)
            + (usage.output_tokens - thought) * self.output
            + thought * (self.output if self.thinking is None else self.thinking)
            + requests * self.request
        )

    def is_metered(self, answer: Answer) -> bool:
        """Whether it is known what an answer cost: its tokens were counted, or cost nothing."""
        return is_counted(answer) or not (self.input or self.output)

    @property
    def in_batch(self) -> "Price":
        """The same in a batch."""
        prices: Iterable[Any] = astuple(self)
        return Price(*(each and each * BATCH_RATE for each in prices))

    def max_cost(self, question: Question, limit: int) -> float:
        """The most that a question can cost under a token limit."""
        if self == FREE:
            return 0.0
        asked = most_input_tokens(question)
        return max(self.of(Usage(asked, limit, thought), 1) for thought in (0, limit))


def is_counted(answer: Answer) -> bool:
    """Whether somebody counted its tokens: no question is without any, nor is what was said."""
    used = answer.usage
    if not used.output_tokens and (answer.text or answer.is_thoughtful):
        return False
    return used.input_tokens > 0


class BudgetExceeded(Interrupted):
    """The purse does not hold what the next question may cost."""


class Budget:
    """The dollars a command may spend, on one model or on several.

    Before a request is sent, the most that it can cost is put aside; once it is answered, its true
    cost is paid and the rest is free again. So the limit holds with any number of requests under
    way.
    """

    def __init__(self, limit: float = inf) -> None:
        self._limit = limit
        self._paid = 0.0
        self._put_aside: list[float] = []
        self._settled = asyncio.Event()

    @property
    def left(self) -> float:
        """What is neither paid nor put aside."""
        return self._limit - self._paid - sum(self._put_aside)

    async def reserve(self, most: float, what: str = "question") -> bool:
        """Put aside the most that a request can cost; says whether that had to be waited for.

        Raises:
            BudgetExceeded: if so much is not left, and no request under way can free any of it.
        """
        waited = False
        while most > self.left:
            if not self._put_aside:
                advice = "run the same command again to go on and spend as much again"
                if most > self._limit:
                    advice = f"--max-cost {ceil(100 * most) / 100:g} or more goes on"
                raise BudgetExceeded(
                    f"stopped before passing --max-cost: ${self._paid:.4f} of ${self._limit:g} are "
                    f"spent and the next {what} may cost ${most:.4f}",
                    go_on=advice,
                )
            if self._settled.is_set():  # a new one: the next run waits in another event loop
                self._settled = asyncio.Event()
            await self._settled.wait()
            waited = True
        self._put_aside.append(most)
        return waited

    def settle(self, reserve: float, cost: float) -> None:
        """Pay what a request cost, and free the rest of what was put aside for it."""
        self._put_aside.remove(reserve)
        self.pay(cost)

    def pay(self, cost: float) -> None:
        """Pay what nothing was put aside for, because another command did."""
        self._paid += cost
        self._settled.set()


def most_input_tokens(question: Question) -> int:
    """More tokens than any common tokenizer makes of the question.

    A token of prose has two bytes at least on average; a move is one token a character at
    most.
    """
    return sum(
        max(len(message.content.encode()) // 2, LONGEST_MOVE) + MOST_TOKENS_A_TURN
        for message in question.messages
    )


FREE = Price(0.0, 0.0)

STOPPED = "stopped before it was asked"


class Meter:
    """Where the requests of one command to one model are paid.

    Money is put aside for requests under way and for nothing else. These end by themselves, so
    whoever waits for money never waits for somebody who waits.

    Attributes:
        used: the tokens of all answers.
        spent: what they cost in US dollars; None if the tokens of any were not counted.
    """

    def __init__(self, purse: Budget, price: Price, stopping: asyncio.Event) -> None:
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


class MeteredModel:
    """A model whose requests are paid at a till."""

    def __init__(self, model: Model, till: Meter) -> None:
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


def metered(model: Model, till: Meter) -> Model:
    """The same model, paid at that till; one that is let to think aloud sends two requests."""
    if isinstance(model, ThinkingModel):
        return ThinkingModel(metered(model.inner, till), model.thinking_tokens)
    return MeteredModel(model, till)
