"""Reasoning models in Inspect: its options, the same numbers, and reasoning in the log."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import ContentReasoning, GenerateConfig, get_model

import inspect_evals
from reasoning_servers import ReasoningServer
from testing import Serve, measure, positions, wavering

NAME = "openai-api/loop/thinker"
RunEval = Callable[..., EvalLog]


@pytest.fixture
def reasoning_server(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> ReasoningServer:
    server = serve(ReasoningServer(wavering))
    monkeypatch.setenv("LOOP_API_KEY", "EMPTY")
    monkeypatch.setenv("LOOP_BASE_URL", server.url)
    return server


@pytest.fixture
def run_eval(reasoning_server: ReasoningServer, tmp_path: Path) -> RunEval:
    """Runs an eval of the reasoning model and returns its log."""

    def run(task_args: dict[str, Any], *, status: str = "success", **config: Any) -> EvalLog:
        model = get_model(NAME, memoize=False, config=GenerateConfig(**config))
        task = "cant_do_that_anymore/all_small"
        log = inspect_evals.run_eval(tmp_path / "logs", task, model, task_args=task_args)
        assert log.status == status, log.error
        return log

    return run


def test_reasoning_models_get_the_numbers_of_cdta_run(
    run_eval: RunEval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = inspect_evals.logged_metrics(run_eval({"samples": 4}))
    monkeypatch.setenv("CDTA_HOME", str(tmp_path / "another home"))
    run = measure(NAME, eval="all_small", n=4, max_connections=1, wording="all")
    for name in ("variant_impact_factor", "rule_uptake", "predicted_move_proportion"):
        assert logged[name] == pytest.approx(run[name].value)
    assert run["predicted_move_proportion"].value > 0


def test_inspect_options_apply_to_selection_and_measurement(
    reasoning_server: ReasoningServer, run_eval: RunEval
) -> None:
    options: dict[str, Any] = {"reasoning_effort": "high", "temperature": 0.5}
    log = run_eval({"samples": 3}, extra_body={"top_k": 3}, **options)
    assert {request["reasoning_effort"] for request in reasoning_server.requests} == {"high"}
    assert {request["temperature"] for request in reasoning_server.requests} == {0.0, 0.5}
    assert {request["top_k"] for request in reasoning_server.requests} == {3}
    assert set(reasoning_server.limits) == {32_768}
    contents = [message.content for sample in log.samples or () for message in sample.messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    assert sum(isinstance(part, ContentReasoning) for part in parts) == 2 * 3
    metrics = inspect_evals.logged_metrics(log)
    assert metrics["changed_reasoning_tokens"] >= metrics["standard_reasoning_tokens"] > 0


def test_eval_stops_early_when_replies_are_truncated(
    reasoning_server: ReasoningServer, run_eval: RunEval
) -> None:
    arguments = {"dataset": str(positions(200)), "samples": 200, "max_tokens": 100}
    log = run_eval(arguments, status="error", max_connections=2)
    assert log.error
    assert "(the limit is 100 tokens); raise it with --max-tokens" in log.error.message
    assert len(reasoning_server.requests) < 120
