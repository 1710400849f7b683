"""Server faults: requests are retried, or recorded with their error."""

import asyncio
import json
import socket
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from cant_do_that_anymore.client import client
from cant_do_that_anymore.errors import Incomplete, InvalidInput, UserError
from cant_do_that_anymore.habits.base import Message
from cant_do_that_anymore.habits.chess.rules import STANDARD
from cant_do_that_anymore.providers import openai_api
from cant_do_that_anymore.providers.base import Question, Settings
from cant_do_that_anymore.providers.catalog import model_named
from faults import FAULTS, error
from testing import (
    POOL,
    Body,
    Loopback,
    Run,
    Serve,
    cdta,
    error_when,
    habit,
    measure,
    moves_in,
    oaieval,
    positions,
    serving,
    wavering,
)

pytestmark = pytest.mark.usefixtures("no_retry_delay")


@pytest.fixture
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_api, "TIMEOUT", aiohttp.ClientTimeout(total=0.4))


def run_on(server: Loopback, n: int, **options: object) -> Run:
    return measure(server, dataset=positions(n), n=n, **options)


@pytest.mark.usefixtures("short_timeout")
def test_every_transient_fault_is_retried(serve: Serve) -> None:
    faults_left = list(FAULTS.values())

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        return faults_left.pop()() if faults_left and number % 2 else None

    server = serve(wavering, fault=fault)
    assert run_on(server, 12, max_connections=8).results.n == 12
    assert len(server.requests) == 2 * 12 + len(FAULTS)


@pytest.mark.usefixtures("short_timeout")
@pytest.mark.parametrize("name", ["HTTP 500", "reset", "silence", "no choice"])
def test_a_lasting_fault_is_noted(name: str, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_FAILED_ATTEMPTS", 2)
    monkeypatch.setattr(client, "REQUEST_DEADLINE", 0.05)
    monkeypatch.setattr("cant_do_that_anymore.runs.evaluate.MAX_MISSING", 0.5)
    failing = POOL[3].moves

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        return FAULTS[name]() if moves_in(request) == failing else None

    run = run_on(serve(wavering, fault=fault), 6)
    failed = [sample for sample in run.samples if not sample.answered]
    assert [sample.item.subject for sample in failed] == [failing]
    assert failed[0].answers["standard"].error
    assert run.results.failed == 1
    assert any("1 sample without an answer" in note for note in run.notes)


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

    run = run_on(serve(wavering, fault=fault), 60, max_connections=32)
    assert run.results.failed == 0
    assert n_by_refusal[False] == 120
    assert n_by_refusal[True] < 110


@pytest.mark.parametrize(
    ("status", "message", "granted"),
    [
        (429, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 33012", 3e4),
        (
            413,
            "Request too large for m on tokens per minute (TPM): Limit 6000, Requested 33012",
            6_000,
        ),
        (402, "This requires more credits, or fewer max_tokens. You can only afford 4000", 4_000),
        (400, "Requests with max_tokens > 4096 must have stream=true", 4_096),
    ],
)
def test_a_token_limit_that_is_refused_with_any_status_is_lowered(
    status: int, message: str, granted: int, serve: Serve
) -> None:
    server = serve(
        wavering, fault=error_when(lambda body, _: body["max_tokens"] > granted, message, status)
    )
    run = run_on(server, 6)
    assert run.results.failed == 0
    assert len(server.requests) == 2 * 6 + 2  # the first one is refused twice


def test_retry_after_is_respected(serve: Serve) -> None:
    times: list[float] = []

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        times.append(time.monotonic())
        return web.Response(status=429, headers={"Retry-After": "0.3"}) if number == 3 else None

    run = run_on(serve(wavering, fault=fault), 3, max_connections=1)
    assert run.results.n == 3
    assert times[3] - times[2] >= 0.3


@pytest.mark.parametrize("model", ["m", None])
def test_the_error_without_v1_suggests_the_url_with_it(model: str | None, serve: Serve) -> None:
    server = serve(wavering)
    with pytest.raises(UserError) as error:
        measure(server, model=model, base_url=server.url.removesuffix("/v1"))
    assert str(error.value).endswith(f"; most servers answer below /v1: try {server.url}")
    assert server.requests == []


def test_a_dead_server_ends_the_run_and_its_answers_are_saved() -> None:
    async def die(request: Body, number: int) -> web.StreamResponse | None:
        return FAULTS["reset"]() if number > 30 else None

    with (
        serving(wavering, fault=die) as server,
        pytest.raises(Incomplete, match=r"m stopped answering .* Run the same command again"),
    ):
        run_on(server, 30, max_connections=4)
    with serving(wavering, int(server.url.split(":")[2].removesuffix("/v1"))) as restarted:
        run = run_on(restarted, 30, max_connections=4)
    assert len(restarted.requests) == 60 - 30
    assert run.results.n == 30
    with pytest.raises(UserError, match=r"no server answers at http://127.0.0.1:.*start it"):
        run_on(server, 2, seed=1, fresh=True)


def test_repeated_refusals_do_not_end_a_run_with_other_answers(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cant_do_that_anymore.runs.evaluate.MAX_MISSING", 0.2)
    refused = [position.moves for position in POOL[10:60:8]]
    policy = error_when(lambda request, _: moves_in(request) in refused, "content policy", 400)
    server = serve(wavering, fault=policy)
    for _ in range(2):
        run = run_on(server, 60)
        assert run.results.n == 60 - len(refused)
    assert 2 * len(refused) > client.MAX_CONSECUTIVE_FAILURES


def test_connections_are_kept_alive() -> None:
    address = socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)[0]
    with openai_api.keepalive_socket(address) as connection:
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert connection.type == socket.SOCK_STREAM


@pytest.mark.parametrize(
    "url",
    [
        *("http://", "http:///v1", "http://[bad", "http://h:99999/v1", "http://h:port/v1"),
        *("http://a..b/v1", f"http://{'a' * 64}.com/v1", "http://a b/v1", "http://a\n/v1"),
    ],
)
def test_an_impossible_url_is_an_error_without_its_password(url: str) -> None:
    for base_url in (url, url.replace("http://", "http://user:hunter2@")):
        with pytest.raises(InvalidInput, match="not the address of a server") as error:
            model_named("m", base_url)
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("listing", "message"),
    [
        (b'{"data": [{"id": 5}, {"id": null}, {"id": ["a"]}]}', "lists no model"),
        (b'{"data": ' + b"[" * 100_000, "does not list its models"),
        (b'{"data": [{"id": "' + b"x" * 200_000 + b'"}]}', "does not list its models"),
        (b'{"data": [{"id": "\\u001b[31mred"}, {"id": "b"}]}', "serves ⟨U+001B⟩[31mred, b"),
    ],
)
def test_a_bad_model_list_is_an_error_without_traceback(
    listing: bytes, message: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_api, "MAX_RESPONSE_BYTES", 150_000)
    server = serve(habit, model_list=lambda _: web.Response(body=listing))
    done = cdta("run", "--base-url", server.url, "--dataset", positions(6), "--quiet")
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_lone_surrogates_are_cached_and_printed(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda request: f"{habit(request)} \ud83d", model="m\ud800")
    url = server.url
    command = ["run", "--base-url", url, "--model", "m", "--quiet", "--dataset", positions(6)]
    first, second = (cdta(*command, code=0).stdout for _ in range(2))
    assert "all answers came from the cache" not in first
    assert "all answers came from the cache" in second
    record = tmp_path / "record.jsonl"
    options = ["--max_samples", 3, "--record_path", record]
    options += ["--completion_args", f"base_url={url},reading=lenient"]
    done = oaieval("m\udc80", "cant_do_that_anymore", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(record.read_text().splitlines()[0])["spec"]["completion_fns"] == ["m\udc80"]


class Echo:
    """Answers every question by repeating it, and from some number on sends the answer again."""

    def __init__(self, repeats_from: int) -> None:
        self.repeats_from = repeats_from
        self.questions = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                question = json.loads(await reader.readexactly(length))["messages"][-1]
                choice = {"message": question, "finish_reason": "stop"}
                body = json.dumps({"model": "m", "choices": [choice]}).encode()
                answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
                repeats = self.questions >= self.repeats_from
                self.questions += 1
                await asyncio.sleep(0.03 * repeats)
                writer.write(answer)
                await asyncio.sleep(0.01 * repeats)
                writer.write(answer * repeats)

    async def answers(self, count: int) -> list[str]:
        """Return the answers to ``count`` numbered questions, sent one after another."""
        async with await asyncio.start_server(self, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            model, texts = model_named("m", f"http://127.0.0.1:{port}/v1"), list[str]()
            for number in range(count):
                question = Question(STANDARD, POOL[0], (Message("user", str(number)),))
                texts.append((await model.answer(question, Settings())).text)
            await model.close()
            return texts


@pytest.mark.parametrize("quick", [0, 300])
def test_a_late_answer_is_not_the_answer_to_the_next_question(quick: int) -> None:
    """It arrives during the next request, so no data is waiting when that takes a connection."""
    expected = [str(number) for number in range(quick + 5)]
    assert asyncio.run(Echo(repeats_from=quick).answers(quick + 5)) == expected
