"""Models that think first: any server of them is measured with no option, and its thoughts kept."""

import asyncio
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore.client import negotiator
from cant_do_that_anymore.client.client import WINDOW
from cant_do_that_anymore.datasets.pools import ORDER_SEED
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.runs.evaluate import select
from cant_do_that_anymore.task.types import answers_of
from reasoning_servers import Kimi, OpenAI, Outside, Tagged, Template, Thinker, Unfinished, Untaking
from testing import (
    SPECIAL,
    Body,
    Serve,
    Spec,
    habit,
    is_changed,
    measure,
    moves_in,
    number_of,
    perfect,
    positions,
)

HARMONY = ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>")
FAMILIES: dict[str, Callable[[], Thinker]] = {
    "OpenAI, empty reply": lambda: OpenAI(perfect),
    "OpenAI, HTTP 400": lambda: Unfinished(perfect),
    "Kimi": lambda: Kimi(perfect),
    "Anthropic's newest": lambda: Untaking(perfect),
    "vLLM": lambda: Thinker(perfect),
    "SGLang": lambda: Thinker(perfect, place="reasoning_content", empty=""),
    "xAI": lambda: Outside(perfect, place="reasoning_content"),
    "Qwen on vLLM": lambda: Template(perfect),
    "tags": lambda: Tagged(perfect),
    "tag opened by the template": lambda: Tagged(perfect, tags=("", "</think>")),
    "Kimi's tags": lambda: Tagged(perfect, tags=("◁think▷", "◁/think▷")),
    "channels": lambda: Tagged(perfect, tags=HARMONY),
    "small": lambda: Thinker(perfect, most=9_000),
}
SHOWS_NOTHING = {"OpenAI, empty reply", "OpenAI, HTTP 400"}
TAKES_NO_TEMPERATURE = {*SHOWS_NOTHING, "Kimi", "Anthropic's newest"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_that_thinks_needs_no_option(family: str, serve: Serve) -> None:
    run = measure(serve(FAMILIES[family]()), n=3)
    metrics = run.results.metrics
    assert (metrics["variant_impact_factor"], metrics["rule_uptake"]) == (-1, 1)
    for answer in answers_of(run.samples):
        assert bool(answer.reasoning) == (family not in SHOWS_NOTHING)
        assert answer.usage.output_tokens >= answer.usage.thinking_tokens >= 500
    told = " ".join(run.notes)
    assert "reasoning model: allowed up to" in told
    assert ("does not support a temperature" in told) == (family in TAKES_NO_TEMPERATURE)
    assert run.dataset.own_temperature == (family in TAKES_NO_TEMPERATURE)


def test_what_was_learnt_is_known_next_time(serve: Serve) -> None:
    server = serve(OpenAI(perfect))
    measure(server, n=4)
    asked = len(server.requests)
    run = measure(server, n=4, seed=1)
    assert {server.limit(request) for request in server.requests[asked:]} == {16_016}
    assert len(server.requests) == asked + 1 + 8  # is it the same model?
    assert any("16,000 reasoning tokens" in note for note in run.notes)


def test_thinking_is_turned_off_in_the_way_that_works(serve: Serve) -> None:
    server = serve(Template(perfect))
    run = measure(server, n=6, reasoning_effort="none")
    assert run.results.metrics["variant_impact_factor"] == -1
    assert set(server.limits) == {16}
    assert not any(answer.has_reasoning for answer in answers_of(run.samples))
    assert "the effort was sent as chat_template_kwargs" in run.notes


def test_a_model_that_cannot_but_think_is_not_measured_as_if_it_did_not(serve: Serve) -> None:
    server = serve(Thinker(perfect))
    with pytest.raises(InvalidInput, match="reasons despite --reasoning-effort none"):
        measure(server, n=6, reasoning_effort="none")
    assert len(server.requests) == 5


def test_none_suits_a_model_that_knows_no_effort(serve: Serve) -> None:
    class Plain(Thinker):
        def refuses(self, request: Body) -> str:
            known = {"model", "messages", "temperature", "max_tokens", "path"}
            more = sorted(request.keys() - known)
            return f"Unrecognized request argument supplied: {more[0]}" if more else ""

    server = serve(Plain(perfect, thinks=lambda _: 0))
    run = measure(server, n=6, reasoning_effort="none")
    assert run.results.metrics["variant_impact_factor"] == -1
    with pytest.raises(UserError, match="Unrecognized request argument"):
        measure(server, n=6, reasoning_effort="low")


def test_an_effort_is_sent_with_room_for_it_and_habits_are_found_at_another(serve: Serve) -> None:
    server = serve(Thinker(perfect))
    efforts: dict[str, Any] = {"reasoning_effort": "max", "select_effort": "minimal"}
    run = measure(server, n=4, extra_body={"top_k": 5}, **efforts)
    asked = [request["reasoning_effort"] for request in server.requests]
    assert asked == ["minimal"] * (len(asked) - 8) + ["max"] * 8
    assert {(each["max_tokens"], each["top_k"]) for each in server.requests} == {(16_016, 5)}
    assert run.plan.select_effort == "minimal"


def test_room_that_is_too_small_is_made_larger(serve: Serve) -> None:
    server = serve(Thinker(perfect, thinks=lambda _: 20_000))
    assert measure(server, n=4).results.metrics["variant_impact_factor"] == -1
    assert server.limits[:3] == [16, 16_016, 64_016]
    assert set(server.limits[3:]) == {64_016}


def endless(request: Body) -> int:
    """One position in ten; the others think little."""
    return 10**6 if number_of(moves_in(request)) % 10 == 3 else 600


def test_who_thinks_without_end_is_given_more_room_a_few_times_only(serve: Serve) -> None:
    server = serve(Thinker(perfect, thinks=endless))
    run = measure(server, n=25)
    assert server.limits.count(64_016) <= 3 + 32  # what is in flight may try at once
    assert run.results.outcomes["standard"]["truncated"] == 0  # no such position was selected
    assert "16,000 and then" not in " ".join(run.notes)


@pytest.mark.parametrize("most", [10_000, 16_384, 2_048])
def test_room_that_cannot_grow_is_not_asked_for_without_end(most: int, serve: Serve) -> None:
    server = serve(Thinker(perfect, thinks=endless, most=most))
    run = measure(server, n=8, max_connections=8)
    assert run.results.metrics["variant_impact_factor"] == -1
    assert len(server.requests) < 200


def test_a_slow_thought_does_not_make_the_search_run_ahead(serve: Serve) -> None:
    class Slow(Thinker):
        async def _answer(self, request: Body, number: int) -> web.StreamResponse:
            await asyncio.sleep(1 if number == 4 else 0)
            return await super()._answer(request, number)

    server = serve(Slow(perfect))
    measure(server, n=10, max_connections=8)
    assert len(server.requests) <= 10 + 8 * WINDOW + 20 + 8  # who is in flight learns to ask so


def cut_off(request: Body) -> int:
    """One position in seven under the changed rules, without end."""
    return 10**6 if is_changed(request) and number_of(moves_in(request)) % 7 == 3 else 0


@pytest.mark.parametrize(
    ("thinker", "truncated"),
    [
        (lambda: Tagged(perfect, tags=("", "</think>"), delay=0.02), False),
        (lambda: Thinker(habit, thinks=cut_off, place=""), True),
    ],
)
def test_cut_off_is_kept(thinker: Callable[[], Thinker], truncated: bool, serve: Serve) -> None:
    """Thoughts that nothing marks are found out before other replies are cut off by them."""
    server = serve(thinker())
    run = measure(server, dataset=positions(25))
    sent = len(server.requests)
    again = measure(server, dataset=positions(25))
    assert (run.results.outcomes["changed"]["truncated"] > 1) == truncated
    if truncated:
        assert run.results.bounds["variant_impact_factor"].high == 0
    assert len(server.requests) == sent + 1  # is it the same model?
    assert again.samples == run.samples


def test_room_that_the_user_gave_is_not_made_larger(serve: Serve) -> None:
    server = serve(Thinker(perfect))
    with pytest.raises(UserError, match=r"raise --reasoning-tokens \(now 300\)"):
        measure(server, dataset=positions(24), n=24, reasoning_tokens=300)
    assert set(server.limits) == {316}


class Talker(Thinker):
    """Replies at length, and is cut off where there is little room."""

    def thoughtful(self, request: Body) -> dict[str, Any]:
        completion = self.completion(request)
        (choice,) = completion["choices"]
        choice["message"]["content"] = f"{habit(request)} is the move, since " + "so " * 100
        if self.limit(request) < 100:
            choice["message"]["content"] = f"{habit(request)}\nis the"
            choice["finish_reason"] = "length"
        return completion


@pytest.mark.parametrize(("most", "probes"), [(100_000, [16_016]), (4_096, [4_016]), (512, [])])
def test_who_talks_much_is_no_thinker(most: int, probes: list[int], serve: Serve) -> None:
    """Asked once with more room, if it may be, to see whether it thinks; cut off stays cut off."""
    server = serve(Talker(habit, most=most))
    run = measure(server, n=5)
    assert [limit for limit in server.limits if limit != 16] == probes
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert not any("reasoning" in note for note in run.notes)


@pytest.mark.parametrize("talks", [0, 9])
def test_one_slow_probe_does_not_hold_up_the_others(
    talks: int, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reply is cut off, all others end: no budget for any, and no waiting for the probe."""
    monkeypatch.setattr(negotiator, "LONE_PROBE_PATIENCE", 0.3)

    class SlowTalker(Talker):
        async def _answer(self, request: Body, number: int) -> web.StreamResponse:
            if self.limit(request) > 100:
                await asyncio.sleep(60)
            return await super()._answer(request, number)

        def thoughtful(self, request: Body) -> dict[str, Any]:
            is_long = moves_in(request) in map(moves_in, self.requests[talks : talks + 1])
            return super().thoughtful(request) if is_long else self.completion(request)

    server, began = serve(SlowTalker(habit)), time.monotonic()
    run = measure(server, n=12, max_connections=2)
    assert time.monotonic() - began < 45
    assert set(server.limits) == {16}
    assert not any("reasoning" in note for note in run.notes)


def test_chain_of_thought_gives_way_to_thinking(serve: Serve) -> None:
    server = serve(Thinker(perfect))
    run = measure(server, model="cot/m", n=3)
    told = [request["messages"][-1]["content"] for request in server.requests]
    assert sum("think aloud" in text for text in told) == 1
    assert run.results.metrics["variant_impact_factor"] == -1
    assert any("use --reasoning-effort instead of cot/" in note for note in run.notes)


def test_two_of_three_draws_select(serve: Serve) -> None:
    """A model that draws: position and draw decide, so that the dataset can be told beforehand."""
    seen: dict[tuple[str, ...], int] = {}

    def hits(moves: tuple[str, ...], draw: int) -> bool:
        return (number_of(moves) * (draw + 3)) % 7 < 4

    def drawing(request: Body) -> str:
        moves = moves_in(request)
        draw = seen.get(moves, 0)
        seen[moves] = draw + 1
        return SPECIAL[moves] if hits(moves, draw) else "a2a3"

    pool = shipped_pool("pool")
    expected, questions = [], 0
    for position in Random(ORDER_SEED).sample(pool, len(pool)):
        draws = [hits(position.moves, draw) for draw in range(3)]
        questions += 1 if not draws[0] else 2 if draws[1] else 3
        if draws[0] and sum(draws) >= 2:
            expected.append(position)
        if len(expected) == 10:
            break
    server = serve(Kimi(drawing, thinks=lambda _: 0))
    dataset = select(Spec(base_url=server.url, n=10), quiet=True).dataset
    assert dataset.positions == expected
    assert dataset.asked == questions
    assert dataset.selection == "by 2 of 3 draws at the provider's own temperature"
