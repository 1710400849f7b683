"""Server faults: requests are retried, or recorded with their error."""

import asyncio
import json
import time
from collections import Counter
from contextlib import closing, suppress

import pytest
from aiohttp import web

from cant_do_that_anymore.client import client
from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.habits.base import Message
from cant_do_that_anymore.habits.chess.rules import STANDARD
from cant_do_that_anymore.providers.base import Question, Settings
from cant_do_that_anymore.providers.catalog import parse_name
from loopback import FAULTS
from testing import (
    POOL,
    Body,
    Serve,
    cdta,
    error,
    habit,
    measure,
    moves_in,
    positions,
    wavering,
)

pytestmark = pytest.mark.usefixtures("no_retry_delay")


@pytest.mark.usefixtures("short_timeout")
def test_faults_of_every_kind_change_no_result(serve: Serve) -> None:
    server = serve(wavering)
    faultless = measure(server, dataset=positions(30))
    faults_left = 2 * list(FAULTS.values())
    sent: set[str] = set()

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        is_new = str(request) not in sent
        sent.add(str(request))
        return faults_left.pop()() if is_new and faults_left else None

    server.fault = fault
    run = measure(server, dataset=positions(30), fresh=True, max_connections=8)
    assert run.samples == faultless.samples
    assert run.results == faultless.results
    assert len(server.requests) == 2 * 2 * 30 + 2 * len(FAULTS)


def test_concurrency_adapts_to_an_overloaded_server(serve: Serve) -> None:
    """The server refuses more than four concurrent requests, and yet all are answered."""
    in_flight = 0
    n_by_refusal: Counter[bool] = Counter()

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        nonlocal in_flight
        n_by_refusal[in_flight >= 4] += 1
        if in_flight >= 4:
            return error(429, "slow down")
        in_flight += 1
        await asyncio.sleep(0.005)
        in_flight -= 1
        return None

    run = measure(serve(wavering, fault=fault), dataset=positions(60), max_connections=32)
    assert run.results.failed == 0
    assert n_by_refusal[False] == 120
    assert n_by_refusal[True] < 110


def test_retry_after_is_respected(serve: Serve) -> None:
    times: list[float] = []

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        times.append(time.monotonic())
        return web.Response(status=429, headers={"Retry-After": "0.3"}) if number == 3 else None

    run = measure(serve(wavering, fault=fault), dataset=positions(3), max_connections=1)
    assert run.results.n == 3
    assert times[3] - times[2] >= 0.3


@pytest.mark.parametrize("model", ["m", None])
def test_the_error_without_v1_suggests_the_url_with_it(model: str | None, serve: Serve) -> None:
    server = serve(wavering)
    with pytest.raises(UserError) as error:
        measure(server, model=model, base_url=server.url.removesuffix("/v1"))
    assert str(error.value).endswith(f"; most servers answer below /v1: try {server.url}")
    assert server.requests == []


def test_lasting_faults_and_refusals_in_a_row_are_noted_and_do_not_end_a_run(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_FAILED_ATTEMPTS", 2)
    monkeypatch.setattr("cant_do_that_anymore.runs.evaluate.MAX_MISSING", 0.2)
    failing, refused = POOL[3].moves, [position.moves for position in POOL[10:22]]
    assert len(refused) > client.MAX_CONSECUTIVE_FAILURES

    async def fault(request: Body, _: int) -> web.Response | None:
        moves = moves_in(request)
        if moves == failing:
            return error(500, "no")
        return error(400, "content policy") if moves in refused else None

    run = measure(serve(wavering, fault=fault), dataset=positions(70), max_connections=1)
    failed = [sample for sample in run.samples if not sample.answered]
    assert {sample.item.subject for sample in failed} == {failing, *refused}
    assert failed[0].answers["standard"].error
    assert (run.results.n, run.results.failed) == (70 - 13, 13)
    assert any("13 samples without an answer" in note for note in run.notes)


def test_lone_surrogates_are_cached_and_printed(serve: Serve) -> None:
    server = serve(lambda request: f"{habit(request)} \ud83d", model="m\ud800")
    command = ("run", "--base-url", server.url, "--model", "m", "--quiet")
    first, second = (cdta(*command, "--dataset", positions(6), code=0).stdout for _ in range(2))
    assert "all answers came from the cache" not in first
    assert "all answers came from the cache" in second


async def repeating_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each question by repeating it, and send the answer again a little later."""
    with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().partition(b"content-length:")[2].split()[0])
            question = json.loads(await reader.readexactly(length))["messages"][-1]
            choice = {"message": question, "finish_reason": "stop"}
            body = json.dumps({"model": "m", "choices": [choice]}).encode()
            answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
            await asyncio.sleep(0.03)
            writer.write(answer)
            await asyncio.sleep(0.01)
            writer.write(answer)


def test_a_late_answer_is_not_the_answer_to_the_next_question() -> None:
    """It arrives during the next request, so no data is waiting when that takes a connection."""
    expected = [str(number) for number in range(5)]

    async def texts() -> list[str]:
        async with await asyncio.start_server(repeating_server, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            model = parse_name("m", f"http://127.0.0.1:{port}/v1").load()
            questions = [Question(STANDARD, POOL[0], (Message("user", text),)) for text in expected]
            answers = [await model.answer(question, Settings()) for question in questions]
            await model.close()
            return [answer.text for answer in answers]

    assert asyncio.run(texts()) == expected
