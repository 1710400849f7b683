"""No surprise costs: a run projects its cost after a few answers and asks for approval."""

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore.comparison.experiment import run_all, specs_for
from cant_do_that_anymore.costs.approval import MIN_ANSWERS
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.errors import Incomplete, InvalidInput, NeedsApproval, NoHabit
from cant_do_that_anymore.runs.evaluate import select
from cant_do_that_anymore.runs.storage import save_run
from planted_models import habit_in_every_second
from priced_servers import ChargingServer, total_charge
from testing import (
    Body,
    Loopback,
    Serve,
    Spec,
    cdta,
    habit,
    is_changed,
    measure,
    needs_posix,
    oaieval,
    positions,
    start_cdta,
)

pytestmark = pytest.mark.usefixtures("priced")


@pytest.fixture
def half_habit(serve: Serve) -> Loopback:
    """A model with its habit in every second position."""
    return serve(habit_in_every_second)


def amount_in(error: pytest.ExceptionInfo[NeedsApproval]) -> float:
    return float(str(error.value).split("about $")[1].split()[0].replace(",", ""))


def test_a_run_of_eight_dollars_stops_before_spending_one(server: Loopback) -> None:
    run = partial(measure, server, dataset="gpt-4-0314", n=100, price="300,3000")
    with pytest.raises(NeedsApproval, match="Set --max-cost USD or a higher") as error:
        run()
    assert len(server.requests) == 20
    spent = 3 * total_charge(server)
    assert 0.3 < spent < 1
    with pytest.raises(NeedsApproval):
        run()
    assert len(server.requests) == 20 + 1  # the check of the model
    assert len(run(max_cost=50).samples) == 100
    assert len(server.requests) == 200 + 2
    assert amount_in(error) == pytest.approx(7.4, abs=0.4)
    assert 3 * total_charge(server) - spent == pytest.approx(amount_in(error), rel=0.05)


def test_the_error_suggests_cheaper_options(half_habit: Loopback) -> None:
    done = cdta("run", "--model", "priced", "--base-url", half_habit.url, "--quiet", code=1)
    assert len(half_habit.requests) == 20 + 4  # two samples
    *_, sentence = done.stderr.splitlines()
    assert "to save money, try --pool common, --eval all_small; " in sentence


def test_ask_above_sets_the_limit(half_habit: Loopback) -> None:
    run = partial(measure, half_habit, model="priced", n=20)
    with pytest.raises(NeedsApproval):
        run(ask_above=0.5)
    spent = run().cost.spent
    assert spent is not None and 0.5 < spent < 5


def test_cached_answers_cost_nothing(half_habit: Loopback) -> None:
    run = partial(measure, half_habit, pool=positions(60), price="400,4000", ask_above=1.0)
    run(n=12, max_cost=100)
    n_requests = len(half_habit.requests)
    assert 4 * total_charge(half_habit) > 1
    run(n=12)
    run(n=13)
    assert len(half_habit.requests) > n_requests


def test_an_expensive_model_needs_fewer_answers(serve: Serve) -> None:
    server = serve(
        ChargingServer(habit_in_every_second, reasoning_tokens=lambda _: 8_000)
    )  # eight dollars per answer
    with pytest.raises(NeedsApproval):
        measure(server, model="priced", reasoning_tokens=10_000, n=5)
    assert len(server.requests) == 1


def test_uncounted_tokens_are_priced_at_their_maximum(serve: Serve) -> None:
    class Silent(Loopback):
        def completion(self, request: Body) -> dict[str, Any]:
            return super().completion(request) | {"usage": None}

    with pytest.raises(NeedsApproval) as error:
        measure(serve(Silent(habit)), model="priced", dataset="gpt-4-0314", n=1_000)
    assert amount_in(error) > 28


def test_building_a_dataset_is_priced_without_the_measurement(half_habit: Loopback) -> None:
    spec = partial(Spec, model="priced", base_url=half_habit.url, n=80)
    with pytest.raises(NeedsApproval):
        measure(half_habit, model="priced", n=80, ask_above=4)
    with pytest.raises(NeedsApproval, match="to save money, try --pool common;"):
        select(spec(ask_above=1), quiet=True)
    assert len(select(spec(ask_above=9), quiet=True).positions) == 80


def test_an_experiment_is_priced_as_a_whole_first(half_habit: Loopback, tmp_path: Path) -> None:
    """Each run costs less than the limit; all seeds share one dataset."""

    def run_experiment(**more: float) -> int:
        fields: dict[str, Any] = {"model": "priced", "base_url": half_habit.url, "n": 40}
        specs = specs_for(range(3), evals="all", **fields, **more)
        runs, failures = run_all({"priced": specs}, tmp_path, save_run, quiet=True)
        assert not failures
        return len(runs)

    with pytest.raises(NeedsApproval) as error:
        run_experiment()
    assert len(half_habit.requests) == 20 + 4  # two samples
    with pytest.raises(NeedsApproval):
        run_experiment(ask_above=3.0)
    assert run_experiment(max_cost=50) == 3
    assert total_charge(half_habit) == pytest.approx(amount_in(error), rel=0.35)  # half are hits
    run_experiment(ask_above=0)  # all answers are cached


def test_pricing_an_experiment_takes_few_answers(half_habit: Loopback, tmp_path: Path) -> None:
    """Regardless of the number of runs and their price."""
    fields: dict[str, Any] = {"base_url": half_habit.url, "n": 60, "price": (3000, 3000)}
    specs = {name: specs_for(range(3), model=name, **fields) for name in "ab"}
    for _ in range(2):
        with pytest.raises(NeedsApproval):
            run_all(specs, tmp_path, save_run, quiet=True)
        assert len(half_habit.requests) == 2 * MIN_ANSWERS


def test_experiments_suggest_options_that_make_them_cheaper(
    half_habit: Loopback, tmp_path: Path
) -> None:
    command = ("experiment", "--model", "priced", "--base-url", half_habit.url, "--quiet")
    options = ("--out", tmp_path, "--ask-above", "0.5", "--runs", 1, "--eval", "all")
    done = cdta(*command, *options, code=1)
    assert (
        "; to save money, try --pool common, --eval all_small; all answers so far are saved"
        in done.stderr
    )


def test_no_approval_without_a_price_or_in_oaieval(server: Loopback, tmp_path: Path) -> None:
    shipped: dict[str, Any] = {"dataset": "gpt-4-0314", "n": 10, "ask_above": 0.0}
    for run in (measure(server, model="other", **shipped), measure("cdta/random", **shipped)):
        assert len(run.samples) == 10
    oaieval(
        *("priced", "cant_do_that_anymore.all_diagonal"),
        *("--completion_args", f"base_url={server.url}"),
        *("--extra_eval_params", "n_samples=200"),
        code=0,
        TMPDIR=str(tmp_path),  # where the log goes
    )


@needs_posix
@pytest.mark.parametrize(
    ("reply", "code", "n_requests", "end"),
    [
        (b"y\n", 0, 201, b""),
        (
            b"n\n",
            1,
            20,
            b"cdta: stopped because you did not approve the cost; all answers so far are saved. "
            b"Run the same command again to continue\r\n",
        ),
    ],
)
def test_a_terminal_prompts_for_approval(
    reply: bytes, code: int, n_requests: int, end: bytes, serve_http: Serve, tmp_path: Path
) -> None:
    import pty  # not on Windows

    server = serve_http(habit)
    controller, terminal = pty.openpty()
    options = ["--base-url", server.url, "--model", "m", "--price", "200,2000", "--quiet"]
    options += ["--dataset", "gpt-4-0314", "-n", "100", "--out", str(tmp_path / "run")]
    process = start_cdta("run", *options, terminal=terminal)
    output = b""
    while b"[y/N]" not in output:
        output += os.read(controller, 1_000)
    assert len(server.requests) == 20
    os.write(controller, reply)
    process.communicate(timeout=60)
    assert process.returncode == code
    assert len(server.requests) == n_requests
    assert b"$5." in output
    echo = reply.replace(b"\n", b"\r\n")
    assert os.read(controller, 10_000) == echo + end  # the terminal echoes the reply
    for fd in (controller, terminal):
        os.close(fd)


@pytest.mark.parametrize(
    ("fields", "n_requests"),
    [
        ({"n": 100}, 5),
        ({"dataset": "gpt-4-0314", "n": 1_000}, 5),
        ({"n": 100, "reasoning_effort": "high"}, 0),
    ],
)
def test_an_insufficient_limit_is_refused_with_a_sufficient_one(
    fields: dict[str, Any], n_requests: int, serve: Serve
) -> None:
    server = serve(habit_in_every_second)
    with pytest.raises(InvalidInput, match=r"--max-cost 0.5 is too little to finish: .* enough"):
        measure(server, model="priced", max_cost=0.5, **fields)
    assert len(server.requests) == n_requests


def test_an_insufficient_limit_of_an_experiment_is_refused(
    half_habit: Loopback, tmp_path: Path
) -> None:
    fields: dict[str, Any] = {"model": "priced", "base_url": half_habit.url, "n": 50, "max_cost": 2}
    specs = specs_for(range(3), evals="all", **fields)
    with pytest.raises(InvalidInput, match="--max-cost 2 is too little to finish"):
        run_all({"priced": specs}, tmp_path, save_run, quiet=True)


def test_a_limit_that_is_probably_insufficient_gets_a_warning(
    half_habit: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Incomplete, match="stopped at --max-cost"):
        measure(half_habit, model="priced", dataset="gpt-4-0314", n=100, max_cost=2)
    warning = "--max-cost 2 is too little to finish: $0.29 spent; the rest will cost $2."
    assert warning in caplog.text


def test_an_estimate_after_a_search_that_gave_up_has_no_cost(serve: Serve) -> None:
    server = serve(lambda _: "a2a3")
    spec: dict[str, Any] = {"model": "priced", "n": 100}
    with pytest.raises(NoHabit):
        measure(server, ask_above=None, **spec)
    forecast = estimate(Spec(base_url=server.url, **spec))
    assert not forecast.total.requests.high
    assert re.match(r"the model plays the special move in 0 of [\d,]+", forecast.assumptions[0])
    with pytest.raises(NoHabit):  # without any approval
        measure(server, ask_above=1.0, **spec)
    assert estimate(Spec(base_url=server.url, keep_looking=True, **spec)).total.requests.low > 1_000


def test_changed_rules_are_tried_before_a_position_is_found(serve: Serve) -> None:
    """The model reasons only under the changed rules and rarely has the habit."""
    server = serve(
        ChargingServer(
            lambda _: "a2a3", reasoning_tokens=lambda request: 3_000 * is_changed(request)
        )
    )
    fields: dict[str, Any] = {"price": (2, 20), "n": 20, "keep_looking": True}
    with pytest.raises(NeedsApproval):
        measure(server, model="m", ask_above=1.0, **fields)
    assert 24 < len(server.requests) <= 24 + 2  # the first answers had no room for reasoning
    measuring = estimate(Spec(base_url=server.url, model="m", **fields)).measuring
    assert measuring.output_tokens.expected > 1_000 * measuring.requests.expected
