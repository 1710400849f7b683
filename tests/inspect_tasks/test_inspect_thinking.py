"""Models that think first within Inspect: its own options, the same numbers, the thoughts kept."""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import ContentReasoning, GenerateConfig, get_model

import inspecting
from testing import measure, positions, serving, wavering
from thinkers import Thinker, Unfinished

NAME = "openai-api/loop/thinker"


def evaluated(
    server: Thinker,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    task_args: dict[str, object],
    max_connections: int | None = None,
    **settings: Any,
) -> EvalLog:
    monkeypatch.setenv("LOOP_API_KEY", "EMPTY")
    monkeypatch.setenv("LOOP_BASE_URL", server.url)
    return inspecting.evaluated(
        folder / "logs",
        "cant_do_that_anymore/all_small",
        get_model(NAME, memoize=False, config=GenerateConfig(**settings)),
        task_args=task_args,
        max_connections=max_connections,
    )


@pytest.mark.parametrize("family", [Thinker, Unfinished])
def test_it_gets_the_numbers_of_cdta_run(
    family: type[Thinker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(family(wavering)) as server:
        log = evaluated(server, tmp_path, monkeypatch, task_args={"samples": 8})
        assert log.status == "success", log.error
        monkeypatch.setenv("CDTA_HOME", str(tmp_path / "another home"))
        metrics = measure(NAME, eval="all_small", n=8).results.metrics
    assert log.results
    for name in ("variant_impact_factor", "rule_uptake", "predicted_move_proportion"):
        assert log.results.scores[0].metrics[name].value == pytest.approx(metrics[name])
    assert metrics["predicted_move_proportion"] not in (0, None)


def test_inspects_own_options_hold_for_selecting_and_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Thinker(wavering)) as server:
        asked: dict[str, Any] = {
            "reasoning_effort": "high",
            "temperature": 0.5,
            "extra_body": {"top_k": 3},
        }
        log = evaluated(server, tmp_path, monkeypatch, task_args={"samples": 5}, **asked)
    assert log.status == "success", log.error
    assert {request["reasoning_effort"] for request in server.requests} == {"high"}
    assert {request["temperature"] for request in server.requests} == {0.0, 0.5}
    assert {request["top_k"] for request in server.requests} == {3}
    assert set(server.limits) == {16_016}
    assert log.samples
    shown = [
        part
        for sample in log.samples
        for message in sample.messages
        if isinstance(message.content, list)
        for part in message.content
    ]
    assert sum(isinstance(part, ContentReasoning) for part in shown) == 2 * 5
    assert log.results
    metrics = log.results.scores[0].metrics
    assert metrics["changed_thinking_tokens"].value >= metrics["standard_thinking_tokens"].value > 0
    assert metrics["temptation_rate"].value == 0


def test_a_given_dataset_leaves_the_room_to_be_learnt_within_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Thinker(wavering)) as server:
        log = evaluated(server, tmp_path, monkeypatch, task_args={"dataset": str(positions(10))})
    assert log.status == "success", log.error
    assert set(server.limits) == {16, 16_016}
    assert server.limits.count(16_016) == 20


def test_it_stops_early_when_replies_are_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Thinker(wavering)) as server:
        arguments = {"dataset": str(positions(200)), "samples": 200, "reasoning_tokens": 100}
        log = evaluated(server, tmp_path, monkeypatch, task_args=arguments, max_connections=2)
    assert log.status == "error"
    assert log.error
    assert "raise --reasoning-tokens (now 100)" in log.error.message
    assert len(server.requests) < 120
