"""A price list for the model "priced" on loopback servers, and servers that charge for it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from aiohttp import web
from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot
from genai_prices.types import ClauseEquals, ModelInfo, ModelPrice, Provider

from loopback import Body, Loopback
from reasoning_servers import ReasoningServer

INPUT, OUTPUT = 1e-4, 1e-3
"""Dollars per token."""


@contextmanager
def price_list() -> Iterator[None]:
    """The price list has the model "priced" at loopback addresses."""
    prices = ModelPrice(input_mtok=Decimal(INPUT * 1e6), output_mtok=Decimal(OUTPUT * 1e6))
    model = ModelInfo(id="priced", match=ClauseEquals(equals="priced"), prices=prices)
    provider = Provider("loopback", "Loopback", r"http://127\.0\.0\.1.*", models=[model])
    set_custom_snapshot(DataSnapshot([provider], from_auto_update=False))
    try:
        yield
    finally:
        set_custom_snapshot(None)


def charge(usage: Mapping[str, Any]) -> float:
    """What a server charges for these tokens."""
    return float(usage["prompt_tokens"] * INPUT + usage["completion_tokens"] * OUTPUT)


def total_charge(server: Loopback) -> float:
    """What a server charged for all requests, by its own token counts."""
    return sum(charge(server.completion(request)["usage"]) for request in server.requests)


@dataclass
class ChargingServer(ReasoningServer):
    """A server of a reasoning model that adds up its charges."""

    charged: float = 0.0

    def completion_with_reasoning(self, request: Body) -> dict[str, Any]:
        completion = super().completion_with_reasoning(request)
        self.charged += charge(completion["usage"])
        return completion


@dataclass
class LossyServer(ChargingServer):
    """Charges for every answer, but every n-th question is answered in vain the first time."""

    every: int = 1
    lost_response: type[web.StreamResponse] = web.Response
    asked: set[str] = field(default_factory=set)

    async def _answer(self, request: Body, number: int) -> web.StreamResponse:
        response = await super()._answer(request, number)
        is_new = str(request) not in self.asked
        self.asked.add(str(request))
        is_lost = response.status == 200 and is_new and len(self.asked) % self.every == 0
        return self.lost_response() if is_lost else response
