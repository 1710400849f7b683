"""Before spending: estimates, prices, and a limit that holds."""

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
from cant_do_that_anymore.runs.storage import load_run, run_json, save_run
from cant_do_that_anymore.task.conditions import conditions_for
from cant_do_that_anymore.task.prompts import DEFAULT
from planted_models import in_every_second
from priced_servers import INPUT, OUTPUT, Charging, paid
from testing import POOL, Loopback, Serve, Spec, cdta, measure


@pytest.fixture
def halves(serve: Serve) -> Loopback:
    """A model with its habit in every second position."""
    return serve(in_every_second)


def planned(model: str = "openai/gpt-4o", **spec: Any) -> Forecast:
    return estimate(Spec(model=model, **spec))


def cost(step: Figures) -> Range:
    assert step.dollars
    return step.dollars


def tokens_each(step: Figures) -> float:
    return step.output_tokens.expected / step.requests.expected


def price_of(info: Any) -> Price | None:
    pricing = list_pricing(info)
    return pricing.now if pricing else None


def exactly(n: int) -> tuple[int, int, int]:
    return n, n, n


def test_hosted_and_own_models_have_prices_and_strange_servers_none() -> None:
    openai = price_of(info_by_name("gpt-4o", "https://api.openai.com/v1"))
    assert openai and openai == price_of(info_by_name("openai/gpt-4o"))
    assert 0 < openai.input < openai.output < 1e-3
    assert price_of(info_by_name("anthropic/claude-sonnet-4-5"))
    assert price_of(info_by_name("cdta/random")) == Price(0, 0)
    assert price_of(info_by_name("gpt-4o", "http://localhost:8000/v1")) is None
    for name in ("openai/no-such-model", "no-such-provider/gpt-4o"):
        assert price_of(info_by_name(name)) is None


def test_asking_at_all_cached_input_and_thoughts_have_prices_where_the_list_has_them() -> None:
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
    assert Price(1.0, 2.0).of(Usage(10, 0, 24, 20), 0) == 10  # impossible counts are no discount
    asked = conditions_for(("standard",), BISHOPS_AS_KNIGHTS, DEFAULT)[0].question(POOL[0])
    assert Price(0, 1.0, thinking=5.0).max_cost(asked, Settings(max_tokens=10), ()) == 50


def test_an_estimate_needs_no_key_and_states_what_it_rests_on() -> None:
    """Nobody knows whether a model reasons before it was asked."""
    found = planned(n=200)
    assert found.measuring.requests.high == 400
    assert found.dataset.requests.low < 200 / 0.157
    assert 200 / 0.05 < found.dataset.requests.high < 19_841 * 2
    assert 150 < found.measuring.input_tokens.expected / 400 < 300
    words = ("7.5%", "rough estimate", "without reasoning", "50 tokens per second", "--draws")
    assert "% of positions, judging by the shipped datasets" in found.assumptions[0]
    assert all(word in on for word, on in zip(words[1:], found.assumptions[1:], strict=True))
    assert found.at_once and 4 < tokens_each(found.at_once) < 6 < 369 < tokens_each(found.total)
    assert cost(found.at_once).high < cost(found.total).high / 10
    assert cost(found.total).low < 1 < cost(found.total).expected


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
    found = planned(**{"model": "openai/o4-mini"} | options, n=10)
    low, high = tokens
    assert found.at_once is None
    assert low * 0.99 <= found.answer.low <= 1.01 * tokens_each(found.measuring)
    assert found.answer.high == pytest.approx(high)
    assert (cost(found.total) == (0, 0, 0)) == (options.get("model") == "cdta/random")


@pytest.mark.parametrize(
    ("model", "reasons"),
    [("o3", True), ("o3-pro", True), ("o4-mini-2025-04-16", True), ("gpt-4o", False)],
)
def test_a_model_that_is_known_to_reason_has_no_row_without_reasoning(
    model: str, reasons: bool
) -> None:
    done = cdta("estimate", "--model", f"openai/{model}")
    assert ("| without reasoning |" in done.stdout) != reasons
    assert ("--reasoning-effort low" in done.stdout) == reasons


def test_finding_habits_and_measuring_may_take_different_efforts() -> None:
    found = planned("openai/o4-mini", n=10, reasoning_effort="high", select_effort="low")
    told = " ".join(found.assumptions)
    for step, name, tokens, words in (
        (found.dataset, "building the dataset", (647, 1_863), "647 to 1,863 tokens"),
        (found.measuring, "measuring", (5_215, 6_537), "5,215 to 6,537 tokens"),
    ):
        assert tokens[0] < tokens_each(step) < tokens[1]
        assert f"answers, {name}: {words}" in told


def test_thinking_aloud_takes_two_requests_and_all_that_is_allowed() -> None:
    plain = planned(eval="all_diagonal", n=10).measuring
    aloud = planned("cot-300/openai/gpt-4o", eval="all_diagonal", n=10).measuring
    assert aloud.requests.high == 2 * plain.requests.high
    assert 35 < tokens_each(aloud) * 2 < 305
    assert aloud.input_tokens.expected > 2 * plain.input_tokens.expected


def test_an_estimate_counts_only_what_is_asked_in_the_same_way() -> None:
    asked = ["--model", "cdta/random", "--eval", "all_diagonal", "-n", "5"]
    cdta("run", "--quiet", *asked, code=0)
    for option, requests in (((), 0), (("--temperature", "0"), 10), (("--seed", "1"), 10)):
        (found,) = json.loads(cdta("estimate", "--json", *asked, *option).stdout)
        assert found["measuring"]["requests"]["high"] == requests, option


def test_a_dataset_that_exists_is_not_built_again() -> None:
    assert planned("openai/gpt-4-0314").dataset.requests == exactly(1)  # to learn the exact version
    assert planned(eval="all_diagonal").dataset.requests == exactly(0)


def test_an_estimate_counts_what_is_asked_then_and_nothing_after_it(halves: Loopback) -> None:
    """The hit rate of a first, small run tells what a larger one takes."""
    run = partial(measure, halves, max_connections=1)
    spec = Spec(model="m", base_url=halves.url, max_connections=1)
    run(n=40)
    asked = len(halves.requests)
    again, expected = estimate(replace(spec, n=40)), estimate(replace(spec, n=120))
    assert again.total.requests == exactly(0)
    assert again.assumptions == ("all answers are cached",)
    assert "positions so far" in expected.assumptions[0]
    assert expected.assumptions[-1] == SAME_MODEL
    run(n=120)
    requests = expected.total.requests
    assert requests.expected == pytest.approx(len(halves.requests) - asked, rel=0.15)
    assert requests.low < len(halves.requests) - asked < requests.high < 1.6 * requests.low


def test_a_token_limit_that_is_given_is_taken_as_used_up() -> None:
    found = planned(max_tokens=2_000, eval="all_diagonal")
    assert found.at_once and tokens_each(found.at_once) == pytest.approx(2_000)


@pytest.mark.usefixtures("priced")
def test_kept_answers_say_how_long_the_others_will_be(serve: Serve) -> None:
    """As many were asked as a smaller run takes; the larger one costs what the server charges."""
    thinker = serve(Charging(in_every_second))
    spec: dict[str, Any] = {"model": "priced", "max_connections": 8, "ask_above": None}
    measure(thinker, n=30, **spec)
    charged = thinker.charged
    found = estimate(Spec(base_url=thinker.url, n=60, **spec))
    measure(thinker, n=60, **spec)
    assert found.at_once is None
    assert cost(found.total).expected == pytest.approx(thinker.charged - charged, rel=0.2)
    assert cost(found.total).low < thinker.charged - charged < cost(found.total).high
    told = " ".join(found.assumptions)
    assert "of them reasoning, measured on 60 cached answers" in told
    assert "input: scaled to the tokens of the cached answers" in told


@pytest.mark.parametrize(
    ("own", "others", "later"),
    [
        ([5] * 100 + [900, 2100] * 100, [], 1500),  # it began to reason
        ([5, 4458], [5] * 20, 2200),  # under the changed rules only
    ],
)
def test_a_range_covers_answers_that_became_longer(
    own: list[int], others: list[int], later: int
) -> None:
    asked = conditions_for(("standard",), BISHOPS_AS_KNIGHTS, DEFAULT)[0].question(POOL[0])
    used, of_others = (
        [(asked, Usage(100, n, n - 5)) for n in lengths] for lengths in (own, others)
    )
    step = Step(Settings(), (), answered=len(own), used=used)
    spec, info = Spec(model="openai/gpt-4o"), info_by_name("openai/gpt-4o")
    length = answer_length(spec, info, step, [*used, *of_others])
    assert length.low < later < length.high < 10 * later


def test_a_few_kept_answers_move_the_rate_of_hits_and_many_set_it(server: Loopback) -> None:
    rates = []
    for n in (1, 10, 90):
        measure(server, n=n, max_connections=1)
        told = planned("m", base_url=server.url, n=n + 5, max_connections=1).assumptions[0]
        rate = re.search(
            r"special move in about ([\d.]+)% of positions, judging by (\d+) of \2 positions", told
        )
        assert rate
        rates.append(float(rate[1]))
    assert 7.5 < rates[0] < rates[1] < rates[2]
    assert rates[2] > 90


def test_a_fresh_run_counts_no_kept_answer(halves: Loopback) -> None:
    measure(halves, n=20)
    kept = planned("m", base_url=halves.url, n=20)
    fresh = planned("m", base_url=halves.url, n=20, fresh=True)
    assert kept.total.requests == exactly(0)
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


def test_the_command_prints_json_and_finds_out_what_a_server_serves(serve: Serve) -> None:
    server = serve(in_every_second, model="served", listed=("served",))
    result = cdta("estimate", "--base-url", server.url, "-n", "10", "--json")
    (found,) = json.loads(result.stdout)
    assert found["model"] == "served"
    assert found["measuring"]["requests"]["high"] == 20
    assert found["total"]["dollars"] is None
    assert set(found["total"]["requests"]) == {"low", "expected", "high"}
    assert found["at_once"]["output_tokens"]["high"] < found["total"]["output_tokens"]["high"]


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize("limit", [1.7, 2.0])
def test_a_run_stops_before_its_limit_and_goes_on_later(limit: float, halves: Loopback) -> None:
    with pytest.raises(Incomplete, match="stopped at --max-cost"):
        measure(halves, model="priced", n=60, max_cost=limit)
    assert limit / 2 < paid(halves) <= limit
    run = measure(halves, model="priced", n=60, max_cost=100)
    different = {json.dumps(r) + str(r["temperature"]) for r in halves.requests}
    assert len(different) == len(halves.requests) - 1  # is it the same model?
    assert run.results.metrics["n_samples"] == 60


@pytest.mark.usefixtures("priced")
def test_the_limit_of_an_experiment_is_one_for_all_its_runs(serve: Serve, tmp_path: Path) -> None:
    """And not for each: runs that share a purse stop where together they would pass it."""
    server = serve(lambda _: "a2a3")
    usual: dict[str, Any] = {"model": "priced", "base_url": server.url, "n": 20, "max_cost": 1.5}
    specs = {"priced": specs_for(range(4), evals="all_diagonal", **usual)}
    runs, failures = run_all(specs, tmp_path, save_run, quiet=True)
    assert ["stopped at --max-cost" in str(each) for each in failures.values()] == [True]
    assert 1 < len(runs) < 4
    assert 1 < paid(server) <= 1.5
    times = 0
    while failures:
        runs, failures = run_all(specs, tmp_path, save_run, quiet=True)
        times += 1
    assert len(runs) == 4
    assert len(server.requests) <= 4 * 20 * 2 + 3 * times  # is it the same model?


@pytest.mark.usefixtures("priced")
def test_building_a_dataset_stops_before_passing_its_limit(server: Loopback) -> None:
    command = ["dataset", "build", "--model", "priced", "-n", "60", "--quiet", "--max-cost", "0.5"]
    cdta(*command, "--base-url", server.url, code=1)
    assert 0.25 < paid(server) <= 0.5


def test_a_limit_without_a_price_is_refused_before_anything_is_asked(server: Loopback) -> None:
    result = cdta("run", "--base-url", server.url, "--model", "m", "--max-cost", "1", code=2)
    assert "price of m is unknown" in result.stderr
    assert server.requests == []


@pytest.mark.usefixtures("priced")
def test_a_run_knows_its_cost_and_what_was_spent_now(halves: Loopback, tmp_path: Path) -> None:
    run = partial(measure, halves, model="priced", n=20, max_connections=1, ask_above=None)
    first, second = run(), run()
    usage = first.results.metrics
    tokens_in, tokens_out = usage["usage_prompt_tokens"], usage["usage_completion_tokens"]
    assert tokens_in and tokens_out and first.cost.spent and second.cost.spent
    assert first.cost.measuring == pytest.approx(tokens_in * INPUT + tokens_out * OUTPUT)
    assert first.cost.spent + second.cost.spent == pytest.approx(paid(halves))
    assert first.cost.dataset == pytest.approx(paid(halves, first=first.dataset.asked))
    assert second.cost.measuring == first.cost.measuring
    assert second.cost.dataset == first.cost.dataset
    assert first.cost.total == pytest.approx(first.cost.spent)
    check = second.cost.spent
    assert second.cost.total == pytest.approx(first.cost.spent + check)
    assert 0 < second.cost.spent < first.cost.spent / 50  # is it the same model?
    save_run(first, tmp_path / "run")
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["cost"]["measuring"] == first.cost.measuring
    assert load_run(tmp_path / "run").cost == first.cost
    assert run_json(second)["cost"]["spent"] == second.cost.spent
    save_run(second, tmp_path / "repeated" / "run")
    assert f"${second.cost.total:.2f}" in cdta("runs", tmp_path / "repeated", code=0).stdout


def test_a_run_knows_how_long_its_cached_answers_took(halves: Loopback, tmp_path: Path) -> None:
    run = partial(measure, halves, n=10, max_connections=1)
    halves.delay = 0.02
    first = run()
    assert first.seconds == pytest.approx(first.seconds_now, abs=0.02)
    finding, measuring = first.dataset.seconds, 20 * halves.delay
    assert halves.delay * (first.dataset.asked or 0) < finding < first.seconds - measuring
    halves.delay = 0.0
    second = run()
    assert second.seconds_now < measuring < measuring + finding < second.seconds
    save_run(replace(second, seconds=720.0, seconds_now=1.0), tmp_path / "run")
    printed = " ".join(cdta("rescore", tmp_path / "run", code=0).stdout.split())
    assert "12 min in total, 1 s now" in printed
    assert "12 min" in cdta("runs", tmp_path, code=0).stdout


def test_the_cost_of_a_model_without_a_price_is_null(halves: Loopback) -> None:
    run = measure(halves, n=5)
    assert run_json(run)["cost"] == dict.fromkeys(("total", "measuring", "dataset", "spent"))


@given(st.sampled_from(POOL))
def test_no_tokenizer_makes_more_of_a_question_than_is_put_aside(position: Any) -> None:
    """A token of English has more than two characters on average; a move's has one at least."""
    (standard,) = conditions_for(("standard",), BISHOPS_AS_KNIGHTS, DEFAULT)
    asked = standard.question(position)
    at_worst = len(DEFAULT.standard) / 2 + sum(len(move) for move in position.moves)
    assert max_input_tokens(asked) >= at_worst + 4 * len(asked.messages) + 3


def test_what_is_wholly_kept_is_said_to_be(halves: Loopback) -> None:
    where = ["--base-url", halves.url, "--model", "m", "-n", "5"]
    cdta("dataset", "build", *where, "--quiet", code=0)
    done = cdta("estimate", *where)
    rows = [line.split("|")[1:3] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["step", "requests"],
        ["measuring", "10"],
    ]
    measure(halves, n=5)
    done = cdta("estimate", *where)
    assert done.stdout == "m, all: no requests to send, because all answers are cached\n"


def test_the_widest_table_fits_80_columns() -> None:
    options = ["--reasoning-effort", "max", "--eval", "all,all_diagonal", "-n", "2000"]
    done = cdta("estimate", "--model", "openai/o1-pro", *options, "--max-connections", "1")
    assert "days" in done.stdout
    assert "\n- cheaper: --pool common, --precision 0.1, --batch, " in done.stdout
    assert all(len(line.rstrip()) <= 80 for line in done.stdout.splitlines())


GPT_4O = ("--model", "openai/gpt-4o")


@pytest.mark.parametrize(
    ("options", "cheaper"),
    [
        (GPT_4O, ["--pool common", "--eval all_small", "--precision 0.1", "--batch"]),
        ((*GPT_4O, "-n", 10, "--reasoning-effort", "none"), []),
        (("--model", "openai/o1-pro", "-n", 50), ["--pool common", "--batch"]),
        (
            ("--model", "openai/o3", "-n", 50),
            ["--pool common", "--batch", "--reasoning-effort low"],
        ),
        (("--model", "openai/gpt-4-0314"), ["--eval all_small", "--precision 0.1", "--batch"]),
    ],
)
def test_what_is_dear_says_what_is_cheaper(options: tuple[Any, ...], cheaper: list[str]) -> None:
    """Only if it saves something: of 50 samples a precision saves none."""
    (found,) = json.loads(cdta("estimate", "--json", *options).stdout)
    assert found["cheaper"] == cheaper


def test_the_user_may_give_the_price(server: Loopback) -> None:
    run = partial(measure, server, dataset="gpt-4-0314", n=30, price="100,1000")
    with pytest.raises(Incomplete, match="stopped at --max-cost"):
        run(max_cost=0.4)
    assert 0.2 < paid(server) <= 0.4  # at the same price
    asked, cost_of_all = len(server.requests), run().cost.measuring
    del server.requests[asked]  # is it the same model?
    assert cost_of_all == pytest.approx(paid(server))
    given, by_list = (cost(planned(n=50, price=price).total) for price in ((5, 20), None))
    assert given.expected == pytest.approx(2 * by_list.expected)  # 2.5 and 10 by the list


@pytest.mark.parametrize("price", ["5", "a,b", "1,2,3", "-1,2", "1,inf", ""])
def test_a_price_that_is_none_is_refused(price: str) -> None:
    with pytest.raises(InvalidInput, match=r"price must be IN,OUT .* such as 2.5,10, not"):
        Spec(price=price)


def test_how_hit_rates_differ_comes_from_six_models() -> None:
    """Four shipped datasets, random moves, and `cdta/pocket` by the table in docs/rules.md."""
    some = shipped_pool("pool")[::50]
    by_chance = [len(each.special_moves) / each.board().legal_moves.count() for each in some]
    logs = [log(rate) for rate in (*RATES_ON_ALL, mean(by_chance), 0.42)]
    assert pytest.approx(stdev(logs) * sqrt(1 + 1 / len(logs)), abs=0.02) == HIT_RATE_SCALE
    assert len(logs) - 1 == DEGREES
