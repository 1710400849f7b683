"""A budget that reserves before it spends, metering of every request, and projected costs."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, inf
from statistics import fmean

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
    Usage,
    add_costs,
)
from ..providers.request_variants import limit_of
from ..task.spec import Spec
from .pricing import FREE, Pricing, own_or_listed

STOPPED = "stopped before the request was sent"


class BudgetExceeded(Interrupted):
    """The budget does not cover the maximum cost of the next request."""


class Budget:
    """The US dollars that a command may spend, on one model or on several.

    Before a request is sent, its maximum cost is reserved. Once it is answered, its actual cost is
    paid and the rest is released. So the limit holds with any number of requests in flight. What
    was approved may be passed by the requests in flight.

    Attributes:
        approved: the dollars that may be spent without asking; None for no such limit.
        paid: the dollars spent so far, at most.
        unknown: how much of that is the maximum cost of answers that were lost or not counted.
        later: the expected cost of other runs of the command, which are still to come.
        high: the most that the command will spend by its latest forecast.
    """

    def __init__(self, limit: float = inf, approved: float | None = None) -> None:
        self._limit = limit
        self.approved = approved
        self.paid = self.unknown = 0.0
        self.later = 0.0
        self.high = inf
        self._reserved: list[float] = []
        self._settled = asyncio.Event()

    @property
    def left(self) -> float:
        """Dollars neither paid nor reserved."""
        return self._limit - self.paid - sum(self._reserved)

    async def reserve(self, amount: float, kind: str = "request", change: str = "") -> bool:
        """Reserve the maximum cost of a request. Returns whether it had to wait for that.

        An error includes the given change since the first answers.

        Raises:
            BudgetExceeded: if not enough is left, and no request in flight can release any.
            NeedsApproval: if all that was approved is spent.
        """
        waited = False
        if self.approved is not None and self.paid >= self.approved > 0:
            raise NeedsApproval(
                f"{self.spent}, all that --ask-above {self.approved:g} allows{change}",
                approve=2 * self.paid,
            )
        while amount > self.left:
            if not self._reserved:
                limit = dollars(self._limit)
                advice = f"run the same command again to spend up to another {limit}"
                if amount > self._limit:
                    advice = f"set --max-cost {ceil(100 * amount) / 100:g} or more to continue"
                raise BudgetExceeded(
                    f"stopped at --max-cost {self._limit:g}: {self.spent}, and the next {kind} may "
                    f"cost {dollars(amount)}",
                    resume=advice,
                )
            if self._settled.is_set():  # the next run may use another event loop
                self._settled = asyncio.Event()
            await self._settled.wait()
            waited = True
        self._reserved.append(amount)
        return waited

    @property
    def known(self) -> float:
        """Dollars spent so far, without answers that were lost or not counted."""
        return self.paid - self.unknown

    @property
    def spent(self) -> str:
        """What was spent so far, as text."""
        at_most = f", and at most {dollars(self.unknown)} for answers that were lost or not counted"
        return f"{dollars(self.known)} spent{at_most if self.unknown else ''}"

    def settle(self, reserved: float, cost: float | None) -> None:
        """Pay the actual cost of a request, and release the rest of its reservation.

        If the cost is unknown, all that was reserved is paid.
        """
        self._reserved.remove(reserved)
        self.unknown += reserved if cost is None else 0.0
        self.pay(reserved if cost is None else cost)

    def pay(self, cost: float) -> None:
        """Pay a cost without a reservation, because another command sent the request."""
        self.paid += cost
        self._settled.set()


class Meter:
    """Pays for the requests of one command to one model.

    Dollars are reserved only for requests in flight. These end by themselves, so waiting for the
    budget cannot deadlock.

    Attributes:
        used: the tokens of all answers.
        known: their cost in US dollars; None if the tokens of any answer were not counted.
        lost: how many answers were lost, and may have been billed.
        budget: what may be spent.
        pricing: the prices of a single request; None if unknown.
        stopping: set when no more requests are to be sent.
        lengths: the output tokens of all answers.
    """

    def __init__(self, budget: Budget, pricing: Pricing | None, stopping: asyncio.Event) -> None:
        self.used = Usage()
        self.known: float | None = 0.0
        self.lost = 0
        self.budget = budget
        self.pricing = pricing
        self.stopping = stopping
        self.lengths: list[int] = []

    def record(self, answer: Answer, pricing: Pricing | None) -> Answer:
        """Count an answer; return it with its cost at this moment, if that is known."""
        self.used += answer.usage
        self.lengths.append(answer.usage.output_tokens)
        price = pricing.now if pricing else None
        if not price or not price.is_metered(answer):
            self.known = None
            return answer
        cost = price.of(answer.usage, 1)
        self.known = add_costs(self.known, cost)
        return replace(answer, cost=cost)

    @property
    def spent(self) -> float | None:
        """The cost of all requests, with lost answers at the average; None if unknown."""
        if self.known is None:
            return None
        return self.known * (1 + self.lost / max(1, len(self.lengths)))


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
        max_cost = price.max_cost(question, limit_of(variant, settings))
        waited = await meter.budget.reserve(max_cost, change=longer_answers(meter.lengths))
        cost: float | None = None
        try:
            if waited and meter.stopping.is_set():
                raise TransientError(STOPPED)
            answer = meter.record(
                await self._model.answer(question, settings, variant), meter.pricing
            )
            cost = answer.cost
            return answer
        except (RequestRejected, UserError):
            cost = 0.0
            raise
        except TransientError as error:
            meter.lost += error.maybe_billed
            cost = None if error.maybe_billed else 0.0
            raise
        finally:
            meter.budget.settle(max_cost, cost)


def budget_for(spec: Spec, model: ModelInfo) -> Budget:
    """Return a budget of the spec's ``max_cost``, or of what it may spend without approval.

    Raises:
        InvalidInput: if there is a limit and the price is unknown.
    """
    if spec.max_cost is None:
        return Budget(approved=spec.ask_above)
    check_price(spec, model)
    return Budget(spec.max_cost)


def check_price(spec: Spec, model: ModelInfo) -> None:
    """Check that the model's price is known, so that a cost limit can hold.

    Raises:
        InvalidInput: if it is unknown.
    """
    if not own_or_listed(spec, model):
        raise InvalidInput(
            f"--max-cost needs a price, but the price of {model.name} is unknown; give it with "
            "--price IN,OUT in dollars per million tokens, or limit the run with -n instead"
        )


# The cost of answers to come is that of so many recent ones.
RECENT = 50
# So many answers show what changed.
LATEST = 10
# Answers that take so many times the tokens of the first ones are a change worth naming.
LONGER = 1.5


class RunningCost:
    """Follows what a run spends, and projects its total from the answers so far.

    Args:
        pricing: the prices; None if unknown.
        per_sample: requests per position once it is selected.
        budget: what may be spent.
        on_change: called when the total will exceed the forecast, with what changed.

    Attributes:
        per_sample: as given.
    """

    def __init__(
        self,
        pricing: Pricing | None,
        per_sample: int,
        budget: Budget,
        on_change: Callable[[str], None],
    ) -> None:
        self.per_sample = per_sample
        self._pricing = pricing
        self._budget = budget
        self._on_change = on_change
        self._paid, self._next_check = budget.paid, 0
        self._answers: list[Answer] = []
        self._recent: dict[str, deque[Answer]] = {}

    def observe(self, answer: Answer, step: str) -> None:
        """Count an answer of a step: "dataset" or "measuring"."""
        if answer.error:
            return
        brief = Answer(usage=answer.usage, cost=answer.cost)
        self._answers.append(brief)
        self._recent.setdefault(step, deque(maxlen=RECENT)).append(brief)

    def in_total(self, to_search: float, to_measure: float) -> list[str]:
        """Format the projected total and the progress, given the requests still to come."""
        seen = len(self._answers)
        progress = f"{seen:,} of about {seen + to_search + to_measure:,.0f} requests"
        total = self.format_cost(to_search, to_measure, self._answers)
        return [f"about {total} in total", progress] if total else [progress]

    def format_cost(
        self, to_search: float, to_measure: float, answers: Sequence[Answer] = ()
    ) -> str:
        """Format the expected cost of requests and answers, in tokens if the price is unknown.

        Empty if the model is free or if tokens were not counted.
        """
        if self._pricing:
            expected = self.expected(to_search, to_measure)
            known = add_costs(expected, *(answer.cost for answer in answers))
            return dollars(known) if known else ""
        used = [each.usage.input_tokens + each.usage.output_tokens for each in self._answers]
        total = sum(used) / max(1, len(used)) * (len(answers) + to_search + to_measure)
        return f"{total:,.0f} tokens" if all(used) and total else ""

    def expected(self, to_search: float, to_measure: float) -> float | None:
        """Return the expected cost of these requests; None if it cannot be told."""
        total = 0.0
        for step, requests in {"dataset": to_search, "measuring": to_measure}.items():
            recent = self._recent.get(step) or self._recent.get("dataset") or ()
            cost = add_costs(*(answer.cost for answer in recent))
            if requests and (cost is None or not recent):
                return None
            total += requests * (cost or 0.0) / max(1, len(recent))
        return total

    def check(self, to_search: float, to_measure: float) -> None:
        """Compare the projected total, given the requests still to come, with the forecast.

        Raises:
            NeedsApproval: if it exceeds the forecast and what is approved.
        """
        budget, seen = self._budget, len(self._answers)
        if budget.paid == self._paid or seen < self._next_check:  # from the cache, or checked
            return
        expected = self.expected(to_search, to_measure) or 0.0
        if budget.known + budget.later + expected > budget.high:
            self._paid, self._next_check = budget.paid, seen + LATEST
            self._on_change(self._change())

    def _change(self) -> str:
        """Say what changed since the first answers."""
        if change := longer_answers([answer.usage.output_tokens for answer in self._answers]):
            return change
        return ": fewer positions qualify than expected" if "measuring" not in self._recent else ""


def longer_answers(lengths: Sequence[int]) -> str:
    """Say that the latest answers are longer than the first; empty if they are not."""
    first, last = lengths[:RECENT], lengths[-LATEST:]
    if not lengths or fmean(last) <= LONGER * fmean(first):
        return ""
    return f": answers now take about {fmean(last):,.0f} tokens, the first took {fmean(first):,.0f}"
