"""An OpenAI-compatible server on the loopback interface that answers by a given function."""

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol, TypeVar, overload
from unittest.mock import patch

from aiohttp import web

from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.providers.openai_api import ServerModel
from cant_do_that_anymore.providers.responses import Response

Body = dict[str, Any]
Responder = Callable[[Body], str]
Fault = Callable[[Body, int], Awaitable[web.StreamResponse | None]]


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
        requests: every request's JSON, in order of arrival, with the "path" it came on.
        headers: the headers of those requests.
        max_in_flight: the highest number of concurrent requests.
    """

    respond: Responder
    model: str | None = None
    listed: tuple[str, ...] = ("m",)
    model_list: Callable[[web.Request], web.Response | None] = lambda _: None
    finish_reason: str = "stop"
    delay: float = 0.0
    fault: Fault | None = None
    requests: list[Body] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
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
        return {
            "id": "x",
            "object": "chat.completion" if is_chat else "text_completion",
            "created": 0,
            "model": self.model or request["model"],
            "choices": [choice],
            "usage": usage | {"total_tokens": sum(usage.values())},
        }

    async def models(self, http: web.Request) -> web.Response:
        return self.model_list(http) or web.json_response(self.model_list_json())

    def model_list_json(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": id} for id in self.listed]}

    def add_routes(self, app: web.Application) -> None:
        """Add the endpoints of the server."""
        app.router.add_post("/v1/chat/completions", self.answer)
        app.router.add_post("/v1/completions", self.answer)
        app.router.add_get("/v1/models", self.models)


class Server(Protocol):
    """Anything that `serving` can serve."""

    url: str

    def add_routes(self, app: web.Application) -> None:
        """Add its endpoints."""


Served = TypeVar("Served", bound=Server)


@overload
def serving(source: Served, port: int = 0) -> AbstractContextManager[Served]: ...


@overload
def serving(
    source: Responder, port: int = 0, **fields: Any
) -> AbstractContextManager[Loopback]: ...


@contextmanager
def serving(source: Any, port: int = 0, **fields: Any) -> Iterator[Any]:
    """Serve in a thread while the body runs; ``server.url`` is the base URL.

    A responder is served by a `Loopback` with these fields.
    """
    server = source if hasattr(source, "add_routes") else Loopback(source, **fields)
    loop = asyncio.new_event_loop()
    app = web.Application(client_max_size=2**26)
    server.add_routes(app)
    runner = web.AppRunner(app, shutdown_timeout=0.1)

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"

    async def stop_hanging() -> None:
        hanging = asyncio.all_tasks() - {asyncio.current_task()}
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)

    loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(stop_hanging())
        loop.close()


@contextmanager
def serving_in_process(source: Responder | Loopback, **fields: Any) -> Iterator[Loopback]:
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
    text = request["messages"][-1]["content"] if "messages" in request else request["prompt"]
    match = re.search(r"is (\S+) a legal move", text)
    return match[1] if match else None


DEFAULT_CHANGE = ("bishops now move exactly as knights", "can no longer move diagonally")
"""Words of the default change; every shipped wording has one of them."""


def is_changed(request: Body) -> bool:
    """Whether the prompt states changed rules other than the default placebo."""
    text = request["messages"][0]["content"] if "messages" in request else request["prompt"]
    is_told = any(words in text for words in ("differ", "variant"))
    states_it = any(words in str(request) for words in DEFAULT_CHANGE)
    return (is_told or states_it) and not is_placebo(request)


def is_placebo(request: Body) -> bool:
    """Whether the prompt states the placebo of the default rules."""
    return BISHOPS_AS_KNIGHTS.placebo_change.statement in str(request)
