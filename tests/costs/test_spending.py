"""Runs stay within what was approved, by the ledgers of servers that charge."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

import chess
import pytest
from genai_prices.types import ConditionalPrice, StartDateConstraint, TimeOfDateConstraint

from cant_do_that_anymore.client import pricing
from cant_do_that_anymore.comparison.experiment import run_all, specs_for
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.datasets import pools
from cant_do_that_anymore.errors import Incomplete, InvalidInput, NeedsApproval
from cant_do_that_anymore.game import rule_pool
from cant_do_that_anymore.game.rules import board_after
from cant_do_that_anymore.runs.storage import save_run
from planted_models import habit_in_every_second
from priced_servers import (
    INPUT,
    OUTPUT,
    ChargingServer,
    LossyServer,
    charge,
    price,
    price_list,
    total_charge,
)
from testing import (
    Body,
    Loopback,
    Serve,
    Spec,
    cdta,
    checksum,
    habit,
    is_changed,
    measure,
    moves_in,
    positions,
)

CONNECTIONS = 4


class Clock(datetime):
    """A clock that the test sets."""

    moment = datetime(2026, 11, 17, 23, 50, tzinfo=UTC)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Clock":
        return cls.fromtimestamp(cls.moment.timestamp(), tz)


HIGHER_PRICE: dict[str, StartDateConstraint | TimeOfDateConstraint] = {
    "from a date": StartDateConstraint(date(2026, 11, 18)),
    "by time of day": TimeOfDateConstraint(time(0, 0), time(8, 0)),
}


@dataclass
class Midnight(Loopback):
    """Costs ten times as much after midnight, which comes with the 50th request."""

    charged: float = 0.0

    def completion(self, request: Body) -> dict[str, Any]:
        completion = super().completion(request)
        factor = 10 if len(self.requests) >= 50 else 1
        Clock.moment = datetime(2026, 11, 17, 23, 50, tzinfo=UTC) + timedelta(hours=factor > 1)
        self.charged += factor * charge(completion["usage"])
        return completion


@pytest.mark.parametrize("when", HIGHER_PRICE)
def test_a_limit_holds_when_prices_change(
    when: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = [
        ConditionalPrice(prices=price()),
        ConditionalPrice(HIGHER_PRICE[when], prices=price(10)),
    ]
    monkeypatch.setattr(pricing, "datetime", Clock)
    Clock.moment = datetime(2026, 11, 17, 23, 50, tzinfo=UTC)
    server = serve(Midnight(habit))
    run = partial(measure, server, model="priced", dataset=positions(60), max_connections=1)
    with price_list(prices):
        spec = Spec(model="priced", base_url=server.url, dataset=positions(60))
        forecast = estimate(spec).measuring.dollars
        with pytest.raises(Incomplete, match="stopped at --max-cost"):
            run(max_cost=6)
        assert 5 < server.charged <= 6
        finished = run(ask_above=None)
    assert finished.cost.total == pytest.approx(server.charged)
    assert forecast and forecast.low < server.charged < forecast.high
    assert forecast.high > 5 * forecast.low


def reasoning(tokens: int, when: Callable[[Body], bool]) -> Callable[[Body], int]:
    return lambda request: tokens if when(request) else 0


def after(n: int) -> Callable[[Body], bool]:
    """Whether a model has seen more than n requests."""
    seen: list[None] = []
    return lambda _: seen.append(None) or len(seen) > n  # type: ignore[func-returns-value]


def in_flight(tokens: int) -> float:
    """Maximum cost of the answers in flight when a command stops: one per connection."""
    return CONNECTIONS * (tokens * OUTPUT + 500 * INPUT)


@pytest.mark.parametrize(
    ("n_before", "dataset", "sentence"),
    [
        (None, None, "the rest will cost"),
        (100, positions(300), "answers now take about .* tokens, the first took 2"),
        (100, None, "answers now take about .* tokens, the first took 2"),
    ],
)
def test_a_model_that_starts_to_reason_is_stopped_near_the_limit(
    n_before: int | None, dataset: Path | None, sentence: str, serve: Serve
) -> None:
    """At a fiftieth of the usual price, an answer with reasoning costs 6 cents."""
    when = after(n_before) if n_before else is_changed
    server = serve(ChargingServer(habit_in_every_second, reasoning_tokens=reasoning(3_000, when)))
    limits: dict[str, Any] = {"ask_above": 1.0, "max_connections": CONNECTIONS}
    with pytest.raises(NeedsApproval, match=sentence) as error:
        measure(server, price=(2, 20), dataset=dataset, n=80, **limits)
    assert server.charged / 50 <= 1 + in_flight(3_000) / 50
    assert "Set --max-cost USD or a higher --ask-above to continue" in str(error.value)


@pytest.mark.usefixtures("priced")
def test_a_run_that_leaves_its_forecast_gets_a_new_one(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(
        ChargingServer(habit_in_every_second, reasoning_tokens=reasoning(100, after(60)))
    )
    measure(server, model="priced", n=60, ask_above=100.0, max_connections=CONNECTIONS)
    (warning,) = [message for message in caplog.messages if "the rest will cost" in message]
    assert "answers now take about" in warning
    spent, low, high = map(float, re.findall(r"\$([\d.]+)", warning)[:3])
    assert low < server.charged - spent < high


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize("n_without_habit", [0, 30])
def test_the_total_covers_all_commands(n_without_habit: int, serve: Serve) -> None:
    """Even if the first positions have no habit and only show how long answers are."""
    seen: dict[tuple[str, ...], int] = {}

    def respond(request: Body) -> str:
        number = seen.setdefault(moves_in(request), len(seen))
        return habit_in_every_second(request) if number >= n_without_habit else "a2a3"

    server = serve(ChargingServer(respond, reasoning_tokens=lambda _: 0))
    with pytest.raises(NeedsApproval):
        measure(server, model="priced", n=60, ask_above=4.0)
    assert len(server.requests) == 20 + 4
    finished = measure(server, model="priced", n=60, ask_above=None)
    assert finished.cost.total == pytest.approx(server.charged)


@pytest.mark.usefixtures("priced", "no_retry_delay")
def test_lost_answers_cost_the_maximum_in_limits_and_the_average_in_totals(serve: Serve) -> None:
    server = serve(LossyServer(habit, reasoning_tokens=lambda _: 500, every=5))
    run = partial(measure, server, model="priced", dataset=positions(20), max_connections=1)
    sentence = r"\$(.*) spent, and at most \$(.*) for answers that were lost or not counted"
    with pytest.raises(Incomplete, match=sentence) as error:
        run(max_cost=25.0)
    spent, max_lost = map(float, re.findall(r"\$([\d.]+)", str(error.value))[:2])
    assert spent < server.charged < spent + max_lost <= 25
    charged = server.charged
    finished = run(ask_above=None)
    assert finished.cost.spent == pytest.approx(server.charged - charged, rel=0.01)
    assert any("got lost in transit and may have been billed" in note for note in finished.notes)


@pytest.mark.usefixtures("priced", "no_retry_delay")
def test_answers_that_an_earlier_command_lost_are_in_the_total(serve: Serve) -> None:
    server = serve(LossyServer(habit, reasoning_tokens=lambda _: 500, every=5))
    run = partial(measure, server, model="priced", dataset=positions(20), max_connections=1)
    with pytest.raises(Incomplete):
        run(max_cost=100.0)
    assert server.charged > 12
    finished = run(ask_above=None)
    assert finished.cost.total == pytest.approx(server.charged, rel=0.03)  # except for the last


@pytest.mark.usefixtures("priced")
def test_a_limit_that_is_too_low_gets_advice_that_works(serve: Serve) -> None:
    server = serve(ChargingServer(habit_in_every_second, reasoning_tokens=lambda _: 500))
    with pytest.raises(InvalidInput) as error:
        measure(server, model="priced", n=200, max_cost=60.0)
    advice = re.findall(r"--max-cost (\d+) would be enough, or about -n (\d+)", str(error.value))
    ((max_cost, n),) = advice
    assert str(error.value).endswith("--reasoning-effort low")
    measure(server, model="priced", n=int(n), max_cost=60.0)
    charged = server.charged
    measure(server, model="priced", n=200, max_cost=float(max_cost))
    assert server.charged - charged <= float(max_cost)


@pytest.mark.usefixtures("priced")
def test_an_experiment_stops_near_its_limit(serve: Serve, tmp_path: Path) -> None:
    servers = [
        serve(ChargingServer(habit_in_every_second, reasoning_tokens=reasoning(300, after(60))))
        for _ in range(2)
    ]
    spec: dict[str, Any] = {"n": 20, "ask_above": 5.0, "max_connections": CONNECTIONS}
    specs = {
        server.url[-7:-3]: specs_for([0], evals="all", model="priced", base_url=server.url, **spec)
        for server in servers
    }
    with pytest.raises(NeedsApproval):
        run_all(specs, tmp_path, save_run, quiet=True)
    assert sum(server.charged for server in servers) <= 5 + in_flight(300)


@pytest.mark.usefixtures("priced")
def test_a_search_that_two_evals_share_is_counted_once(serve: Serve, tmp_path: Path) -> None:
    server = serve(habit_in_every_second)

    def projected_cost(*evals: Any) -> float:
        specs = specs_for([0], evals=evals, model="priced", base_url=server.url)
        with pytest.raises(NeedsApproval) as error:
            run_all({"priced": specs}, tmp_path, save_run, quiet=True)
        return float(str(error.value).split("about $")[1].split()[0])

    projected_cost("all")
    spec = Spec(model="priced", base_url=server.url, seed=0)
    small, large = estimate(replace(spec, eval="all_small")), estimate(spec)
    assert small.measuring.dollars and large.total.dollars
    expected = small.measuring.dollars.expected + large.total.dollars.expected
    assert projected_cost("all", "all_small") == pytest.approx(expected, abs=0.01)


def castles_rarely(request: Body) -> str:
    """Castles in one of 41 positions, regardless of the rules."""
    moves = moves_in(request)
    board = board_after(moves)
    castling = [move.uci() for move in board.legal_moves if board.is_castling(move)]
    other = next(move.uci() for move in chess.Board(board.fen()).legal_moves)
    return castling[0] if castling and checksum(moves) % 41 == 0 else other


@pytest.mark.usefixtures("priced")
def test_a_rare_habit_is_approved_once(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rule_pool, pools):
        monkeypatch.setattr(module, "POOL_SIZE", 900)
    server = serve(castles_rarely)
    run = partial(measure, server, model="priced", rules="no-castling", n=10)
    with pytest.raises(NeedsApproval) as error:
        run()
    spent = total_charge(server)
    low, high = map(float, re.findall(r"\$([\d.]+)", str(error.value))[1:3])
    assert len(run(ask_above=error.value.approve).samples) == 10
    assert low < total_charge(server) - spent < high


@pytest.mark.parametrize("field", ["best_of", "service_tier", "models", "search_parameters", "n"])
def test_fields_that_multiply_the_cost_are_refused_with_a_limit(field: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{field}'"):
        Spec(model="openai/gpt-4o", max_cost=1.0, extra_body={field: 3})


def test_an_estimate_of_an_unknown_model_suggests_a_name() -> None:
    done = cdta("estimate", "--model", "openai/gpt4o", code=0)
    assert "did you mean 'gpt-4o'" in " ".join(done.stdout.split())


def test_estimates_use_the_price_of_reasoning_tokens() -> None:
    separate, uniform = (
        estimate(
            Spec(
                model="perplexity/sonar-deep-research",
                price=user_price,
                dataset=positions(50),
                reasoning_effort="high",
            )
        )
        for user_price in (None, (2.0, 8.0))
    )
    assert separate.measuring.dollars and uniform.measuring.dollars
    assert separate.measuring.dollars.expected < 0.6 * uniform.measuring.dollars.expected
