"""A budget that reserves before it spends, metering of every request, and projected costs."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import ceil, inf
from statistics import fmean
from typing import NamedTuple

from ..errors import Interrupted, InvalidInput, NeedsApproval, UserError
from ..formatting import dollars
from ..providers.base import (
    Answer,
    Model,
    ModelInfo,
    Question,
    RequestRejected,
    RequestVariant,
    Settings,
    TransientError,
    add_costs,
)
from ..task.spec import Spec
from .pricing import FREE, Pricing, max_input_tokens, pricing_for

STOPPED = "stopped before the request was sent"


class Range(NamedTuple):
    """A number that is not known yet: with a chance of 95% it is between `low` and `high`."""

    low: float
    expected: float
    high: float

    def plus(self, other: "Range") -> "Range":
        """Add two ranges, end by end."""
        return Range(*map(sum, zip(self, other, strict=True)))


NOTHING = Range(0.0, 0.0, 0.0)


class BudgetExceeded(Interrupted):
    """The budget does not cover the maximum cost of the next request."""


@dataclass
class Budget:
    """The US dollars that a command may spend, on one model or on several.

    Before a request is sent, its maximum cost is reserved. Once it is answered, its actual cost is
    paid and the rest is released. So the limit holds with any number of requests in flight. What
    was approved may be passed by the requests in flight.

    Attributes:
        limit: the dollars that may be spent at most.
        approved: the dollars that may be spent without asking; None for no such limit.
        known: the dollars spent so far, without answers that were lost or not counted.
        unknown: the maximum cost of those.
        later: the cost of other runs of the command, which are still to come.
        high: the most that the command will spend by its latest forecast.
        warned: whether the user was told that the limit is too low.
    """

    limit: float = inf
    approved: float | None = None
    known: float = 0.0
    unknown: float = 0.0
    later: Range = NOTHING
    high: float = inf
    warned: bool = False
    _reserved: list[float] = field(default_factory=list)
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def left(self) -> float:
        """Dollars neither paid nor reserved."""
        return self.limit - self.paid - sum(self._reserved)

    async def reserve(
        self, amount: float, kind: str = "request", lengths: Sequence[int] = ()
    ) -> bool:
        """Reserve the maximum cost of a request. Returns whether it had to wait for that.

        An error says if answers became longer, by the ``lengths`` of those so far.

        Raises:
            BudgetExceeded: if not enough is left, and no request in flight can release any.
            NeedsApproval: if all that was approved is spent.
        """
        waited = False
        if self.approved is not None and self.paid >= self.approved > 0:
            allowed = f"all that --ask-above {self.approved:g} allows{longer_answers(lengths)}"
            raise NeedsApproval(lambda: f"{self.spent}, {allowed}", approve=2 * self.paid)
        while amount > self.left:
            if not self._reserved:
                limit = dollars(self.limit)
                advice = f"run the same command again to spend up to another {limit}"
                if amount > self.limit:
                    advice = f"set --max-cost {ceil(100 * amount) / 100:g} or more to continue"
                raise BudgetExceeded(
                    lambda: (
                        f"stopped at --max-cost {self.limit:g}: {self.spent}, and the next {kind} "
                        f"may cost {dollars(amount)}"
                    ),
                    resume=advice,
                )
            if self._settled.is_set():  # the next run may use another event loop
                self._settled = asyncio.Event()
            await self._settled.wait()
            waited = True
        self._reserved.append(amount)
        return waited

    @property
    def paid(self) -> float:
        """Dollars spent so far, at most."""
        return self.known + self.unknown

    @property
    def reforecast_above(self) -> float:
        """A higher total than this, of the last forecast or allowed, calls for another forecast."""
        return inf if self.high == inf else min(self.high, self.limit, self.approved or inf)

    @property
    def spent(self) -> str:
        """What was spent so far, as text."""
        at_most = f", and at most {dollars(self.unknown)} for answers that were lost or not counted"
        return f"{dollars(self.known)} spent{at_most if self.unknown else ''}"

    def settle(self, reserved: float, known: float, unknown: float) -> None:
        """Pay for what was reserved: its known cost, and the maximum of what is unknown."""
        self._reserved.remove(reserved)
        self.pay(known, unknown)

    def pay(self, known: float, unknown: float) -> None:
        """Pay without a reservation, because another command sent the requests."""
        self.known += known
        self.unknown += unknown
        self._settled.set()


@dataclass
class Meter:
    """Reserves, counts and pays the cost of the requests of one command to one model.

    Dollars are reserved only for requests in flight. These end by themselves, so waiting for the
    budget cannot deadlock.

    Attributes:
        budget: what may be spent.
        pricing: the prices of a single request; None if unknown.
        stopping: set when no more requests are to be sent.
        known: the cost of all answers in US dollars; None if the tokens of any were not counted.
        lost: how many answers were lost, and may have been billed.
        lost_in_answers: how many of them are part of the cost of the answers after them.
        lengths: the output tokens of all answers.
        input_factor: how many times our bound the server counted of any input, if more than 1.
    """

    budget: Budget
    pricing: Pricing | None
    stopping: asyncio.Event
    known: float | None = 0.0
    lost: int = 0
    lost_in_answers: int = 0
    lengths: list[int] = field(default_factory=list)
    input_factor: float = 1.0

    def record(self, answer: Answer, pricing: Pricing | None) -> Answer:
        """Count an answer; return it with its cost at this moment, if that is known."""
        self.lengths.append(answer.usage.output_tokens)
        cost = pricing.of(answer) if pricing else None
        self.known = add_costs(self.known, cost)
        return answer if cost is None else replace(answer, cost=cost)

    def charge(self, result: Answer | Exception, max_cost: float) -> tuple[float, float]:
        """Return the known cost of a result, and its maximum if the cost is unknown."""
        if isinstance(result, Answer):
            return (0.0, max_cost) if result.cost is None else (result.cost, 0.0)
        is_lost = isinstance(result, TransientError) and result.maybe_billed
        self.lost += is_lost
        return 0.0, max_cost * is_lost

    def with_lost(self, answer: Answer, lost: int, rate: float = 1.0) -> Answer:
        """Return an answer that also costs what earlier attempts did, whose answers were lost.

        Each is taken to have cost as much, at a ``rate``. So the total of a later command includes
        them.
        """
        if not lost or answer.error:
            return answer
        self.lost_in_answers += lost
        self.known = add_costs(self.known, lost * rate * (answer.cost or 0.0))
        return _paid_times(answer, 1 + lost * rate)

    @property
    def spent(self) -> float | None:
        """The cost of all requests, with other lost answers at the average; None if unknown."""
        if self.known is None:
            return None
        others = self.lost - self.lost_in_answers
        return self.known * (1 + others / max(1, len(self.lengths) + self.lost_in_answers))


def with_discarded(answer: Answer, attempts: Sequence[Answer]) -> Answer:
    """Return an answer that also costs what all attempts at it did, in several request variants."""
    received = [attempt for attempt in attempts if not attempt.error]
    if answer.error or len(received) < 2:
        return answer
    has_cost = all(attempt.cost for attempt in received)

    def size(attempt: Answer) -> float:
        usage = attempt.paid_usage
        tokens = usage.input_tokens + usage.output_tokens
        return attempt.cost if has_cost and attempt.cost else tokens

    return _paid_times(answer, sum(map(size, received)) / (size(answer) or 1.0))


def _paid_times(answer: Answer, factor: float) -> Answer:
    cost = None if answer.cost is None else factor * answer.cost
    return replace(answer, cost=cost, times_paid=factor * answer.times_paid)


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
        price = meter.pricing.dearest if meter.pricing else FREE
        max_cost = price.max_cost(question, settings, variant, meter.input_factor)
        waited = await meter.budget.reserve(max_cost, lengths=meter.lengths)
        result: Answer | Exception = TransientError("canceled", maybe_billed=True)
        try:
            if waited and meter.stopping.is_set():
                raise TransientError(STOPPED)
            answer = await self._model.answer(question, settings, variant)
            result = answer = meter.record(answer, meter.pricing)
            counted = answer.usage.input_tokens / max_input_tokens(question)
            meter.input_factor = max(meter.input_factor, counted)
            return answer
        except (RequestRejected, TransientError, UserError) as error:
            result = error
            raise
        finally:
            meter.budget.settle(max_cost, *meter.charge(result, max_cost))


def budget_for(spec: Spec, model: ModelInfo | None = None) -> Budget:
    """Return a budget of the spec's ``max_cost``, or of what it may spend without approval.

    Raises:
        InvalidInput: if there is a limit and the price of the model is unknown.
    """
    if spec.max_cost is None:
        return Budget(approved=spec.ask_above)
    if model and not pricing_for(spec, model):
        raise InvalidInput(
            f"--max-cost needs a price, but the price of {model.name} is unknown; give it with "
            "--price IN,OUT in dollars per million tokens, or limit the run with -n instead"
        )
    return Budget(spec.max_cost)


# The cost of answers to come is that of so many recent ones.
RECENT_ANSWERS = 50
# So many answers show what changed.
LATEST_ANSWERS = 10
# Answers that take so many times the tokens of the first ones are a change worth naming.
LONGER_FACTOR = 1.5


@dataclass
class RunningCost:
    """Follows what a run spends, and projects its total from the answers so far.

    Attributes:
        per_sample: requests per position once it is selected.
        meter: pays for the answers.
        on_change: called when the total will exceed the forecast, with what changed.
    """

    per_sample: int
    meter: Meter
    on_change: Callable[[str], None]
    _next_check: int = 0

    def __post_init__(self) -> None:
        self._paid = self.meter.budget.paid
        self._lengths: list[int] = []
        # Dollars of each answer, or tokens if the price is unknown.
        self._costs: dict[str, list[float | None]] = {"dataset": [], "measuring": []}

    def observe(self, answer: Answer, step: str) -> None:
        """Count an answer of a step: "dataset" or "measuring"."""
        if not answer.error:
            usage, pricing = answer.usage, self.meter.pricing
            tokens = usage.input_tokens + usage.output_tokens
            self._costs[step].append(pricing.of(answer) if pricing else tokens or None)
            self._lengths.append(usage.output_tokens)

    def in_total(self, to_search: float, to_measure: float) -> list[str]:
        """Format the projected total and the progress, given the requests still to come."""
        seen = len(self._lengths)
        progress = f"{seen:,} of about {seen + to_search + to_measure:,.0f} requests"
        total = self.format_cost(to_search, to_measure, *chain(*self._costs.values()))
        return [f"about {total} in total", progress] if total else [progress]

    def format_cost(self, to_search: float, to_measure: float, *so_far: float | None) -> str:
        """Format what answers cost and requests are expected to cost.

        Empty if the model is free or if tokens were not counted.
        """
        if not (cost := add_costs(self.expected(to_search, to_measure), *so_far)):
            return ""
        return dollars(cost) if self.meter.pricing else f"{cost:,.0f} tokens"

    def expected(self, to_search: float, to_measure: float) -> float | None:
        """Return the expected cost of these requests; None if it cannot be told."""
        expected: list[float | None] = []
        for costs, requests in zip(self._costs.values(), (to_search, to_measure), strict=True):
            recent = (costs or self._costs["dataset"])[-RECENT_ANSWERS:]
            cost = add_costs(*recent) if recent else None
            if requests:
                expected.append(None if cost is None else requests * cost / len(recent))
        return add_costs(*expected)

    def check(self, to_search: float, to_measure: float) -> None:
        """Compare the projected total, given the requests still to come, with the forecast.

        Raises:
            NeedsApproval: if it exceeds the forecast and what is approved.
        """
        budget, seen = self.meter.budget, len(self._lengths)
        if budget.paid == self._paid or seen < self._next_check:  # from the cache, or checked
            return
        expected = self.expected(to_search, to_measure) or 0.0
        if budget.known + budget.later.expected + expected > budget.reforecast_above:
            self._paid, self._next_check = budget.paid, seen + max(LATEST_ANSWERS, seen // 5)
            fewer = "" if self._costs["measuring"] else ": fewer positions qualify than expected"
            longer = longer_answers(self.meter.lengths) or longer_answers(self._lengths)
            self.on_change(longer or fewer)


def longer_answers(lengths: Sequence[int]) -> str:
    """Say that the latest answers are longer than the first; empty if they are not."""
    first, last = lengths[:RECENT_ANSWERS], lengths[-LATEST_ANSWERS:]
    if not lengths or fmean(last) <= LONGER_FACTOR * fmean(first):
        return ""
    return f": answers now take about {fmean(last):,.0f} tokens, the first took {fmean(first):,.0f}"
