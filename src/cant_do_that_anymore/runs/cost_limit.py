"""The cost limit of a run: checked before anything is sent, and explained when it is reached."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from math import ceil

from ..client.client import Client
from ..client.pricing import FREE, CostLimit, CostLimitReached, price_for
from ..client.session import open_client
from ..formatting import dollars
from ..providers.base import Model
from ..task.spec import Spec
from .cost import ExpectedCost, expected_cost

# A new limit is so many times the expected cost of the rest.
LIMIT_FACTOR = 1.5


@asynccontextmanager
async def affordable_client(
    spec: Spec, model: Model, limit: CostLimit | None
) -> AsyncIterator[Client]:
    """Open a client for a run, unless even the low end of its cost passes the limit.

    Raises:
        CostLimitReached: if that is so, or when the limit is reached later; the message says what
            the rest is expected to cost and which limit is enough.
    """
    async with open_client(spec, model, limit) as client:

        def rest() -> list[ExpectedCost]:
            return [expected_cost(spec, model.info, client.cache, set())]

        if price_for(spec, model.info) not in (None, FREE):
            check_affordable(rest(), client.spending.limit)
        try:
            yield client
        except CostLimitReached:
            raise limit_reached(rest(), client.spending.limit) from None


def check_affordable(expected: Sequence[ExpectedCost], limit: CostLimit) -> None:
    """Stop before anything is sent if even the low end of the expected cost passes the limit.

    Raises:
        CostLimitReached: if it does; the message says what would be enough.
    """
    if limit.spent + _sum(cost.dollars_low for cost in expected) > limit.limit:
        raise limit_reached(expected, limit)


def limit_reached(expected: Sequence[ExpectedCost], limit: CostLimit) -> CostLimitReached:
    """Return the error of a command that reached its limit, with what the rest costs."""
    rest = dollars(_sum(cost.dollars for cost in expected))
    enough = LIMIT_FACTOR * _sum(cost.dollars_high for cost in expected) + limit.dearest
    return CostLimitReached(
        f"stopped at {limit}, because the rest is expected to cost about {rest}",
        f"To finish, run the same command with --max-cost {ceil(enough)}, or with a smaller -n",
    )


def _sum(amounts: Iterable[float | None]) -> float:
    return sum(amount or 0.0 for amount in amounts)
