"""Estimates, prices, and cost limits."""

import json
import re
from dataclasses import replace
from functools import partial
from math import log, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.client.budget import Range
from cant_do_that_anymore.client.pricing import Price, list_pricing, max_input_tokens
from cant_do_that_anymore.comparison.experiment import run_all, specs_for
from cant_do_that_anymore.costs.dry_run import Step
from cant_do_that_anymore.costs.forecast import SAME_MODEL, Figures, Forecast, estimate
from cant_do_that_anymore.costs.simulation import DEGREES, HIT_RATE_SCALE
from cant_do_that_anymore.costs.tokens import answer_length
from cant_do_that_anymore.datasets.storage import RATES_ON_ALL
from cant_do_that_anymore.errors import Incomplete, InvalidInput
from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.providers.base import Settings, Usage
from cant_do_that_anymore.providers.catalog import info_by_name
from cant_do_that_anymore.report.tables import summary
from cant_do_that_anymore.runs.storage import load_run, run_json, save_run
from cant_do_that_anymore.task.conditions import conditions_for
from cant_do_that_anymore.task.prompts import DEFAULT
from planted_models import habit_in_every_second
from priced_servers import INPUT, OUTPUT, ChargingServer, total_charge
from testing import POOL, Loopback, Serve, Spec, cdta, measure, printed


@pytest.fixture
def half_habit(serve: Serve) -> Loopback:
    """A model with its habit in every second position."""
    return serve(habit_in_every_second)


def forecast_of(model: str = "openai/gpt-4o", **spec: Any) -> Forecast:
    return estimate(Spec(model=model, **spec))


def cost(step: Figures) -> Range:
    assert step.dollars
    return step.dollars


def mean_tokens(step: Figures) -> float:
    return step.output_tokens.expected / step.requests.expected


def price_of(info: Any) -> Price | None:
    pricing = list_pricing(info)
    return pricing.now if pricing else None


def exactly(n: int) -> tuple[int, int, int]:
    return n, n, n


def test_hosted_and_bundled_models_have_prices_and_unknown_servers_have_none() -> None:
    openai = price_of(info_by_name("gpt-4o", "https://api.openai.com/v1"))
    assert openai and openai == price_of(info_by_name("openai/gpt-4o"))
    assert 0 < openai.input < openai.output < 1e-3
    assert price_of(info_by_name("anthropic/claude-sonnet-4-5"))
    assert price_of(info_by_name("cdta/random")) == Price(0, 0)
    assert price_of(info_by_name("gpt-4o", "http://localhost:8000/v1")) is None
    for name in ("openai/no-such-model", "no-such-provider/gpt-4o"):
        assert price_of(info_by_name(name)) is None


def test_requests_cached_input_and_reasoning_can_have_prices() -> None:
    openai, sonar, researcher = (
        price_of(info_by_name(name))
        for name in ("openai/gpt-4o", "perplexity/sonar", "perplexity/sonar-deep-research")
    )
    assert openai and sonar and researcher
    assert sonar.request > 0
    assert sonar.of(Usage(), 10) == pytest.approx(10 * sonar.request)
    assert openai.cached and openai.cached < openai.input
    assert openai.of(Usage(1000, cached_tokens=400), 1) == pytest.approx(
        600 * openai.input + 400 * openai.cached
    )
    assert openai.of(Usage(0, 10, 10), 1) == openai.of(Usage(0, 10), 1)
    assert researcher.thinking and researcher.thinking < researcher.output
    assert researcher.of(Usage(0, 10, 4), 0) == pytest.approx(
        6 * researcher.output + 4 * researcher.thinking
    )
    assert Price(1.0, 2.0).of(Usage(10, 0, 24, 20), 0) == 10  # impossible counts give no discount
    question = conditions_for(("standard",), BISHOPS_AS_KNIGHTS, DEFAULT)[0].question(POOL[0])
    assert Price(0, 1.0, thinking=5.0).max_cost(question, Settings(max_tokens=10), ()) == 50


def test_an_estimate_needs_no_key_and_states_its_assumptions() -> None:
    """Whether a model reasons is unknown before its first answer."""
    forecast = forecast_of(n=200)
    assert forecast.measuring.requests.high == 400
    assert forecast.dataset.requests.low < 200 / 0.157
    assert 200 / 0.05 < forecast.dataset.requests.high < 19_841 * 2
    assert 150 < forecast.measuring.input_tokens.expected / 400 < 300
    first = "% of positions, judging by the shipped datasets (5.0 to 15.7%)"
    words = (first, "rough estimate", "without reasoning", "50 tokens per second")
    assert all(word in text for word, text in zip(words, forecast.assumptions, strict=True))
    assert forecast.at_once
    assert 4 < mean_tokens(forecast.at_once) < 6 < 369 < mean_tokens(forecast.total)
    assert cost(forecast.at_once).high < cost(forecast.total).high / 10
    assert cost(forecast.total).low < 1 < cost(forecast.total).expected


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({"reasoning_effort": "low"}, (647, 1_863)),
        ({"reasoning_effort": "medium"}, (2_101, 2_147)),
        ({"reasoning_effort": "high"}, (5_215, 6_537)),
        ({"reasoning_effort": "minimal"}, (5, 1_863)),
        ({"reasoning_effort": "max"}, (5_215, 16_000)),
        ({"reasoning_effort": "high", "reasoning_tokens": 6_000}, (5_215, 6_000)),
        ({"reasoning_tokens": 1_024}, (369, 1_024)),
        ({"reasoning_effort": "none"}, (5, 5)),
        ({"reasoning_tokens": 0}, (5, 5)),
        ({"model": "cdta/random"}, (5, 5)),
    ],
)
def test_an_effort_sets_the_reasoning(options: dict[str, Any], tokens: tuple[int, int]) -> None:
    forecast = forecast_of(**{"model": "openai/o4-mini"} | options, n=10)
    low, high = tokens
    assert forecast.at_once is None
    assert low * 0.99 <= forecast.answer.low <= 1.01 * mean_tokens(forecast.measuring)
    assert forecast.answer.high == pytest.approx(high)
    assert (cost(forecast.total) == (0, 0, 0)) == (options.get("model") == "cdta/random")


@pytest.mark.parametrize(
    ("model", "reasons"),
    [("o3", True), ("o3-pro", True), ("o4-mini-2025-04-16", True), ("gpt-4o", False)],
)
def test_a_reasoning_model_has_no_row_without_reasoning(model: str, reasons: bool) -> None:
    done = cdta("estimate", "--model", f"openai/{model}")
    assert ("| without reasoning |" in done.stdout) != reasons
    assert ("--reasoning-effort low" in " ".join(done.stdout.split())) == reasons


def test_dataset_and_measurement_may_have_different_efforts() -> None:
    forecast = forecast_of("openai/o4-mini", n=10, reasoning_effort="high", select_effort="low")
    assumptions = " ".join(forecast.assumptions)
    for step, name, tokens, expected in (
        (forecast.dataset, "building the dataset", (647, 1_863), "647 to 1,863 tokens"),
        (forecast.measuring, "measuring", (5_215, 6_537), "5,215 to 6,537 tokens"),
    ):
        assert tokens[0] < mean_tokens(step) < tokens[1]
        assert f"answers, {name}: {expected}" in assumptions


def test_chain_of_thought_takes_two_requests_and_more_tokens() -> None:
    plain = forecast_of(eval="all_diagonal", n=10).measuring
    cot = forecast_of("cot-300/openai/gpt-4o", eval="all_diagonal", n=10).measuring
    assert cot.requests.high == 2 * plain.requests.high
    assert 35 < mean_tokens(cot) * 2 < 305
    assert cot.input_tokens.expected > 2 * plain.input_tokens.expected


def test_an_estimate_uses_only_answers_with_the_same_settings() -> None:
    options = ["--model", "cdta/random", "--eval", "all_diagonal", "-n", "5"]
    cdta("run", "--quiet", *options, code=0)
    for option, requests in (((), 0), (("--temperature", "0"), 10), (("--seed", "1"), 10)):
        (forecast,) = json.loads(cdta("estimate", "--json", *options, *option).stdout)
        assert forecast["measuring"]["requests"]["high"] == requests, option


def test_a_dataset_that_exists_is_not_built_again() -> None:
    assert forecast_of("openai/gpt-4-0314").dataset.requests == exactly(1)  # for the version
    assert forecast_of(eval="all_diagonal").dataset.requests == exactly(0)


def test_an_estimate_predicts_the_requests_of_a_larger_run(half_habit: Loopback) -> None:
    """It uses the hit rate of a small first run."""
    run = partial(measure, half_habit, max_connections=1)
    spec = Spec(model="m", base_url=half_habit.url, max_connections=1)
    run(n=40)
    n_requests = len(half_habit.requests)
    repeated, larger = estimate(replace(spec, n=40)), estimate(replace(spec, n=120))
    assert repeated.total.requests == exactly(0)
    assert repeated.assumptions == ("all answers are cached",)
    assert "positions so far" in larger.assumptions[0]
    assert larger.assumptions[-1] == SAME_MODEL
    run(n=120)
    requests, n_sent = larger.total.requests, len(half_habit.requests) - n_requests
    assert requests.expected == pytest.approx(n_sent, rel=0.15)
    assert requests.low < n_sent < requests.high < 1.6 * requests.low


def test_a_given_token_limit_counts_as_used_up() -> None:
    forecast = forecast_of(max_tokens=2_000, eval="all_diagonal")
    assert forecast.at_once and mean_tokens(forecast.at_once) == pytest.approx(2_000)


@pytest.mark.usefixtures("priced")
def test_cached_answers_predict_the_length_of_other_answers(serve: Serve) -> None:
    """The estimate after a small run is close to what the server charges for a larger one."""
    server = serve(ChargingServer(habit_in_every_second))
    spec: dict[str, Any] = {"model": "priced", "max_connections": 8, "ask_above": None}
    measure(server, n=30, **spec)
    charged = server.charged
    forecast = estimate(Spec(base_url=server.url, n=60, **spec))
    measure(server, n=60, **spec)
    assert forecast.at_once is None
    assert cost(forecast.total).expected == pytest.approx(server.charged - charged, rel=0.2)
    assert cost(forecast.total).low < server.charged - charged < cost(forecast.total).high
    assumptions = " ".join(forecast.assumptions)
    assert "of them reasoning, measured on 60 cached answers" in assumptions
    assert "input: scaled to the tokens of the cached answers" in assumptions


@pytest.mark.parametrize(
    ("tokens", "other_tokens", "later"),
    [
        ([5] * 100 + [900, 2100] * 100, [], 1500),  # it starts to reason
        ([5, 4458], [5] * 20, 2200),  # it reasons only under the changed rules
    ],
)
def test_a_range_covers_answers_that_became_longer(
    tokens: list[int], other_tokens: list[int], later: int
) -> None:
    question = conditions_for(("standard",), BISHOPS_AS_KNIGHTS, DEFAULT)[0].question(POOL[0])
    used, used_by_others = (
        [(question, Usage(100, n, n - 5)) for n in counts] for counts in (tokens, other_tokens)
    )
    step = Step(Settings(), (), answered=len(tokens), used=used)
    spec, info = Spec(model="openai/gpt-4o"), info_by_name("openai/gpt-4o")
    length = answer_length(spec, info, step, [*used, *used_by_others])
    assert length.low < later < length.high < 10 * later


def test_a_few_cached_answers_shift_the_hit_rate_and_many_set_it(server: Loopback) -> None:
    rates = []
    for n in (1, 10, 90):
        measure(server, n=n, max_connections=1)
        text = forecast_of("m", base_url=server.url, n=n + 5, max_connections=1).assumptions[0]
        rate = re.search(
            r"special move in about ([\d.]+)% of positions, judging by (\d+) of \2 positions", text
        )
        assert rate
        rates.append(float(rate[1]))
    assert 7.5 < rates[0] < rates[1] < rates[2]
    assert rates[2] > 90


def test_a_fresh_run_ignores_cached_answers(half_habit: Loopback) -> None:
    measure(half_habit, n=20)
    cached = forecast_of("m", base_url=half_habit.url, n=20)
    fresh = forecast_of("m", base_url=half_habit.url, n=20, fresh=True)
    assert cached.total.requests == exactly(0)
    assert fresh.dataset.requests.expected > 100
    assert fresh.measuring.requests.high == 40


def test_the_command_prints_a_markdown_table_of_models_and_evals() -> None:
    models = "openai/gpt-4o", "vllm/x", "cdta/random"
    command = ["estimate", *(word for model in models for word in ("--model", model))]
    result = cdta(*command, "--eval", "all,all_diagonal", "-n", "100", code=0)
    assert all(len(line.rstrip()) <= 80 for line in result.stdout.splitlines())
    tables: dict[str, list[list[str]]] = {}
    for line in result.stdout.splitlines():
        if line.split(", ")[0] in models:
            rows = tables[line] = []
        elif line.startswith("| "):
            rows.append([cell.strip() for cell in line.split("|")[1:-1]])
    table, at_once = tables["openai/gpt-4o, all"], "without reasoning"
    assert [row[0] for row in table] == ["step", "dataset", "measuring", "total", at_once]
    assert [row[0] for row in tables["openai/gpt-4o, all_diagonal"]] == [
        "step",
        "measuring",
        at_once,
    ]
    assert all(re.fullmatch(r"\$[\d.]+–[\d.,]+", row[3]) for row in table[1:])
    assert table[2][1].endswith("200")
    assert {row[3] for row in tables["vllm/x, all"]} == {"cost", "unknown"}
    assert {row[3] for row in tables["cdta/random, all"]} == {"cost", "$0.00"}


def test_the_command_prints_json_and_the_model_of_a_server(serve: Serve) -> None:
    server = serve(habit_in_every_second, model="served", listed=("served",))
    result = cdta("estimate", "--base-url", server.url, "-n", "10", "--json")
    (forecast,) = json.loads(result.stdout)
    assert forecast["model"] == "served"
    assert forecast["measuring"]["requests"]["high"] == 20
    assert forecast["total"]["dollars"] is None
    assert set(forecast["total"]["requests"]) == {"low", "expected", "high"}
    assert forecast["at_once"]["output_tokens"]["high"] < forecast["total"]["output_tokens"]["high"]


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize("limit", [1.7, 2.0])
def test_a_run_stops_before_its_limit_and_resumes_later(limit: float, half_habit: Loopback) -> None:
    with pytest.raises(Incomplete, match="stopped at --max-cost"):
        measure(half_habit, model="priced", n=60, max_cost=limit)
    assert limit / 2 < total_charge(half_habit) <= limit
    run = measure(half_habit, model="priced", n=60, max_cost=100)
    different = {json.dumps(body) for body in half_habit.requests}
    assert len(different) == len(half_habit.requests) - 1  # one checks that the model is the same
    assert run.results.metrics["n_samples"] == 60


@pytest.mark.usefixtures("priced")
def test_all_runs_of_an_experiment_share_one_limit(serve: Serve, tmp_path: Path) -> None:
    """They stop before their total passes the limit."""
    server = serve(lambda _: "a2a3")
    fields: dict[str, Any] = {"model": "priced", "base_url": server.url, "n": 20, "max_cost": 1.5}
    specs = {"priced": specs_for(range(4), evals="all_diagonal", **fields)}
    runs, failures = run_all(specs, tmp_path, save_run, quiet=True)
    assert ["stopped at --max-cost" in str(error) for error in failures.values()] == [True]
    assert 1 < len(runs) < 4
    assert 1 < total_charge(server) <= 1.5
    attempts = 0
    while failures:
        runs, failures = run_all(specs, tmp_path, save_run, quiet=True)
        attempts += 1
    assert len(runs) == 4
    assert len(server.requests) <= 4 * 20 * 2 + 3 * attempts  # some check the model


@pytest.mark.usefixtures("priced")
def test_building_a_dataset_stops_before_passing_its_limit(server: Loopback) -> None:
    command = ["dataset", "build", "--model", "priced", "-n", "60", "--quiet", "--max-cost", "0.5"]
    cdta(*command, "--base-url", server.url, code=1)
    assert 0.25 < total_charge(server) <= 0.5


def test_a_limit_without_a_price_is_refused_before_any_request(server: Loopback) -> None:
    result = cdta("run", "--base-url", server.url, "--model", "m", "--max-cost", "1", code=2)
    assert "price of m is unknown" in result.stderr
    assert server.requests == []


@pytest.mark.usefixtures("priced")
def test_a_run_reports_its_total_and_current_cost(half_habit: Loopback, tmp_path: Path) -> None:
    run = partial(measure, half_habit, model="priced", n=20, max_connections=1, ask_above=None)
    first, second = run(), run()
    usage = first.results.metrics
    tokens_in, tokens_out = usage["usage_prompt_tokens"], usage["usage_completion_tokens"]
    assert tokens_in and tokens_out and first.cost.spent and second.cost.spent
    assert first.cost.measuring == pytest.approx(tokens_in * INPUT + tokens_out * OUTPUT)
    assert first.cost.spent + second.cost.spent == pytest.approx(total_charge(half_habit))
    assert first.cost.dataset == pytest.approx(total_charge(half_habit, first=first.dataset.asked))
    assert second.cost.measuring == first.cost.measuring
    assert second.cost.dataset == first.cost.dataset
    assert first.cost.total == pytest.approx(first.cost.spent)
    check = second.cost.spent
    assert second.cost.total == pytest.approx(first.cost.spent + check)
    assert 0 < second.cost.spent < first.cost.spent / 50  # one request checks the model
    save_run(first, tmp_path / "run")
    saved = json.loads((tmp_path / "run" / "run.json").read_text())
    assert saved["cost"]["measuring"] == first.cost.measuring
    assert load_run(tmp_path / "run").cost == first.cost
    assert run_json(second)["cost"]["spent"] == second.cost.spent
    save_run(second, tmp_path / "repeated" / "run")
    assert f"${second.cost.total:.2f}" in cdta("runs", tmp_path / "repeated", code=0).stdout


def test_a_run_reports_the_time_of_its_cached_answers(half_habit: Loopback, tmp_path: Path) -> None:
    run = partial(measure, half_habit, n=10, max_connections=1)
    half_habit.delay = 0.02
    first = run()
    assert first.seconds == pytest.approx(first.seconds_now, abs=0.02)
    selecting, measuring = first.dataset.seconds, 20 * half_habit.delay
    assert half_habit.delay * (first.dataset.asked or 0) < selecting < first.seconds - measuring
    half_habit.delay = 0.0
    second = run()
    assert second.seconds_now < measuring < measuring + selecting < second.seconds
    save_run(replace(second, seconds=720.0, seconds_now=1.0), tmp_path / "run")
    output = " ".join(printed(summary(load_run(tmp_path / "run"))).split())
    assert "12 min in total, 1 s now" in output
    assert "12 min" in cdta("runs", tmp_path, code=0).stdout


def test_the_cost_of_a_model_without_a_price_is_null(half_habit: Loopback) -> None:
    run = measure(half_habit, n=5)
    assert run_json(run)["cost"] == dict.fromkeys(("total", "measuring", "dataset", "spent"))


@given(st.sampled_from(POOL))
def test_no_tokenizer_exceeds_the_reserved_input_tokens(position: Any) -> None:
    """An English token averages more than two characters; a token of a move has at least one."""
    (standard,) = conditions_for(("standard",), BISHOPS_AS_KNIGHTS, DEFAULT)
    question = standard.question(position)
    worst_case = len(DEFAULT.standard) / 2 + sum(len(move) for move in position.moves)
    assert max_input_tokens(question) >= worst_case + 4 * len(question.messages) + 3


def test_an_estimate_says_that_all_answers_are_cached(half_habit: Loopback) -> None:
    options = ["--base-url", half_habit.url, "--model", "m", "-n", "5"]
    cdta("dataset", "build", *options, "--quiet", code=0)
    done = cdta("estimate", *options)
    rows = [line.split("|")[1:3] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["step", "requests"],
        ["measuring", "10"],
    ]
    measure(half_habit, n=5)
    done = cdta("estimate", *options)
    assert done.stdout == "m, all: no requests to send, because all answers are cached\n"


def test_the_widest_table_fits_80_columns() -> None:
    options = ["--reasoning-effort", "max", "--eval", "all,all_diagonal", "-n", "2000"]
    done = cdta("estimate", "--model", "openai/o1-pro", *options, "--max-connections", "1")
    assert "days" in done.stdout
    assert "\n- cheaper: --pool common, " in done.stdout
    assert all(len(line.rstrip()) <= 80 for line in done.stdout.splitlines())


GPT_4O = ("--model", "openai/gpt-4o")


@pytest.mark.parametrize(
    ("options", "cheaper"),
    [
        (GPT_4O, ["--pool common", "--eval all_small"]),
        ((*GPT_4O, "-n", 10, "--reasoning-effort", "none"), []),
        (("--model", "openai/o1-pro", "-n", 50), ["--pool common"]),
        (("--model", "openai/o3", "-n", 50), ["--pool common", "--reasoning-effort low"]),
        (("--model", "openai/gpt-4-0314"), ["--eval all_small"]),
    ],
)
def test_estimates_suggest_cheaper_options(options: tuple[Any, ...], cheaper: list[str]) -> None:
    """Only options that save something."""
    (forecast,) = json.loads(cdta("estimate", "--json", *options).stdout)
    assert forecast["cheaper"] == cheaper


def test_the_user_can_set_the_price(server: Loopback) -> None:
    run = partial(measure, server, dataset="gpt-4-0314", n=30, price="100,1000")
    with pytest.raises(Incomplete, match="stopped at --max-cost"):
        run(max_cost=0.4)
    assert 0.2 < total_charge(server) <= 0.4  # at the same price
    n_requests, cost_of_all = len(server.requests), run().cost.measuring
    del server.requests[n_requests]  # checks the model
    assert cost_of_all == pytest.approx(total_charge(server))
    own, listed = (cost(forecast_of(n=50, price=price).total) for price in ((5, 20), None))
    assert own.expected == pytest.approx(2 * listed.expected)  # the list has 2.5 and 10


@pytest.mark.parametrize("price", ["5", "a,b", "1,2,3", "-1,2", "1,inf", ""])
def test_an_invalid_price_is_refused(price: str) -> None:
    with pytest.raises(InvalidInput, match=r"price must be IN,OUT .* such as 2.5,10, not"):
        Spec(price=price)


def test_the_spread_of_hit_rates_comes_from_six_models() -> None:
    """Four shipped datasets, random moves, and `cdta/pocket` by the table in docs/rules.md."""
    positions = shipped_pool("pool")[::50]
    by_chance = [len(p.special_moves) / p.board().legal_moves.count() for p in positions]
    logs = [log(rate) for rate in (*RATES_ON_ALL, mean(by_chance), 0.42)]
    assert pytest.approx(stdev(logs) * sqrt(1 + 1 / len(logs)), abs=0.02) == HIT_RATE_SCALE
    assert len(logs) - 1 == DEGREES


def test_the_estimate_says_that_the_common_pool_is_another_population(small_pools: None) -> None:
    options = ["estimate", "--model", "openai/gpt-4o", "--reasoning-effort", "none"]
    default = cdta(*options, code=0).stdout
    common = cdta(*options, "--pool", "common", code=0).stdout
    for output in (default, common):
        assert "common measures another population" in " ".join(output.split())
    assert "another population" not in cdta(*options, "--pool", "games", code=0).stdout
