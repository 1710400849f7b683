"""No surprise bill: what a run will cost is known after a few answers, and wants consent."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.comparison.experiment import evals_and_rules, measured, specs_for
from cant_do_that_anymore.costs.approval import MIN_ANSWERS, NeedsApproval
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.runs.evaluate import select
from cant_do_that_anymore.runs.storage import save_run
from charging import Charging, charge, price_list
from loopback import Body, Loopback, serving
from machines import needs_posix
from players import habit, in_every_second
from processes import PROGRAM, cdta, oaieval


@pytest.fixture(autouse=True)
def priced() -> Iterator[None]:
    with price_list():
        yield


def paid(server: Loopback) -> float:
    """What the server's answers cost, by its own count of tokens."""
    return sum(charge(server.completion(request)["usage"]) for request in server.requests)


def amount_in(problem: pytest.ExceptionInfo[NeedsApproval]) -> float:
    return float(str(problem.value).split("about $")[1].split()[0].replace(",", ""))


def test_a_run_of_eight_dollars_stops_before_one_is_spent_and_goes_on_with_consent() -> None:
    with serving(Loopback(habit)) as server:
        spec = Spec(model="priced", base_url=server.url, dataset="gpt-4-0314", n=290)
        with pytest.raises(NeedsApproval, match="--max-cost USD goes on within") as problem:
            evaluate(spec, quiet=True)
        assert len(server.requests) == 20
        before = paid(server)
        assert 0.1 < before < 1
        with pytest.raises(NeedsApproval):
            evaluate(spec, quiet=True)
        assert len(server.requests) == 20 + 1  # nothing more to learn, but who it is
        run = evaluate(replace(spec, max_cost=50), quiet=True)
        assert len(server.requests) == 580 + 2
    assert amount_in(problem) == pytest.approx(7.8, abs=0.2)
    assert paid(server) - before == pytest.approx(amount_in(problem), rel=0.05)
    assert len(run.samples) == 290


def test_nobody_to_ask_gets_one_sentence_with_what_is_cheaper() -> None:
    with serving(Loopback(in_every_second)) as server:
        done = cdta("run", "--model", "priced", "--base-url", server.url, "--quiet")
        assert len(server.requests) == 20
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert "of --ask-above; cheaper: --pool common, --eval all_small, --precision 0.1; " in sentence


def test_the_limit_is_an_option_and_what_costs_less_is_not_told() -> None:
    with serving(Loopback(in_every_second)) as server:
        spec = Spec(model="priced", base_url=server.url, n=20)
        with pytest.raises(NeedsApproval):
            evaluate(replace(spec, ask_above=0.5), quiet=True)
        run = evaluate(spec, quiet=True)
        assert run.cost.spent is not None and 0.5 < run.cost.spent < 5
        with pytest.raises(InvalidInput, match="ask_above must be at least 0"):
            replace(spec, ask_above=-1.0)


def test_what_is_kept_costs_nothing_again() -> None:
    with serving(Loopback(in_every_second)) as server:
        spec = Spec(model="priced", base_url=server.url, n=200)
        evaluate(replace(spec, max_cost=100), quiet=True)
        asked = len(server.requests)
        assert paid(server) > 5
        evaluate(spec, quiet=True)
        evaluate(replace(spec, n=210), quiet=True)
        assert len(server.requests) > asked


def test_a_very_dear_model_is_known_by_fewer_answers() -> None:
    thinker = Charging(in_every_second, thinks=lambda _: 8_000)  # eight dollars an answer
    with serving(thinker):
        spec = Spec(model="priced", base_url=thinker.url, reasoning_tokens=10_000, n=5)
        with pytest.raises(NeedsApproval):
            evaluate(spec, quiet=True)
    assert len(thinker.requests) == 5


def test_tokens_that_are_not_counted_are_taken_at_their_most() -> None:
    class Silent(Loopback):
        def completion(self, request: Body) -> dict[str, Any]:
            return super().completion(request) | {"usage": None}

    with serving(Silent(habit)) as server, pytest.raises(NeedsApproval) as problem:
        spec = Spec(model="priced", base_url=server.url, dataset="gpt-4-0314", n=1_000)
        evaluate(spec, quiet=True)
    assert amount_in(problem) > 28


def test_a_dataset_is_billed_without_what_is_measured_later() -> None:
    with serving(Loopback(in_every_second)) as server:
        spec = Spec(model="priced", base_url=server.url, n=80)
        with pytest.raises(NeedsApproval):
            evaluate(replace(spec, ask_above=4), quiet=True)
        with pytest.raises(NeedsApproval, match=r"--ask-above; cheaper: --pool common; --max-cost"):
            select(replace(spec, ask_above=1), quiet=True)
        assert len(select(replace(spec, ask_above=5), quiet=True).positions) == 80


def test_an_experiment_is_billed_as_a_whole_before_it_begins(tmp_path: Path) -> None:
    """Every run of it costs less than the limit; the dataset of all seeds is found once."""
    with serving(Loopback(in_every_second)) as server:
        alike: dict[str, Any] = {"model": "priced", "base_url": server.url, "n": 50}

        def specs(**more: float) -> dict[str, list[Spec]]:
            seeds = range(3)
            usual = evals_and_rules(["all"], [])
            return {"priced": specs_for(usual, [None], seeds, **alike, **more)}

        with pytest.raises(NeedsApproval) as problem:
            measured(specs(), tmp_path, save_run, quiet=True)
        assert len(server.requests) == 20
        for above in (2.0, 4.0):
            with pytest.raises(NeedsApproval):
                measured(specs(ask_above=above), tmp_path, save_run, quiet=True)
        runs, failures = measured(specs(max_cost=50), tmp_path, save_run, quiet=True)
        assert (len(runs), failures) == (3, {})
        assert paid(server) == pytest.approx(amount_in(problem), rel=0.35)  # every second is a hit
        measured(specs(ask_above=0), tmp_path, save_run, quiet=True)  # finished, and free


def test_the_bill_of_an_experiment_costs_a_few_answers_of_each_model_and_nothing_twice(
    tmp_path: Path,
) -> None:
    """However many runs it has, and however dear they are."""
    with serving(Loopback(in_every_second)) as server:
        asked = evals_and_rules([], [])
        dear: dict[str, Any] = {"base_url": server.url, "n": 60, "price": (3000, 3000)}
        specs = {name: specs_for(asked, [None], range(3), model=name, **dear) for name in "ab"}
        for _ in range(2):
            with pytest.raises(NeedsApproval):
                measured(specs, tmp_path, save_run, quiet=True)
            assert len(server.requests) == 2 * MIN_ANSWERS


def test_an_experiment_is_told_what_is_cheaper_for_all_of_it(tmp_path: Path) -> None:
    """The common pool is not for games under the changed rules, nor is another eval."""
    with serving(Loopback(in_every_second)) as server:
        command = ("experiment", "--model", "priced", "--base-url", server.url, "--quiet")
        where = ("--out", tmp_path, "--ask-above", "0.5", "--runs", 1)
        for evals, cheaper in (
            ("all_diagonal,all", "--precision 0.1"),
            ("all", "--pool common, --eval all_small, --precision 0.1"),
        ):
            done = cdta(*command, *where, "--eval", evals)
            assert done.returncode == 1
            assert f"of --ask-above; cheaper: {cheaper}; --max-cost USD" in done.stderr


def test_who_has_no_price_or_asks_as_the_original_does_is_not_stopped() -> None:
    with serving(Loopback(habit)) as server:
        spec = Spec(model="other", base_url=server.url, dataset="gpt-4-0314", n=30, ask_above=0.0)
        assert len(evaluate(spec, quiet=True).samples) == 30
        free = Spec(model="cdta/random", dataset="gpt-4-0314", n=10, ask_above=0.0)
        assert len(evaluate(free, quiet=True).samples) == 10
        args = f"base_url={server.url}"
        done = oaieval(
            *("priced", "cant_do_that_anymore.all_diagonal", "--completion_args", args),
            *("--extra_eval_params", "n_samples=200"),
        )
        assert done.returncode == 0, done.stderr


@needs_posix
@pytest.mark.parametrize(("reply", "code", "asked"), [(b"y\n", 0, 401), (b"n\n", 1, 20)])
def test_in_a_terminal_the_user_is_asked(
    reply: bytes, code: int, asked: int, tmp_path: Path
) -> None:
    import pty  # Windows has none

    ours, theirs = pty.openpty()
    with serving(Loopback(habit)) as server:
        options = ["--base-url", server.url, "--model", "m", "--price", "100,1000", "--quiet"]
        options += ["--dataset", "gpt-4-0314", "-n", "200", "--out", str(tmp_path / "run")]
        command = [sys.executable, "-c", PROGRAM, "run", *options]
        process = subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(ours, 1_000)
        assert len(server.requests) == 20
        os.write(ours, reply)
        process.communicate(timeout=60)
        assert process.returncode == code
        assert len(server.requests) == asked
    assert b"$5." in said
    for end in (ours, theirs):
        os.close(end)
