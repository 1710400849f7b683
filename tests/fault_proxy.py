"""A proxy for any OpenAI-compatible server that injects faults by a seeded schedule.

    python tests/fault_proxy.py --before http://localhost:8000/v1 --faults 0.05 --seed 1

It prints the address to use instead of the server's. Every request with a body may fail, in any way
that `faults` knows; other requests are forwarded. Whether and how a request fails depends only on
the seed, its body, and how often that body was sent, not on the time or on other requests, so the
same requests meet the same faults again. ``GET /faults`` returns the counts so far.
"""

import argparse
import asyncio
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random

import aiohttp
from aiohttp import web
from yarl import URL

from faults import ENDLESS, FAULTS, error
from loopback import serving

FORWARDED = "forwarded"
_HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


@dataclass
class Schedule:
    """Which requests fail, and how.

    Attributes:
        share: the share of requests that fail.
        kinds: the kinds of fault, by name.
    """

    share: float
    seed: int = 0
    kinds: Sequence[str] = tuple(FAULTS)
    _seen: Counter[bytes] = field(default_factory=Counter)

    def fault(self, body: bytes) -> str | None:
        """The kind of fault for the next request with this body, if any."""
        digest = blake2b(body, digest_size=16).digest()
        self._seen[digest] += 1
        random = Random(f"{self.seed} {digest.hex()} {self._seen[digest]}")
        return random.choice(self.kinds) if random.random() < self.share else None


@dataclass
class FaultProxy:
    """A proxy in front of a server.

    Attributes:
        upstream: the server's address.
        schedule: which requests fail.
        latency: seconds added to every request.
        patience: seconds until an endless fault (silence, slow drip) becomes a reset; None to leave
            that to the client.
        counts: the number of requests with a body per fault, and of those forwarded.
        url: the address of the proxy.
    """

    upstream: str
    schedule: Schedule
    latency: float = 0.0
    patience: float | None = None
    counts: Counter[str] = field(default_factory=Counter)
    url: str = ""

    def add_routes(self, app: web.Application) -> None:
        """Handle all paths."""
        app.cleanup_ctx.append(self._client_session)
        app.router.add_get("/faults", self._send_counts)
        app.router.add_route("*", "/{path:.*}", self._handle)

    async def _client_session(self, app: web.Application) -> AsyncIterator[None]:
        unlimited = aiohttp.TCPConnector(limit=0)
        no_timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=unlimited, timeout=no_timeout, auto_decompress=False
        ) as self._session:
            yield

    async def _send_counts(self, http: web.Request) -> web.Response:
        return web.json_response(self.counts)

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        body = await http.read()
        await asyncio.sleep(self.latency)
        if not body:
            return await self._forward(http, body)
        fault = self.schedule.fault(body)
        self.counts[fault or FORWARDED] += 1
        if not fault:
            return await self._forward(http, body)
        if fault in ENDLESS and self.patience is not None and http.transport:
            asyncio.get_running_loop().call_later(self.patience, http.transport.abort)
        return FAULTS[fault]()

    async def _forward(self, http: web.Request, body: bytes) -> web.Response:
        target = URL(self.upstream).origin().join(http.rel_url)
        request = self._session.request(
            http.method, target, data=body, headers=_end_to_end(http.headers), allow_redirects=False
        )
        try:
            async with request as response:
                content, headers = await response.read(), _end_to_end(response.headers)
                return web.Response(body=content, status=response.status, headers=headers)
        except aiohttp.ClientError as problem:
            return error(502, f"{self.upstream} does not answer: {problem}")


def _end_to_end(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Drop the headers that are about one connection only."""
    return [pair for pair in headers.items() if pair[0].lower() not in _HOP_BY_HOP]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--before", required=True, metavar="URL", help="the server's address")
    parser.add_argument("--faults", type=float, default=0.05, help="share of failing requests")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=FAULTS, default=tuple(FAULTS), metavar="KIND")
    parser.add_argument("--latency", type=float, default=0.0, help="in seconds")
    parser.add_argument("--patience", type=float, help="seconds until a hanging request is reset")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    if not options.before.startswith(("http://", "https://")):
        parser.error(f"--before takes an address such as http://host/v1, not {options.before!r}")
    if not 0 <= options.faults <= 1:
        parser.error(f"--faults takes a share from 0 to 1, not {options.faults}")
    if not 0 <= options.port < 2**16:
        parser.error(f"--port takes a number from 0 to 65535, not {options.port}")
    schedule = Schedule(options.faults, options.seed, options.kinds)
    with serving(
        FaultProxy(options.before, schedule, options.latency, options.patience), options.port
    ) as proxy:
        print(URL(proxy.url).with_path(URL(options.before).path), flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        try:
            signal.pause()
        except KeyboardInterrupt:
            for kind, times in proxy.counts.most_common():
                print(f"{times:8,}  {kind}")


if __name__ == "__main__":
    main()
