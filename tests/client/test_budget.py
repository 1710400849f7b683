"""A cost limit holds while a model's reasoning length is unknown, and when answers get lost."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.client.budget import Budget, BudgetExceeded, Meter, RunningCost
from cant_do_that_anymore.client.client import Client
from cant_do_that_anymore.client.pricing import Price, Pricing, list_pricing
from cant_do_that_anymore.client.store import Store
from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.providers import openai_api
from cant_do_that_anymore.providers.base import Answer, Request, Settings, Usage
from cant_do_that_anymore.providers.catalog import model_named
from cant_do_that_anymore.providers.chain_of_thought import CONCLUDE
from faults import CutOff, Reset, Silence
from priced_servers import ChargingServer, LossyServer, total_charge
from reasoning_servers import OpenAI
from testing import POOL, Body, Loopback, Serve, habit, is_changed, measure, positions, question

pytestmark = pytest.mark.usefixtures("no_retry_delay", "priced")


class StrictServer(ChargingServer, OpenAI):
    """Rejects parameter names and temperatures at first, as OpenAI does."""


class UnfinishedServer(ChargingServer):
    """Replies with HTTP 400 if it cannot finish, and charges for that."""

    async def _answer(self, request: Body, number: int) -> web.StreamResponse:
        completion = self.completion_with_reasoning(request)
        (choice,) = completion["choices"]
        if choice["finish_reason"] != "length":
            return web.json_response(completion)
        message = "Could not finish the message because max_tokens was reached."
        return web.json_response({"error": {"message": message}}, status=400)


class UncountedServer(ChargingServer):
    """Charges without reporting the usage."""

    def completion_with_reasoning(self, request: Body) -> dict[str, Any]:
        return super().completion_with_reasoning(request) | {"usage": None}


def sometimes_long(request: Body) -> int:
    """Reasoning tokens, sometimes more than the first token limit allows."""
    return 20_000 if len(str(request["messages"])) % 5 == 0 else 700


def losing(lost: type[web.StreamResponse]) -> Callable[[], ChargingServer]:
    """A server that reasons long, loses every second answer, and charges for it."""
    return lambda: LossyServer(habit, reasoning_tokens=lambda _: 15_900, lost_response=lost)


# The server, and by limit, the amount that may remain unspent (all of it if unknown).
SERVERS: dict[str, tuple[Callable[[], ChargingServer], dict[float, float]]] = {
    "accepts everything": (lambda: ChargingServer(habit), {40: 17, 200: 17}),
    "strict": (lambda: StrictServer(habit), {40: 17, 200: 17}),
    "cannot finish": (lambda: UnfinishedServer(habit), {200: 200}),
    "reports no usage": (lambda: UncountedServer(habit), {200: 200}),
    "sometimes reasons long": (
        lambda: ChargingServer(habit, reasoning_tokens=sometimes_long),
        {200: 200},
    ),
    "connection reset": (losing(Reset), {100: 34}),
    "cut off": (losing(CutOff), {100: 34}),
    "hanging": (losing(Silence), {100: 34}),
    "empty": (losing(web.Response), {100: 34}),
}


def spend(server: Loopback, limit: float, model: str = "priced") -> None:
    """Measure with too small a budget, which a command would refuse at the start."""
    spec = Spec(model=model, base_url=server.url, dataset=positions(300))
    evaluate(spec, quiet=True, budget=Budget(limit))


@pytest.mark.parametrize("kind", SERVERS)
def test_the_cost_limit_holds(kind: str, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a given dataset, many requests are in flight before any cost is known."""
    if kind == "hanging":
        for name in ("TIMEOUT", "LONG_TIMEOUT"):
            monkeypatch.setattr(openai_api, name, aiohttp.ClientTimeout(total=0.5))
    make_server, limits = SERVERS[kind]
    for limit, unspent in limits.items():
        server = serve(make_server())
        server.delay = 0.005  # so that many requests are in flight at once
        with pytest.raises(Incomplete, match="stopped at --max-cost"):
            spend(server, limit)
        assert limit - unspent < server.charged <= limit


def test_both_requests_of_a_chain_of_thought_are_paid(serve: Serve) -> None:
    def reason_then_move(request: Body) -> str:
        last = request["messages"][-1]["content"]
        return "e2e4" if CONCLUDE in last else "Well, well, well. " * 200

    server = serve(reason_then_move, delay=0.005)
    with pytest.raises(Incomplete, match="stopped at --max-cost"):
        spend(server, 10, "cot/priced")
    assert 8 < total_charge(server) <= 10


def test_two_models_stay_within_a_shared_budget(store: Store, serve: Serve) -> None:
    servers = [serve(ChargingServer(habit, delay=0.005)), serve(StrictServer(habit, delay=0.005))]
    budget = Budget(120.0)
    requests = [Request(question(p.moves), "measuring", "standard") for p in POOL[:300]]

    async def send_requests(server: ChargingServer) -> None:
        model = model_named("priced", server.url)
        pricing = list_pricing(model.info) or pytest.fail()
        try:
            async for _ in Client(model, store, 16, budget, pricing).answers(requests, Settings()):
                pass
        finally:
            await model.close()

    async def errors() -> list[BaseException | None]:
        return await asyncio.gather(*map(send_requests, servers), return_exceptions=True)

    assert [type(error) for error in asyncio.run(errors())] == [BudgetExceeded, BudgetExceeded]
    assert all(server.charged > 0 for server in servers)
    assert 120 - 17 < sum(server.charged for server in servers) <= 120


def test_the_cost_of_a_run_is_what_the_server_charged(serve: Serve) -> None:
    server = serve(StrictServer(habit))
    run = measure(server, model="priced", n=12, max_connections=4, ask_above=None)
    assert run.cost.spent == pytest.approx(server.charged)


@dataclass
class SometimesUncounted(Loopback):
    """Does not report the usage of some answers."""

    is_uncounted: Callable[[Body], bool] = lambda _: True

    def completion(self, request: Body) -> dict[str, Any]:
        completion = super().completion(request)
        return completion | ({"usage": {"total_tokens": 105}} if self.is_uncounted(request) else {})


@pytest.mark.parametrize(
    ("is_uncounted", "price", "is_known"),
    [
        (lambda _: True, (1_000, 1_000), (False, False, False)),
        (is_changed, (1_000, 1_000), (False, True, False)),
        (lambda request: request["temperature"] == 0, (1_000, 1_000), (True, False, False)),
        (lambda _: False, (1_000, 1_000), (True, True, True)),
        (lambda _: True, (0, 0), (True, True, True)),
    ],
)
def test_a_cost_is_unknown_if_any_answer_reports_no_usage(
    is_uncounted: Callable[[Body], bool],
    price: tuple[float, float],
    is_known: tuple[bool, bool, bool],
    serve: Serve,
) -> None:
    server = serve(SometimesUncounted(habit, is_uncounted=is_uncounted))
    run = measure(server, pool=positions(6), n=4, price=price, ask_above=None)
    costs = run.cost.measuring, run.cost.dataset, run.cost.spent
    assert tuple(cost is not None for cost in costs) == is_known
    assert all(bool(cost) == any(price) for cost in costs if cost is not None)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(2, 1), "about $33.00 in total, 1 of about 11 requests"),
        (Usage(2, 0), "1 of about 11 requests"),
    ],
)
def test_no_cost_is_projected_without_reported_usage(usage: Usage, expected: str) -> None:
    pricing = Pricing(lambda _: Price(1.0, 1.0))
    meter = Meter(Budget(), pricing, asyncio.Event())
    running_cost = RunningCost(2, meter, lambda _: None)
    running_cost.observe(Answer("e2e4", usage=usage), "dataset")
    assert ", ".join(running_cost.in_total(10, 0)) == expected


def test_the_error_names_the_lowest_sufficient_limit() -> None:
    with pytest.raises(
        BudgetExceeded, match=r"may cost \$1.71; all answers .*. Set --max-cost 1.72 or more"
    ):
        asyncio.run(Budget(0.5).reserve(1.714, "batch"))
