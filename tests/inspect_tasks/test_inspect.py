"""The Inspect tasks with a real server on the loopback interface."""

import json
import math
import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import eval as inspect_eval
from inspect_ai import eval_retry
from inspect_ai._cli.main import inspect
from inspect_ai.log import EvalLog, headline_metric
from inspect_ai.model import (
    ContentReasoning,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)

import inspect_evals
from cant_do_that_anymore.metrics.measures import MEASURES
from crashes import start, was_killed
from inspect_evals import logged_metrics
from reasoning_servers import ReasoningServer
from testing import (
    Body,
    Serve,
    Spec,
    evaluate,
    is_changed,
    measure,
    mixed,
    needs_posix,
    openai_server,
    wavering,
)

VERSION = "gpt-3.5-turbo-0125"
TASK = "cant_do_that_anymore/all"


def eval_log(folder: Path, model: str | Model, **arguments: object) -> EvalLog:
    """The log of ``cant_do_that_anymore/all`` with these arguments, one sample at a time."""
    return inspect_evals.run_eval(folder, TASK, model, task_args=arguments, max_samples=1)


def check_same(log: EvalLog, **spec: Any) -> None:
    """Check that ``cdta run`` gets the same numbers."""
    results = evaluate(Spec(temperature=0.0, **spec), quiet=True).results
    logged = logged_metrics(log)
    found = {name: finding.estimate for name, finding in results.diagnosis.items()}
    estimates = {**dict.fromkeys(MEASURES), **results.estimates, **found}
    expected: dict[str, float] = {}
    for name, estimate in estimates.items():
        expected[name] = estimate.value if estimate else math.nan
        if estimate and estimate.low is not None and estimate.high is not None:
            expected |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    assert logged == pytest.approx(expected, nan_ok=True, rel=1e-12)


@pytest.fixture(scope="module")
def hosted_log(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    """The log of a hosted model, with the requests and numbers of ``cdta run``."""
    folder = tmp_path_factory.mktemp("both")
    name, n = "openai/gpt-3.5-turbo", 10
    with openai_server(mixed, model=VERSION) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDTA_HOME", str(folder / "home of inspect"))
        log = eval_log(folder / "logs", name, temperature=0, samples=n)
        n_sent = len(server.requests)
        patch.setenv("CDTA_HOME", str(folder / "home of cdta"))
        check_same(log, model=name, n=n)
        requests = [json.dumps(request, sort_keys=True) for request in server.requests]
        assert sorted(requests[:n_sent]) == sorted(requests[n_sent:])
    return log


def test_a_diagnosis_gets_the_numbers_of_cdta_run(tmp_path: Path) -> None:
    options: dict[str, Any] = {"seed": 7, "pool": "common", "diagnose": True}
    log = eval_log(tmp_path, "cdta/pocket-rules", samples=8, temperature=0, **options)
    check_same(log, model="cdta/pocket-rules", n=8, **options)
    assert log.eval.dataset.name == "bishops-as-knights/common"
    logged = logged_metrics(log)
    assert logged["knowledge"] == logged["rule_effect"] == 1
    scores = [sample.scores["habit"] for sample in log.samples or () if sample.scores]
    n_replies = Counter(len((score.metadata or {})["replies"]) for score in scores)
    assert n_replies == {6: 8, 2: len(scores) - 8}


def test_log_has_the_headline_metric_games_and_outcomes(hosted_log: EvalLog) -> None:
    headline = headline_metric(hosted_log)
    assert headline and headline.name == "rule_uptake"
    assert headline.metric.value == logged_metrics(hosted_log)["rule_uptake"]
    assert hosted_log.eval.model == "openai/gpt-3.5-turbo" and hosted_log.samples
    for sample in hosted_log.samples:
        item = sample.metadata["item"]
        assert sample.target == item["next_filtered_moves"]
        assert {"♚", "♔"} <= set(str(sample.input))
        assert sample.scores
        score = sample.scores["habit"]
        assert score.metadata
        outcomes = {name: outcome for name, (outcome, *_) in score.metadata["replies"].items()}
        played = score.as_dict()["predicted_move_proportion"]
        assert played == (outcomes["standard"] == "usual")
        assert f"is {outcomes['changed']}" in (score.explanation or "")


@pytest.mark.parametrize(("n_faults", "status"), [(1, "success"), (2, "error")])
def test_one_of_21_samples_may_fail_and_is_not_scored(
    n_faults: int, status: str, tmp_path: Path
) -> None:
    outputs = [ModelOutput.from_content(VERSION, "a2a3") for _ in range(42)]
    outputs += [ModelOutput(model=VERSION, error="overloaded") for _ in range(n_faults)]
    for output in outputs:
        output.usage = ModelUsage()  # otherwise Inspect counts tokens over the network
    model = get_model("mockllm/model", custom_outputs=lambda *_: outputs.pop())
    log = eval_log(tmp_path, model, samples=21, dataset=VERSION)
    assert log.status == status
    failed = [sample for sample in log.samples or [] if sample.error]
    assert failed and "no answer under the standard rules" in str(failed[0].error)
    assert not any(sample.scores for sample in failed)
    assert bool(log.results) == (status == "success")
    if log.results:
        assert log.results.scores[0].scored_samples == 20


@needs_posix
def test_killed_run_resumes_with_eval_retry(tmp_path: Path) -> None:
    """The dataset is built once and used again by the second attempt."""
    enough_requests = threading.Event()

    def respond(request: Body) -> str:
        if sum(map(is_changed, server.requests)) >= 6:
            enough_requests.set()
        return mixed(request)

    def run_eval() -> None:
        arguments = {"samples": 10, "temperature": 0}
        options: dict[str, Any] = {"max_connections": 2, "display": "none"}
        inspect_eval(TASK, model, task_args=arguments, log_dir=str(tmp_path), **options)

    with openai_server(respond, model="gpt-4-0613") as server:
        model = get_model("openai/gpt-4", memoize=False)
        process = start(run_eval, tmp_path / "error")
        assert enough_requests.wait(120)
        os.kill(process, signal.SIGKILL)
        assert was_killed(process)
        (killed_log,) = tmp_path.glob("*.eval")
        server.requests.clear()
        with inspect_evals.without_overhead():
            (log,) = eval_retry(str(killed_log), log_dir=str(tmp_path / "again"), display="none")
        assert len(server.requests) < 20
        check_same(log, model="gpt-4", base_url=server.url, n=10)


@pytest.mark.parametrize(
    ("model", "argument", "sentence"),
    [
        ("cdta/random", "samples=few", "-T samples=few is not valid: n must be a valid integer, "),
        ("cdta/rando", "samples=1", "unknown model: 'cdta/rando' (did you mean"),
        ("cdta/random", "tag=a", "Inspect tasks do not support tag; use cdta run"),
        (
            "cdta/random",
            "pool=common -T rules=no-castling",
            "the pool 'common' is for bishops-as-knights, not for no-castling; leave out --pool "
            "(in Inspect: -T pool=...)",
        ),
        ("cdta/random", "smaples=3", "unknown argument: 'smaples' (did you mean 'samples'"),
        ("cdta/random", f"seed={2**63}", f"-T seed={2**63} is not valid: seed must be less than "),
    ],
)
def test_mistakes_give_a_one_sentence_error_and_exit_code_2(
    tmp_path: Path, model: str, argument: str, sentence: str
) -> None:
    options = f"--model {model} --log-dir {tmp_path} --display none -T {argument}"
    result = CliRunner().invoke(inspect, ["eval", TASK, *options.split()])
    assert result.exit_code == 2
    assert result.output.splitlines()[-1].startswith(f"Error: {sentence}")


NAME = "openai-api/loop/thinker"


@pytest.fixture
def reasoning_server(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> ReasoningServer:
    server = serve(ReasoningServer(wavering))
    monkeypatch.setenv("LOOP_API_KEY", "EMPTY")
    monkeypatch.setenv("LOOP_BASE_URL", server.url)
    return server


def test_reasoning_models_get_the_options_of_inspect_and_the_numbers_of_cdta_run(
    reasoning_server: ReasoningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = GenerateConfig(extra_body={"top_k": 3}, reasoning_effort="high", temperature=0.5)
    log = eval_log(tmp_path, get_model(NAME, memoize=False, config=config), samples=4)
    assert log.status == "success", log.error
    assert {request["reasoning_effort"] for request in reasoning_server.requests} == {"high"}
    assert {request["temperature"] for request in reasoning_server.requests} == {0.0, 0.5}
    assert {request["top_k"] for request in reasoning_server.requests} == {3}
    assert set(reasoning_server.limits) == {32_768}
    contents = [message.content for sample in log.samples or () for message in sample.messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    assert sum(isinstance(part, ContentReasoning) for part in parts) == 2 * 4
    monkeypatch.setenv("CDTA_HOME", str(tmp_path / "another home"))
    options: dict[str, Any] = {"temperature": 0.5, "reasoning_effort": "high", "wording": "all"}
    run = measure(NAME, n=4, max_connections=1, extra_body={"top_k": 3}, **options)
    logged = logged_metrics(log)
    assert logged["changed_reasoning_tokens"] >= logged["standard_reasoning_tokens"] > 0
    for name in ("variant_impact_factor", "rule_uptake", "predicted_move_proportion"):
        assert logged[name] == pytest.approx(run[name].value)
    assert run["predicted_move_proportion"].value > 0
