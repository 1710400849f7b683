"""A server that misbehaves in every way: requests are retried, or recorded as what they are."""

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

from cant_do_that_anymore import load
from cant_do_that_anymore.client import cache, client
from cant_do_that_anymore.errors import Incomplete, InvalidInput, UserError
from cant_do_that_anymore.game.rules import STANDARD
from cant_do_that_anymore.providers import http, openai_api
from cant_do_that_anymore.providers.base import Answer, Message, Question, Settings
from cant_do_that_anymore.providers.catalog import model_named
from faults import FAULTS, error
from testing import (
    POOL,
    Body,
    Loopback,
    Run,
    Serve,
    cdta,
    fails,
    habit,
    measure,
    moves_in,
    oaieval,
    positions,
    serving,
    wavering,
)

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture
def short_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_api, "TIME_OUT", aiohttp.ClientTimeout(total=0.4))


def measured(server: Loopback, n: int, **options: object) -> Run:
    return measure(server, dataset=positions(n), n=n, **options)


@pytest.mark.usefixtures("short_time_out")
def test_every_passing_fault_is_retried(serve: Serve) -> None:
    left = list(FAULTS.values())

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        return left.pop()() if left and number % 2 else None

    server = serve(wavering, fault=fault)
    assert measured(server, 12, max_connections=8).results.metrics["n_samples"] == 12
    assert len(server.requests) == 2 * 12 + len(FAULTS)


@pytest.mark.usefixtures("short_time_out")
@pytest.mark.parametrize("name", ["HTTP 500", "reset", "silence", "no choice"])
def test_a_lasting_fault_is_noted(name: str, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_FAILED_ATTEMPTS", 2)
    monkeypatch.setattr(client, "REQUEST_DEADLINE", 0.05)
    hopeless = POOL[3].moves

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        return FAULTS[name]() if moves_in(request) == hopeless else None

    run = measured(serve(wavering, fault=fault), 6, max_error_rate=0.5)
    failed = [sample for sample in run.samples if not sample.answered]
    assert [sample.position.moves for sample in failed] == [hopeless]
    assert failed[0].answers["standard"].error
    assert run.results.metrics["n_failed"] == 1
    assert any("1 sample without an answer" in note for note in run.notes)


def test_a_very_long_text_is_an_answer_like_any_other(serve: Serve) -> None:
    text = "Nf3 Bc4 " * 10_000
    sample = measured(serve(lambda _: text), 1).samples[0]
    assert sample.answers["standard"].text == text
    assert sample.replies["standard"].outcome == "unreadable"


def test_a_runaway_reply_is_cut_and_the_run_is_read_again(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache.MAX_CHARACTERS == 1_000_000
    monkeypatch.setattr(cache, "MAX_CHARACTERS", 5_000)
    server = serve(lambda request: habit(request) + " blah" * 5_000)
    measured(server, 1).save(tmp_path / "run")
    sample = load(tmp_path / "run").samples[0]
    assert len(sample.answers["standard"].text) == 5_000
    assert sample.answers["standard"].stop_reason == "length"
    assert sample.replies["standard"].outcome == "truncated"
    assert measured(server, 1).samples == [sample]


def test_a_server_that_takes_few_at_once_is_pressed_no_harder(serve: Serve) -> None:
    """More than four at once are refused; the pressure settles and everything is answered."""
    inside = 0
    refused: Counter[bool] = Counter()

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        nonlocal inside
        refused[inside >= 4] += 1
        if inside >= 4:
            return error(429, "slow down")
        inside += 1
        await asyncio.sleep(0.005)
        inside -= 1
        return None

    run = measured(serve(wavering, fault=fault), 60, max_connections=32)
    assert run.results.metrics["n_failed"] == 0
    assert refused[False] == 120
    assert refused[True] < 110


def test_retry_after_is_honoured(serve: Serve) -> None:
    times: list[float] = []

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        times.append(time.monotonic())
        return web.Response(status=429, headers={"Retry-After": "0.3"}) if number == 3 else None

    run = measured(serve(wavering, fault=fault), 3, max_connections=1)
    assert run.results.metrics["n_samples"] == 3
    assert times[3] - times[2] >= 0.3


@pytest.mark.parametrize("model", ["m", None])
def test_an_address_without_v1_gets_the_one_to_try(model: str | None, serve: Serve) -> None:
    server = serve(wavering)
    with pytest.raises(UserError) as problem:
        measure(server, model=model, base_url=server.url.removesuffix("/v1"))
    assert str(problem.value).endswith(f"; most servers answer below /v1: try {server.url}")
    assert server.requests == []


def test_a_server_that_dies_ends_the_run_with_a_sentence_and_the_answers_saved() -> None:
    async def dead(request: Body, number: int) -> web.StreamResponse | None:
        return FAULTS["reset"]() if number > 30 else None

    with (
        serving(wavering, fault=dead) as server,
        pytest.raises(Incomplete, match=r"m stopped answering .* Run the same command again"),
    ):
        measured(server, 30, max_connections=4)
    with serving(wavering, int(server.url.split(":")[2].removesuffix("/v1"))) as again:
        run = measured(again, 30, max_connections=4)
    assert len(again.requests) == 60 - 30 + 1  # is it the same model?
    assert run.results.metrics["n_samples"] == 30
    with pytest.raises(UserError, match=r"no server answers at http://127.0.0.1:.*start it"):
        measured(server, 2, seed=1, fresh=True)


def test_requests_refused_again_do_not_end_a_run_with_other_answers(serve: Serve) -> None:
    refused = [position.moves for position in POOL[10:60:8]]
    policy = fails(lambda request, _: moves_in(request) in refused, "content policy", 400)
    server = serve(wavering, fault=policy)
    for _ in range(2):
        run = measured(server, 60, max_error_rate=0.2)
        assert run.results.metrics["n_samples"] == 60 - len(refused)
    assert 2 * len(refused) > client.MAX_CONSECUTIVE_FAILURES


@pytest.mark.usefixtures("short_time_out")
def test_a_long_answer_is_waited_for_longer(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_api, "LONG_TIME_OUT", aiohttp.ClientTimeout(total=60))
    server = serve(wavering, delay=0.6)  # the time-out is 0.4 here
    measured(server, 1, max_tokens=8_000)
    assert len(server.requests) == 2
    address = socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)[0]
    with http.keepalive_socket(address) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert made.type == socket.SOCK_STREAM


@pytest.mark.parametrize(
    "address",
    [
        *("http://", "http:///v1", "http://[bad", "http://h:99999/v1", "http://h:port/v1"),
        *("http://a..b/v1", f"http://{'a' * 64}.com/v1", "http://a b/v1", "http://a\n/v1"),
    ],
)
def test_an_address_that_cannot_be_is_one_sentence(address: str) -> None:
    for given in (address, address.replace("http://", "http://user:hunter2@")):
        with pytest.raises(InvalidInput, match="not the address of a server") as problem:
            model_named("m", given)
        assert "hunter2" not in str(problem.value)


@pytest.mark.parametrize(
    ("listing", "sentence"),
    [
        (b'{"data": [{"id": 5}, {"id": null}, {"id": ["a"]}]}', "lists no model"),
        (b'{"data": ' + b"[" * 100_000, "does not list its models"),
        (b'{"data": [{"id": "' + b"x" * 200_000 + b'"}]}', "does not list its models"),
        (b'{"data": [{"id": "\\u001b[31mred"}, {"id": "b"}]}', "serves ⟨U+001B⟩[31mred, b"),
    ],
)
def test_a_bad_list_of_models_is_one_sentence(
    listing: bytes, sentence: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_api, "MAX_RESPONSE_BYTES", 150_000)
    server = serve(habit, model_list=lambda _: web.Response(body=listing))
    done = cdta("run", "--base-url", server.url, "--dataset", positions(6), "--quiet")
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_halves_of_characters_are_kept_and_shown(serve: Serve, tmp_path: Path) -> None:
    url = serve(lambda request: f"{habit(request)} \ud83d", model="m\ud800").url
    command = ["run", "--base-url", url, "--model", "m", "--quiet", "--dataset", positions(6)]
    for _ in range(2):  # asked, and kept
        assert cdta(*command, code=0)
    record = tmp_path / "record.jsonl"
    options = ["--max_samples", 3, "--record_path", record]
    options += ["--completion_args", f"base_url={url},reading=lenient"]
    done = oaieval("m\udc80", "cant_do_that_anymore", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(record.read_text().splitlines()[0])["spec"]["completion_fns"] == ["m\udc80"]


def test_a_kept_answer_with_more_tokens_than_can_be_is_none() -> None:
    kept = json.loads(json.dumps(Answer("e2e4").to_json()))
    kept["usage"]["input_tokens"] = 10**400
    with pytest.raises(InvalidInput):
        Answer.from_json(kept)


class Echo:
    """Answers every question by repeating it, and may soon say so again, which nobody asked for."""

    def __init__(self, *, twice: bool) -> None:
        self.twice = twice
        self.connections = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                question = json.loads(await reader.readexactly(length))["messages"][-1]
                choice = {"message": question, "finish_reason": "stop"}
                body = json.dumps({"model": "m", "choices": [choice]}).encode()
                answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
                await asyncio.sleep(0.03 * self.twice)
                writer.write(answer)
                await asyncio.sleep(0.01 * self.twice)
                writer.write(answer * self.twice)

    async def answers(self, count: int, pause: float = 0) -> list[str]:
        """To as many numbered questions, one after another."""
        async with await asyncio.start_server(self, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            model, texts = model_named("m", f"http://127.0.0.1:{port}/v1"), list[str]()
            for number in range(count):
                question = Question(STANDARD, (), (Message("user", str(number)),))
                texts.append((await model.answer(question, Settings())).text)
                await asyncio.sleep(pause)
            await model.close()
            return texts


def test_what_comes_late_is_not_the_answer_to_the_next_question() -> None:
    """It comes while the server is at that one, and nothing waits when a connection is taken."""
    assert asyncio.run(Echo(twice=True).answers(5)) == ["0", "1", "2", "3", "4"]


def test_where_something_came_unasked_every_question_has_a_connection_of_its_own(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http, "REUSE_AFTER_REQUESTS", 0)
    monkeypatch.setattr(http, "QUICK_SECONDS", 60)
    server = Echo(twice=True)
    assert asyncio.run(server.answers(4, pause=0.1)) == ["0", "1", "2", "3"]
    assert caplog.text.count("connections are no longer reused") == 1
    assert server.connections == 4


@pytest.mark.parametrize(
    ("many", "quick", "connections"), [(2, 60.0, 3), (100, 60.0, 5), (0, 0.0, 5)]
)
def test_a_connection_is_used_again_after_many_quick_answers(
    monkeypatch: pytest.MonkeyPatch, many: int, quick: float, connections: int
) -> None:
    monkeypatch.setattr(http, "REUSE_AFTER_REQUESTS", many)
    monkeypatch.setattr(http, "QUICK_SECONDS", quick)
    server = Echo(twice=False)
    asyncio.run(server.answers(5))
    assert server.connections == connections


def test_too_many_open_files_are_not_a_server_that_is_missing() -> None:
    told = str(http.unreachable("http://127.0.0.1:1/v1", OSError(24, "Too many open files")))
    assert "--max-connections" in told
    assert "no server answers" not in told
