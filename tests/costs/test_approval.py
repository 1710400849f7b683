"""No surprise bill: what a run will cost is known after a few answers, and wants consent."""

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from batch_server import BatchServer
from cant_do_that_anymore.comparison.experiment import run_all, specs_for
from cant_do_that_anymore.costs.approval import MIN_ANSWERS
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.errors import Incomplete, InvalidInput, NeedsApproval, NoHabit
from cant_do_that_anymore.runs.evaluate import select
from cant_do_that_anymore.runs.storage import save_run
from planted_models import in_every_second
from priced_servers import Charging, paid
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
    process_of,
)

pytestmark = pytest.mark.usefixtures("priced")


@pytest.fixture
def halves(serve: Serve) -> Loopback:
    """A model with its habit in every second position."""
    return serve(in_every_second)


def amount_in(problem: pytest.ExceptionInfo[NeedsApproval]) -> float:
    return float(str(problem.value).split("about $")[1].split()[0].replace(",", ""))


def test_a_run_of_eight_dollars_stops_before_one_is_spent(server: Loopback) -> None:
    run = partial(measure, server, dataset="gpt-4-0314", n=100, price="300,3000")
    with pytest.raises(NeedsApproval, match="Set --max-cost USD or a higher") as problem:
        run()
    assert len(server.requests) == 20
    before = 3 * paid(server)
    assert 0.3 < before < 1
    with pytest.raises(NeedsApproval):
        run()
    assert len(server.requests) == 20 + 1  # nothing more to learn, but who it is
    assert len(run(max_cost=50).samples) == 100
    assert len(server.requests) == 200 + 2
    assert amount_in(problem) == pytest.approx(7.4, abs=0.4)
    assert 3 * paid(server) - before == pytest.approx(amount_in(problem), rel=0.05)


def test_nobody_to_ask_gets_one_sentence_with_what_is_cheaper(halves: Loopback) -> None:
    done = cdta("run", "--model", "priced", "--base-url", halves.url, "--quiet", code=1)
    assert len(halves.requests) == 20 + 4  # two samples
    *_, sentence = done.stderr.splitlines()
    assert "to save money, try --pool common, --eval all_small, --precision 0.1; " in sentence


def test_the_limit_is_an_option_and_what_costs_less_is_not_told(halves: Loopback) -> None:
    run = partial(measure, halves, model="priced", n=20)
    with pytest.raises(NeedsApproval):
        run(ask_above=0.5)
    spent = run().cost.spent
    assert spent is not None and 0.5 < spent < 5


def test_what_is_kept_costs_nothing_again(halves: Loopback) -> None:
    run = partial(measure, halves, pool=positions(60), price="400,4000", ask_above=1.0)
    run(n=12, max_cost=100)
    asked = len(halves.requests)
    assert 4 * paid(halves) > 1
    run(n=12)
    run(n=13)
    assert len(halves.requests) > asked


def test_a_very_dear_model_is_known_by_fewer_answers(serve: Serve) -> None:
    thinker = serve(Charging(in_every_second, thinks=lambda _: 8_000))  # eight dollars an answer
    with pytest.raises(NeedsApproval):
        measure(thinker, model="priced", reasoning_tokens=10_000, n=5)
    assert len(thinker.requests) == 1


def test_tokens_that_are_not_counted_are_taken_at_their_most(serve: Serve) -> None:
    class Silent(Loopback):
        def completion(self, request: Body) -> dict[str, Any]:
            return super().completion(request) | {"usage": None}

    with pytest.raises(NeedsApproval) as problem:
        measure(serve(Silent(habit)), model="priced", dataset="gpt-4-0314", n=1_000)
    assert amount_in(problem) > 28


def test_a_dataset_is_billed_without_what_is_measured_later(halves: Loopback) -> None:
    spec = partial(Spec, model="priced", base_url=halves.url, n=80)
    with pytest.raises(NeedsApproval):
        measure(halves, model="priced", n=80, ask_above=4)
    with pytest.raises(NeedsApproval, match="to save money, try --pool common;"):
        select(spec(ask_above=1), quiet=True)
    assert len(select(spec(ask_above=9), quiet=True).positions) == 80


def test_an_experiment_is_billed_as_a_whole_first(halves: Loopback, tmp_path: Path) -> None:
    """Every run of it costs less than the limit; the dataset of all seeds is found once."""

    def experiment(**more: float) -> int:
        usual: dict[str, Any] = {"model": "priced", "base_url": halves.url, "n": 40}
        specs = specs_for(range(3), evals="all", **usual, **more)
        runs, failures = run_all({"priced": specs}, tmp_path, save_run, quiet=True)
        assert not failures
        return len(runs)

    with pytest.raises(NeedsApproval) as problem:
        experiment()
    assert len(halves.requests) == 20 + 4  # two samples
    with pytest.raises(NeedsApproval):
        experiment(ask_above=3.0)
    assert experiment(max_cost=50) == 3
    assert paid(halves) == pytest.approx(amount_in(problem), rel=0.35)  # every second is a hit
    experiment(ask_above=0)  # finished, and free


def test_the_bill_of_an_experiment_costs_few_answers(halves: Loopback, tmp_path: Path) -> None:
    """However many runs it has, and however dear they are."""
    dear: dict[str, Any] = {"base_url": halves.url, "n": 60, "price": (3000, 3000)}
    specs = {name: specs_for(range(3), model=name, **dear) for name in "ab"}
    for _ in range(2):
        with pytest.raises(NeedsApproval):
            run_all(specs, tmp_path, save_run, quiet=True)
        assert len(halves.requests) == 2 * MIN_ANSWERS


@pytest.mark.parametrize(
    ("evals", "cheaper"),
    [
        ("all_diagonal,all", "--precision 0.1"),
        ("all", "--pool common, --eval all_small, --precision 0.1"),
    ],
)
def test_cheaper_for_all_of_it(evals: str, cheaper: str, halves: Loopback, tmp_path: Path) -> None:
    """The common pool is not for games under the changed rules, nor is another eval."""
    command = ("experiment", "--model", "priced", "--base-url", halves.url, "--quiet")
    where = ("--out", tmp_path, "--ask-above", "0.5", "--runs", 1, "--eval", evals)
    done = cdta(*command, *where, code=1)
    assert f"; to save money, try {cheaper}; all answers so far are saved. Set --max" in done.stderr


def test_without_a_price_or_by_oaieval_nothing_stops(server: Loopback, tmp_path: Path) -> None:
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
    ("reply", "code", "asked", "end"),
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
def test_in_a_terminal_the_user_is_asked(
    reply: bytes, code: int, asked: int, end: bytes, serve_http: Serve, tmp_path: Path
) -> None:
    import pty  # Windows has none

    server = serve_http(habit)
    ours, theirs = pty.openpty()
    options = ["--base-url", server.url, "--model", "m", "--price", "200,2000", "--quiet"]
    options += ["--dataset", "gpt-4-0314", "-n", "100", "--out", str(tmp_path / "run")]
    process = process_of("run", *options, terminal=theirs)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(ours, 1_000)
    assert len(server.requests) == 20
    os.write(ours, reply)
    process.communicate(timeout=60)
    assert process.returncode == code
    assert len(server.requests) == asked
    assert b"$5." in said
    answered = reply.replace(b"\n", b"\r\n")
    assert os.read(ours, 10_000) == answered + end  # the terminal echoes the answer
    for terminal in (ours, theirs):
        os.close(terminal)


@pytest.mark.parametrize(
    ("more", "sent"),
    [
        ({"n": 100}, 5),
        ({"dataset": "gpt-4-0314", "n": 1_000}, 5),
        ({"n": 1_000, "batch": True}, 5),
        ({"n": 100, "reasoning_effort": "high"}, 0),
    ],
)
def test_a_limit_that_cannot_suffice_is_refused_with_one_that_does(
    more: dict[str, Any], sent: int, serve: Serve
) -> None:
    server = serve(BatchServer(in_every_second))
    with pytest.raises(InvalidInput, match=r"--max-cost 0.5 is too little to finish: .* enough"):
        measure(server, model="priced", max_cost=0.5, **more)
    assert len(server.requests) == sent


def test_a_limit_of_an_experiment_that_cannot_suffice_is_refused(
    halves: Loopback, tmp_path: Path
) -> None:
    usual: dict[str, Any] = {"model": "priced", "base_url": halves.url, "n": 50, "max_cost": 2}
    specs = specs_for(range(3), evals="all", **usual)
    with pytest.raises(InvalidInput, match="--max-cost 2 is too little to finish"):
        run_all({"priced": specs}, tmp_path, save_run, quiet=True)


def test_a_limit_that_probably_will_not_suffice_gets_a_warning(
    halves: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Incomplete, match="stopped at --max-cost"):
        measure(halves, model="priced", dataset="gpt-4-0314", n=100, max_cost=2)
    warning = "--max-cost 2 is too little to finish: $0.29 spent; the rest will cost $2."
    assert warning in caplog.text


def test_a_search_that_gave_up_has_no_cost_and_an_estimate_says_so(serve: Serve) -> None:
    server = serve(lambda _: "a2a3")
    run: dict[str, Any] = {"model": "priced", "n": 100}
    with pytest.raises(NoHabit):
        measure(server, ask_above=None, **run)
    forecast = estimate(Spec(base_url=server.url, **run))
    assert not forecast.total.requests.high
    assert re.match(r"the model plays the special move in 0 of [\d,]+", forecast.assumptions[0])
    with pytest.raises(NoHabit):  # although nothing was approved
        measure(server, ask_above=1.0, **run)
    assert estimate(Spec(base_url=server.url, keep_looking=True, **run)).total.requests.low > 1_000


def test_answers_under_changed_rules_are_seen_before_a_position_is_found(serve: Serve) -> None:
    """A model that reasons under the changed rules only, and has its habit in few positions."""
    thinker = serve(Charging(lambda _: "a2a3", thinks=lambda request: 3_000 * is_changed(request)))
    run: dict[str, Any] = {"price": (2, 20), "n": 20, "keep_looking": True}
    with pytest.raises(NeedsApproval):
        measure(thinker, model="m", ask_above=1.0, **run)
    assert 24 < len(thinker.requests) <= 24 + 2  # the first answers had no room to reason
    measuring = estimate(Spec(base_url=thinker.url, model="m", **run)).measuring
    assert measuring.output_tokens.expected > 1_000 * measuring.requests.expected
