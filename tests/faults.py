"""Server faults, for the loopback server."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

Body = dict[str, Any]


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
