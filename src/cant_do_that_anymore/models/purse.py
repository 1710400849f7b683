"""Money: what answers cost, and a purse that is never overdrawn."""

import asyncio
from dataclasses import dataclass, fields
from math import inf

from ..errors import Unfinished
from .model import Question, Usage

MOST_TOKENS_A_TURN = 8
"""No chat layout wraps a turn in more tokens than this."""
LONGEST_MOVE = 5
BATCH_RATE = 0.5
"""What OpenAI, Together and most others take for a question in a batch, of the usual price."""


@dataclass(frozen=True)
class Price:
    """US dollars for one input token, one output token, and for asking at all."""

    input: float
    output: float
    request: float = 0.0

    def of(self, usage: Usage, requests: int) -> float:
        """What so many requests cost that used so many tokens together."""
        tokens = usage.input_tokens * self.input + usage.output_tokens * self.output
        return tokens + requests * self.request

    @property
    def in_batch(self) -> "Price":
        """The same in a batch."""
        return Price(*(getattr(self, each.name) * BATCH_RATE for each in fields(self)))

    def most(self, question: Question, limit: int) -> float:
        """The most that a question can cost under a token limit."""
        return self.of(Usage(most_input_tokens(question), limit), 1)


FREE = Price(0.0, 0.0)


class Spent(Unfinished):
    """The purse does not hold what the next question may cost."""


class Purse:
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

    async def put_aside(self, most: float, what: str = "question") -> bool:
        """Put aside the most that a request can cost; says whether that had to be waited for.

        Raises:
            Spent: if so much is not left, and no request under way can free any of it.
        """
        waited = False
        while most > self.left:
            if not self._put_aside:
                raise Spent(
                    f"stopped before passing --max-cost: ${self._paid:.4f} of ${self._limit:g} are "
                    f"spent and the next {what} may cost ${most:.4f}; all answers are saved, run "
                    "the same command again to go on and spend as much again"
                )
            if self._settled.is_set():  # a new one: the next run waits in another event loop
                self._settled = asyncio.Event()
            await self._settled.wait()
            waited = True
        self._put_aside.append(most)
        return waited

    def settle(self, put_aside: float, cost: float) -> None:
        """Pay what a request cost, and free the rest of what was put aside for it."""
        self._put_aside.remove(put_aside)
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
