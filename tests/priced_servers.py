"""A price list for the model "priced" on loopback servers, and what such servers charge."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from aiohttp import web
from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot
from genai_prices.types import ClauseEquals, ModelInfo, ModelPrice, Provider

from loopback import Body, Loopback
from reasoning_servers import Thinker

INPUT, OUTPUT = 1e-4, 1e-3
"""Dollars a token."""


def price(times: int = 1) -> ModelPrice:
    """A multiple of the usual price."""
    tokens = {"input_mtok": INPUT, "output_mtok": OUTPUT}
    return ModelPrice(**{kind: Decimal(times * dollars * 1e6) for kind, dollars in tokens.items()})


@contextmanager
def price_list(prices: Any = None) -> Iterator[None]:
    """The price list knows the model "priced" behind loopback addresses."""
    model = ModelInfo(id="priced", match=ClauseEquals(equals="priced"), prices=prices or price())
    provider = Provider("loopback", "Loopback", r"http://127\.0\.0\.1.*", models=[model])
    set_custom_snapshot(DataSnapshot([provider], from_auto_update=False))
    try:
        yield
    finally:
        set_custom_snapshot(None)


def charge(usage: Mapping[str, Any]) -> float:
    """What a server asks for so many tokens."""
    return float(usage["prompt_tokens"] * INPUT + usage["completion_tokens"] * OUTPUT)


def paid(server: Loopback, first: int | None = None) -> float:
    """What the server's answers cost, or the first so many, by its own count of tokens."""
    return sum(charge(server.completion(request)["usage"]) for request in server.requests[:first])


@dataclass
class Charging(Thinker):
    """A model that thinks, and whose server counts what it charges as soon as it has thought."""

    charged: float = 0.0

    def thoughtful(self, request: Body) -> dict[str, Any]:
        completion = super().thoughtful(request)
        self.charged += charge(completion["usage"])
        return completion


@dataclass
class Losing(Charging):
    """Every so many times it thinks, charges, and the answer never arrives."""

    every: int = 2
    lost: type[web.StreamResponse] = web.Response

    async def _answer(self, request: Body, number: int) -> web.StreamResponse:
        answered = await super()._answer(request, number)
        return self.lost() if answered.status == 200 and number % self.every == 0 else answered
