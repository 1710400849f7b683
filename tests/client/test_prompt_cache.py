"""Providers keep the beginning of a prompt: what is constant comes first, and is counted."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from rich.console import Console

from cant_do_that_anymore.providers.catalog import info_by_name
from cant_do_that_anymore.report.tables import summary
from cant_do_that_anymore.task.plan import plan_for
from testing import Body, Loopback, Serve, Spec, evaluate, habit, measure


def _in_common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


@dataclass
class Caching(Loopback):
    """Counts as cached what a prompt has in common with the beginning of any before it."""

    seen: list[str] = field(default_factory=list)
    cached: list[int] = field(default_factory=list)

    def completion(self, request: Body) -> dict[str, Any]:
        prompt = request.get("prompt") or "".join(turn["content"] for turn in request["messages"])
        common = max((_in_common(prompt, other) for other in self.seen), default=0)
        self.seen.append(prompt)
        self.cached.append(common)
        completion = super().completion(request)
        completion["usage"]["prompt_tokens_details"] = {"cached_tokens": common // 4}
        return completion


@pytest.mark.parametrize("model", ["m", "completions/m"])
@pytest.mark.parametrize("diagnose", [False, True])
def test_nothing_varies_before_the_constant_text(model: str, diagnose: bool, serve: Serve) -> None:
    server = serve(Caching(habit))
    about = {"model": model, "base_url": server.url, "dataset": "gpt-4-0314", "n": 8}
    spec = Spec(**about, diagnose=diagnose, max_connections=1)  # type: ignore[arg-type]
    run = evaluate(spec, quiet=True)
    plan = plan_for(spec, info_by_name(model, server.url))
    texts = {condition.prompts[0].text for condition in plan.conditions}
    shortest = min(map(len, texts))
    first = [place for place, cached in enumerate(server.cached) if cached < shortest]
    assert len(first) <= len(texts)  # each text is new once, and never again
    cached, asked = (run.results.metrics[f"usage_{kind}_tokens"] for kind in ("cached", "prompt"))
    assert cached == sum(common // 4 for common in server.cached)
    assert cached and asked and cached / asked > 0.6


def test_a_run_says_how_much_came_from_the_cache_where_that_is_told(serve: Serve) -> None:
    def footer(server: Loopback) -> str:
        console = Console(width=1_000)
        with console.capture() as said:
            console.print(summary(measure(server, dataset="gpt-4-0314", n=10)))
        return said.get()

    assert "% cached), " in footer(serve(Caching(habit)))
    assert "cached" not in footer(serve(habit))
