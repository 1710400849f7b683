"""Reasoning models: any server's is measured without options, and its reasoning is saved."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore.client import negotiator
from cant_do_that_anymore.client.client import WINDOW
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.task.types import answers_of
from reasoning_servers import (
    CountedInTotal,
    Kimi,
    OpenAI,
    ReasoningServer,
    RejectsUnfinished,
    Tagged,
    TemplateSwitch,
    WithoutTemperature,
)
from testing import (
    Body,
    Serve,
    checksum,
    habit,
    is_changed,
    measure,
    moves_in,
    perfect,
    positions,
)

HARMONY = ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>")
FAMILIES: dict[str, Callable[[], ReasoningServer]] = {
    "OpenAI, empty reply": lambda: OpenAI(perfect),
    "OpenAI, HTTP 400": lambda: RejectsUnfinished(perfect),
    "Kimi": lambda: Kimi(perfect),
    "Anthropic's newest": lambda: WithoutTemperature(perfect),
    "vLLM": lambda: ReasoningServer(perfect),
    "SGLang": lambda: ReasoningServer(
        perfect, reasoning_field="reasoning_content", cut_off_content=""
    ),
    "xAI": lambda: CountedInTotal(perfect, reasoning_field="reasoning_content"),
    "Qwen on vLLM": lambda: TemplateSwitch(perfect),
    "tags": lambda: Tagged(perfect),
    "tag opened by the template": lambda: Tagged(perfect, tags=("", "</think>")),
    "Kimi's tags": lambda: Tagged(perfect, tags=("◁think▷", "◁/think▷")),
    "channels": lambda: Tagged(perfect, tags=HARMONY),
    "small": lambda: ReasoningServer(perfect, max_limit=9_000),
}
HIDES_REASONING = {"OpenAI, empty reply", "OpenAI, HTTP 400"}
WITHOUT_TEMPERATURE = {*HIDES_REASONING, "Kimi", "Anthropic's newest"}


@pytest.mark.parametrize("family", FAMILIES)
def test_reasoning_models_need_no_option(family: str, serve: Serve) -> None:
    run = measure(serve(FAMILIES[family]()), n=3)
    metrics = run.results.metrics
    assert (metrics["variant_impact_factor"], metrics["rule_uptake"]) == (-1, 1)
    for answer in answers_of(run.samples):
        assert bool(answer.reasoning) == (family not in HIDES_REASONING)
        assert answer.usage.output_tokens >= answer.usage.thinking_tokens >= 500
    notes = " ".join(run.notes)
    assert "reasoning model: allowed up to" in notes
    assert ("does not support a temperature" in notes) == (family in WITHOUT_TEMPERATURE)
    assert ("selected by single answers" in notes) == (family in WITHOUT_TEMPERATURE)


def test_the_request_variant_is_remembered_by_the_next_run(serve: Serve) -> None:
    server = serve(OpenAI(perfect))
    measure(server, n=4)
    n_before = len(server.requests)
    run = measure(server, n=4, seed=1)
    assert {server.limit(request) for request in server.requests[n_before:]} == {16_016}
    assert len(server.requests) == n_before + 1 + 8  # 1 for the identity check
    assert any("16,000 reasoning tokens" in note for note in run.notes)


def test_effort_none_is_sent_in_the_encoding_that_works(serve: Serve) -> None:
    server = serve(TemplateSwitch(perfect))
    run = measure(server, n=6, reasoning_effort="none")
    assert run.results.metrics["variant_impact_factor"] == -1
    assert set(server.limits) == {16}
    assert not any(answer.has_reasoning for answer in answers_of(run.samples))
    assert "the effort was sent as chat_template_kwargs" in run.notes


def test_effort_none_is_an_error_if_the_model_reasons_anyway(serve: Serve) -> None:
    server = serve(ReasoningServer(perfect))
    with pytest.raises(InvalidInput, match="reasons despite --reasoning-effort none"):
        measure(server, n=6, reasoning_effort="none")
    assert len(server.requests) == 5


def test_effort_none_works_without_support_for_efforts(serve: Serve) -> None:
    class Strict(ReasoningServer):
        def rejection_of(self, request: Body) -> str:
            supported = {"model", "messages", "temperature", "max_tokens", "path"}
            unknown = sorted(request.keys() - supported)
            return f"Unrecognized request argument supplied: {unknown[0]}" if unknown else ""

    server = serve(Strict(perfect, reasoning_tokens=lambda _: 0))
    run = measure(server, n=6, reasoning_effort="none")
    assert run.results.metrics["variant_impact_factor"] == -1
    with pytest.raises(UserError, match="Unrecognized request argument"):
        measure(server, n=6, reasoning_effort="low")


def test_selection_and_measurement_have_their_own_effort(serve: Serve) -> None:
    server = serve(ReasoningServer(perfect))
    efforts: dict[str, Any] = {"reasoning_effort": "max", "select_effort": "minimal"}
    run = measure(server, n=4, extra_body={"top_k": 5}, **efforts)
    sent = [request["reasoning_effort"] for request in server.requests]
    assert sent == ["minimal"] * (len(sent) - 8) + ["max"] * 8
    assert {(r["max_tokens"], r["top_k"]) for r in server.requests} == {(16_016, 5)}
    assert run.plan.select_effort == "minimal"


def test_a_reasoning_budget_that_is_too_small_is_raised(serve: Serve) -> None:
    server = serve(ReasoningServer(perfect, reasoning_tokens=lambda _: 20_000))
    assert measure(server, n=4).results.metrics["variant_impact_factor"] == -1
    assert server.limits[:3] == [16, 16_016, 64_016]
    assert set(server.limits[3:]) == {64_016}


def endless_at_some(request: Body) -> int:
    """Reason without end at one position in ten, and briefly at the others."""
    return 10**6 if checksum(moves_in(request)) % 10 == 3 else 600


def test_the_reasoning_budget_is_raised_only_a_few_times(serve: Serve) -> None:
    server = serve(ReasoningServer(perfect, reasoning_tokens=endless_at_some))
    run = measure(server, n=150)
    assert server.limits.count(64_016) <= 3 + 4  # requests in flight may all be raised
    assert run.results.outcomes["standard"]["truncated"] == 0  # none of these was selected
    assert "16,000 and then" not in " ".join(run.notes)


@pytest.mark.parametrize("cap", [10_000, 16_384, 2_048])
def test_a_limited_reasoning_budget_costs_few_requests(cap: int, serve: Serve) -> None:
    server = serve(ReasoningServer(perfect, reasoning_tokens=endless_at_some, max_limit=cap))
    run = measure(server, n=8, max_connections=8)
    assert run.results.metrics["variant_impact_factor"] == -1
    assert len(server.requests) < 200


def test_one_slow_answer_does_not_make_the_search_run_ahead(serve: Serve) -> None:
    class Slow(ReasoningServer):
        async def _answer(self, request: Body, number: int) -> web.StreamResponse:
            await asyncio.sleep(1 if number == 4 else 0)
            return await super()._answer(request, number)

    server = serve(Slow(perfect))
    measure(server, n=10, max_connections=8)
    assert len(server.requests) <= 10 + 8 * WINDOW + 20 + 8  # 8 in flight are sent again


def endless_when_changed(request: Body) -> int:
    """Reason without end at one position in seven under the changed rules."""
    return 10**6 if is_changed(request) and checksum(moves_in(request)) % 7 == 3 else 0


@pytest.mark.parametrize(
    ("make_server", "is_truncated"),
    [
        (lambda: Tagged(perfect, tags=("", "</think>"), delay=0.02), False),
        (
            lambda: ReasoningServer(
                habit, reasoning_tokens=endless_when_changed, reasoning_field=""
            ),
            True,
        ),
    ],
)
def test_truncated_answers_are_cached(
    make_server: Callable[[], ReasoningServer], is_truncated: bool, serve: Serve
) -> None:
    """Reasoning without tags is detected before it truncates other replies."""
    server = serve(make_server())
    run = measure(server, dataset=positions(25))
    n_before = len(server.requests)
    again = measure(server, dataset=positions(25))
    assert (run.results.outcomes["changed"]["truncated"] > 1) == is_truncated
    if is_truncated:
        assert run.results.bounds["variant_impact_factor"].high == 0
    assert len(server.requests) == n_before + 1  # 1 for the identity check
    assert again.samples == run.samples


def test_a_budget_set_by_the_user_is_not_raised(serve: Serve) -> None:
    server = serve(ReasoningServer(perfect))
    with pytest.raises(UserError, match=r"raise --reasoning-tokens \(now 300\)"):
        measure(server, dataset=positions(24), n=24, reasoning_tokens=300)
    assert set(server.limits) == {316}


class Verbose(ReasoningServer):
    """Replies at length without reasoning, and is cut off by a small limit."""

    def completion_with_reasoning(self, request: Body) -> dict[str, Any]:
        completion = self.completion(request)
        (choice,) = completion["choices"]
        choice["message"]["content"] = f"{habit(request)} is the move, since " + "so " * 100
        if self.limit(request) < 100:
            choice["message"]["content"] = f"{habit(request)}\nis the"
            choice["finish_reason"] = "length"
        return completion


@pytest.mark.parametrize(("cap", "probes"), [(100_000, [16_016]), (4_096, [4_016]), (512, [])])
def test_verbose_models_are_not_reasoning_models(cap: int, probes: list[int], serve: Serve) -> None:
    """One request is repeated with a larger limit, if possible, to see whether it reasons."""
    server = serve(Verbose(habit, max_limit=cap))
    run = measure(server, n=5)
    assert [limit for limit in server.limits if limit != 16] == probes
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert not any("reasoning" in note for note in run.notes)


@pytest.mark.parametrize("long_index", [0, 9])
def test_one_slow_probe_does_not_delay_the_others(
    long_index: int, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reply is cut off, and the others end: no budget, and no waiting for the probe."""
    monkeypatch.setattr(negotiator, "LONE_PROBE_TIMEOUT", 0.3)

    class SlowVerbose(Verbose):
        async def _answer(self, request: Body, number: int) -> web.StreamResponse:
            if self.limit(request) > 100:
                await asyncio.sleep(60)
            return await super()._answer(request, number)

        def completion_with_reasoning(self, request: Body) -> dict[str, Any]:
            is_long = moves_in(request) in map(moves_in, self.requests[long_index : long_index + 1])
            return (
                super().completion_with_reasoning(request) if is_long else self.completion(request)
            )

    server, start = serve(SlowVerbose(habit)), time.monotonic()
    run = measure(server, n=12, max_connections=2)
    assert time.monotonic() - start < 45
    assert set(server.limits) == {16}
    assert not any("reasoning" in note for note in run.notes)


def test_reasoning_models_are_not_asked_to_think_aloud(serve: Serve) -> None:
    server = serve(ReasoningServer(perfect))
    run = measure(server, model="cot/m", n=3)
    prompts = [request["messages"][-1]["content"] for request in server.requests]
    assert sum("think aloud" in prompt for prompt in prompts) == 1
    assert run.results.metrics["variant_impact_factor"] == -1
    assert any("use --reasoning-effort instead of cot/" in note for note in run.notes)
