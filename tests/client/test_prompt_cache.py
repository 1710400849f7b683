"""Providers cache the beginning of prompts, so constant text comes first."""

import pytest

from testing import Serve, habit, measure


@pytest.mark.parametrize("model", ["m", "completions/m"])
def test_constant_text_comes_first(model: str, serve: Serve) -> None:
    server = serve(habit)
    run = measure(server, model=model, dataset="gpt-4-0314", n=8, diagnose=True)
    texts = tuple(condition.prompts[0].text for condition in run.plan.conditions)
    prompts = [
        request.get("prompt") or request["messages"][0]["content"] for request in server.requests
    ]
    assert len(prompts) == 6 * 8
    assert all(prompt.removeprefix("System: ").startswith(texts) for prompt in prompts)
