"""An OpenAI-compatible server that answers at once, in its own process.

It plays the special move of a shipped position in a given share of the positions, always the same
ones. It can also answer late, or reason first. ``GET /stats`` returns counts and times of requests.

    python benchmarks/instant_server.py --port 8000 --delay 0.3 --reasoning-chars 4000
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

CONTENT_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
REASONING_SENTENCES = (
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
    """Counts and times of the requests so far."""

    def __init__(self) -> None:
        self.requests = self.in_flight = self.max_in_flight = 0
        self.first_at = self.second_at = self.last_at = 0.0


class Connection(asyncio.Protocol):
    """A connection of a client that waits for each response before its next request."""

    stats = Stats()
    special_moves: dict[tuple[str, ...], str]
    common_positions: set[tuple[str, ...]]
    reasoning: str
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
        plays_special = self.plays_special(moves, request)
        if turns and "a legal move" in turns[-1]:
            text = "no" if plays_special else "yes"
        else:
            text = self.special_moves.get(moves, "a2a3") if plays_special else "a2a3"
        message = {"role": "assistant", "content": text}
        reasoning = self.reason_about(request)
        if reasoning and len(reasoning) % 2:
            message["content"] = f"<think>\n{reasoning}\n</think>\n\n{text}"
        elif reasoning:
            message["reasoning_content"] = reasoning
        completion_tokens = len(reasoning) // 4 + 4
        return {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": self.options.name or request["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {
                "prompt_tokens": 300,
                "completion_tokens": completion_tokens,
                "total_tokens": 300 + completion_tokens,
            },
        }

    def reason_about(self, request: dict[str, Any]) -> str:
        """Return a reasoning text, from half the mean length to one and a half times as long."""
        digest = blake2b(str(request["messages"]).encode(), digest_size=8).digest()
        mean, number = self.options.reasoning_chars, int.from_bytes(digest)
        return self.reasoning[number % 997 :][: mean // 2 + number % (mean + 1)]

    def plays_special(self, moves: tuple[str, ...], request: dict[str, Any]) -> bool:
        """Whether the model has the habit here, plays it now, and keeps it under these rules."""
        is_common = moves in self.common_positions
        shares = [self.options.common_hit_rate if is_common else self.options.hit_rate]
        if request["temperature"]:
            shares.append(self.options.habit_rate)
        if BISHOPS_AS_KNIGHTS.statement in request["messages"][0]["content"]:
            shares.append(self.options.kept_share)
        digest = blake2b(" ".join(moves).encode(), digest_size=24).digest()
        return all(
            int.from_bytes(digest[8 * number : 8 * (number + 1)]) < share * 2**64
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
def instant_server(
    *,
    name: str = "",
    delay: float = 0.0,
    reasoning_chars: int = 0,
    hit_rate: float = 0.9,
    common_hit_rate: float | None = None,
    habit_rate: float = 1.0,
    kept_share: float = 1.0,
) -> Iterator[str]:
    """Run the server in another process and yield its address.

    Args:
        name: model name in responses; by default, the name in the request.
        delay: seconds before each answer.
        reasoning_chars: mean length of the reasoning before a reply. Every other answer has it in
            its own field, the others between tags.
        hit_rate: share of positions where the model has the habit.
        common_hit_rate: the same in the common pool; by default, equal to ``hit_rate``.
        habit_rate: how often the model plays a habit above temperature 0.
        kept_share: share of these habits that the model keeps under the changed rules.
    """
    options = {
        "name": name,
        "delay": delay,
        "reasoning-chars": reasoning_chars,
        "hit-rate": hit_rate,
        "common-hit-rate": hit_rate if common_hit_rate is None else common_hit_rate,
        "habit-rate": habit_rate,
        "kept-share": kept_share,
    }
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
    Connection.common_positions = {position.moves for position in common_positions()}
    Connection.special_moves = {p.moves: p.special_moves[0] for p in shipped_pool("pool")}
    sentences = random.Random(0).choices(REASONING_SENTENCES, k=options.reasoning_chars // 20 + 40)
    Connection.reasoning = " ".join(sentences)
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
    parser.add_argument(
        "--reasoning-chars", type=int, default=0, help="mean length of the reasoning"
    )
    parser.add_argument(
        "--hit-rate", type=float, default=0.9, help="share of positions with the habit"
    )
    parser.add_argument(
        "--common-hit-rate", type=float, default=0.9, help="the same in the common pool"
    )
    parser.add_argument(
        "--habit-rate", type=float, default=1.0, help="how often it plays a habit above T = 0"
    )
    parser.add_argument(
        "--kept-share", type=float, default=1.0, help="share kept under the changed rules"
    )
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
