"""Before spending: estimates, prices, and a limit that holds."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.client.budget import Price, max_input_tokens
from cant_do_that_anymore.client.pricing import price_of
from cant_do_that_anymore.costs.forecast import SAME_MODEL, TOKENS_PER_SECOND, AnswerMode, estimate
from cant_do_that_anymore.costs.tokens import Span
from cant_do_that_anymore.errors import Incomplete, InvalidInput
from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.providers.base import Usage
from cant_do_that_anymore.providers.catalogue import info_by_name
from cant_do_that_anymore.runs.storage import facts_of, load_run, save_run
from cant_do_that_anymore.task.conditions import conditions_for
from cant_do_that_anymore.task.prompts import DEFAULT
from charging import INPUT, OUTPUT, Charging, charge, price_list
from loopback import Body, Loopback, serving
from players import habit, in_every_second
from processes import cdta

POOL = shipped_pool("pool")


@pytest.fixture
def priced() -> Iterator[None]:
    with price_list():
        yield


def paid(server: Loopback, first: int | None = None) -> float:
    """What the server's answers cost, or the first so many, by its own count of tokens."""
    return sum(charge(server.completion(request)["usage"]) for request in server.requests[:first])


def test_hosted_and_own_models_have_prices_and_strange_servers_none() -> None:
    openai = price_of(info_by_name("gpt-4o", "https://api.openai.com/v1"))
    assert openai
    assert openai == price_of(info_by_name("openai/gpt-4o"))
    assert 0 < openai.input < openai.output < 1e-3
    assert price_of(info_by_name("anthropic/claude-sonnet-4-5"))
    assert price_of(info_by_name("cdta/random")) == Price(0, 0)
    assert price_of(info_by_name("gpt-4o", "http://localhost:8000/v1")) is None
    assert price_of(info_by_name("openai/no-such-model")) is None
    assert price_of(info_by_name("no-such-provider/gpt-4o")) is None


def test_what_is_charged_for_asking_at_all_is_part_of_the_price() -> None:
    price = price_of(info_by_name("perplexity/sonar"))
    assert price
    assert price.request > 0
    assert price.of(Usage(), 10) == pytest.approx(10 * price.request)


def test_an_estimate_needs_no_key_and_states_what_it_rests_on() -> None:
    found = estimate(Spec(model="openai/gpt-4o", n=200))
    assert found.measuring.requests == 400
    assert 200 / 0.157 < found.dataset.requests < 200 / 0.05
    assert 150 < found.measuring.input_tokens / 400 < 300
    hits, on_input, on_answers, on_time = found.assumptions
    assert "7.5 %" in hits
    assert "roughly" in on_input
    assert "if it replies at once" in on_answers
    assert "50 tokens a second" in on_time


def cost(way: AnswerMode) -> Span:
    assert way.cost
    return way.cost


def test_nobody_knows_whether_a_model_thinks_before_it_was_asked() -> None:
    at_once, thinking = estimate(Spec(model="openai/gpt-4o", n=200)).measuring.ways
    assert at_once.tokens == (5, 5)
    assert thinking.tokens == (369, 6_537)
    assert 0.1 < cost(at_once).least == cost(at_once).most < 0.6
    assert cost(at_once).most < cost(thinking).least < cost(thinking).most
    assert thinking.seconds.most == pytest.approx(400 * 6_537 / TOKENS_PER_SECOND / 32)


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
    ],
)
def test_an_effort_that_is_set_says_how_much_a_model_may_think(
    options: dict[str, Any], tokens: tuple[int, int]
) -> None:
    (way,) = estimate(Spec(model="openai/o4-mini", n=10, **options)).measuring.ways
    assert way.tokens == tokens


def test_finding_habits_and_measuring_may_take_different_efforts() -> None:
    spec = Spec(model="openai/o4-mini", n=10, reasoning_effort="high", select_effort="low")
    found = estimate(spec)
    assert found.dataset.ways[0].tokens == (647, 1_863)
    assert found.measuring.ways[0].tokens == (5_215, 6_537)
    told = " ".join(found.assumptions)
    assert "answers in finding the dataset: 647 to 1,863 tokens" in told
    assert "answers in measuring: 5,215 to 6,537 tokens" in told


def test_our_own_models_do_not_think() -> None:
    (way,) = estimate(Spec(model="cdta/random", n=10)).measuring.ways
    assert way.tokens == (5, 5)
    assert way.cost == (0, 0)


def test_thinking_aloud_takes_two_requests_and_all_that_is_allowed() -> None:
    spec: dict[str, Any] = {"eval": "all_diagonal", "n": 10}
    plain = estimate(Spec(model="openai/gpt-4o", **spec)).measuring
    aloud = estimate(Spec(model="cot-300/openai/gpt-4o", **spec)).measuring
    assert aloud.requests == 2 * plain.requests
    assert aloud.ways[0].tokens == (305, 305)
    assert aloud.input_tokens > 2 * plain.input_tokens


def test_an_estimate_counts_only_what_is_asked_in_the_same_way() -> None:
    asked = ["--model", "cdta/random", "--eval", "all_diagonal", "-n", "5"]
    assert cdta("run", "--quiet", *asked).returncode == 0
    for option, requests in (((), 0), (("--temperature", "0"), 10), (("--seed", "1"), 10)):
        result = cdta("estimate", "--json", *asked, *option)
        (found,) = json.loads(result.stdout)
        assert found["measuring"]["requests"] == requests, option


def test_a_fresh_run_asks_anew_and_keeps_nothing() -> None:
    command = ["run", "--model", "m", "--eval", "all_diagonal", "-n", "5", "--quiet"]
    with serving(Loopback(lambda _: "a2a3")) as server:
        command += ["--base-url", server.url]
        for option, asked in (((), 10), ((), 11), (("--fresh",), 21), ((), 22)):
            assert cdta(*command, *option).returncode == 0
            assert len(server.requests) == asked


def test_a_shipped_dataset_is_not_built_again() -> None:
    found = estimate(Spec(model="openai/gpt-4-0314"))
    assert found.dataset.requests == 1  # to learn the exact version


def test_positions_that_are_given_need_no_dataset() -> None:
    assert estimate(Spec(model="openai/gpt-4o", eval="all_diagonal")).dataset.requests == 0


def test_an_estimate_counts_what_is_asked_then_and_nothing_after_it() -> None:
    """The hit rate of a first, small run tells what a larger one takes."""
    with serving(Loopback(in_every_second)) as server:
        small = Spec(model="m", base_url=server.url, n=40, max_connections=1)
        evaluate(small, quiet=True)
        asked = len(server.requests)
        again = estimate(small)
        assert (again.dataset.requests, again.measuring.requests) == (0, 0)
        large = Spec(model="m", base_url=server.url, n=120, max_connections=1)
        expected = estimate(large)
        assert "asked so far" in expected.assumptions[0]
        assert expected.assumptions[-1] == again.assumptions[-1] == SAME_MODEL
        evaluate(large, quiet=True)
        more = len(server.requests) - asked
    total = expected.dataset.requests + expected.measuring.requests
    assert total == pytest.approx(more, rel=0.15)


def test_a_token_limit_that_is_given_is_taken_as_used_up() -> None:
    found = estimate(Spec(model="openai/gpt-4o", max_tokens=2_000, eval="all_diagonal"))
    assert found.measuring.ways[0].tokens == (2_000, 2_000)


def test_kept_answers_say_how_long_the_others_will_be() -> None:
    """As many were asked as a smaller run takes; the larger one costs what the server charges."""
    thinker = Charging(in_every_second)
    with price_list(), serving(thinker):
        spec: dict[str, Any] = {"model": "priced", "base_url": thinker.url, "max_connections": 8}
        spec |= {"ask_above": None}
        evaluate(Spec(**spec, n=30), quiet=True)
        charged = thinker.charged
        found = estimate(Spec(**spec, n=60))
        evaluate(Spec(**spec, n=60), quiet=True)
    for step in (found.dataset, found.measuring):
        (way,) = step.ways
        assert 500 < way.tokens.least == way.tokens.most
    total = sum(cost(step.ways[0]).most for step in (found.dataset, found.measuring))
    assert total == pytest.approx(thinker.charged - charged, rel=0.2)
    told = " ".join(found.assumptions)
    assert "of them thoughts, measured on 60 kept answers" in told
    assert "input: as many tokens as in the kept answers" in told


def test_answers_kept_behind_a_gap_are_not_asked_again() -> None:
    """A run that was stopped has later answers and lacks earlier ones."""

    async def sometimes(request: Body, number: int) -> web.StreamResponse | None:
        if 30 <= number < 34:
            return web.json_response({"error": {"message": "no"}}, status=418)
        return None

    with serving(Loopback(in_every_second, fault=sometimes)) as server:
        spec: dict[str, Any] = {"model": "m", "base_url": server.url, "max_connections": 1}
        evaluate(Spec(**spec, n=30), quiet=True)
        lacking = 4
        found = estimate(Spec(**spec, n=31))
        server.fault = None
        before = len(server.requests)
        evaluate(Spec(**spec, n=31), quiet=True)
    asked = len(server.requests) - before
    assert found.dataset.requests + found.measuring.requests == pytest.approx(asked, abs=4)
    assert found.dataset.requests >= lacking


def test_a_few_kept_answers_move_the_rate_of_hits_and_many_set_it() -> None:
    rates = []
    with serving(Loopback(habit)) as server:
        for n in (1, 10, 90):
            spec = Spec(model="m", base_url=server.url, n=n, max_connections=1)
            evaluate(spec, quiet=True)
            told = estimate(replace(spec, n=n + 5)).assumptions[0]
            rate = re.search(r"played in ([\d.]+) % of positions, by (\d+) of \2 asked", told)
            assert rate
            rates.append(float(rate[1]))
    assert 7.5 < rates[0] < rates[1] < 90 < rates[2]


def test_a_fresh_run_counts_no_kept_answer() -> None:
    with serving(Loopback(in_every_second)) as server:
        spec = Spec(model="m", base_url=server.url, n=20)
        evaluate(spec, quiet=True)
        kept, fresh = estimate(spec), estimate(replace(spec, fresh=True))
    assert kept.dataset.requests == kept.measuring.requests == 0
    assert fresh.dataset.requests > 100
    assert fresh.measuring.requests == 40


def test_the_models_own_tokenizer_is_used_where_it_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bytewise = tiktoken.Encoding(
        "bytewise",
        pat_str=r"[\s\S]",
        mergeable_ranks={bytes([byte]): byte for byte in range(256)},
        special_tokens={},
    )
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken, "encoding_for_model", lambda _: bytewise)
    found = estimate(Spec(model="openai/gpt-4o", eval="all_diagonal", n=1))
    assert found.measuring.input_tokens > len(DEFAULT.standard) + len(DEFAULT.changed)
    assert "counted with the model's tokenizer" in found.assumptions[0]


def test_the_command_prints_a_markdown_table_of_models_and_evals() -> None:
    command = [
        "estimate",
        "--model",
        "openai/gpt-4o",
        "--model",
        "vllm/x",
        "--model",
        "cdta/random",
    ]
    result = cdta(*command, "--eval", "all,all_diagonal", "-n", "100")
    assert result.returncode == 0
    assert all(len(line.rstrip()) <= 80 for line in result.stdout.splitlines())
    tables: dict[str, list[list[str]]] = {}
    for line in result.stdout.splitlines():
        if line.split(", ")[0] in command:
            rows = tables[line] = []
        elif line.startswith("| "):
            rows.append([cell.strip() for cell in line.split("|")[1:-1]])
    table, thinks = tables["openai/gpt-4o, all"], "if it thinks first"
    titles = ["step", "dataset", thinks, "measuring", thinks, "total", thinks]
    assert [row[0] for row in table] == titles
    assert [row[0] for row in tables["openai/gpt-4o, all_diagonal"]] == ["step", *titles[3:5]]
    assert table[3][1:3] == ["200", "5"]
    assert table[4][1:3] == ["", "369–6,537"]
    assert re.fullmatch(r"\$0\.\d+–\d\d", table[4][3])
    assert table[4][4] == "46 s–14 min"
    requests, costs = ([row[column] for row in table[1::2]] for column in (1, 3))
    dataset, measuring, total = (int(each.replace(",", "")) for each in requests)
    assert dataset + measuring == total
    dataset_cost, measuring_cost, total_cost = (float(each.strip("$")) for each in costs)
    assert dataset_cost + measuring_cost == pytest.approx(total_cost, abs=0.01)
    assert {row[3] for row in tables["vllm/x, all"]} == {"cost", "unknown"}
    assert {row[3] for row in tables["cdta/random, all"]} == {"cost", "$0.00"}


def test_the_command_prints_json_and_finds_out_what_a_server_serves() -> None:
    with serving(Loopback(in_every_second, model="served")) as server:
        command = ["estimate", "--base-url", server.url, "-n", "10", "--json"]
        result = cdta(*command)
    (found,) = json.loads(result.stdout)
    assert found["model"] == "served"
    assert found["measuring"]["requests"] == 20
    assert [way["cost"] for way in found["measuring"]["ways"]] == [None, None]
    assert [way["tokens"] for way in found["measuring"]["ways"]] == [[5, 5], [369, 6537]]


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'openai/gpt-4o'"):
        estimate(Spec(model="gpt-4o"))


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize("limit", [0.1, 0.5, 2.0])
def test_a_run_stops_before_passing_its_limit_and_goes_on_when_started_again(limit: float) -> None:
    with serving(Loopback(in_every_second)) as server:
        spec: dict[str, Any] = {"model": "priced", "base_url": server.url, "n": 60}
        with pytest.raises(Incomplete, match="stopped before passing --max-cost"):
            evaluate(Spec(**spec, max_cost=limit), quiet=True)
        assert limit / 2 < paid(server) <= limit
        run = evaluate(Spec(**spec, max_cost=100), quiet=True)
        different = {json.dumps(r) + str(r["temperature"]) for r in server.requests}
        assert len(different) == len(server.requests) - 1  # is it the same model?
    assert run.results.metrics["n_samples"] == 60


@pytest.mark.usefixtures("priced")
def test_the_limit_of_an_experiment_is_one_for_all_its_runs(tmp_path: Path) -> None:
    """And not for each: runs that share a budget stop where together they would pass it."""
    command = ["experiment", "--model", "priced", "--eval", "all_diagonal", "-n", "20", "--quiet"]
    with serving(Loopback(lambda _: "a2a3")) as server:
        place = ["--base-url", server.url, "--out", str(tmp_path / "out"), "--max-cost", "1.5"]
        result = cdta(*command, *place, "--runs", "4")
        spent = paid(server)
        assert result.returncode == 1
        assert result.stderr.count("stopped before passing --max-cost") == 1
        finished = list((tmp_path / "out").glob("*/run.json"))
        assert 1 < len(finished) < 4
        assert 1 < spent <= 1.5
        times = 0
        while result.returncode:
            result = cdta(*command, *place, "--runs", "4")
            times += 1
    assert len(list((tmp_path / "out").glob("*/run.json"))) == 4
    assert len(server.requests) <= 4 * 20 * 2 + 2 * times  # is it the same model?


@pytest.mark.usefixtures("priced")
def test_building_a_dataset_stops_before_passing_its_limit() -> None:
    command = ["dataset", "build", "--model", "priced", "--quiet", "--max-cost", "0.5"]
    with serving(Loopback(habit)) as server:
        result = cdta(*command, "--base-url", server.url)
    assert result.returncode == 1
    assert 0.25 < paid(server) <= 0.5


@pytest.mark.usefixtures("priced")
def test_tokens_that_a_server_does_not_count_are_taken_at_their_most() -> None:
    class Silent(Loopback):
        def completion(self, request: Body) -> dict[str, Any]:
            return super().completion(request) | {"usage": None}

    with serving(Silent(in_every_second)) as server, pytest.raises(Incomplete, match="--max-cost"):
        evaluate(Spec(model="priced", base_url=server.url, max_cost=0.5), quiet=True)
    assert 1 <= len(server.requests) < 50


def test_a_limit_without_a_price_is_refused_before_anything_is_asked() -> None:
    with serving(Loopback(in_every_second)) as server:
        command = ["run", "--base-url", server.url, "--model", "m", "--max-cost", "1"]
        result = cdta(*command)
    assert result.returncode == 2
    assert "price of m is unknown" in result.stderr
    assert server.requests == []


@pytest.mark.usefixtures("priced")
def test_a_run_knows_what_its_answers_cost_and_what_was_spent_now(tmp_path: Path) -> None:
    with serving(Loopback(in_every_second)) as server:
        spec = Spec(model="priced", base_url=server.url, n=20, max_connections=1)
        first, second = evaluate(spec, quiet=True), evaluate(spec, quiet=True)
    usage = first.results.metrics
    tokens_in, tokens_out = usage["usage_prompt_tokens"], usage["usage_completion_tokens"]
    assert tokens_in
    assert tokens_out
    assert first.cost.measuring == pytest.approx(tokens_in * INPUT + tokens_out * OUTPUT)
    assert first.cost.spent
    assert second.cost.spent
    assert first.cost.spent + second.cost.spent == pytest.approx(paid(server))
    assert first.cost.measuring
    assert first.cost.dataset == pytest.approx(paid(server, first=first.dataset.asked))
    assert second.cost.measuring == first.cost.measuring
    assert second.cost.dataset == first.cost.dataset
    assert 0 < second.cost.spent < first.cost.spent / 50  # is it the same model?
    save_run(first, tmp_path / "run")
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["cost"]["measuring"] == first.cost.measuring
    assert load_run(tmp_path / "run").cost == first.cost
    assert facts_of(second)["cost"]["spent"] == second.cost.spent


def test_the_cost_of_a_model_without_a_price_is_null() -> None:
    with serving(Loopback(in_every_second)) as server:
        run = evaluate(Spec(model="m", base_url=server.url, n=5), quiet=True)
    assert facts_of(run)["cost"] == {"measuring": None, "dataset": None, "spent": None}


@given(st.sampled_from(POOL))
def test_no_tokenizer_makes_more_of_a_question_than_is_put_aside(position: Any) -> None:
    """A token of English has more than two characters on average; a move's has one at least."""
    (standard,) = conditions_for(("standard",), BISHOPS_AS_KNIGHTS, DEFAULT)
    asked = standard.question(position)
    at_worst = len(DEFAULT.standard) / 2 + sum(len(move) for move in position.moves)
    assert max_input_tokens(asked) >= at_worst + 4 * len(asked.messages) + 3


def test_a_run_that_is_wholly_kept_leaves_nothing_to_ask() -> None:
    assert cdta("run", "--model", "cdta/random", "-n", "5", "--quiet").returncode == 0
    done = cdta("estimate", "--model", "cdta/random", "-n", "5")
    assert done.stdout == "cdta/random, all: nothing left to ask, all answers are kept\n"


def test_a_step_that_is_wholly_kept_is_said_to_be() -> None:
    with serving(Loopback(in_every_second)) as server:
        where = ["--base-url", server.url, "--model", "m", "-n", "5"]
        assert cdta("dataset", "build", *where, "--quiet").returncode == 0
        done = cdta("estimate", *where)
    rows = [line.split("|")[1:3] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["step", "requests"],
        ["dataset", "nothing left"],
        ["measuring", "10"],
    ]


def test_the_widest_table_fits_80_columns() -> None:
    options = ["--reasoning-effort", "max", "--eval", "all,all_diagonal", "-n", "2000"]
    done = cdta("estimate", "--model", "openai/o1-pro", *options, "--max-connections", "1")
    assert "days" in done.stdout
    assert "\n- cheaper: --pool common, --precision 0.1, --batch\n" in done.stdout
    assert all(len(line.rstrip()) <= 80 for line in done.stdout.splitlines())


def test_what_is_dear_comes_with_what_would_be_cheaper_and_nothing_else_does() -> None:
    dear = estimate(Spec(model="openai/gpt-4o"))
    assert dear.total.requests == dear.dataset.requests + dear.measuring.requests
    assert dear.cheaper == ("--pool common", "--eval all_small", "--precision 0.1", "--batch")
    assert not estimate(Spec(model="openai/gpt-4o", n=10, reasoning_effort="none")).cheaper
    few = estimate(Spec(model="openai/o1-pro", n=50))  # no fewer for --precision 0.1
    assert few.cheaper == ("--pool common", "--batch")
    searched = estimate(Spec(model="openai/gpt-4-0314")).cheaper
    assert searched == ("--eval all_small", "--precision 0.1", "--batch")


def test_the_user_may_give_the_price() -> None:
    with serving(Loopback(habit)) as server:
        spec = Spec(base_url=server.url, model="m", dataset="gpt-4-0314", n=30, price="100,1000")
        with pytest.raises(Incomplete, match="stopped before passing --max-cost"):
            evaluate(replace(spec, max_cost=0.4), quiet=True)
        assert 0.2 < paid(server) <= 0.4  # at the same price
        asked = len(server.requests)
        run = evaluate(spec, quiet=True)
        del server.requests[asked]  # is it the same model?
        assert run.cost.measuring == pytest.approx(paid(server))
    given = estimate(Spec(model="openai/gpt-4o", n=50, price=(5, 20))).measuring.ways[0]
    listed = estimate(Spec(model="openai/gpt-4o", n=50)).measuring.ways[0]
    assert cost(given).most == pytest.approx(2 * cost(listed).most)  # 2.5 and 10 by the list


@pytest.mark.parametrize("price", ["5", "a,b", "1,2,3", "-1,2", "1,inf", ""])
def test_a_price_that_is_none_is_refused(price: str) -> None:
    with pytest.raises(InvalidInput, match=r"price must be IN,OUT, .* such as 2.5,10, not"):
        Spec(price=price)


def test_cached_input_and_thoughts_have_prices_of_their_own_where_the_list_has_them() -> None:
    openai = price_of(info_by_name("openai/gpt-4o"))
    assert openai and openai.cached
    assert openai.of(Usage(1000, cached_tokens=400), 1) == pytest.approx(
        600 * openai.input + 400 * openai.cached
    )
    assert openai.cached < openai.input
    assert openai.of(Usage(0, 10, 10), 1) == openai.of(Usage(0, 10), 1)
    researcher = price_of(info_by_name("perplexity/sonar-deep-research"))
    assert researcher and researcher.thinking and researcher.thinking < researcher.output
    assert researcher.of(Usage(0, 10, 4), 0) == pytest.approx(
        6 * researcher.output + 4 * researcher.thinking
    )
    plain = Price(1.0, 2.0)
    assert plain.of(Usage(10, 0, 24, 20), 0) == 10  # counts that cannot be are no discount
    asked = conditions_for(("standard",), BISHOPS_AS_KNIGHTS, DEFAULT)[0].question(POOL[0])
    assert Price(0, 1.0, thinking=5.0).max_cost(asked, 10) == 50
