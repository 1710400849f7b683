"""What a run is expected to cost, by the price list and the cached answers."""

from functools import partial

import pytest

from cant_do_that_anymore import Spec
from cant_do_that_anymore.client.pricing import Price, price_for
from cant_do_that_anymore.providers.base import Usage
from cant_do_that_anymore.providers.catalog import info_by_name
from cant_do_that_anymore.runs.cost import estimate
from planted_models import habit_in_every_fifth
from priced_servers import ChargingServer
from testing import Serve, cdta, evaluate, measure, positions


def test_the_list_has_a_price_for_input_and_output() -> None:
    def price_of(name: str) -> Price | None:
        return price_for(Spec(model=name), info_by_name(name))

    price = price_of("openai/gpt-4o")
    assert price and price.of(Usage(1_000_000, 0)) == pytest.approx(2.5)
    assert price.of(Usage(0, 1_000_000)) == pytest.approx(10)
    assert price_of("openai/gpt4o") is None
    assert price_of("cdta/pocket") == Price(0, 0)


def test_an_estimate_leads_with_one_figure_and_a_narrow_range() -> None:
    expected = estimate(Spec(model="openai/gpt-4o", eval="all_small"))
    assert expected.dollars and expected.dollars_low and expected.dollars_high
    assert expected.dollars / 5 < expected.dollars_low < expected.dollars
    assert expected.dollars < expected.dollars_high < 5 * expected.dollars
    assert 0.5 < expected.dollars < 1
    done = cdta("estimate", "--model", "openai/gpt-4o", "--eval", "all_small", code=0)
    first, *_ = done.stdout.split(" (between $")
    assert first == "openai/gpt-4o, all_small: about $0.69"
    assert "is assumed to reason in 0 tokens per answer" in " ".join(done.stdout.split())


def test_a_shipped_dataset_needs_no_search_and_has_no_range() -> None:
    expected = estimate(Spec(model="openai/gpt-4-0314", eval="all_small"))
    assert (expected.requests, expected.dollars_low) == (200, expected.dollars_high)


def test_the_range_of_a_small_pool_contains_the_figure() -> None:
    """With fewer hits there is less to measure, so the low end comes from the lowest rate."""
    expected = estimate(Spec(model="openai/o4-mini", rules="base-9", diagnose=True))
    assert expected.dollars and expected.dollars_low and expected.dollars_high
    assert expected.dollars_low < expected.dollars <= expected.dollars_high


def test_reasoning_is_assumed_by_name_and_by_effort() -> None:
    tokens = {
        (name, effort): estimate(
            Spec(model=name, dataset=positions(50), n=50, reasoning_effort=effort)
        ).output_tokens
        for name in ("openai/o4-mini", "openai/gpt-4o")
        for effort in ("none", None, "low", "high")
    }
    [o4_none, o4, o4_low, o4_high, plain_none, plain, plain_low, plain_high] = tokens.values()
    assert o4_none == plain_none == plain < o4_low < o4 < o4_high
    assert (plain_low, plain_high) == (o4_low, o4_high)


def test_an_unknown_model_has_no_cost() -> None:
    expected = estimate(Spec(model="openai/gpt4o"))
    assert expected.dollars is None
    assert "set --price IN,OUT" in expected.assumptions[-1]
    assert "cost unknown" in str(expected)


def test_cached_answers_tell_what_the_rest_costs(serve: Serve) -> None:
    server = serve(ChargingServer(habit_in_every_fifth, reasoning_tokens=lambda _: 900))
    spec = partial(Spec, model="m", base_url=server.url, price="2,20", wording="plain")
    before = estimate(spec(n=60))
    evaluate(spec(n=20), quiet=True)
    sent, charged = len(server.requests), server.charged
    expected = estimate(spec(n=60))
    assert expected.cached == sent
    measure(server, price="2,20", n=60, max_cost=100)
    rest = (server.charged - charged) / 50
    assert before.dollars and expected.dollars_low and expected.dollars_high
    assert before.dollars < rest / 2  # no answer told that the model reasons
    assert expected.dollars_low < rest < expected.dollars_high
    finished = estimate(spec(n=60))
    assert (finished.requests, finished.dollars) == (0, 0)
    assert str(finished) == "m, all: no requests to send"
