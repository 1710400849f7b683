"""Prices, a budget that reserves before it spends, and metering of every request."""

import asyncio
import string
from dataclasses import astuple, dataclass
from math import ceil, inf

from ..errors import Interrupted, UserError
from ..formatting import dollars
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
from ..providers.request_variants import limit_of

# No chat template wraps a message in more tokens than this.
MAX_TOKENS_AROUND_MESSAGE = 8
# Batch price relative to the usual price, at OpenAI, Together and most others.
BATCH_RATE = 0.5


@dataclass(frozen=True)
class Price:
    """US dollars per input token, per output token and per request.

    Input tokens from the provider's prompt cache and reasoning tokens cost the same as other
    tokens, unless they have a price of their own.
    """

    input: float
    output: float
    request: float = 0.0
    cached: float | None = None
    thinking: float | None = None

    def of(self, usage: Usage, requests: int) -> float:
        """Return the cost of ``requests`` requests that used ``usage`` in total."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        reasoning = min(usage.thinking_tokens, usage.output_tokens)
        return (
            (usage.input_tokens - cached) * self.input
            + cached * (self.input if self.cached is None else self.cached)
            + (usage.output_tokens - reasoning) * self.output
            + reasoning * (self.output if self.thinking is None else self.thinking)
            + requests * self.request
        )

    def is_metered(self, answer: Answer) -> bool:
        """Whether the cost of an answer is known: its tokens were counted, or tokens are free."""
        return is_counted(answer) or not (self.input or self.output)

    @property
    def in_batch(self) -> "Price":
        """The price of the same request in a batch."""
        return Price(*(price and price * BATCH_RATE for price in astuple(self)))

    def max_cost(self, question: Question, limit: int) -> float:
        """Return the most that a question can cost under a token limit."""
        if self == FREE:
            return 0.0
        input_tokens = max_input_tokens(question)
        return max(self.of(Usage(input_tokens, limit, reasoning), 1) for reasoning in (0, limit))


def is_counted(answer: Answer) -> bool:
    """Whether the provider counted the tokens of an answer.

    Every prompt has input tokens, and every answer with text or reasoning has output tokens.
    """
    usage = answer.usage
    if not usage.output_tokens and (answer.text or answer.is_thoughtful):
        return False
    return usage.input_tokens > 0


class BudgetExceeded(Interrupted):
    """The budget does not cover the maximum cost of the next request."""


class Budget:
    """The US dollars that a command may spend, on one model or on several.

    Before a request is sent, its maximum cost is reserved. Once it is answered, its actual cost is
    paid and the rest is released. So the limit holds with any number of requests in flight.
    """

    def __init__(self, limit: float = inf) -> None:
        self._limit = limit
        self._paid = 0.0
        self._reserved: list[float] = []
        self._settled = asyncio.Event()

    @property
    def left(self) -> float:
        """Dollars neither paid nor reserved."""
        return self._limit - self._paid - sum(self._reserved)

    async def reserve(self, amount: float, kind: str = "request") -> bool:
        """Reserve the maximum cost of a request. Returns whether it had to wait for that.

        Raises:
            BudgetExceeded: if not enough is left, and no request in flight can release any.
        """
        waited = False
        while amount > self.left:
            if not self._reserved:
                limit = dollars(self._limit)
                advice = f"run the same command again to spend up to another {limit}"
                if amount > self._limit:
                    advice = f"set --max-cost {ceil(100 * amount) / 100:g} or more to continue"
                raise BudgetExceeded(
                    f"stopped before passing --max-cost: {dollars(self._paid)} of {limit} are "
                    f"spent and the next {kind} may cost {dollars(amount)}",
                    go_on=advice,
                )
            if self._settled.is_set():  # the next run may use another event loop
                self._settled = asyncio.Event()
            await self._settled.wait()
            waited = True
        self._reserved.append(amount)
        return waited

    def settle(self, reserved: float, cost: float) -> None:
        """Pay the actual cost of a request and release the rest of its reservation."""
        self._reserved.remove(reserved)
        self.pay(cost)

    def pay(self, cost: float) -> None:
        """Pay a cost without a reservation, because another command sent the request."""
        self._paid += cost
        self._settled.set()


def max_input_tokens(question: Question) -> int:
    """Return an upper bound on the prompt's tokens, for any common tokenizer."""
    texts = [message.content for message in question.messages]
    tokens = sum(_max_tokens(word) for text in texts for word in text.split())
    return ceil(tokens) + MAX_TOKENS_AROUND_MESSAGE * len(texts)


def _max_tokens(word: str) -> float:
    """Bound the tokens of a word and the space before it.

    In prose a token averages at least two bytes. Anything else, such as a move, a FEN or a number,
    has at most one token per byte.
    """
    size = len(word.encode()) + 1
    is_prose = len(word) > 1 and word.strip(string.punctuation).isalpha()
    return size / 2 if is_prose else size


FREE = Price(0.0, 0.0)

STOPPED = "stopped before it was asked"


class Meter:
    """Pays for the requests of one command to one model.

    Dollars are reserved only for requests in flight. These end by themselves, so waiting for the
    budget cannot deadlock.

    Attributes:
        used: the tokens of all answers.
        spent: their cost in US dollars; None if the tokens of any answer were not counted.
        budget: what may be spent.
        price: the price of a single request.
        stopping: set when no more requests are to be sent.
    """

    def __init__(self, budget: Budget, price: Price, stopping: asyncio.Event) -> None:
        self.used = Usage()
        self.spent: float | None = 0.0
        self.budget = budget
        self.price = price
        self.stopping = stopping

    def record(self, answer: Answer, price: Price, max_cost: float) -> float:
        """Count an answer and return its cost.

        That is ``max_cost`` if its tokens were not counted.
        """
        self.used += answer.usage
        if not price.is_metered(answer):
            self.spent = None
            return max_cost
        cost = price.of(answer.usage, 1)
        self.spent = None if self.spent is None else self.spent + cost
        return cost


class MeteredModel(Model):
    """A model whose requests a meter pays for."""

    def __init__(self, model: Model, meter: Meter) -> None:
        self.info = model.info
        self._model = model
        self._meter = meter

    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        """Send one request and pay for it: its maximum cost, unless the actual cost is known.

        Raises:
            BudgetExceeded: if the budget does not cover the maximum cost.
            RequestRejected, TransientError, UserError: as the model does.
        """
        meter = self._meter
        max_cost = meter.price.max_cost(question, limit_of(variant, settings))
        waited = await meter.budget.reserve(max_cost)
        cost = max_cost
        try:
            if waited and meter.stopping.is_set():
                raise TransientError(STOPPED)
            answer = await self._model.answer(question, settings, variant)
            cost = meter.record(answer, meter.price, max_cost)
            return answer
        except (RequestRejected, UserError):
            cost = 0.0
            raise
        except TransientError as error:
            cost = max_cost if error.maybe_billed else 0.0
            raise
        finally:
            meter.budget.settle(max_cost, cost)
