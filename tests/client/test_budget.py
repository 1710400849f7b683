"""A limit in dollars holds: while a model shows how much it thinks, and when answers get lost."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.client import client
from cant_do_that_anymore.client.budget import Budget, BudgetExceeded, Price
from cant_do_that_anymore.client.client import Client
from cant_do_that_anymore.client.pricing import RunningCost, price_of
from cant_do_that_anymore.client.store import Store
from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.providers import openai_api
from cant_do_that_anymore.providers.base import Answer, Request, Settings, Usage
from cant_do_that_anymore.providers.catalogue import model_named
from cant_do_that_anymore.providers.chain_of_thought import CONCLUDE
from charging import Charging, Losing, charge, price_list
from faults import CutOff, Reset, Silence
from loopback import Body, Loopback, is_changed, serving
from players import habit
from questions import question
from thinkers import OpenAI

POOL = shipped_pool("pool")[:300]


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


@pytest.fixture(autouse=True)
def priced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.01)
    with price_list():
        yield


@pytest.fixture
def positions(tmp_path: Path) -> Path:
    """A dataset, so that many questions are under way before anything is known of the model."""
    write_positions(tmp_path / "positions.jsonl", POOL)
    return tmp_path / "positions.jsonl"


THINKERS: dict[str, Callable[[], Charging]] = {
    "takes everything": lambda: Charging(habit),
    "strict": lambda: Strict(habit),
    "says that it could not finish": lambda: Forbidding(habit),
    "does not count": lambda: Uncounted(habit),
    "thinks very long at times": lambda: Charging(habit, thinks=at_times_long),
}


@pytest.mark.parametrize("kind", THINKERS)
@pytest.mark.parametrize("limit", [40.0, 200.0])
def test_the_limit_holds_while_it_is_learnt_how_much_a_model_thinks(
    kind: str, limit: float, positions: Path
) -> None:
    thinker = THINKERS[kind]()
    thinker.delay = 0.005  # so that many requests are under way at once
    with serving(thinker), pytest.raises(Incomplete, match="stopped before passing --max-cost"):
        spec = Spec(model="priced", base_url=thinker.url, dataset=positions, max_cost=limit)
        evaluate(spec, quiet=True)
    assert 0 < thinker.charged <= limit
    if kind in ("takes everything", "strict"):  # no more than a question may cost is left over
        assert thinker.charged > limit - 17


LOST = {"reset": Reset, "cut off": CutOff, "hanging": Silence, "empty": web.Response}


@pytest.mark.parametrize("how", LOST)
def test_what_was_thought_and_got_lost_is_paid(
    how: str, positions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_api, "TIME_OUT", aiohttp.ClientTimeout(total=0.5))
    monkeypatch.setattr(openai_api, "LONG_TIME_OUT", aiohttp.ClientTimeout(total=0.5))
    thinker = Losing(habit, thinks=lambda _: 15_900, lost=LOST[how], delay=0.005)
    with serving(thinker), pytest.raises(Incomplete, match="stopped before passing --max-cost"):
        spec = Spec(model="priced", base_url=thinker.url, dataset=positions, max_cost=150)
        evaluate(spec, quiet=True)
    assert 150 - 2 * 17 < thinker.charged <= 150


def test_thinking_aloud_is_two_requests_and_both_are_paid(positions: Path) -> None:
    def talkative(request: Body) -> str:
        last = request["messages"][-1]["content"]
        return "e2e4" if CONCLUDE in last else "Well, well, well. " * 200

    with serving(Loopback(talkative, delay=0.005)) as loopback:
        spec = Spec(model="cot/priced", base_url=loopback.url, dataset=positions, max_cost=10)
        with pytest.raises(Incomplete, match="stopped before passing --max-cost"):
            evaluate(spec, quiet=True)
        charged = sum(charge(loopback.completion(each)["usage"]) for each in loopback.requests)
    assert 8 < charged <= 10


def test_two_models_that_share_a_purse_keep_within_it_together(tmp_path: Path) -> None:
    servers = [Charging(habit, delay=0.005), Strict(habit, delay=0.005)]
    budget = Budget(120.0)
    asks = [Request(question(position.moves), "measuring", "standard") for position in POOL]

    async def asked(thinker: Charging, store: Store) -> None:
        model = model_named("priced", thinker.url)
        try:
            together = Client(model, store, 16, budget, price_of(model.info) or pytest.fail())
            async for _ in together.answers(asks, Settings()):
                pass
        finally:
            await model.close()

    async def both(store: Store) -> list[BaseException | None]:
        each = (asked(thinker, store) for thinker in servers)
        return await asyncio.gather(*each, return_exceptions=True)

    with ExitStack() as stack:
        for thinker in servers:
            stack.enter_context(serving(thinker))
        store = Store(tmp_path / "answers.sqlite")
        stack.callback(store.close)
        ended = asyncio.run(both(store))
    assert [type(each) for each in ended] == [BudgetExceeded, BudgetExceeded]
    assert all(thinker.charged > 0 for thinker in servers)
    assert 120 - 17 < sum(thinker.charged for thinker in servers) <= 120


def test_what_was_spent_is_what_the_server_charged() -> None:
    thinker = Strict(habit)
    with serving(thinker):
        spec = Spec(model="priced", base_url=thinker.url, n=12, max_connections=4, ask_above=None)
        run = evaluate(spec, quiet=True)
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
    tmp_path: Path,
) -> None:
    write_positions(tmp_path / "pool.jsonl", POOL[:6])
    with serving(Careless(habit, uncounted=uncounted)) as openai_api:
        pool = tmp_path / "pool.jsonl"
        spec = Spec(model="m", base_url=openai_api.url, pool=pool, n=4, price=price, ask_above=None)
        cost = evaluate(spec, quiet=True).cost
    told = cost.measuring, cost.dataset, cost.spent
    assert tuple(each is not None for each in told) == known
    assert all(bool(each) == any(price) for each in told if each is not None)


def test_no_cost_is_foreseen_of_answers_that_were_not_counted() -> None:
    foreseen = []
    for usage in (Usage(2, 1), Usage(), Usage(2)):
        outlook = RunningCost(Price(1.0, 1.0), 2)
        outlook.observe(Answer("e2e4", usage=usage))
        foreseen.append(outlook.cost_of(10))
    assert foreseen == ["$30.00", "", ""]


def test_what_no_limit_can_pay_is_told_with_the_limit_that_could() -> None:
    with pytest.raises(
        BudgetExceeded, match=r"may cost \$1.7140; all answers .*, --max-cost 1.72 or more"
    ):
        asyncio.run(Budget(0.5).reserve(1.714, "batch"))
