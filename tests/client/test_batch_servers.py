"""Batches on servers that differ, refuse, lose and charge, and where there can be none."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web

from batches import BatchServer, Disturbs, Line, failed_line
from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.client.batch import client, jobs
from cant_do_that_anymore.client.batch.client import MIN_BATCH, PROBES, BatchClient
from cant_do_that_anymore.client.store import Store
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.errors import Incomplete, InvalidInput, UserError
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.providers.base import Request, Settings
from cant_do_that_anymore.providers.catalogue import model_named
from cant_do_that_anymore.providers.openai_api import ServerModel
from charging import charge, price_list
from faults import Reset
from loopback import Body, Loopback, moves_in, serving
from players import number_of, wavering
from processes import cdta
from questions import question
from thinkers import OpenAI

POOL = shipped_pool("pool")[:100]

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture(scope="module")
def positions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "positions.jsonl"
    write_positions(path, POOL)
    return path


@pytest.fixture
def priced() -> Iterator[None]:
    with price_list():
        yield


def run_of(server: Loopback, **spec: Any) -> Run:
    with serving(server):
        return evaluate(Spec(**{"model": "m", "base_url": server.url} | spec), quiet=True)


@pytest.mark.parametrize("listed", [True, False])
def test_a_batch_whose_making_was_not_heard_of_is_not_made_again(
    listed: bool, positions: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = BatchServer(wavering)

    async def lost(http: web.Request) -> web.StreamResponse | None:
        if (http.method, http.path) == ("GET", "/v1/batches") and not listed:
            return web.json_response({"error": "no such page"}, status=404)
        if (http.method, http.path) != ("POST", "/v1/batches") or server.batches:
            return None
        server.made(await http.json())
        return Reset()

    server.disturbs = lost
    run_of(server, dataset=positions, batch=True)
    assert len(server.batches) == (1 if listed else 2)
    assert bool(server.twice) != listed
    assert ("it cannot be looked up whether a batch was sent before" in caplog.text) != listed


def test_a_server_in_trouble_is_asked_until_it_answers(positions: Path) -> None:
    server, chance = BatchServer(wavering), Random(0)

    async def troubled(http: web.Request) -> web.StreamResponse | None:
        junk = None if http.path.endswith("content") else web.Response(text="<html>")
        return chance.choice((None, web.Response(status=502), Reset(), junk))

    server.disturbs = troubled
    run_of(server, dataset=positions, batch=True)
    assert (len(server.batches), server.twice) == (1, [])


def test_a_server_that_stays_in_trouble_does_not_lose_what_was_sent(
    positions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "REQUEST_DEADLINE", 0.05)
    server = BatchServer(wavering)

    async def no_results(http: web.Request) -> web.StreamResponse | None:
        return web.Response(status=500) if http.path.endswith("content") else None

    server.disturbs = no_results
    with serving(server):
        spec = Spec(model="m", base_url=server.url, dataset=positions, batch=True)
        with pytest.raises(Incomplete, match=r"cannot be reached \(HTTP 500\); what was sent goes"):
            evaluate(spec, quiet=True)
        server.disturbs = None
        evaluate(spec, quiet=True)
    assert (len(server.batches), server.twice) == (1, [])


JUNK: list[object] = [
    *(None, [1], {"job": 7}, {"id": "x", "status": 7, "data": [7]}),
    {"status": "failed", "errors": 7, "request_counts": [1]},
    {"status": "completed", "error_file_id": {}, "request_counts": {"total": "all"}},
    {"data": [{"input_file_id": "file-0"}], "has_more": True},
]
PLACES = ["POST /v1/files", "POST /v1/batches", "GET /v1/batches/", "GET /v1/files/"]


@pytest.mark.parametrize("place", PLACES)
def test_junk_in_place_of_anything_about_batches_ends_in_a_sentence(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "REQUEST_DEADLINE", 0.01)
    monkeypatch.setattr(client, "MIN_BATCH", 1)
    server = BatchServer(wavering)

    def spoilt(junk: object) -> Disturbs:
        async def disturbed(http: web.Request) -> web.StreamResponse | None:
            here = f"{http.method} {http.path}".startswith(place)
            return web.json_response(junk) if here else None

        return disturbed

    with serving(server):
        for number, junk in enumerate(JUNK):
            server.disturbs = spoilt(junk)
            with suppress(UserError):
                asyncio.run(asked(server, tmp_path, number, 5))
            server.disturbs = None
            assert len(asyncio.run(asked(server, tmp_path, number, 5))) == 5
    assert len(server.batches) >= len(JUNK)


async def asked(server: BatchServer, folder: Path, draw: int, count: int) -> list[str]:
    """Ask so many questions in batches, with a store in a folder; the replies."""
    asks = [Request(question(each.moves), "measuring", "standard", draw) for each in POOL[:count]]
    model = model_named("m", server.url)
    assert isinstance(model, ServerModel)
    with closing(Store(folder / "answers.sqlite")) as store:
        try:
            answers = BatchClient(model, store).answers(asks, Settings())
            return [answer.text async for answer in answers if not answer.error]
        finally:
            await model.close()


@pytest.mark.parametrize("status", [401, 402, 500])
def test_a_batch_that_cannot_be_looked_at_for_a_while_is_not_given_up(
    status: int, positions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made, that is not heard of, and then nothing about batches can be asked."""
    server = BatchServer(wavering)
    monkeypatch.setattr(jobs, "REQUEST_DEADLINE", 0.01)

    async def lost(http: web.Request) -> web.StreamResponse | None:
        if (http.method, http.path) == ("POST", "/v1/batches"):
            server.made(await http.json())
            return Reset()
        return Reset() if "batches" in http.path else None

    async def refused(http: web.Request) -> web.StreamResponse | None:
        hidden = http.method == "GET"
        return web.json_response({"error": "no"}, status=status) if hidden else None

    with serving(server):
        spec = Spec(model="m", base_url=server.url, dataset=positions, batch=True)
        for disturbed in (lost, refused):
            server.disturbs = disturbed
            with pytest.raises(UserError):
                evaluate(spec, quiet=True)
        server.disturbs = None
        evaluate(spec, quiet=True)
    assert (len(server.batches), server.twice) == (1, [])


def test_what_is_not_there_at_once_is_looked_for_again(positions: Path) -> None:
    server, seen = BatchServer(wavering), Counter[str]()

    async def late(http: web.Request) -> web.StreamResponse | None:
        seen[http.path] += http.method == "GET"
        is_late = 0 < seen[http.path] < 4
        return web.json_response({"error": "not found"}, status=404) if is_late else None

    server.disturbs = late
    run_of(server, dataset=positions, batch=True)
    assert (len(server.batches), server.twice) == (1, [])


@pytest.mark.parametrize("what", ["/v1/batches/", "/v1/files/output-0"])
def test_what_the_server_has_lost_is_asked_again(
    what: str, positions: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = BatchServer(wavering)

    async def lost(http: web.Request) -> web.StreamResponse | None:
        gone = http.path.startswith(what) and len(server.batches) == 1
        return web.json_response({"error": "gone"}, status=404) if gone else None

    server.disturbs = lost
    run_of(server, dataset=positions, batch=True)
    assert len(server.batches) == 2
    assert "are lost; what they held" in caplog.text or "not known there any" in caplog.text


class Together(BatchServer):
    """Has its own words for things."""

    async def upload(self, http: web.Request) -> web.StreamResponse:
        form = await http.post()
        assert http.path == "/v1/files/upload"
        assert (form["purpose"], form["file_name"]) == ("batch-api", "questions.jsonl")
        return await super().upload(http)

    async def create(self, http: web.Request) -> web.StreamResponse:
        return web.json_response({"job": self.made(await http.json()), "warning": ""}, status=201)

    async def listing(self, http: web.Request) -> web.StreamResponse:
        return web.json_response([self._shown(each) for each in self.batches.values()])

    def _shown(self, batch: dict[str, Any]) -> dict[str, Any]:
        shown = super()._shown(batch)
        return shown | {"status": shown["status"].upper(), "request_counts": None, "progress": 40}


def test_together_has_batches_of_its_own_kind(
    positions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Together(wavering)

    async def lost(http: web.Request) -> web.StreamResponse | None:
        if (http.method, http.path) != ("POST", "/v1/batches") or server.batches:
            return None
        server.made(await http.json())
        return Reset()

    server.disturbs = lost
    with serving(server):
        monkeypatch.setenv("TOGETHER_BASE_URL", server.url)
        monkeypatch.setenv("TOGETHER_API_KEY", "key")
        run = evaluate(Spec(model="together/m", dataset=positions, batch=True), quiet=True)
    assert run.results.metrics
    assert (len(server.batches), server.twice) == (1, [])


def test_base_models_have_batches_too(positions: Path) -> None:
    server = BatchServer(wavering)
    run = run_of(server, model="completions/m", dataset=positions, batch=True)
    assert len(server.batches) == 1
    assert all("prompt" in json.loads(body) for body in server.charged)
    other = run_of(Loopback(wavering), model="completions/m", dataset=positions)
    assert run.samples == other.samples


@dataclass
class Changing(OpenAI, BatchServer):
    """Strict about names and temperatures, and thinks, at once or only once it had a batch."""

    strict: bool = True
    thinking: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.thinks = lambda request: (
            700 if self.thinking or (self.batches and number_of(moves_in(request)) % 3 == 0) else 0
        )
        self.spoils = lambda line, _: (
            failed_line(line, 400, words) if (words := self.refuses(line["body"])) else None
        )

    def refuses(self, request: Body) -> str:
        return super().refuses(request) if self.strict or self.batches else ""

    def in_batch(self, body: Body) -> dict[str, Any]:
        return self.thoughtful(body)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("thinking", [True, False])
def test_what_a_model_wants_is_learnt_by_few_questions_asked_at_once(
    strict: bool, thinking: bool, positions: Path
) -> None:
    server = Changing(wavering, strict=strict, thinking=thinking)
    run = run_of(server, dataset=positions, batch=True)
    other = run_of(Loopback(wavering), dataset=positions)
    assert run.results.outcomes == other.results.outcomes
    assert len(server.batches) == 1 + (not strict) + (not thinking)
    assert sum(server.live.values()) <= 2 * MIN_BATCH + 3 * PROBES
    assert not server.twice


def test_a_refusal_that_only_batches_make_ends_in_one_sentence(positions: Path) -> None:
    def refused(line: Line, _: int) -> Line:
        return failed_line(line, 400, "The model 'm' is not supported by the batch API.")

    server = BatchServer(wavering, spoils=refused)
    told = r"have no answer \(the first: \S+ refuses 'm' \(HTTP 400: .* not supported by the batch"
    with pytest.raises(Incomplete, match=told):
        run_of(server, dataset=positions, batch=True)
    assert (len(server.batches), sum(server.live.values())) == (1, MIN_BATCH)


def test_a_form_that_only_batches_refuse_is_tried_a_few_times(positions: Path) -> None:
    def refused(line: Line, _: int) -> Line:
        return failed_line(line, 400, "temperature is not supported in batches")

    server = BatchServer(wavering, spoils=refused)
    with pytest.raises(Incomplete, match="no answer in 3 batches, the last time: "):
        run_of(server, dataset=positions, batch=True)
    assert (len(server.batches), sum(server.live.values())) == (3, MIN_BATCH + 3 * PROBES)


def full_price(server: BatchServer, bodies: Iterable[str]) -> float:
    """What these would have cost at once."""
    usages = (Loopback.completion(server, json.loads(body))["usage"] for body in bodies)
    return sum(map(charge, usages))


def test_half_the_price_is_paid(positions: Path, priced: None) -> None:
    server = BatchServer(wavering)
    run = run_of(server, model="priced", dataset=positions, batch=True)
    everything, at_once = full_price(server, server.charged), full_price(server, server.live)
    assert run.cost.spent == pytest.approx((everything + at_once) / 2)
    assert run.cost.measuring == pytest.approx(everything / 2)


def test_no_more_is_sent_than_the_limit_can_pay(positions: Path, priced: None) -> None:
    server = BatchServer(wavering)
    with pytest.raises(Incomplete, match=r"of \$1.2 are spent and the next batch may cost"):
        run_of(server, model="priced", dataset=positions, batch=True, max_cost=1.2)
    spent = (full_price(server, server.charged) + full_price(server, server.live)) / 2
    assert 0.6 < spent < 1.2, spent
    assert len(server.batches) > 1


def test_results_that_could_not_be_saved_are_not_paid_again(
    positions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = BatchServer(wavering)
    with serving(server):
        spec = Spec(model="m", base_url=server.url, dataset=positions, batch=True)
        with monkeypatch.context() as patch, pytest.raises(UserError, match="cannot save answers"):
            patch.setattr(Store, "put", full_after_a_batch(server))
            evaluate(spec, quiet=True)
        evaluate(spec, quiet=True)
    assert (len(server.batches), server.twice) == (1, [])


def full_after_a_batch(server: BatchServer) -> Callable[..., "asyncio.Future[bool]"]:
    put = Store.put

    def full(store: Store, *row: Any) -> "asyncio.Future[bool]":
        if server.batches:
            raise store.unusable(OSError("the disk is full"))
        return put(store, *row)

    return full


def test_it_is_told_how_far_the_provider_is(tmp_path: Path) -> None:
    server, told = BatchServer(wavering, polls=2), list[str]()

    async def asked_and_told() -> None:
        model = model_named("m", server.url)
        assert isinstance(model, ServerModel)
        with closing(Store(tmp_path / "answers.sqlite")) as store:
            asks = [Request(question(each.moves), "measuring", "standard") for each in POOL]
            async for _ in BatchClient(model, store).answers(
                asks, Settings(), on_status=told.append
            ):
                pass
        await model.close()

    with serving(server):
        asyncio.run(asked_and_told())
    assert told == ["batch in progress: 80 of 80 answered"] * 2


def test_two_at_once_share_a_batch(tmp_path: Path) -> None:
    server = BatchServer(wavering, polls=5)

    async def both() -> list[list[str]]:
        return list(await asyncio.gather(*(asked(server, tmp_path, 0, 100) for _ in range(2))))

    with serving(server):
        one, other = asyncio.run(both())
    assert one == other
    assert server.sizes == [100 - MIN_BATCH]


def test_a_run_without_batches_says_that_one_is_under_way(
    positions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "LONGEST_BATCH", 0.0)
    server = BatchServer(wavering, polls=10**9)
    with serving(server):
        run = ("run", "--base-url", server.url, "--model", "m", "--dataset", positions, "--quiet")
        done = cdta(*run, "--batch")
        monkeypatch.setattr(jobs, "LONGEST_BATCH", 3600.0)
        assert "the batch batch_0 has not ended in 0 s; cancel it where it runs" in done.stderr
        told = (
            f"a batch with {200 - MIN_BATCH} questions is under way; --batch waits for its answers"
        )
        assert told in cdta(*run).stderr


NONE = {
    "cdta/pocket": "cdta/pocket answers here and for nothing; leave out --batch",
    "human": "human answers here and for nothing; leave out --batch",
    "cot/openai/gpt-4o": "is asked twice, the second time by what it said the first time",
    "anthropic/claude-sonnet-4-5": "inspect eval cant_do_that_anymore/all --model "
    "anthropic/claude-sonnet-4-5 --batch",
}


@pytest.mark.parametrize("model", NONE)
@pytest.mark.parametrize("command", ["run", "estimate", "experiment", "dataset build"])
def test_where_there_can_be_no_batch_a_sentence_says_what_can_be(
    model: str, command: str, tmp_path: Path
) -> None:
    out = ["--out", tmp_path] if command == "experiment" else []
    done = cdta(*command.split(), "--model", model, "--batch", *out)
    assert done.returncode == 2
    assert NONE[model] in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_server_without_batches_is_told_in_one_sentence(positions: Path) -> None:
    with pytest.raises(UserError, match=r"has no batches of OpenAI's form \(HTTP 404"):
        run_of(Loopback(wavering), dataset=positions, batch=True)


def test_what_is_not_kept_cannot_be_in_a_batch(positions: Path) -> None:
    with pytest.raises(InvalidInput, match="leave out --fresh or --batch"):
        run_of(BatchServer(wavering), dataset=positions, batch=True, fresh=True)


def test_an_estimate_is_at_the_price_of_a_batch(positions: Path) -> None:
    spec = Spec(model="openai/gpt-4o", dataset=positions)
    usual, batch = (
        estimate(each).measuring.ways[0].cost for each in (spec, replace(spec, batch=True))
    )
    assert usual and batch
    assert batch.least == pytest.approx(usual.least / 2)


def test_an_estimate_counts_a_day_for_every_batch_that_is_waited_for() -> None:
    day, once = 24 * 3600, Spec(model="openai/gpt-4o", dataset="gpt-4-0314", batch=True)
    looking = estimate(replace(once, precision=0.1))  # after 50, 75, 112, 168, 252 and 378 samples
    for found, days in ((estimate(once), 1), (looking, 6)):
        assert {way.seconds for way in found.measuring.ways} == {(days * day, days * day)}
    assert any("for each of 6 looks at the precision" in each for each in looking.assumptions)
