"""An OpenAI-compatible server that costs next to nothing, in a process of its own.

It plays the special move of a shipped position in a given share of the questions, the same ones
every time, and can be told to be slow or to think. ``GET /stats`` says what it has seen.

    python benchmarks/instant.py --port 8000 --delay 0.3 --thoughts 4000
"""

import argparse
import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, cast

from cant_do_that_anymore.datasets.storage import common_positions
from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_SENTENCES = (
    "Let me look at the position once more before I decide.",
    "White has developed the knights and wants to castle next.",
    "The rules say that this piece moves in another way now, so I must be careful.",
    "One idea is Bc4, another one is Nf3, and d4 takes the centre at once.",
    "After g1f3 b8c6 the pawn on e5 is defended and nothing is lost.",
    "But wait: is that move still legal here?",
    "The queen on d1 has no good square yet, and Qh5 is too early.",
    "I should answer with the move alone, in the same notation as before.",
)


class Stats:
    def __init__(self) -> None:
        self.requests = self.in_flight = self.most_in_flight = 0
        self.first_at = self.second_at = self.last_at = 0.0


class Connection(asyncio.Protocol):
    """One connection of a client that waits for each response."""

    stats = Stats()
    special: dict[tuple[str, ...], str]
    common: set[tuple[str, ...]]
    thoughts: str
    options: argparse.Namespace

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = _LENGTH.search(head)
        if length and len(body) < int(length[1]):
            return
        self.buffer = b""
        if head.startswith(b"GET /stats"):
            self.send(vars(self.stats))
        elif head.startswith(b"GET"):
            self.send({"data": [{"id": "served"}]})
        else:
            self.begin(body)

    def begin(self, body: bytes) -> None:
        stats = self.stats
        stats.requests += 1
        stats.second_at = stats.second_at or (time.time() if stats.first_at else 0.0)
        stats.first_at = stats.first_at or time.time()
        stats.in_flight += 1
        stats.most_in_flight = max(stats.most_in_flight, stats.in_flight)
        if self.options.delay:
            asyncio.get_running_loop().call_later(self.options.delay, self.finish, body)
        else:
            self.finish(body)

    def finish(self, body: bytes) -> None:
        self.stats.in_flight -= 1
        self.stats.last_at = time.time()
        self.send(self.completion(body))

    def completion(self, body: bytes) -> dict[str, Any]:
        request = json.loads(body)
        _, *turns = (turn["content"] for turn in request["messages"])
        moves = tuple(turn.split(maxsplit=1)[0] for turn in turns)
        plays_it = self.plays_it(moves, request)
        if turns and "a legal move" in turns[-1]:
            text = "no" if plays_it else "yes"
        else:
            text = self.special.get(moves, "a2a3") if plays_it else "a2a3"
        message = {"role": "assistant", "content": text}
        thoughts = self.thoughts_on(request)
        if thoughts and len(thoughts) % 2:
            message["content"] = f"<think>\n{thoughts}\n</think>\n\n{text}"
        elif thoughts:
            message["reasoning_content"] = thoughts
        replied = len(thoughts) // 4 + 4
        return {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": self.options.name or request["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {
                "prompt_tokens": 300,
                "completion_tokens": replied,
                "total_tokens": 300 + replied,
            },
        }

    def thoughts_on(self, request: dict[str, Any]) -> str:
        """From half as long as they are in the mean to half as long again."""
        asked = blake2b(str(request["messages"]).encode(), digest_size=8).digest()
        mean, coin = self.options.thoughts, int.from_bytes(asked)
        return self.thoughts[coin % 997 :][: mean // 2 + coin % (mean + 1)]

    def plays_it(self, moves: tuple[str, ...], request: dict[str, Any]) -> bool:
        """Where it has the habit; when it is measured, and when the rules change, less often."""
        shares = [self.options.hits_on_common if moves in self.common else self.options.hits]
        if request["temperature"]:
            shares.append(self.options.habit)
        if BISHOPS_AS_KNIGHTS.statement in request["messages"][0]["content"]:
            shares.append(self.options.keeps)
        coins = blake2b(" ".join(moves).encode(), digest_size=24).digest()
        return all(
            int.from_bytes(coins[8 * number : 8 * (number + 1)]) < share * 2**64
            for number, share in enumerate(shares)
        )

    def send(self, content: object) -> None:
        if not self.transport.is_closing():
            body = json.dumps(content).encode()
            head = (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            )
            self.transport.write(head % len(body) + body)


@contextmanager
def instant(
    *,
    name: str = "",
    delay: float = 0.0,
    thoughts: int = 0,
    hits: float = 0.9,
    hits_on_common: float | None = None,
    habit: float = 1.0,
    keeps: float = 1.0,
) -> Iterator[str]:
    """Run the server in another process; yields its address.

    Args:
        name: how its model calls itself; as it is asked for, if not given.
        delay: of every answer, in seconds.
        thoughts: how many letters it thinks before it replies, in the mean; in every other answer
            in a field of their own, else between tags.
        hits: the share of positions with the habit.
        hits_on_common: the same in the common pool.
        habit: how often it plays a habit above temperature 0.
        keeps: how many of these it keeps when the rules change.
    """
    options = [f"--name={name}", f"--delay={delay}", f"--thoughts={thoughts}", f"--hits={hits}"]
    options += [f"--habit={habit}", f"--keeps={keeps}"]
    options += [f"--hits-on-common={hits if hits_on_common is None else hits_on_common}"]
    server = subprocess.Popen([sys.executable, __file__, *options], stdout=subprocess.PIPE)
    assert server.stdout
    try:
        yield server.stdout.readline().decode().strip()
    finally:
        server.terminate()
        server.wait()


async def serve(options: argparse.Namespace) -> None:
    Connection.options = options
    Connection.common = {position.moves for position in common_positions()}
    Connection.special = {p.moves: p.special_moves[0] for p in shipped_pool("pool")}
    sentences = random.Random(0).choices(_SENTENCES, k=options.thoughts // 20 + 40)
    Connection.thoughts = " ".join(sentences)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", options.port, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--name", default="", help="what it calls itself")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--thoughts", type=int, default=0, help="letters, in the mean")
    parser.add_argument("--hits", type=float, default=0.9, help="share of special moves")
    parser.add_argument("--hits-on-common", type=float, default=0.9, help="in the common pool")
    parser.add_argument("--habit", type=float, default=1.0, help="how often it plays one")
    parser.add_argument(
        "--keeps", type=float, default=1.0, help="under the changed rules, of these"
    )
    asyncio.run(serve(parser.parse_args()))
