"""An OpenAI-compatible server on the loopback interface that answers by a function, and faults."""

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any
from unittest.mock import patch

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.providers.openai_api import ServerModel
from cant_do_that_anymore.providers.responses import Response

Body = dict[str, Any]
Responder = Callable[[Body], str]
Fault = Callable[[Body, int], Awaitable[web.StreamResponse | None]]
REASONING = "Let me see what the rules say and what I would play now. "
INPUT_PRICE, OUTPUT_PRICE = 1e-4, 1e-3
"""Dollars per token, of four characters."""


def varying_length(request: Body) -> int:
    """From 500 to 8,000 by the moves so far, as most models reason longer at some positions."""
    return 500 + checksum(moves_in(request)) * 37 % 7_501


@dataclass(frozen=True)
class Reasoning:
    """How the model of a server reasons before it replies.

    Attributes:
        tokens: the number of reasoning tokens for a request.
        field: the field of the message with the reasoning; "" if it is hidden.
        tags: if given, the reasoning is in the content, between these tags.
        counted: "as output" tokens, in their "details" too, or only in the "total".
        cut_off: the content and the finish reason of a message if reasoning uses up the limit.
    """

    tokens: Callable[[Body], int] = varying_length
    field: str = "reasoning"
    tags: tuple[str, str] | None = None
    counted: str = "as output"
    cut_off: tuple[str | None, str] = (None, "length")

    def add_to(self, completion: Body, request: Body) -> None:
        (choice,), usage = completion["choices"], completion["usage"]
        message, limit = choice["message"], token_limit(request)
        wanted, reply = self.tokens(request), usage["completion_tokens"]
        opening, closing = self.tags or ("", "")
        if wanted + reply > limit:
            message["content"], choice["finish_reason"] = self.cut_off
            reply, closing = 0, ""
        spent = min(wanted, limit)
        text = (REASONING * spent)[: 4 * spent]
        if self.tags:
            message["content"] = opening + text + closing + (message["content"] or "")
        elif self.field and spent:
            message[self.field] = text
        if self.counted != "as output":
            usage["completion_tokens_details"] = {"reasoning_tokens": spent}
        usage["completion_tokens"] = reply if self.counted == "total" else reply + spent
        usage["total_tokens"] = usage["prompt_tokens"] + reply + spent


def token_limit(request: Body) -> int:
    return int(request.get("max_tokens") or request.get("max_completion_tokens") or 0)


@dataclass
class Loopback:
    """A server, the requests it got, and how it responds.

    Attributes:
        respond: returns the reply to a request.
        model: the model name in responses; by default the one requested.
        listed: the names in its list of models.
        model_list: called before that list is sent; a response it returns is sent instead.
        finish_reason: the finish reason of replies.
        delay: seconds before each response.
        fault: called with the request and its number; a response it returns is sent instead of an
            answer.
        rejection: returns the error message if a request is rejected, else "".
        reasoning: how its model reasons, if it does.
        hides_usage: whether the answer to a request does not say how many tokens it has.
        requests: every request's JSON, in order of arrival, with the "path" it came on.
        headers: the headers of those requests.
        limits: the token limits of the requests that it answered.
        charged: dollars for all completions that it made.
        dearest: dollars for the dearest of them.
        max_in_flight: the highest number of concurrent requests.
    """

    respond: Responder
    model: str | None = None
    listed: tuple[str, ...] = ("m",)
    model_list: Callable[[web.Request], web.Response | None] = lambda _: None
    finish_reason: str = "stop"
    delay: float = 0.0
    fault: Fault | None = None
    rejection: Responder = lambda _: ""
    reasoning: Reasoning | None = None
    hides_usage: Callable[[Body], bool] = lambda _: False
    requests: list[Body] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    charged: float = 0.0
    dearest: float = 0.0
    max_in_flight: int = 0
    url: str = ""
    _in_flight: int = 0

    async def answer(self, http: web.Request) -> web.StreamResponse:
        self.headers.append(dict(http.headers))
        return await self.answer_to(json.loads(await http.read()) | {"path": http.path})

    async def answer_to(self, request: Body) -> web.StreamResponse:
        self.requests.append(request)
        number = len(self.requests)
        self._in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self._in_flight)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            if self.fault and (response := await self.fault(request, number)):
                return response
            if message := self.rejection(request):
                return error(400, message)
            self.limits.append(token_limit(request))
            return web.json_response(self.completion(request))
        finally:
            self._in_flight -= 1

    def completion(self, request: Body) -> dict[str, Any]:
        text, is_chat = self.respond(request), "messages" in request
        choice: dict[str, Any] = {"index": 0, "finish_reason": self.finish_reason}
        if is_chat:
            choice["message"] = {"role": "assistant", "content": text}
            prompt = sum(len(message["content"]) for message in request["messages"])
        else:
            choice["text"] = text
            prompt = len(request["prompt"])
        usage = {"prompt_tokens": prompt // 4, "completion_tokens": max(1, len(text) // 4)}
        completion: dict[str, Any] = {
            "id": "x",
            "object": "chat.completion" if is_chat else "text_completion",
            "created": 0,
            "model": self.model or request["model"],
            "choices": [choice],
            "usage": usage | {"total_tokens": sum(usage.values())},
        }
        if self.reasoning:
            self.reasoning.add_to(completion, request)
        self._charge(completion["usage"])
        return completion | ({"usage": None} if self.hides_usage(request) else {})

    def _charge(self, usage: Body) -> None:
        cost = usage["prompt_tokens"] * INPUT_PRICE + usage["completion_tokens"] * OUTPUT_PRICE
        self.charged += cost
        self.dearest = max(self.dearest, cost)

    async def models(self, http: web.Request) -> web.Response:
        return self.model_list(http) or web.json_response(self.model_list_json())

    def model_list_json(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": id} for id in self.listed]}


@contextmanager
def serving(source: Loopback | Responder, port: int = 0, **fields: Any) -> Iterator[Loopback]:
    """Serve in a thread while the body runs; ``server.url`` is the base URL.

    A responder is served by a `Loopback` with these fields.
    """
    server = source if isinstance(source, Loopback) else Loopback(source, **fields)
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", server.answer)
    app.router.add_post("/v1/completions", server.answer)
    app.router.add_get("/v1/models", server.models)
    runner = web.AppRunner(app, shutdown_timeout=0.1)

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"

    # At the end the runner cancels what hangs. With a factory, its loop is not that of this thread.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as loop_runner:
        loop = loop_runner.get_loop()
        loop.run_until_complete(start())
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()


@contextmanager
def serving_in_process(source: Loopback | Responder, **fields: Any) -> Iterator[Loopback]:
    """Like `serving`, but only for this process and without HTTP, which takes most of the time."""
    server = source if isinstance(source, Loopback) else Loopback(source, **fields)
    server.url = f"http://127.0.0.1:{next(_PORTS)}/v1"
    send = ServerModel.send

    async def answer(model: ServerModel, method: str, path: str, **options: Any) -> Response:
        if model.info.endpoint != server.url:
            return await send(model, method, path, **options)
        response: Any = web.Response(status=404, body=b"404: Not Found")
        if path == "/models":
            response = web.json_response(server.model_list_json())
        elif path == model.path:
            response = await server.answer_to(options["json"] | {"path": f"/v1{path}"})
        return Response(response.status, None, response.body or b"")

    with patch.object(ServerModel, "send", answer):
        yield server


_PORTS = count(1)  # so that no two servers of a home share an address


def checksum(moves: tuple[str, ...]) -> int:
    """A number computed from the moves, for behavior that varies but is repeatable."""
    return sum(map(ord, "".join(moves)))


def moves_in(request: Body) -> tuple[str, ...]:
    """The moves so far, parsed from any form of the prompt.

    A turn may begin with the task or end with a question or another task. The first turn may
    only be there so that the user begins.
    """
    if "messages" in request:
        turns = [turn["content"] for turn in request["messages"] if turn["role"] != "system"]
    else:
        turns = re.findall(r"^(?:User|Assistant): (.*)$", request["prompt"], re.MULTILINE)
    matches = (re.findall(r"^(?:[a-h][1-8]){2}[nbrq]?$", turn, re.MULTILINE) for turn in turns)
    return tuple(lines[-1] for lines in matches if lines)


def queried_move(request: Body) -> str | None:
    """The move in a question about legality, or None for other prompts."""
    match = re.search(r"is (\S+) a legal move", str(request))
    return match[1] if match else None


CHANGED = ("differ", "variant", "bishops now move exactly as knights", "can no longer move diag")
"""Words that state changed rules; every shipped wording of the default change has some of them."""


def is_changed(request: Body) -> bool:
    """Whether the prompt states changed rules other than the default placebo."""
    return any(words in str(request) for words in CHANGED) and not is_placebo(request)


def is_placebo(request: Body) -> bool:
    """Whether the prompt states the placebo of the default rules."""
    return BISHOPS_AS_KNIGHTS.placebo_change.statement in str(request)


class Broken(web.Response):
    """A response in whose place a function misuses the connection."""

    def __init__(self, misuse: Callable[[asyncio.Transport], Awaitable[None]]) -> None:
        super().__init__()
        self.misuse = misuse

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        assert isinstance(request.transport, asyncio.Transport)
        await self.misuse(request.transport)
        return await super().prepare(request)


async def reset(connection: asyncio.Transport) -> None:
    connection.abort()


async def die_while_sending(connection: asyncio.Transport) -> None:
    connection.write(b'HTTP/1.1 200 OK\r\ncontent-length: 300\r\n\r\n{"choices": [{"mess')
    connection.close()


async def send_forever(byte: bytes, connection: asyncio.Transport) -> None:
    """Send the same byte again and again; nothing at all if it is empty."""
    connection.write(byte and b"HTTP/1.1 200 OK\r\n\r\n")
    while not connection.is_closing():
        connection.write(byte)
        await asyncio.sleep(0.01)


def error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)


def error_when(
    when: Callable[[Body, int], object], message: str = "no", status: int = 500
) -> Fault:
    """A fault for a server: an error if the condition holds for a request and its number."""

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        return error(status, message) if when(request, number) else None

    return fault


def _chat(message: Body, **fields: object) -> web.Response:
    return web.json_response({"model": "m", "choices": [{"message": message}], **fields})


FAULTS: dict[str, Callable[[], web.StreamResponse]] = {
    **{f"HTTP {each}": partial(error, each, "wait") for each in (408, 409, 429, 503, 529)},
    "HTTP 500": lambda: web.Response(status=500, text="<h1>Internal Server Error</h1>"),
    "reset": lambda: Broken(reset),
    "cut off": lambda: Broken(die_while_sending),
    "silence": lambda: Broken(partial(send_forever, b"")),
    "slow drip": lambda: Broken(partial(send_forever, b" ")),
    "empty body": lambda: web.Response(status=200),
    "no JSON": lambda: web.Response(text="<html>welcome</html>"),
    "half of a JSON": lambda: web.Response(text='{"choices": [{"message": {"con'),
    "a JSON list": lambda: web.json_response([1, 2, 3]),
    "JSON nested too deep": lambda: web.Response(text="[" * 100_000),
    "no choice": lambda: web.json_response({"choices": []}),
    "an empty choice": lambda: web.json_response({"choices": [{}]}),
    "choices of null": lambda: web.json_response({"choices": None}),
    "content is a number": lambda: _chat({"content": 7}),
    "a 200 with an error body": lambda: error(200, "the upstream is down"),
    "an error beside a choice": lambda: _chat({"content": ""}, error={"message": "down"}),
}
