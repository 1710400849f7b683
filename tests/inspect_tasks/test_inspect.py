"""The Inspect tasks with a real server on the loopback interface."""

import asyncio
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
from hypothesis import given, settings
from hypothesis import strategies as st
from inspect_ai import eval as inspect_eval
from inspect_ai import eval_retry
from inspect_ai._cli.main import inspect
from inspect_ai.log import EvalLog, headline_metric
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import SampleScore, Score

import inspect_evals
from cant_do_that_anymore import Position
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.inspect_tasks.arguments import inspect_terms
from cant_do_that_anymore.inspect_tasks.scorer import habit_metrics
from cant_do_that_anymore.metrics.diagnosis import QUESTIONS
from cant_do_that_anymore.metrics.measures import MEASURES
from crashes import start, was_killed
from inspect_evals import logged_metrics
from testing import (
    USUAL,
    Body,
    Spec,
    evaluate,
    is_changed,
    mixed,
    needs_posix,
    openai_server,
)

ORIGINAL = (
    "variant_impact_factor",
    "delta",
    "predicted_move_proportion",
    "predicted_move_in_variant_proportion",
    "avg_num_previous_moves",
    "std_num_previous_moves",
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


def test_bundled_model_gets_the_numbers_of_cdta_run(tmp_path: Path) -> None:
    log = eval_log(tmp_path, "cdta/pocket", samples=8, temperature=0, seed=7, pool="common")
    check_same(log, model="cdta/pocket", n=8, seed=7, pool="common")
    assert log.eval.dataset.name == "bishops-as-knights/common"
    assert logged_metrics(log)["predicted_move_proportion"] > 0


def test_a_diagnosis_gets_the_numbers_of_cdta_run(tmp_path: Path) -> None:
    log = eval_log(tmp_path, "cdta/pocket-rules", samples=8, diagnose=True, temperature=0)
    check_same(log, model="cdta/pocket-rules", n=8, diagnose=True)
    logged = logged_metrics(log)
    assert logged["knowledge"] == logged["rule_effect"] == 1
    assert QUESTIONS.keys() < logged.keys()
    scores = [
        sample.scores["habit"].metadata or {} for sample in log.samples or () if sample.scores
    ]
    assert Counter(len(score["replies"]) for score in scores) == {6: 8, 2: len(scores) - 8}


def test_log_has_the_headline_metric_games_and_outcomes(hosted_log: EvalLog) -> None:
    assert hosted_log.eval.model == "openai/gpt-3.5-turbo"
    headline = headline_metric(hosted_log)
    assert headline and headline.name == "rule_uptake"
    assert headline.metric.value == logged_metrics(hosted_log)["rule_uptake"]
    assert hosted_log.samples
    for sample in hosted_log.samples:
        item = sample.metadata["item"]
        usual = [USUAL[tuple(item["previous_moves"])]]
        assert sample.target == usual == item["next_filtered_moves"]
        assert {"♚", "♔"} <= set(str(sample.input))
        assert len({message.role for message in sample.messages} - {"assistant"}) in (1, 2)
        assert sample.scores
        score = sample.scores["habit"]
        assert score.metadata
        played = score.as_dict()["predicted_move_proportion"]
        outcomes = {name: outcome for name, (outcome, *_) in score.metadata["replies"].items()}
        assert played == (outcomes["standard"] == "usual")
        assert f"is {outcomes['changed']}" in (score.explanation or "")


@pytest.mark.parametrize(
    ("faults", "status", "scored"),
    [
        ([ModelOutput(model=VERSION, choices=[])], "success", 20),
        (
            [
                ModelOutput(model=VERSION, error="overloaded"),
                ModelOutput.from_content(VERSION, "", stop_reason="unknown"),
            ],
            "error",
            0,
        ),
    ],
)
def test_one_of_21_samples_may_fail_and_is_not_scored(
    faults: list[ModelOutput], status: str, scored: int, tmp_path: Path
) -> None:
    outputs = [ModelOutput.from_content(VERSION, "a2a3") for _ in range(42)] + faults
    for output in outputs:
        output.usage = ModelUsage()  # otherwise Inspect counts tokens over the network
    model = get_model("mockllm/model", custom_outputs=lambda *_: outputs.pop())
    log = eval_log(tmp_path, model, samples=21, dataset=VERSION)
    assert log.status == status
    samples = log.samples or []
    (first, *_) = failed = [sample for sample in samples if sample.error]
    assert first.error and "no answer under the standard rules" in first.error.message
    assert not any(sample.scores for sample in failed)
    assert bool(log.results) == bool(scored)
    if log.results:
        assert log.results.scores[0].scored_samples == scored
        lengths = [s.metadata["num_previous_moves"] for s in samples if not s.error]
        assert logged_metrics(log)["avg_num_previous_moves"] == pytest.approx(sum(lengths) / scored)


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
            "the pool 'common' is for bishops-as-knights, not for no-castling; leave out --pool",
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


def test_errors_name_the_arguments_of_the_task_too() -> None:
    with pytest.raises(UserError) as error, inspect_terms():
        raise UserError("use -n 8, --max-cost 2.5 or --fresh, not pip --no-deps")
    spelled = "(in Inspect: -T samples=..., -T max_cost=...)"
    assert str(error.value) == f"use -n 8, --max-cost 2.5 or --fresh, not pip --no-deps {spelled}"


def test_bundled_models_refuse_other_tasks() -> None:
    with pytest.raises(InvalidInput, match="answer in the tasks"):
        asyncio.run(get_model("cdta/random").generate("Who are you?"))


def metadata_of(position: Position) -> dict[str, Any]:
    return {"change": "bishops-as-knights", "item": position.to_json(), "draw": 0}


SHUFFLE = ("g1f3", "g8f6", "f3g1", "f6g8") * 15
Samples = list[tuple[int, bool, bool]]
"""Game, and whether the usual move was played under the standard and the changed rules."""

SAMPLES = st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), min_size=1)


def metrics_of(samples: Samples, copies: int = 1) -> dict[str, float]:
    """Metrics of these samples, each with copies in other games."""
    scores = []
    for copy in range(copies):
        for game, before, after in samples:
            outcomes = {"standard": before, "changed": after}
            played = {name: "usual" if usual else "legal" for name, usual in outcomes.items()}
            replies = {name: [kind, None, kind, 0] for name, kind in played.items()}
            position = Position(game + 100 * copy, SHUFFLE[: 2 * game], ("e2e4",))
            score = Score(value={}, metadata={"replies": replies})
            scores.append(SampleScore(score=score, sample_metadata=metadata_of(position)))
    values = habit_metrics()(scores)  # type: ignore[arg-type]
    assert isinstance(values, dict)
    return {name: values[name] for name in values if not name.endswith(("_low", "_high"))}


@settings(max_examples=25)
@given(SAMPLES)
def test_copies_of_a_position_change_no_number(samples: Samples) -> None:
    """Without a habit, the impact factor is NaN, but Inspect needs its name."""
    once = metrics_of(samples)
    assert once == pytest.approx(metrics_of(samples * 2), nan_ok=True, abs=1e-9)
    assert once == pytest.approx(metrics_of(samples, copies=2), nan_ok=True, abs=1e-9)
    has_habit = any(before for _, before, _ in samples)
    assert math.isnan(once["variant_impact_factor"]) != has_habit
    assert math.isnan(metrics_of([])["variant_impact_factor"])
