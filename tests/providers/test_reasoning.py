"""Reasoning models: any server's is measured without options, and its reasoning is saved."""

from typing import Any

import pytest

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.task.types import answers_of
from loopback import token_limit, varying_length
from planted_models import HIDDEN
from testing import (
    Body,
    Reasoning,
    Serve,
    checksum,
    habit,
    is_changed,
    measure,
    moves_in,
    perfect,
    positions,
)

pytestmark = pytest.mark.usefixtures("no_retry_delay")
ROOM, REPLY = 32_768, 512


def rejected_by_kimi(request: Body) -> str:
    is_rejected = request.get("temperature", 1) != 1
    return "invalid temperature: only 1 is allowed for this model" if is_rejected else ""


def rejected_by_openai(request: Body) -> str:
    if "max_tokens" in request:
        return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    is_rejected = request.get("temperature", 1) != 1
    return "'temperature' does not support 0 with this model." if is_rejected else ""


FAMILIES: dict[str, dict[str, Any]] = {
    "OpenAI": {"reasoning": HIDDEN, "rejection": rejected_by_openai},
    "Kimi": {"reasoning": Reasoning(field="reasoning_content"), "rejection": rejected_by_kimi},
    "vLLM": {"reasoning": Reasoning()},
    "xAI": {"reasoning": Reasoning(field="reasoning_content", counted="total")},
    "tags": {"reasoning": Reasoning(tags=("<think>", "</think>"))},
    "tag opened by the template": {"reasoning": Reasoning(tags=("", "</think>"))},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_reasoning_models_need_no_option(family: str, serve: Serve) -> None:
    server = serve(perfect, **FAMILIES[family])
    run = measure(server, n=3)
    assert (run["variant_impact_factor"].value, run["rule_uptake"].value) == (-1, 1)
    for answer in answers_of(run.samples):
        assert bool(answer.reasoning) == (family != "OpenAI")
        assert answer.usage.output_tokens >= answer.usage.thinking_tokens >= 500
    assert set(server.limits) == {ROOM}
    assert len(server.requests) - len(server.limits) <= 4  # rejected, each form twice
    notes = " ".join(run.notes)
    assert ("does not support a temperature" in notes) == (family in ("OpenAI", "Kimi"))


def length_when_changed(request: Body) -> int:
    """Reason at length in half of the positions, and only under the changed rules."""
    reasons = is_changed(request) and checksum(moves_in(request)) % 2
    return varying_length(request) if reasons else 0


@pytest.mark.parametrize(
    "reasoning",
    [
        Reasoning(length_when_changed),
        Reasoning(length_when_changed, field="", cut_off=("", "length")),
        Reasoning(length_when_changed, field="", cut_off=("", "stop")),
    ],
    ids=["shown", "hidden", "hidden and called complete"],
)
def test_a_model_that_reasons_only_under_the_changed_rules(
    reasoning: Reasoning, serve: Serve
) -> None:
    server = serve(perfect, reasoning=reasoning)
    run = measure(server, n=20)
    assert run.results["variant_impact_factor"].value == -1
    for outcomes in run.results.outcomes.values():
        assert outcomes["truncated"] == outcomes["unreadable"] == 0
    assert REPLY in server.limits and max(server.limits) > 8_000
    asked = [str(request["messages"]) + str(request["temperature"]) for request in server.requests]
    assert len(asked) - len(set(asked)) <= 4 + 3  # cut off before the limit rose, or rejected
    n_before = len(server.limits)
    assert measure(server, n=20).samples == run.samples
    assert len(server.limits) == n_before + 3  # the identity check


def test_effort_none_is_an_error_if_the_model_reasons_anyway(serve: Serve) -> None:
    def tokens_unless_switched_off(request: Body) -> int:
        arguments = request.get("chat_template_kwargs", {})
        return varying_length(request) if arguments.get("enable_thinking", True) else 0

    server = serve(perfect, reasoning=Reasoning(tokens_unless_switched_off))
    switch = '{"chat_template_kwargs": {"enable_thinking": false}}'
    with pytest.raises(InvalidInput, match="reasons despite --reasoning-effort none") as error:
        measure(server, n=6, reasoning_effort="none")
    assert str(error.value).endswith(f"--extra-body '{switch}'")
    assert len(server.requests) == 1
    run = measure(server, n=6, reasoning_effort="none", extra_body=switch)
    assert run.results["variant_impact_factor"].value == -1
    assert set(server.limits[2:]) == {REPLY}


def endless_at_some(request: Body) -> int:
    """Reason without end at one position in ten, and briefly at the others."""
    return 10**6 if checksum(moves_in(request)) % 10 == 3 else 600


def test_endless_reasoning_is_an_outcome_and_costs_few_requests(serve: Serve) -> None:
    server = serve(perfect, reasoning=Reasoning(endless_at_some))
    run = measure(server, n=40, max_connections=8)
    assert run.results["variant_impact_factor"].value == -1
    assert run.results.outcomes["standard"]["truncated"] == 0  # none of these was selected
    assert len(server.limits) <= 40 * 3 * 1.2
    measure(server, dataset=positions(50))  # they are cut off once each
    asked = [str(request["messages"]) for request in server.requests[len(server.requests) - 100 :]]
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize(
    "error",
    [
        "This model's maximum context length is 4096 tokens. However, you requested {total} tokens "
        "({prompt} in the messages, {limit} in the completion).",
        "The prompt and the completion exceed the context window of this model.",
    ],
)
def test_a_context_of_4096_works(error: str, serve: Serve) -> None:
    """A context for the prompt and the reply together."""

    def rejection(request: Body) -> str:
        prompt = sum(len(turn["content"]) for turn in request["messages"]) // 3
        limit = token_limit(request)
        message = error.format(prompt=prompt, limit=limit, total=prompt + limit)
        return message if prompt + limit > 4096 else ""

    reasoning = Reasoning(lambda request: 600 * is_changed(request))
    server = serve(habit, reasoning=reasoning, rejection=rejection)
    run = measure(server, n=5)
    assert run.results["predicted_move_proportion"].value == 1
    assert run.results.outcomes["changed"]["truncated"] == 0
    assert "max_completion_tokens" not in " ".join(map(str, server.requests))
    assert all(limit == REPLY or 1_500 < limit < 4_096 for limit in server.limits[1:])


def test_reasoning_models_are_not_asked_to_think_aloud(serve: Serve) -> None:
    server = serve(perfect, reasoning=Reasoning())
    run = measure(server, model="cot/m", n=3)
    prompts = [request["messages"][-1]["content"] for request in server.requests]
    assert sum("think aloud" in prompt for prompt in prompts) == 1
    assert run.results["variant_impact_factor"].value == -1
    assert any("use --reasoning-effort instead of cot/" in note for note in run.notes)
