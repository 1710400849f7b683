"""Models that think first: any server of them is measured with no option, and its thoughts kept."""

from collections.abc import Callable

import pytest

from cant_do_that_anymore import Spec, evaluate
from loopback import serving
from players import perfect
from thinkers import (
    Kimi,
    OpenAI,
    Outside,
    Tagged,
    Template,
    Thinker,
    Unfinished,
    Untaking,
)

HARMONY = (
    "<|channel|>analysis<|message|>",
    "<|end|><|start|>assistant<|channel|>final<|message|>",
)
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
def test_a_model_that_thinks_needs_no_option(family: str) -> None:
    with serving(FAMILIES[family]()) as server:
        run = evaluate(Spec(base_url=server.url, n=12), quiet=True)
    metrics = run.results.metrics
    assert metrics["variant_impact_factor"] == -1
    assert metrics["legal_gain"] == 1
    for sample in run.samples:
        for reply in sample.replies.values():
            usage = reply.answer.usage
            assert bool(reply.answer.reasoning) == (family not in SHOWS_NOTHING)
            assert usage.output_tokens >= usage.thinking_tokens >= 500
    told = " ".join(run.notes)
    assert "the model thinks before it replies" in told
    assert ("takes no temperature" in told) == (family in TAKES_NO_TEMPERATURE)
    assert run.dataset.own_temperature == (family in TAKES_NO_TEMPERATURE)
