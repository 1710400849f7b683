"""Server faults, for the loopback server."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

Body = dict[str, Any]


class Reset(web.Response):
    """The connection is reset without a response."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        assert request.transport
        request.transport.abort()
        return await super().prepare(request)


class CutOff(web.Response):
    """The server dies while sending the response."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        transport.write(b'HTTP/1.1 200 OK\r\ncontent-length: 300\r\n\r\n{"choices": [{"mess')
        transport.close()
        return await super().prepare(request)


class Silence(web.Response):
    """The server accepts the request and never responds."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        while not _is_disconnected(request):
            await asyncio.sleep(0.01)
        return await super().prepare(request)


class Drip(web.StreamResponse):
    """The server sends one byte at a time, forever."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        writer = await super().prepare(request)
        while not _is_disconnected(request):
            await self.write(b" ")
            await asyncio.sleep(0.01)
        return writer


def _is_disconnected(request: web.BaseRequest) -> bool:
    """Whether the client has disconnected."""
    return request.transport is None or request.transport.is_closing()


def error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)


def error_when(
    when: Callable[[Body, int], object], message: str = "no", status: int = 500
) -> Callable[[Body, int], Awaitable[web.StreamResponse | None]]:
    """A fault for a server: an error if the condition holds for a request and its number."""

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        return error(status, message) if when(request, number) else None

    return fault


def _chat(message: Body, **fields: object) -> web.Response:
    return web.json_response({"model": "m", "choices": [{"message": message}], **fields})


FAULTS: dict[str, Callable[[], web.StreamResponse]] = {
    **{f"HTTP {each}": partial(error, each, "wait") for each in (408, 409, 429, 503, 529)},
    "HTTP 500": lambda: web.Response(status=500, text="<h1>Internal Server Error</h1>"),
    "reset": Reset,
    "cut off": CutOff,
    "silence": Silence,
    "slow drip": Drip,
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
