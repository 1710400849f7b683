"""Whole evaluations of servers and of the bundled network, and what they are expected to cost."""

from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

from cant_do_that_anymore.client.pricing import Price, price_for
from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.habits.chess.rules import STANDARD
from cant_do_that_anymore.providers.base import Answer, Usage
from cant_do_that_anymore.providers.catalog import parse_name
from cant_do_that_anymore.runs.cost import estimate
from cant_do_that_anymore.task.samples import FirstReplies
from cant_do_that_anymore.task.scorer import judge
from planted_models import habit_in_every_fifth
from testing import (
    POOL,
    Body,
    Reasoning,
    Serve,
    Spec,
    cdta,
    error_when,
    habit,
    measure,
    moves_in,
    openai_server,
    plan_of,
    positions_of,
)


def test_a_new_model_gets_a_dataset_of_its_own_habits(serve: Serve) -> None:
    """It has a habit in every third game of the pool; no more requests than needed are sent."""
    with_habit = {position.moves for position in POOL if position.game % 3 == 0}

    def respond(request: Body) -> str:
        return habit(request) if moves_in(request) in with_habit else "a7a6"

    server = serve(respond, model="brand-new-7b")
    run = measure(server, n=50)
    sent = len(server.requests)
    assert measure(server, n=50).results == run.results
    assert len(server.requests) == sent + 3  # the identity check
    assert (run.dataset.origin, len(run.samples)) == ("built", 50)
    assert {position.moves for position in positions_of(run.samples)} <= with_habit
    assert run.results["predicted_move_proportion"].value == 1
    assert sent < 50 * 3 * 2 + 100 + 32  # about three requests per hit, and those in flight
    larger = measure(server, n=80).dataset.items
    assert (len(larger), larger[:50]) == (80, run.dataset.items)
    assert measure(server, n=50).samples == run.samples


def test_requests_contain_exactly_the_specified_messages() -> None:
    with openai_server(habit, model="gpt-4-0314") as server:
        run = measure("openai/gpt-4", n=3)
    probe, *sent = server.requests
    assert (probe["temperature"], probe["max_tokens"]) == (0, 32_768)
    common: Body = {"path": "/v1/chat/completions", "model": "gpt-4"}
    common |= {"temperature": 1.0, "max_tokens": 512}
    expected = [
        common | {"messages": [{"role": m.role, "content": m.content} for m in messages]}
        for sample in run.samples
        for condition in run.plan.conditions
        for messages in [condition.question(sample.item).messages]
    ]
    assert len(sent) == len(expected) and all(request in sent for request in expected)


def test_useless_answers_stop_the_run_early(serve: Serve) -> None:
    server = serve(lambda _: "Let me", finish_reason="length")
    message = r"50 of the first 50 .*32,768 tokens\); raise it with --max-tokens"
    with pytest.raises(Incomplete, match=message):
        measure(server, n=500, max_connections=4)
    assert len(server.requests) <= 50 + 4 * 4


CUT_OFF, LOVELY = Answer("Let me", "length", limit=512), Answer("Lovely!")
MESSAGES = {
    CUT_OFF: r"11 of the first 50 .*512 tokens",
    LOVELY: "33 of the first 40 .* contain no move; the last of these was '",
}


@pytest.mark.parametrize(
    ("unusable", "answer", "condition", "stops"),
    [
        (10, CUT_OFF, 0, False),
        (11, CUT_OFF, 0, True),
        (32, LOVELY, 0, False),
        (33, LOVELY, 0, True),
        (50, LOVELY, 1, False),  # silence when the rules change is a result
        (50, Answer("", "error", error="gone"), 0, False),
    ],
)
def test_the_first_replies_are_judged_once(
    unusable: int, answer: Answer, condition: int, stops: bool
) -> None:
    """The cut-off replies come last, and the unreadable ones first."""
    plan = plan_of()
    first_replies = FirstReplies(plan)
    replies = [answer] * unusable + [Answer("e2e4")] * (50 - unusable)
    if answer is CUT_OFF:
        replies.reverse()
    replies += [answer] * 1_000
    with pytest.raises(Incomplete, match=MESSAGES[answer]) if stops else nullcontext():
        for number, reply in enumerate(replies):
            outcome = judge(reply, POOL[0], STANDARD).outcome
            first_replies.observe(plan.conditions[condition], reply, outcome)
            assert number < 50 or not stops


def test_a_failed_first_request_is_the_only_one(serve: Serve, no_retry_delay: None) -> None:
    server = serve(habit, fault=error_when(lambda *_: True, "no memory left", 200))
    with pytest.raises(Incomplete, match=r"m does not answer \(.*no memory left"):
        measure(server)
    assert len({str(request) for request in server.requests}) == 1


@pytest.mark.usefixtures("small_pools")
def test_other_rules_run_out_of_the_box() -> None:
    for model, expected in (("cdta/pocket", (0, 0)), ("cdta/pocket-rules", (-1, 1))):
        run = measure(model, rules="knights-cannot-jump", n=5, temperature=0)
        assert (run["variant_impact_factor"].value, run["rule_uptake"].value) == expected
        assert run["predicted_move_proportion"].value == 1


# Expected cost


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


def test_an_estimate_has_one_figure_in_a_narrow_range() -> None:
    """With fewer hits there is less to measure, so the low end comes from the lowest rate."""
    small = Spec(model="openai/gpt-4o", eval="all_small")
    for spec in (small, Spec(model="openai/o4-mini", rules="base-9", diagnose=True)):
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


def test_a_search_without_a_hit_can_be_estimated(serve: Serve) -> None:
    server = serve(lambda _: "a2a3")
    with pytest.raises(Incomplete, match="--keep-looking"):
        measure(server, n=20)
    expected = estimate(Spec(model="m", base_url=server.url, n=20, price="2,20"))
    assert expected.cached == len(server.requests)
    assert expected.dollars and expected.dollars_low and expected.dollars_high
    assert expected.dollars_low < expected.dollars < expected.dollars_high


def test_cached_answers_tell_what_the_rest_costs(serve: Serve) -> None:
    server = serve(habit_in_every_fifth, reasoning=Reasoning(lambda _: 900))
    spec = partial(Spec, model="m", base_url=server.url, price="2,20", wording="plain")
    before = estimate(spec(n=60))
    measure(server, price="2,20", n=20)
    sent, charged = len(server.requests), server.charged
    expected = estimate(spec(n=60))
    assert expected.cached == sent
    measure(server, price="2,20", n=60, max_cost=100)
    rest = (server.charged - charged) / 50
    assert before.dollars and expected.dollars_low and expected.dollars_high
    assert before.dollars < rest / 2  # no answer told that the model reasons
    assert expected.dollars_low < rest < expected.dollars_high
    assert str(estimate(spec(n=60))) == "m, all: no requests to send"
