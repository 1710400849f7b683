"""Servers that say odd things: one sentence, or the answer without them."""

import asyncio
import json
from contextlib import closing, suppress
from pathlib import Path

import pytest
from aiohttp import web

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.game.rules import STANDARD
from cant_do_that_anymore.providers import http as http_module
from cant_do_that_anymore.providers.base import Answer, Message, Question, Settings, Usage
from cant_do_that_anymore.providers.catalogue import model_named
from cant_do_that_anymore.providers.http import unreachable
from cant_do_that_anymore.providers.responses import parse_completion, parse_retry_after
from loopback import Loopback, serving
from players import habit
from processes import cdta, oaieval

POOL = shipped_pool("pool")[:6]


@pytest.fixture
def positions(tmp_path: Path) -> Path:
    file = tmp_path / "positions.jsonl"
    write_positions(file, POOL)
    return file


def asked_of(url: str) -> list[object]:
    return ["run", "--base-url", url, "--model", "m", "--quiet", "--max-connections", 2]


@pytest.mark.parametrize("tokens", ["Infinity", "1e400", "9" * 400, "9" * 4300, '"many"', "-1"])
def test_a_number_of_tokens_that_cannot_be_is_none_and_the_answer_stands(tokens: str) -> None:
    reply = '{"choices": [{"message": {"content": "e2e4"}}], "usage": {"prompt_tokens": %s}}'
    answer = parse_completion((reply % tokens).encode(), "chat", "m", ())
    assert (answer.text, answer.usage) == ("e2e4", Usage())


def test_a_kept_answer_with_more_tokens_than_can_be_is_none() -> None:
    kept = json.loads(json.dumps(Answer("e2e4").to_json()))
    kept["usage"]["input_tokens"] = 10**400
    with pytest.raises(ValueError):
        Answer.from_json(kept)


@pytest.mark.parametrize(
    "told", ["nan", "Mon, 01 Jan 99999 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 -0000", "soon"]
)
def test_a_time_to_come_back_that_cannot_be_is_none(told: str) -> None:
    assert not parse_retry_after(told)


@pytest.mark.parametrize(
    "address",
    [
        "http://a..b/v1",
        f"http://{'a' * 64}.com/v1",
        "http://[bad",
        "http://a b/v1",
        "http://a\n/v1",
    ],
)
def test_an_address_that_cannot_be_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="not the address of a server"):
        model_named("m", address)


class Listing(Loopback):
    """A server with a list of models of its own."""

    listing = b""

    async def models(self, http: web.Request) -> web.Response:
        return web.Response(body=self.listing, content_type="application/json")


@pytest.mark.parametrize(
    ("listing", "sentence"),
    [
        (b'{"data": [{"id": 5}, {"id": null}, {"id": ["a"]}]}', "serves no model"),
        (b'{"data": ' + b"[" * 100_000, "does not list its models"),
        (b'{"data": [{"id": "' + b"x" * 2**26 + b'"}]}', "does not list its models"),
        (b'{"data": [{"id": "\\u001b[31mred"}, {"id": "b"}]}', "serves ⟨U+001B⟩[31mred, b"),
    ],
)
def test_a_list_of_models_that_cannot_be_is_one_sentence(
    listing: bytes, sentence: str, positions: Path
) -> None:
    server = Listing(habit)
    server.listing = listing
    with serving(server):
        done = cdta("run", "--base-url", server.url, "--dataset", positions, "--quiet")
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_halves_of_characters_are_kept_and_shown(positions: Path, tmp_path: Path) -> None:
    server = Loopback(lambda request: f"{habit(request)} \ud83d", model="m\ud800")
    with serving(server):
        for _ in range(2):  # asked, and kept
            done = cdta(*asked_of(server.url), "--dataset", positions)
            assert done.returncode == 0, done.stderr
        record = tmp_path / "record.jsonl"
        options = ["--max_samples", 3, "--record_path", record]
        options += ["--completion_args", f"base_url={server.url},reading=lenient"]
        done = oaieval("m\udc80", "cant_do_that_anymore", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(record.read_text().splitlines()[0])["spec"]["completion_fns"] == ["m\udc80"]


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
    monkeypatch.setattr(http_module, "REUSE_AFTER_REQUESTS", 0)
    monkeypatch.setattr(http_module, "QUICK_SECONDS", 60)
    server = Echo(twice=True)
    assert asyncio.run(server.answers(4, pause=0.2)) == ["0", "1", "2", "3"]
    assert caplog.text.count("no connection is used twice now") == 1
    assert server.connections == 4


@pytest.mark.parametrize(
    ("many", "quick", "connections"), [(2, 60.0, 3), (100, 60.0, 5), (0, 0.0, 5)]
)
def test_a_connection_is_used_again_after_many_quick_answers(
    monkeypatch: pytest.MonkeyPatch, many: int, quick: float, connections: int
) -> None:
    monkeypatch.setattr(http_module, "REUSE_AFTER_REQUESTS", many)
    monkeypatch.setattr(http_module, "QUICK_SECONDS", quick)
    server = Echo(twice=False)
    asyncio.run(server.answers(5))
    assert server.connections == connections


def test_too_many_open_files_are_not_a_server_that_is_missing() -> None:
    told = str(unreachable("http://127.0.0.1:1/v1", OSError(24, "Too many open files")))
    assert "--max-connections" in told
    assert "no server answers" not in told
