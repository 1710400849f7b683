"""An OpenAI-compatible server that answers at once, in its own process.

It plays the usual move in nine of ten shipped positions, always the same ones. It can also answer
late. ``GET /stats`` returns counts and times of requests.

    python benchmarks/instant_server.py --port 8000 --delay 0.3
"""

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, cast

from cant_do_that_anymore.habits.chess.position import shipped_pool

CONTENT_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
HIT_RATE = 0.9


class Stats:
    """Counts and times of the requests so far."""

    def __init__(self) -> None:
        self.requests = self.in_flight = self.max_in_flight = 0
        self.first_at = self.second_at = self.last_at = 0.0


class Connection(asyncio.Protocol):
    """A connection of a client that waits for each response before its next request."""

    stats = Stats()
    usual: dict[tuple[str, ...], str]
    options: argparse.Namespace

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = CONTENT_LENGTH.search(head)
        if length and len(body) < int(length[1]):
            return
        self.buffer = b""
        if head.startswith(b"GET /stats"):
            self.send(vars(self.stats))
        elif head.startswith(b"GET"):
            self.send({"data": [{"id": "served"}]})
        else:
            self.handle(body)

    def handle(self, body: bytes) -> None:
        stats = self.stats
        stats.requests += 1
        stats.second_at = stats.second_at or (time.time() if stats.first_at else 0.0)
        stats.first_at = stats.first_at or time.time()
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
        if self.options.delay:
            asyncio.get_running_loop().call_later(self.options.delay, self.respond, body)
        else:
            self.respond(body)

    def respond(self, body: bytes) -> None:
        self.stats.in_flight -= 1
        self.stats.last_at = time.time()
        self.send(self.completion(body))

    def completion(self, body: bytes) -> dict[str, Any]:
        request = json.loads(body)
        _, *turns = (turn["content"] for turn in request["messages"])
        moves = tuple(turn.split(maxsplit=1)[0] for turn in turns)
        digest = blake2b(" ".join(moves).encode(), digest_size=8).digest()
        has_habit = int.from_bytes(digest) < HIT_RATE * 2**64
        text = self.usual.get(moves, "a2a3") if has_habit else "a2a3"
        message = {"role": "assistant", "content": text}
        return {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": self.options.name or request["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 300, "completion_tokens": 4, "total_tokens": 304},
        }

    def send(self, content: object) -> None:
        if not self.transport.is_closing():
            body = json.dumps(content).encode()
            head = (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            )
            self.transport.write(head % len(body) + body)


@contextmanager
def instant_server(*, name: str = "", delay: float = 0.0) -> Iterator[str]:
    """Run the server in another process and yield its address.

    Args:
        name: model name in responses; by default, the name in the request.
        delay: seconds before each answer.
    """
    options = {"name": name, "delay": delay}
    arguments = [f"--{option}={value}" for option, value in options.items()]
    server = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE)
    assert server.stdout
    try:
        yield server.stdout.readline().decode().strip()
    finally:
        server.terminate()
        server.wait()


async def serve(options: argparse.Namespace) -> None:
    """Serve until SIGTERM; print the address first."""
    Connection.options = options
    Connection.usual = {p.moves: p.usual[0] for p in shipped_pool("pool")}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", options.port, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0, help="0 for any free port")
    parser.add_argument("--name", default="", help="model name in responses")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
