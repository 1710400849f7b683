"""What a run is expected to cost, by the price list and the cached answers."""

from functools import partial
from typing import Any

import pytest

from cant_do_that_anymore import Spec
from cant_do_that_anymore.client.pricing import Price, price_for
from cant_do_that_anymore.providers.base import Usage
from cant_do_that_anymore.providers.catalog import parse_name
from cant_do_that_anymore.runs.cost import estimate
from planted_models import habit_in_every_fifth
from testing import Reasoning, Serve, cdta, evaluate, measure


def test_the_list_has_a_price_for_input_and_output() -> None:
    prices = {
        name: price_for(Spec(model=name), parse_name(name).info())
        for name in ("openai/gpt-4o", "openai/gpt4o", "cdta/pocket")
    }
    listed, unknown, bundled = prices.values()
    assert listed and listed.of(Usage(1_000_000, 0)) == pytest.approx(2.5)
    assert listed.of(Usage(0, 1_000_000)) == pytest.approx(10)
    assert (unknown, bundled) == (None, Price(0, 0))
    expected = estimate(Spec(model="openai/gpt4o"))
    assert "set --price IN,OUT" in expected.assumptions[-1]
    assert expected.dollars is None and "cost unknown" in str(expected)


@pytest.mark.parametrize(
    "spec",
    [
        Spec(model="openai/gpt-4o", eval="all_small"),
        # With fewer hits there is less to measure, so the low end comes from the lowest rate.
        Spec(model="openai/o4-mini", rules="base-9", diagnose=True),
    ],
)
def test_an_estimate_has_one_figure_in_a_narrow_range(spec: Spec) -> None:
    expected = estimate(spec)
    assert expected.dollars and expected.dollars_low and expected.dollars_high
    assert expected.dollars / 5 < expected.dollars_low < expected.dollars
    assert expected.dollars <= expected.dollars_high < 5 * expected.dollars
    stdout = cdta("estimate", "--model", "openai/gpt-4o", "--eval", "all_small", code=0).stdout
    assert stdout.startswith("openai/gpt-4o, all_small: about $0.69 (between $")


def test_reasoning_is_assumed_by_name_and_by_effort() -> None:
    def tokens(name: str, effort: Any = None) -> int:
        return estimate(Spec(model=name, n=50, reasoning_effort=effort)).output_tokens

    plain, reasoning = "openai/gpt-4o", "openai/o4-mini"
    assert tokens(plain) < tokens(reasoning)
    for name in (plain, reasoning):
        assert tokens(name, "none") == tokens(plain) < tokens(name, "low") < tokens(name, "high")


def test_cached_answers_tell_what_the_rest_costs(serve: Serve) -> None:
    server = serve(habit_in_every_fifth, reasoning=Reasoning(lambda _: 900))
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
    assert str(estimate(spec(n=60))) == "m, all: no requests to send"
