"""A pilot: some questions of a run are asked first, kept, and never cost more than was said."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.models.reasoning import CONCLUDE
from charging import Charging, Losing, price_list
from faults import Reset
from loopback import Loopback, Request, is_changed, serving
from players import in_every_second
from processes import Done, cdta


@pytest.fixture(autouse=True)
def priced() -> Iterator[None]:
    with price_list():
        yield


def piloted(server: Loopback, *options: object, model: str = "priced") -> Done:
    asked = ["estimate", "--model", model, "--base-url", server.url, "-n", "20"]
    return cdta(*asked, "--pilot", "12", *options)


def dollars_said(done: Done) -> float:
    (said,) = re.findall(r"for at most [\d,]+ tokens \(\$([\d,.]+)\)", done.stderr)
    return float(said.replace(",", ""))


def test_a_pilot_says_what_it_may_cost_and_measures_how_long_answers_are() -> None:
    thinker = Charging(in_every_second)
    with serving(thinker):
        done = piloted(thinker, "--json")
        charged, asked = thinker.charged, len(thinker.requests)
        again = piloted(thinker, "--json")
    assert done.stderr.startswith("the pilot asks priced 12 questions of the run, for at most ")
    assert 0 < charged < dollars_said(done)
    (found,) = json.loads(done.stdout)
    for step in ("dataset", "measuring"):
        (way,) = found[step]["ways"]
        assert way["tokens"][0] == way["tokens"][1] > 500
    told = " ".join(found["assumptions"])
    assert "of them thoughts, measured on 12 kept answers" in told
    assert "s an answer, as in the pilot" in told
    assert len(thinker.requests) == asked
    assert again.stderr == ""
    assert json.loads(again.stdout)[0]["dataset"]["requests"] == found["dataset"]["requests"]


def test_a_pilot_of_a_server_that_counts_no_tokens_is_asked_once_as_well() -> None:
    class Silent(Loopback):
        def completion(self, request: Request) -> dict[str, Any]:
            return super().completion(request) | {"usage": None}

    with serving(Silent(in_every_second)) as server:
        for _ in range(2):
            assert "369 to 6,537 tokens" in " ".join(piloted(server).stdout.split())
            assert len(server.requests) == 12


def test_what_a_pilot_asks_the_run_does_not_ask_again() -> None:
    with serving(Loopback(in_every_second)) as server:
        assert piloted(server).returncode == 0
        assert len(server.requests) == 12
        evaluate(Spec(model="priced", base_url=server.url, n=20), quiet=True)
    asked = [json.dumps(request, sort_keys=True) for request in server.requests]
    assert len(set(asked)) == len(asked) - 1  # is it the same model?


def test_where_the_positions_are_known_a_pilot_asks_under_every_condition() -> None:
    with serving(Loopback(in_every_second)) as server:
        assert piloted(server, "--eval", "all_diagonal").returncode == 0
    assert [is_changed(request) for request in server.requests].count(True) == 6
    assert len(server.requests) == 12


def test_a_pilot_never_costs_more_than_was_said() -> None:
    """Answers that get lost are paid as well, so there may be too little for all of them."""
    thinker = Losing(in_every_second, thinks=lambda _: 15_900, lost=Reset)
    with serving(thinker):
        done = piloted(thinker)
    assert done.returncode == 1
    assert "stopped before it could cost more; its answers are kept" in done.stderr
    assert 0 < thinker.charged <= dollars_said(done)


def test_thinking_aloud_costs_no_more_than_was_said_either() -> None:
    def talkative(request: Request) -> str:
        concluding = CONCLUDE in request["messages"][-1]["content"]
        return "e2e4" if concluding else "Well, well, well. " * 220

    with serving(Loopback(talkative)) as server:
        done = piloted(server, model="cot/priced")
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 2 * 12


def test_a_price_that_is_not_known_is_said() -> None:
    with serving(Loopback(in_every_second)) as server:
        done = piloted(server, model="m")
    assert re.search(r"for at most [\d,]+ tokens \(cost unknown\)", done.stderr)
    assert "measured on 12 kept answers" in " ".join(done.stdout.split())


def test_the_most_is_said_before_anything_is_asked() -> None:
    async def refusing(request: Request, number: int) -> web.StreamResponse | None:
        return web.json_response({"error": {"message": "bad key"}}, status=401)

    with serving(Loopback(in_every_second, fault=refusing)) as server:
        done = piloted(server)
    said, problem = done.stderr.splitlines()
    assert "at most" in said
    assert "refuses the key" in problem


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model": "openai/gpt-4o"}, "needs a key: set OPENAI_API_KEY"),
        ({"model": "cdta/random", "fresh": True}, "leave out --fresh or --pilot"),
    ],
)
def test_a_pilot_that_cannot_be_is_refused(options: dict[str, Any], sentence: str) -> None:
    given = ["--fresh"] if options.pop("fresh", False) else []
    done = cdta("estimate", "--model", options["model"], "--pilot", "3", *given)
    assert done.returncode == 2
    assert sentence in done.stderr
