"""Providers cache the beginning of prompts, so constant text comes first."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from cant_do_that_anymore.providers.catalog import info_by_name
from cant_do_that_anymore.task.plan import plan_for
from testing import Body, Loopback, Serve, Spec, evaluate, habit


def shared_prefix_length(first: str, second: str) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


@dataclass
class CachingServer(Loopback):
    """Measures the longest prefix that a prompt shares with an earlier one, in characters."""

    prompts: list[str] = field(default_factory=list)
    cached: list[int] = field(default_factory=list)

    def completion(self, request: Body) -> dict[str, Any]:
        prompt = request.get("prompt") or "".join(turn["content"] for turn in request["messages"])
        common = max((shared_prefix_length(prompt, other) for other in self.prompts), default=0)
        self.prompts.append(prompt)
        self.cached.append(common)
        return super().completion(request)


@pytest.mark.parametrize("model", ["m", "completions/m"])
@pytest.mark.parametrize("diagnose", [False, True])
def test_constant_text_comes_first(model: str, diagnose: bool, serve: Serve) -> None:
    server = serve(CachingServer(habit))
    settings = {"model": model, "base_url": server.url, "dataset": "gpt-4-0314", "n": 8}
    settings |= {"wording": "plain"}
    spec = Spec(**settings, diagnose=diagnose, max_connections=1)  # type: ignore[arg-type]
    evaluate(spec, quiet=True)
    plan = plan_for(spec, info_by_name(model, server.url))
    texts = {condition.prompts[0].text for condition in plan.conditions}
    shortest = min(map(len, texts))
    uncached = [cached for cached in server.cached if cached < shortest]
    assert len(uncached) <= len(texts)  # the first prompt with each text
    assert sum(server.cached) > 0.6 * sum(map(len, server.prompts))
