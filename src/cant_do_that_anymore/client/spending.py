"""What a client spends: every answer is paid for, and a limit stops it."""

from dataclasses import replace
from math import inf

from ..formatting import dollars, pluralize
from ..providers.base import Answer, Request, add_costs
from .pricing import FREE, CostLimit, CostLimitReached, Price, is_counted, rough_usage


class Spending:
    """Pays for answers, within the limit of a command.

    Attributes:
        limit: what the command may spend, and has spent.
        total: the dollars that this client spent; None if unknown.
    """

    def __init__(self, limit: CostLimit, price: Price | None, requests_per_answer: int) -> None:
        self.limit = limit
        self.total: float | None = None if price is None else 0.0
        self._price, self._requests = price, requests_per_answer
        self._dearest = 0.0  # of all answers so far, new or cached
        self._lost = 0

    def check(self, in_flight: int) -> None:
        """Stop if so many answers, at the dearest so far, pass the limit.

        Raises:
            CostLimitReached: if they do.
        """
        if self.limit.spent + in_flight * self._dearest > self.limit.limit:
            raise CostLimitReached("stopped at the cost limit")

    @property
    def answers_left(self) -> float:
        """How many more answers are affordable, but at least one: `check` judges that."""
        if not self._dearest:
            return inf
        return max(1.0, (self.limit.limit - self.limit.spent) / self._dearest)

    def paid(self, request: Request, answer: Answer) -> Answer:
        """Pay for an answer, and return it with its cost, if its tokens are counted."""
        if is_counted(answer) or self._price == FREE:
            cost = self._cost_of(answer)
            self._pay(cost or 0.0)
            return replace(answer, cost=cost)
        rough = replace(answer, usage=rough_usage(request.question.messages, answer))
        self._pay(self._cost_of(rough) or 0.0)
        self.total = None
        return answer

    def pay_for_lost(self) -> None:
        """Pay for an answer that got lost and may have been billed, as for the dearest."""
        self._lost += 1
        self._pay(self._dearest)

    def compare(self, cached: Answer) -> None:
        """Compare the cost of a cached answer with the dearest."""
        self._remember(self._cost_of(cached) or 0.0)

    @property
    def facts(self) -> list[str]:
        """What the command has spent, for a progress line; nothing if that is free or unknown."""
        return [f"{dollars(self.limit.spent)} spent"] if self.total else []

    @property
    def notes(self) -> list[str]:
        """How lost answers are counted, if there are any."""
        if not self._lost:
            return []
        counted = "; each counts like the dearest that arrived" if self.total else ""
        lost = f"{pluralize(self._lost, 'answer')} got lost in transit and may have been billed"
        return [lost + counted]

    def _cost_of(self, answer: Answer) -> float | None:
        """Return what an answer costs by its tokens; None if the price is unknown."""
        return self._price.of(answer.usage, self._requests) if self._price else None

    def _pay(self, amount: float) -> None:
        self.limit.spent += amount
        self.total = add_costs(self.total, amount)
        self._remember(amount)

    def _remember(self, cost: float) -> None:
        self._dearest = max(self._dearest, cost)
        self.limit.dearest = max(self.limit.dearest, self._dearest)
