"""The Inspect tasks, with a server on the loopback interface or a model in this process."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import Epochs, eval_retry, eval_set, list_tasks, task_with
from inspect_ai import score as score_again
from inspect_ai._cli.main import inspect
from inspect_ai.log import EvalLog, headline_metric
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.solver import generate

from cant_do_that_anymore import inspect_tasks as package
from cant_do_that_anymore.inspect_tasks import tasks
from cant_do_that_anymore.inspect_tasks.arguments import Arguments
from cant_do_that_anymore.inspect_tasks.scorer import habit
from cant_do_that_anymore.metrics.measures import MEASURES
from cant_do_that_anymore.runs.run import PROTOCOL
from crashes import start, was_killed
from inspect_evals import logged_metrics, run_eval, without_overhead
from testing import (
    USUAL,
    Body,
    Reasoning,
    Serve,
    Spec,
    evaluate,
    is_changed,
    measure,
    mixed,
    moves_in,
    needs_posix,
    openai_server,
    wavering,
)

VERSION = "gpt-3.5-turbo-0125"
TASK = "cant_do_that_anymore/cant_do_that_anymore"
NAMES = ["cant_do_that_anymore", "cant_do_that_anymore_diagonal", "cant_do_that_anymore_small"]
TOKENS = 7


class Player(ModelAPI):
    """Records requests with their settings, and the arguments of its models.

    Attributes:
        respond: the reply to a request; a `ModelOutput` is returned unchanged.
    """

    respond: Callable[[Body], str | ModelOutput] = staticmethod(mixed)
    requests: list[tuple[Body, GenerateConfig]]
    strengths: set[str | None]

    def __init__(self, model_name: str, *_: object, **arguments: Any) -> None:
        self.strength = arguments.pop("strength", None)
        super().__init__(model_name, **arguments)

    async def generate(
        self, input: list[ChatMessage], tools: object, tool_choice: object, config: GenerateConfig
    ) -> ModelOutput:
        request = {"messages": [{"role": turn.role, "content": turn.text} for turn in input]}
        Player.requests.append((request, config))
        Player.strengths.add(self.strength)
        reply = Player.respond(request)
        output = reply if isinstance(reply, ModelOutput) else ModelOutput.from_content("p-1", reply)
        output.usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=TOKENS)
        return output


@modelapi("player")
def player() -> type[ModelAPI]:
    return Player


@pytest.fixture(autouse=True)
def reset_player() -> Iterator[None]:
    Player.requests, Player.strengths, Player.respond = [], set(), staticmethod(mixed)
    yield


def eval_log(folder: Path, model: Any = "player/p", task: Any = TASK, **options: Any) -> EvalLog:
    return run_eval(folder, task, model, **options)


def check_same(log: EvalLog, **spec: Any) -> None:
    """Check that ``cdta run`` gets the same numbers."""
    results = evaluate(Spec(temperature=0.0, **spec), quiet=True).results
    found = {name: finding.estimate for name, finding in results.diagnosis.items()}
    estimates = {**dict.fromkeys(MEASURES), **results.estimates, **found}
    expected: dict[str, float] = {}
    for name, estimate in estimates.items():
        expected[name] = estimate.value if estimate else math.nan
        if estimate and estimate.low is not None and estimate.high is not None:
            expected |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    assert logged_metrics(log) == pytest.approx(expected, nan_ok=True, rel=1e-12)


def mixed_with_markup(request: Body) -> str:
    """Under the changed rules, an exact reading finds no move."""
    return f"**{mixed(request)}**" if is_changed(request) else mixed(request)


@pytest.fixture(scope="module")
def hosted_log(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    """The log of a hosted model, with the requests and numbers of ``cdta run``."""
    folder = tmp_path_factory.mktemp("both")
    name, n = "openai/gpt-3.5-turbo", 10
    with (
        openai_server(mixed_with_markup, model=VERSION) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("CDTA_HOME", str(folder / "home of inspect"))
        log = eval_log(folder / "logs", name, task_args={"samples": n}, temperature=0)
        n_sent = len(server.requests)
        patch.setenv("CDTA_HOME", str(folder / "home of cdta"))
        check_same(log, model=name, n=n)
        requests = [json.dumps(request, sort_keys=True) for request in server.requests]
        assert sorted(requests[:n_sent]) == sorted(requests[n_sent:])
    return log


def test_log_describes_the_measurement_and_each_sample(hosted_log: EvalLog) -> None:
    spec = hosted_log.eval
    assert (spec.model, spec.dataset.name) == ("openai/gpt-3.5-turbo", "bishops-as-knights/all")
    assert spec.task_args == {"samples": 10}
    assert spec.metadata
    assert (spec.metadata["rules"], spec.metadata["protocol"]) == ("bishops-as-knights", PROTOCOL)
    headline = headline_metric(hosted_log)
    assert headline and headline.name == "rule_uptake"
    documented = Path(__file__).parents[2].joinpath("docs/inspect.md").read_text(encoding="utf-8")
    assert [name for name in Arguments.__annotations__ if f"`{name}`" not in documented] == []
    assert hosted_log.samples
    for sample in hosted_log.samples:
        assert sample.target == sample.metadata["item"]["next_filtered_moves"]
        assert {"♚", "♔"} <= set(str(sample.input))
        assert sample.scores
        score = sample.scores["habit"]
        assert score.metadata
        outcomes = {name: outcome for name, (outcome, *_) in score.metadata["replies"].items()}
        usual = [sample.scores[name].as_float() for name in ("usual_before", "usual_after")]
        assert usual == [outcomes[name] == "usual" for name in ("standard", "changed")]
        assert f"({outcomes['changed']})" in (score.explanation or "")


def test_score_again_needs_no_argument_and_accepts_another_reading(
    hosted_log: EvalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")  # Inspect makes the model again
    rescored = score_again(hosted_log, habit(), action="overwrite")
    assert logged_metrics(rescored) == pytest.approx(logged_metrics(hosted_log))
    exact = score_again(hosted_log, habit(reading="exact"), action="overwrite")
    scores = [sample.scores["habit"] for sample in exact.samples or () if sample.scores]
    changed = {(score.metadata or {})["replies"]["changed"][0] for score in scores}
    assert changed == {"unreadable"}


def test_the_recipe_for_data_frames_gives_the_logged_numbers(hosted_log: EvalLog) -> None:
    """In a process of its own, since reading logs changes how asyncio works."""
    text = Path(__file__).parents[2].joinpath("docs/inspect.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```python\n(from inspect_ai.analysis.*?)```", text, re.DOTALL)
    recipe = recipe.replace('"logs"', repr(hosted_log.location))
    shown = "print([*samples.columns], [*uptake], [*evals.score_habit_rule_uptake], sep='|')"
    done = subprocess.run(
        [sys.executable, "-c", f"{recipe}\n{shown}"], capture_output=True, text=True, check=True
    )
    columns, uptake, logged = done.stdout.splitlines()[-1].split("|")
    assert uptake == logged == str([logged_metrics(hosted_log)["rule_uptake"]])
    scores = {name for name in literal_eval(columns) if name.startswith("score_")}
    numbers = {"habit", "violation_before", "usual_before", "usual_after"}
    assert scores == {f"score_{name}" for name in numbers}


def test_a_diagnosis_gets_the_numbers_of_cdta_run(tmp_path: Path) -> None:
    options: dict[str, Any] = {"seed": 7, "pool": "common", "diagnose": True}
    task_args = {"samples": 8, **options}
    log = eval_log(tmp_path, "cdta/pocket-rules", task_args=task_args, temperature=0)
    check_same(log, model="cdta/pocket-rules", n=8, **options)
    assert log.eval.dataset.name == "bishops-as-knights/common"
    logged = logged_metrics(log)
    assert logged["knowledge"] == logged["rule_effect"] == 1
    scores = [sample.scores["habit"] for sample in log.samples or () if sample.scores]
    n_replies = Counter(len((score.metadata or {})["replies"]) for score in scores)
    assert n_replies == {6: 8, 2: len(scores) - 8}


def test_a_failed_sample_is_not_scored_and_5_percent_may_fail(tmp_path: Path) -> None:
    """A mock model needs no dataset and no tokenizer."""
    outputs = [ModelOutput.from_content(VERSION, "a2a3") for _ in range(42)]
    outputs.append(ModelOutput(model=VERSION, error="overloaded"))
    model = get_model("mockllm/model", custom_outputs=lambda *_: outputs.pop())
    log = eval_log(tmp_path, model, task_args={"samples": 21}, max_samples=1)
    assert (log.status, log.eval.config.fail_on_error) == ("success", 0.05)
    (failed,) = (sample for sample in log.samples or () if sample.error)
    assert "no answer under the standard rules" in str(failed.error) and not failed.scores
    assert log.results and log.results.scores[0].scored_samples == 20


@needs_posix
def test_killed_run_resumes_with_eval_retry(tmp_path: Path) -> None:
    """The dataset is built once and used again by the second attempt."""
    enough_requests = threading.Event()

    def respond(request: Body) -> str:
        if sum(map(is_changed, server.requests)) >= 6:
            enough_requests.set()
        return mixed(request)

    def run_until_killed() -> None:
        options = {"max_connections": 2, "temperature": 0}
        eval_log(tmp_path, "openai/gpt-4", task_args={"samples": 10}, **options)

    with openai_server(respond, model="gpt-4-0613") as server:
        process = start(run_until_killed, tmp_path / "error")
        assert enough_requests.wait(120)
        os.kill(process, signal.SIGKILL)
        assert was_killed(process)
        (killed_log,) = tmp_path.glob("*.eval")
        server.requests.clear()
        with without_overhead():
            (log,) = eval_retry(str(killed_log), log_dir=str(tmp_path / "again"), display="none")
        assert len(server.requests) < 20
        check_same(log, model="gpt-4", base_url=server.url, n=10)


@pytest.mark.parametrize(
    ("model", "argument", "sentence"),
    [
        ("cdta/random", "samples=few", "n must be a valid integer, not 'few'"),
        ("cdta/rando", "samples=1", "unknown model: 'cdta/rando' (did you mean"),
        (
            "cdta/random",
            "pool=common -T rules=no-castling",
            "the common positions are for bishops-as-knights, not for no-castling; use --eval all "
            "without --pool, or pass positions of such games with --pool FILE (in Inspect: ",
        ),
        ("cdta/random", "smaples=3", "unknown argument: 'smaples' (did you mean 'samples'"),
    ],
)
def test_mistakes_give_a_one_sentence_error_and_exit_code_2(
    tmp_path: Path, model: str, argument: str, sentence: str
) -> None:
    options = f"--model {model} --log-dir {tmp_path} --display none -T {argument}"
    result = CliRunner().invoke(inspect, ["eval", TASK, *options.split()])
    assert result.exit_code == 2
    assert result.output.splitlines()[-1].startswith(f"Error: {sentence}")


def test_reasoning_models_get_the_options_of_inspect_and_the_numbers_of_cdta_run(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, server = "openai-api/loop/thinker", serve(wavering, reasoning=Reasoning())
    monkeypatch.setenv("LOOP_API_KEY", "EMPTY")
    monkeypatch.setenv("LOOP_BASE_URL", server.url)
    config = GenerateConfig(extra_body={"top_k": 3}, reasoning_effort="high", temperature=0.5)
    model = get_model(name, memoize=False, config=config)
    log = eval_log(tmp_path, model, task_args={"samples": 4})
    assert log.status == "success", log.error
    assert {request["reasoning_effort"] for request in server.requests} == {"high"}
    assert {request["temperature"] for request in server.requests} == {0.0, 0.5}
    assert {request["top_k"] for request in server.requests} == {3}
    assert set(server.limits) == {32_768}
    contents = [message.content for sample in log.samples or () for message in sample.messages]
    assert sum(isinstance(content, list) for content in contents) == 2 * 4  # with reasoning
    monkeypatch.setenv("CDTA_HOME", str(tmp_path / "another home"))
    options: dict[str, Any] = {"temperature": 0.5, "reasoning_effort": "high", "wording": "all"}
    run = measure(name, n=4, max_connections=1, extra_body={"top_k": 3}, **options)
    logged = logged_metrics(log)
    assert logged["changed_reasoning_tokens"] >= logged["standard_reasoning_tokens"] > 0
    for measure_name in ("variant_impact_factor", "rule_uptake", "predicted_move_proportion"):
        assert logged[measure_name] == pytest.approx(run[measure_name].value)
    assert run["predicted_move_proportion"].value > 0


def test_selection_uses_the_model_of_the_task_with_all_its_settings(tmp_path: Path) -> None:
    config = GenerateConfig(top_p=0.5, max_tokens=32)
    model = get_model("player/p", config=config, memoize=False, strength="high")
    log = eval_log(tmp_path, model, task_args={"samples": 3}, seed=7)
    assert {(c.top_p, c.max_tokens, c.seed) for _, c in Player.requests} == {(0.5, 32, 7)}
    assert {config.temperature for _, config in Player.requests} == {0.0, 1.0}
    assert Player.strengths == {"high"}
    (usage,) = log.stats.model_usage.values()  # includes selection
    assert usage.total_tokens == TOKENS * len(Player.requests) > TOKENS * 2 * 3


@pytest.mark.usefixtures("small_pools")
def test_sample_ids_need_a_dataset_that_is_built(tmp_path: Path) -> None:
    log = eval_log(tmp_path, "cdta/pocket", sample_id="abc", task_args={"rules": "no-castling"})
    assert log.status == "error" and log.error
    assert "--sample-id until the dataset is built (cdta dataset build)" in log.error.message


def test_run_with_another_solver_fails_at_its_first_sample(tmp_path: Path) -> None:
    Player.respond = lambda request: mixed(request) if moves_in(request) else "a2a3"
    log = eval_log(tmp_path, solver=generate())
    assert log.status == "error" and log.error and log.samples
    (sample,) = log.samples
    assert "leave out --solver" in str(sample.error) and "leave out --solver" in log.error.message
    assert sum(config.temperature != 0 for _, config in Player.requests) == 1


def test_tasks_are_found_by_their_file_and_by_import(tmp_path: Path) -> None:
    file = Path(tasks.__file__)
    listed = list_tasks(str(file.name), root_dir=file.parent)
    assert sorted(task.name for task in listed) == NAMES == sorted(package.__all__)
    log = eval_log(tmp_path, task=f"{file}@cant_do_that_anymore_small", limit=1)
    assert log.status == "success"
    assert log.eval.task == "cant_do_that_anymore_small-bishops-as-knights"


def test_a_task_and_a_model_can_be_used_again(tmp_path: Path) -> None:
    """The task needs no model until it runs. Each eval has its own event loop."""
    task = task_with(package.cant_do_that_anymore(samples=2), epochs=2, name="twice")
    bundled = get_model("cdta/pocket")
    for model in ("player/p", "player/q", bundled, bundled):
        log = eval_log(tmp_path, model, task)
        assert log.results and log.results.completed_samples == 4, log.error


def test_metrics_cover_all_epochs_with_any_reducer(tmp_path: Path) -> None:
    answers = cycle(["a2a3", "h2h3", None])
    Player.respond = lambda request: next(answers) or USUAL.get(moves_in(request), "a2a3")
    task_args = {"samples": 4, "dataset": "gpt-4-0314"}
    epochs = Epochs(3, "at_least_1")
    log = eval_log(tmp_path, task_args=task_args, epochs=epochs, max_samples=1)
    rescored = score_again(log, habit(), epochs_reducer="max", action="overwrite")
    assert 0 < logged_metrics(log)["predicted_move_proportion"] < 1
    assert logged_metrics(rescored) == logged_metrics(log)


def test_an_eval_set_measures_the_samples_beyond_a_limit(tmp_path: Path) -> None:
    def run_eval_set(**options: Any) -> tuple[EvalLog, int]:
        n_requests = len(Player.requests)
        with without_overhead():
            done, (log,) = eval_set(
                TASK,
                log_dir=str(tmp_path),
                model=get_model("player/p", memoize=False),
                task_args={"samples": 8},
                display="none",
                log_realtime=False,
                **options,
            )
        assert done
        return log, sum(config.temperature != 0 for _, config in Player.requests[n_requests:])

    few, n_first = run_eval_set(limit=3)
    assert len(Player.requests) < 2 * 3 + 20  # a limit costs only its samples and their search
    assert (few.eval.dataset.samples, n_first) == (8, 2 * 3)
    complete, n_second = run_eval_set()
    assert complete.results
    assert (complete.eval.dataset.samples, complete.results.completed_samples) == (8, 8)
    assert n_second == 2 * (8 - 3)
    assert run_eval_set()[1] == 0  # already complete
