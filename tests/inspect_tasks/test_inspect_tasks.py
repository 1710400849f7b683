"""The Inspect tasks with an Inspect model that plays in this process."""

import re
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Epochs, list_tasks, task_with
from inspect_ai import score as score_again
from inspect_ai.event import SpanBeginEvent
from inspect_ai.log import EvalLog
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

import inspect_evals
from cant_do_that_anymore import inspect_tasks as package
from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.inspect_tasks import tasks
from cant_do_that_anymore.inspect_tasks.arguments import ARGUMENTS
from cant_do_that_anymore.inspect_tasks.scorer import habit
from cant_do_that_anymore.runs.run import PROTOCOL
from inspect_evals import logged_metrics
from testing import USUAL, Body, Spec, evaluate, is_changed, mixed, moves_in, wavering

TASK = "cant_do_that_anymore/cant_do_that_anymore"
NAMES = ["cant_do_that_anymore", "cant_do_that_anymore_diagonal", "cant_do_that_anymore_small"]
EMPTY = ModelOutput.from_content("player-1", "", stop_reason="unknown")
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
        turns = [{"role": turn.role, "content": turn.text} for turn in input]
        request = {"messages": turns}
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


def eval_log(folder: Path, task: Any = TASK, model: Any = "player/p", **options: Any) -> EvalLog:
    return inspect_evals.run_eval(folder, task, model, **options)


@pytest.fixture(scope="module")
def shared_log(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    """A log that several tests read. Under the changed rules an exact reading finds no move."""

    def respond(request: Body) -> str:
        return f"**{wavering(request)}**" if is_changed(request) else wavering(request)

    Player.requests, Player.strengths, Player.respond = [], set(), staticmethod(respond)
    return eval_log(tmp_path_factory.mktemp("shared_log"), task_args={"samples": 6})


def test_limit_costs_only_its_samples(tmp_path: Path) -> None:
    """The task has 1,000 samples; a smaller limit takes the first samples of a larger one."""
    few = eval_log(tmp_path, limit=5)
    n_requests = len(Player.requests)
    assert n_requests < 32  # ten to measure the samples, the rest to select them
    more = eval_log(tmp_path, limit=8)
    assert sum(not is_changed(request) for request, _ in Player.requests[n_requests:]) < 8 + 20
    ids = [{sample.id for sample in log.samples or ()} for log in (few, more)]
    assert [len(each) for each in ids] == [5, 8]
    assert ids[0] < ids[1]


def test_selection_uses_the_model_of_the_task_with_all_its_settings(tmp_path: Path) -> None:
    config = GenerateConfig(top_p=0.5, max_tokens=32, extra_body={"top_k": 3})
    model = get_model("player/p", config=config, memoize=False, strength="high")
    log = eval_log(tmp_path, model=model, task_args={"samples": 3}, seed=7)
    assert log.status == "success"
    settings = {(c.top_p, c.max_tokens, c.seed, str(c.extra_body)) for _, c in Player.requests}
    assert settings == {(0.5, 32, 7, "{'top_k': 3}")}
    assert {config.temperature for _, config in Player.requests} == {0.0, 1.0}
    assert Player.strengths == {"high"}
    (usage,) = log.stats.model_usage.values()  # includes selection
    assert usage.total_tokens == TOKENS * len(Player.requests) > TOKENS * 2 * 3


def test_faults_during_selection_are_retried(tmp_path: Path, no_retry_delay: None) -> None:
    faults = [EMPTY, ModelOutput(model="p-1", error="overloaded")]
    Player.respond = lambda request: faults.pop() if faults else mixed(request)
    log = eval_log(tmp_path, task_args={"samples": 3})
    assert (log.status, faults) == ("success", [])
    assert not any(sample.error for sample in log.samples or ())


def test_provider_faults_are_no_answers_and_are_not_cached(no_retry_delay: None) -> None:
    """A model that fails only under the changed rules must not seem to drop its habits."""
    spec = Spec(model="player/p", n=3, temperature=0.0, wording="plain")
    Player.respond = lambda request: EMPTY if is_changed(request) else mixed(request)
    with pytest.raises(Incomplete, match="ended for an unknown reason"):
        evaluate(spec, quiet=True)
    Player.respond = staticmethod(mixed)
    assert evaluate(spec, quiet=True).results["variant_impact_factor"].value != -1


def test_run_with_another_solver_fails(tmp_path: Path) -> None:
    Player.respond = lambda request: mixed(request) if moves_in(request) else "a2a3"
    log = eval_log(tmp_path, limit=2, solver=generate())
    assert log.status == "error"
    assert log.samples
    assert "leave out --solver" in str(log.samples[0].error)


def test_tasks_are_found_by_their_file_and_by_import(tmp_path: Path) -> None:
    file = Path(tasks.__file__)
    listed = list_tasks(str(file.name), root_dir=file.parent)
    assert sorted(task.name for task in listed) == NAMES == sorted(package.__all__)
    log = eval_log(tmp_path, f"{file}@cant_do_that_anymore_small", limit=1)
    assert (log.status, log.eval.task) == ("success", "cant_do_that_anymore_small")


def test_a_task_and_a_model_can_be_used_again(tmp_path: Path) -> None:
    """The task needs no model until it runs. Each eval has its own event loop."""
    task = task_with(package.cant_do_that_anymore(samples=2), epochs=2, name="twice")
    bundled = get_model("cdta/pocket")
    for model in ("player/p", "player/q", bundled, bundled):
        log = eval_log(tmp_path, task, model=model)
        assert log.results and log.results.completed_samples == 4, log.error


def test_log_describes_the_measurement(shared_log: EvalLog) -> None:
    spec = shared_log.eval
    assert re.fullmatch(r"\d+-[A-Z]", str(spec.task_version))
    assert (spec.dataset.name, spec.task_args) == ("bishops-as-knights/all", {"samples": 6})
    assert spec.tags and spec.metadata
    assert (spec.metadata["rules"], spec.metadata["protocol"]) == ("bishops-as-knights", PROTOCOL)
    names = [name for name in logged_metrics(shared_log) if not name.endswith(("_low", "_high"))]
    assert names[:3] == ["rule_uptake", "variant_impact_factor", "delta"]
    for sample in shared_log.samples or ():
        moves = sample.metadata["item"]["previous_moves"]
        assert sample.metadata["num_previous_moves"] == len(moves)
        spans = [event.name for event in sample.events if isinstance(event, SpanBeginEvent)]
        conditions = ["standard", "changed"]
        assert [name for name in spans if name in conditions] == conditions
    documented = Path(__file__).parents[2].joinpath("docs/inspect.md").read_text(encoding="utf-8")
    assert [name for name in ARGUMENTS if f"`{name}`" not in documented] == []


def test_score_again_needs_no_argument_and_accepts_another_reading(shared_log: EvalLog) -> None:
    rescored = score_again(shared_log, habit(), action="overwrite")
    assert logged_metrics(rescored) == pytest.approx(logged_metrics(shared_log))
    exact = score_again(shared_log, habit(reading="exact"), action="overwrite")
    assert logged_metrics(exact).keys() == logged_metrics(shared_log).keys()
    for log, outcome in ((shared_log, {"usual", "legal", "illegal"}), (exact, {"unreadable"})):
        scores = [sample.scores["habit"] for sample in log.samples or () if sample.scores]
        assert {(score.metadata or {})["replies"]["changed"][0] for score in scores} <= outcome


def test_metrics_cover_all_epochs_with_any_reducer(tmp_path: Path) -> None:
    answers = cycle(["a2a3", "h2h3", None])
    Player.respond = lambda request: next(answers) or USUAL.get(moves_in(request), "a2a3")
    log = eval_log(
        tmp_path,
        task_args={"samples": 4, "dataset": "gpt-4-0314"},
        epochs=Epochs(3, "at_least_1"),
        max_samples=1,
    )
    rescored = score_again(log, habit(), epochs_reducer="max", action="overwrite")
    assert 0 < logged_metrics(log)["predicted_move_proportion"] < 1
    assert logged_metrics(rescored) == logged_metrics(log)
