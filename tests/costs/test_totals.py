"""Totals match what the server charged, and limits hold by its counts."""

import json
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore.client.budget import with_discarded
from cant_do_that_anymore.comparison.entries import dollars_of
from cant_do_that_anymore.errors import Incomplete, NeedsApproval, NoHabit
from cant_do_that_anymore.providers.base import Answer, Usage
from planted_models import habit_in_every_second
from priced_servers import INPUT, OUTPUT, ChargingServer, LossyServer, charge, total_charge
from testing import Body, Loopback, Serve, cdta, habit, measure, positions

USER_PRICE = {"price": (INPUT * 1e6, OUTPUT * 1e6), "ask_above": None}


@dataclass
class Counting(Loopback):
    """Counts and charges for more prompt tokens than were sent."""

    hidden: int = 0
    charged: float = 0.0

    def completion(self, request: Body) -> dict[str, Any]:
        answer = super().completion(request)
        answer["usage"]["prompt_tokens"] += self.hidden
        self.charged += charge(answer["usage"])
        return answer


def test_the_total_with_a_user_price_covers_the_whole_search(serve: Serve) -> None:
    server = serve(habit_in_every_second)
    run = measure(server, n=8, max_connections=16, **USER_PRICE)
    assert [run.cost.total, run.cost.spent] == pytest.approx([total_charge(server)] * 2)
    repeated = measure(server, n=8, **USER_PRICE)
    assert repeated.cost.total == pytest.approx(run.cost.total, rel=0.03)  # plus one check
    larger = measure(server, n=12, **USER_PRICE)
    assert larger.cost.dataset and run.cost.dataset
    assert larger.cost.dataset >= run.cost.dataset
    assert larger.cost.total == pytest.approx(total_charge(server), rel=0.1)  # except for checks


@pytest.mark.usefixtures("priced")
def test_first_answers_that_the_search_did_not_need_are_in_the_total(serve: Serve) -> None:
    server = serve(habit)
    run = measure(server, model="priced", n=3, ask_above=100.0)
    assert [run.cost.total, run.cost.spent] == pytest.approx([total_charge(server)] * 2)


@pytest.mark.usefixtures("no_retry_delay")
def test_lost_answers_are_in_the_total_with_a_user_price(serve: Serve) -> None:
    server = serve(LossyServer(habit, reasoning_tokens=lambda _: 500, every=5))
    run = partial(measure, server, dataset=positions(20), max_connections=1, **USER_PRICE)
    assert run().cost.total == pytest.approx(server.charged, rel=0.03)
    assert run().cost.total == pytest.approx(server.charged, rel=0.03)


def test_discarded_answers_add_their_cost() -> None:
    cut_off, full = Answer("", "length", Usage(100, 10), cost=0.02), Answer("e2e4", cost=0.04)
    answer = with_discarded(full, [cut_off, full])
    assert answer.cost == pytest.approx(0.06)
    assert answer.times_paid == pytest.approx(1.5)
    unpriced = Answer("e2e4", usage=Usage(100, 120))
    assert with_discarded(unpriced, [Answer(usage=Usage(100, 10)), unpriced]).times_paid == 1.5
    failed = Answer("", "error", error="timeout")
    assert with_discarded(full, [failed, full]) == full


@pytest.mark.usefixtures("priced")
def test_a_limit_holds_on_a_server_that_counts_more_input_than_was_sent(serve: Serve) -> None:
    server = serve(Counting(habit, hidden=3_000))
    with pytest.raises(Incomplete, match="stopped at --max-cost 9"):
        measure(server, model="priced", dataset=positions(20), max_cost=9.0, max_connections=16)
    assert 7 < server.charged <= 9


@pytest.mark.usefixtures("priced")
def test_reported_spending_includes_requests_in_flight(serve: Serve) -> None:
    server = serve(
        ChargingServer(
            habit_in_every_second, reasoning_tokens=lambda _: 900 * (len(server.requests) > 60)
        )
    )
    with pytest.raises(NeedsApproval) as error:
        measure(server, model="priced", n=80, ask_above=8.0, max_connections=8)
    spent = float(re.findall(r"\$([\d.]+) spent", str(error.value))[0])
    assert spent == pytest.approx(server.charged, abs=0.01)


@pytest.mark.usefixtures("priced")
def test_the_first_answers_count_toward_the_approval(serve: Serve) -> None:
    server = serve(ChargingServer(habit, reasoning_tokens=lambda _: 100))
    run = partial(measure, server, model="priced", dataset=positions(40), max_connections=1)
    total = run(ask_above=None, fresh=True).cost.total
    assert total
    with pytest.raises(NeedsApproval, match="spent; the rest will cost"):
        run(ask_above=1.01 * total)


@pytest.mark.usefixtures("priced")
def test_a_search_that_gives_up_reports_its_cost(serve: Serve) -> None:
    server = serve(lambda _: "a2a3")
    with pytest.raises(NoHabit) as error:
        measure(server, model="priced", n=30, ask_above=100.0, max_connections=1)
    (spent,) = re.findall(r"\$([\d.]+) spent", str(error.value))
    assert float(spent) == pytest.approx(total_charge(server), abs=0.01)


@pytest.mark.usefixtures("priced", "no_plots")
def test_an_experiment_counts_shared_requests_once(serve: Serve, tmp_path: Path) -> None:
    server = serve(habit_in_every_second)
    options = ["--base-url", server.url, "--model", "priced", "-n", 10, "--runs", 1, "--quiet"]
    command = ["experiment", *options, "--eval", "all,all_small", "--ask-above", 100, "-o"]
    cdta(*command, tmp_path / "out", code=0)
    total = json.loads((tmp_path / "out" / "results.json").read_text())["total"]["dollars"]
    assert total == pytest.approx(total_charge(server), rel=0.02)


@pytest.mark.usefixtures("priced")
def test_two_seeds_share_their_dataset_but_no_answers(serve: Serve) -> None:
    server = serve(habit_in_every_second)
    runs = [measure(server, model="priced", n=10, seed=seed, ask_above=None) for seed in (1, 2)]
    assert dollars_of([*runs, runs[0]]) == pytest.approx(total_charge(server), rel=0.02)
