"""A command stays within its cost limit, by the ledger of a server, and says how to go on."""

import re
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.client.pricing import FREE, CostLimit, CostLimitReached, Spending
from cant_do_that_anymore.comparison.experiment import run_all
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.providers.chain_of_thought import CONCLUDE
from cant_do_that_anymore.runs.cost import estimate
from cant_do_that_anymore.runs.storage import save_run
from loopback import FAULTS, Fault
from planted_models import habit_in_every_fifth
from testing import (
    Body,
    Loopback,
    Reasoning,
    Serve,
    error_when,
    habit,
    is_changed,
    measure,
    oaieval,
    positions,
)

pytestmark = pytest.mark.usefixtures("no_retry_delay", "priced")
CONNECTIONS = 4
USER_PRICE = "2,20"
"""A fiftieth of the listed price."""


def losing(server: Loopback, every: int, response: str) -> Fault:
    """Charge for every answer, but lose that to every n-th question the first time."""
    asked: set[str] = set()

    async def fault(request: Body, _: int) -> web.StreamResponse | None:
        is_new = str(request) not in asked
        asked.add(str(request))
        if not is_new or len(asked) % every:
            return None
        server.completion(request)
        return FAULTS[response]()

    return fault


def advised(error: CostLimitReached) -> float:
    """The limit that a message says to type."""
    (amount,) = re.findall(r"--max-cost ([\d.]+)", str(error))
    return float(amount)


@pytest.mark.parametrize("dataset", [None, positions(200)])
def test_the_limit_holds_and_typing_what_the_message_says_finishes_the_run(
    dataset: Path | None, serve: Serve
) -> None:
    server = serve(habit_in_every_fifth, delay=0.002)
    few: dict[str, Any] = {"price": USER_PRICE, "max_connections": CONNECTIONS}
    spec = Spec(model="m", base_url=server.url, dataset=dataset, n=100, **few)
    evaluate(replace(spec, n=10), quiet=True)  # shows how often it has the habit
    low, charged = estimate(spec).dollars_low, server.charged
    assert low
    with pytest.raises(CostLimitReached, match="all answers so far are saved") as error:
        evaluate(replace(spec, max_cost=low), quiet=True)
    spent = (server.charged - charged) / 50
    assert low / 2 < spent <= low + CONNECTIONS * server.dearest / 50
    limit, charged = advised(error.value), server.charged
    finished = evaluate(replace(spec, max_cost=limit), quiet=True)
    assert (server.charged - charged) / 50 <= limit
    assert finished.cost.total == pytest.approx(server.charged / 50, rel=0.05)  # but for checks
    repeated = Counter(str(request) for request in server.requests)
    assert sum(count - 1 for count in repeated.values()) <= 4  # checks


@pytest.mark.usefixtures("short_timeout")
def test_the_limit_covers_lost_answers(serve: Serve) -> None:
    server = serve(habit, reasoning=Reasoning(lambda _: 900))
    server.fault = losing(server, 4, "reset")
    with pytest.raises(CostLimitReached, match=r"stopped at the limit of \$30.00 with"):
        measure(server, model="priced", dataset=positions(100), max_cost=30.0)
    assert 20 < server.charged <= 30 + 2 * CONNECTIONS  # an answer costs nearly a dollar


def test_answers_without_token_counts_are_limited_by_their_length(serve: Serve) -> None:
    server = serve(lambda _: "e2e4 " + "indeed " * 99, hides_usage=lambda _: True)
    with pytest.raises(CostLimitReached, match="stopped at"):
        measure(server, model="priced", dataset=positions(100), n=100, max_cost=6)
    assert 20 < len(server.requests) < 60


def concludes(request: Body) -> bool:
    return CONCLUDE in request["messages"][-1]["content"]


def reason_then_move(request: Body) -> str:
    return habit(request) if concludes(request) else "Well, well, well. " * 200


def test_reasoning_is_paid_once_if_the_request_for_the_reply_fails(serve: Serve) -> None:
    server = serve(
        reason_then_move, fault=error_when(lambda body, n: concludes(body) and n % 2, "busy", 429)
    )
    run = measure(server, model="cot/priced", dataset=positions(10), n=10, max_cost=100)
    assert sum(not concludes(request) for request in server.requests) == 2 * 10
    assert sum(map(concludes, server.requests)) > 2 * 10
    assert run.cost.spent == pytest.approx(server.charged, rel=0.1)


def test_nothing_is_sent_if_the_low_end_of_the_cost_passes_the_limit(serve: Serve) -> None:
    server = serve(habit)
    run = partial(measure, server, model="priced", dataset=positions(300), n=300)
    for limit, stated in ((None, r"\$5.00"), (3.0, r"\$3.00")):
        sentence = rf"the limit of {stated} with \$0.00 spent, .* --max-cost .* smaller -n"
        with pytest.raises(CostLimitReached, match=sentence) as error:
            run(max_cost=limit)
    assert not server.requests
    charged = run(max_cost=advised(error.value)).cost.spent
    assert charged and 3 < charged < advised(error.value)
    run()  # all answers are cached


def test_runs_of_an_experiment_share_the_limit(serve: Serve, tmp_path: Path) -> None:
    """Answers become 50 times as long after some requests."""

    def respond(request: Body) -> str:
        return habit(request) + (" indeed" * 28 if len(server.requests) > 70 else "")

    server = serve(respond)
    spec = Spec(
        model="m",
        base_url=server.url,
        dataset=positions(200),
        n=30,
        price=USER_PRICE,
        max_connections=CONNECTIONS,
    )

    def run(max_cost: float) -> tuple[list[Run], Any]:
        specs = [replace(spec, seed=seed, max_cost=max_cost) for seed in (0, 1)]
        return run_all({"m": specs}, tmp_path, save_run, quiet=True)  # type: ignore[return-value]

    with pytest.raises(
        CostLimitReached, match=r"with \$0.00 spent, because the rest is expected to cost about "
    ):
        run(0.01)
    runs, failures = run(0.07)
    assert len(runs) == 1
    assert 0.03 < server.charged / 50 <= 0.07 + CONNECTIONS * server.dearest / 50
    runs, failures = run(advised(failures["m"]))
    assert (len(runs), failures) == (2, {})
    total = sum(run.cost.total or 0.0 for run in runs)
    assert total == pytest.approx(server.charged / 50, rel=0.1)  # but for checks


def test_a_free_model_is_not_stopped_by_the_dear_answers_of_another() -> None:
    limit = CostLimit(5.0, spent=4.9, dearest=0.2)
    Spending(limit, FREE).check(in_flight=100)


def test_a_limit_needs_a_price(server: Loopback) -> None:
    with pytest.raises(InvalidInput, match="--price IN,OUT, or limit the run with -n"):
        measure(server, model="other", n=5, max_cost=1.0)
    assert measure(server, model="other", n=5).cost.total is None


def test_oaieval_has_no_limit_unless_it_is_given(server: Loopback, tmp_path: Path) -> None:
    eval_args = ("--extra_eval_params", "n_samples=200", "--completion_args")
    options = ("priced", "cant_do_that_anymore.all_diagonal", *eval_args)
    oaieval(*options, f"base_url={server.url}", code=0, TMPDIR=str(tmp_path))
    assert server.charged > 5
    limited = f"base_url={server.url},max_cost=2,temperature=0.5"
    error = oaieval(*options, limited, code=1).stderr
    assert "with $0.00 spent, because the rest is expected to cost about " in error
    assert "(in oaieval: --completion_args max_cost=..., --max_samples, " in error


def test_a_cost_is_unknown_if_any_answer_reports_no_usage(serve: Serve) -> None:
    server = serve(habit, hides_usage=is_changed)
    run = measure(server, pool=positions(6), n=4, price=USER_PRICE)
    assert (run.cost.total, run.cost.spent) == (None, None) and run.dataset.cost


def test_lost_answers_are_in_the_total_of_their_command(serve: Serve) -> None:
    server = serve(habit, reasoning=Reasoning(lambda _: 500))
    server.fault = losing(server, 1, "empty body")
    run = partial(measure, server, model="priced", max_connections=1, dataset=positions(12))
    first, charged = run(max_cost=100).cost, server.charged
    assert [first.total, first.spent] == pytest.approx([charged] * 2, rel=0.03)
    assert run().cost.total == pytest.approx(charged / 2, rel=0.05)
