"""A budget that reserves before it spends, metering of every request, and projected costs."""

import asyncio
from collections import deque
from collections.abc import Sequence
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
        paid: the dollars spent so far.
        later: the expected cost of other runs of the command, which are still to come.
    """

    def __init__(self, limit: float = inf, approved: float | None = None) -> None:
        self._limit = limit
        self.approved = approved
        self.paid = 0.0
        self.later = 0.0
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
                f"{dollars(self.paid)} spent, all that --ask-above {self.approved:g} allows"
                f"{change}",
                approve=2 * self.paid,
            )
        while amount > self.left:
            if not self._reserved:
                limit = dollars(self._limit)
                advice = f"run the same command again to spend up to another {limit}"
                if amount > self._limit:
                    advice = f"set --max-cost {ceil(100 * amount) / 100:g} or more to continue"
                raise BudgetExceeded(
                    f"stopped at --max-cost: {dollars(self.paid)} of {limit} spent, and the next "
                    f"{kind} may cost {dollars(amount)}",
                    resume=advice,
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
        self.paid += cost
        self._settled.set()


class Meter:
    """Pays for the requests of one command to one model.

    Dollars are reserved only for requests in flight. These end by themselves, so waiting for the
    budget cannot deadlock.

    Attributes:
        used: the tokens of all answers.
        spent: their cost in US dollars; None if the tokens of any answer were not counted.
        budget: what may be spent.
        pricing: the prices of a single request; None if unknown.
        stopping: set when no more requests are to be sent.
        lengths: the output tokens of all answers.
    """

    def __init__(self, budget: Budget, pricing: Pricing | None, stopping: asyncio.Event) -> None:
        self.used = Usage()
        self.spent: float | None = 0.0
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
            self.spent = None
            return answer
        cost = price.of(answer.usage, 1)
        self.spent = None if self.spent is None else self.spent + cost
        return replace(answer, cost=cost)


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
        cost = max_cost
        try:
            if waited and meter.stopping.is_set():
                raise TransientError(STOPPED)
            answer = meter.record(
                await self._model.answer(question, settings, variant), meter.pricing
            )
            cost = max_cost if answer.cost is None else answer.cost
            return answer
        except (RequestRejected, UserError):
            cost = 0.0
            raise
        except TransientError as error:
            cost = max_cost if error.maybe_billed else 0.0
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
# Share of what may be spent without approval from which on projections are trusted.
FIRST_CHECK = 0.25
# Answers that take so many times the tokens of the first ones are a change worth naming.
LONGER = 1.5


class RunningCost:
    """Follows what a run spends, and projects its total from the answers so far.

    Args:
        pricing: the prices; None if unknown.
        per_sample: requests per position once it is selected.
        budget: what may be spent; None to follow without a limit.

    Attributes:
        per_sample: as given.
    """

    def __init__(
        self, pricing: Pricing | None, per_sample: int, budget: Budget | None = None
    ) -> None:
        self.per_sample = per_sample
        self._pricing = pricing
        self._budget = budget
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
        """Check that the projected total, given the requests still to come, is approved.

        Raises:
            NeedsApproval: if it is not.
        """
        budget = self._budget
        if not budget or not budget.approved or budget.paid < FIRST_CHECK * budget.approved:
            return
        expected = self.expected(to_search, to_measure) or 0.0
        total = budget.paid + budget.later + expected
        if total > budget.approved:
            raise NeedsApproval(
                f"{dollars(budget.paid)} spent so far, and the total will be about "
                f"{dollars(total)}, above the {dollars(budget.approved)} allowed without "
                f"approval{self._change()}",
                approve=2 * total,
            )

    def _change(self) -> str:
        """Say what changed since the first answers."""
        if change := longer_answers([answer.usage.output_tokens for answer in self._answers]):
            return change
        return ": fewer positions qualify than expected" if "measuring" not in self._recent else ""


def longer_answers(lengths: Sequence[int]) -> str:
    """Say that the latest answers are longer than the first; empty if they are not."""
    first, last = lengths[:RECENT], lengths[-RECENT // 5 :]
    if not lengths or fmean(last) <= LONGER * fmean(first):
        return ""
    return f": answers now take about {fmean(last):,.0f} tokens, the first took {fmean(first):,.0f}"
