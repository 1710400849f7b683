"""A limit in dollars holds: while a model shows how much it thinks, and when answers get lost."""

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
from priced_servers import Charging, Losing, charge
from reasoning_servers import OpenAI
from testing import POOL, Body, Loopback, Serve, habit, is_changed, measure, positions, question

pytestmark = pytest.mark.usefixtures("impatient", "priced")


class Strict(Charging, OpenAI):
    """Refuses names and temperatures first, as OpenAI does."""


class Forbidding(Charging):
    """Says with HTTP 400 that it could not finish, and charges all the same."""

    async def _answer(self, request: Body, number: int) -> web.StreamResponse:
        completion = self.thoughtful(request)
        (choice,) = completion["choices"]
        if choice["finish_reason"] != "length":
            return web.json_response(completion)
        told = "Could not finish the message because max_tokens was reached."
        return web.json_response({"error": {"message": told}}, status=400)


class Uncounted(Charging):
    """Charges, and does not say for what."""

    def thoughtful(self, request: Body) -> dict[str, Any]:
        return super().thoughtful(request) | {"usage": None}


def at_times_long(request: Body) -> int:
    """Some thoughts need more than the room that a model is given at first."""
    return 20_000 if len(str(request["messages"])) % 5 == 0 else 700


def losing(how: type[web.StreamResponse]) -> Callable[[], Charging]:
    """What is thought at length gets lost at times, and is charged all the same."""
    return lambda: Losing(habit, thinks=lambda _: 15_900, lost=how)


# By the limits: how much of each is left over at most, where that is known.
THINKERS: dict[str, tuple[Callable[[], Charging], dict[float, float]]] = {
    "takes everything": (lambda: Charging(habit), {40: 17, 200: 17}),
    "strict": (lambda: Strict(habit), {40: 17, 200: 17}),
    "says that it could not finish": (lambda: Forbidding(habit), {200: 200}),
    "does not count": (lambda: Uncounted(habit), {200: 200}),
    "thinks long at times": (lambda: Charging(habit, thinks=at_times_long), {200: 200}),
    "reset": (losing(Reset), {100: 34}),
    "cut off": (losing(CutOff), {100: 34}),
    "hanging": (losing(Silence), {100: 34}),
    "empty": (losing(web.Response), {100: 34}),
}


def spend(server: Loopback, limit: float, model: str = "priced") -> None:
    """Measure with a budget that cannot be enough, which a command would refuse at once."""
    spec = Spec(model=model, base_url=server.url, dataset=positions(300))
    evaluate(spec, quiet=True, budget=Budget(limit))


@pytest.mark.parametrize("kind", THINKERS)
def test_the_limit_holds(kind: str, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A given dataset, so that many questions are under way before anything is known."""
    if kind == "hanging":
        for name in ("TIME_OUT", "LONG_TIME_OUT"):
            monkeypatch.setattr(openai_api, name, aiohttp.ClientTimeout(total=0.5))
    make, limits = THINKERS[kind]
    for limit, left in limits.items():
        thinker = serve(make())
        thinker.delay = 0.005  # so that many requests are under way at once
        with pytest.raises(Incomplete, match="stopped at --max-cost"):
            spend(thinker, limit)
        assert limit - left < thinker.charged <= limit


def test_thinking_aloud_is_two_requests_and_both_are_paid(serve: Serve) -> None:
    def talkative(request: Body) -> str:
        last = request["messages"][-1]["content"]
        return "e2e4" if CONCLUDE in last else "Well, well, well. " * 200

    server = serve(talkative, delay=0.005)
    with pytest.raises(Incomplete, match="stopped at --max-cost"):
        spend(server, 10, "cot/priced")
    assert 8 < sum(charge(server.completion(each)["usage"]) for each in server.requests) <= 10


def test_two_models_that_share_a_budget_keep_within_it_together(store: Store, serve: Serve) -> None:
    servers = [serve(Charging(habit, delay=0.005)), serve(Strict(habit, delay=0.005))]
    budget = Budget(120.0)
    asks = [Request(question(each.moves), "measuring", "standard") for each in POOL[:300]]

    async def asked(thinker: Charging) -> None:
        model = model_named("priced", thinker.url)
        pricing = list_pricing(model.info) or pytest.fail()
        try:
            async for _ in Client(model, store, 16, budget, pricing).answers(asks, Settings()):
                pass
        finally:
            await model.close()

    async def both() -> list[BaseException | None]:
        return await asyncio.gather(*map(asked, servers), return_exceptions=True)

    assert [type(each) for each in asyncio.run(both())] == [BudgetExceeded, BudgetExceeded]
    assert all(thinker.charged > 0 for thinker in servers)
    assert 120 - 17 < sum(thinker.charged for thinker in servers) <= 120


def test_what_was_spent_is_what_the_server_charged(serve: Serve) -> None:
    thinker = serve(Strict(habit))
    run = measure(thinker, model="priced", n=12, max_connections=4, ask_above=None)
    assert run.cost.spent == pytest.approx(thinker.charged)


@dataclass
class Careless(Loopback):
    """Does not say what some answers took."""

    uncounted: Callable[[Body], bool] = lambda _: True

    def completion(self, request: Body) -> dict[str, Any]:
        told = super().completion(request)
        return told | ({"usage": {"total_tokens": 105}} if self.uncounted(request) else {})


@pytest.mark.parametrize(
    ("uncounted", "price", "known"),
    [
        (lambda _: True, (1_000, 1_000), (False, False, False)),
        (is_changed, (1_000, 1_000), (False, True, False)),
        (lambda request: request["temperature"] == 0, (1_000, 1_000), (True, False, False)),
        (lambda _: False, (1_000, 1_000), (True, True, True)),
        (lambda _: True, (0, 0), (True, True, True)),
    ],
)
def test_what_answers_cost_is_unknown_where_any_was_not_counted(
    uncounted: Callable[[Body], bool],
    price: tuple[float, float],
    known: tuple[bool, bool, bool],
    serve: Serve,
) -> None:
    server = serve(Careless(habit, uncounted=uncounted))
    cost = measure(server, pool=positions(6), n=4, price=price, ask_above=None).cost
    told = cost.measuring, cost.dataset, cost.spent
    assert tuple(each is not None for each in told) == known
    assert all(bool(each) == any(price) for each in told if each is not None)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(2, 1), "about $33.00 in total, 1 of about 11 requests"),
        (Usage(2, 0), "1 of about 11 requests"),
    ],
)
def test_no_cost_is_projected_of_uncounted_answers(usage: Usage, expected: str) -> None:
    pricing = Pricing(lambda _: Price(1.0, 1.0))
    meter = Meter(Budget(), pricing, asyncio.Event())
    running_cost = RunningCost(2, meter, lambda _: None)
    running_cost.observe(Answer("e2e4", usage=usage), "dataset")
    assert ", ".join(running_cost.in_total(10, 0)) == expected


def test_what_no_limit_can_pay_is_told_with_the_limit_that_could() -> None:
    with pytest.raises(
        BudgetExceeded, match=r"may cost \$1.71; all answers .*. Set --max-cost 1.72 or more"
    ):
        asyncio.run(Budget(0.5).reserve(1.714, "batch"))
