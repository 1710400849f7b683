"""A proxy for any OpenAI-compatible server that injects faults by a seeded schedule.

    python tests/fault_proxy.py --before http://localhost:8000/v1 --faults 0.05 --seed 1

It prints the address to use in place of the server's. Whatever has a body may fail, in every way
that `faults` knows; all else is passed on as it is. Whether a request fails, and how, follows from
the seed, its body, and how often that body has come: not from the clock or from other requests, so
the same work meets the same faults again. ``GET /faults`` says what was done so far.
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

PASSED_ON = "passed on"
_OF_THE_CONNECTION = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


@dataclass
class Schedule:
    """Which requests fail, and how.

    Attributes:
        share: of all requests.
        kinds: of fault, by name.
    """

    share: float
    seed: int = 0
    kinds: Sequence[str] = tuple(FAULTS)
    _seen: Counter[bytes] = field(default_factory=Counter)

    def fault(self, body: bytes) -> str | None:
        """The kind of fault that a request with this body meets now, if any."""
        which = blake2b(body, digest_size=16).digest()
        self._seen[which] += 1
        chance = Random(f"{self.seed} {which.hex()} {self._seen[which]}")
        return chance.choice(self.kinds) if chance.random() < self.share else None


@dataclass
class FaultProxy:
    """What stands before a server.

    Attributes:
        before: the server's address.
        schedule: which requests fail.
        latency: seconds that everything takes longer.
        patience: seconds after which what has no end (silence, slow drip) ends in a reset; None to
            leave that to the client.
        done: how many requests with a body met which fault, or were passed on.
        url: where it answers, in place of the server.
    """

    before: str
    schedule: Schedule
    latency: float = 0.0
    patience: float | None = None
    done: Counter[str] = field(default_factory=Counter)
    url: str = ""

    def add_routes(self, app: web.Application) -> None:
        """It answers to everything."""
        app.cleanup_ctx.append(self._connected)
        app.router.add_get("/faults", self._tell)
        app.router.add_route("*", "/{path:.*}", self._answer)

    async def _connected(self, app: web.Application) -> AsyncIterator[None]:
        unlimited = aiohttp.TCPConnector(limit=0)
        never = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=unlimited, timeout=never, auto_decompress=False
        ) as self._session:
            yield

    async def _tell(self, http: web.Request) -> web.Response:
        return web.json_response(self.done)

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        body = await http.read()
        await asyncio.sleep(self.latency)
        if not body:
            return await self._passed_on(http, body)
        fault = self.schedule.fault(body)
        self.done[fault or PASSED_ON] += 1
        if not fault:
            return await self._passed_on(http, body)
        if fault in ENDLESS and self.patience is not None and http.transport:
            asyncio.get_running_loop().call_later(self.patience, http.transport.abort)
        return FAULTS[fault]()

    async def _passed_on(self, http: web.Request, body: bytes) -> web.Response:
        to = URL(self.before).origin().join(http.rel_url)
        request = self._session.request(
            http.method, to, data=body, headers=_kept(http.headers), allow_redirects=False
        )
        try:
            async with request as reply:
                return web.Response(
                    body=await reply.read(), status=reply.status, headers=_kept(reply.headers)
                )
        except aiohttp.ClientError as problem:
            return error(502, f"{self.before} does not answer: {problem}")


def _kept(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Those that say something of more than one connection."""
    return [pair for pair in headers.items() if pair[0].lower() not in _OF_THE_CONNECTION]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--before", required=True, metavar="URL", help="the server's address")
    parser.add_argument("--faults", type=float, default=0.05, help="the share that fails")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=FAULTS, default=tuple(FAULTS), metavar="KIND")
    parser.add_argument("--latency", type=float, default=0.0, help="in seconds")
    parser.add_argument("--patience", type=float, help="seconds until a silence ends in a reset")
    parser.add_argument("--port", type=int, default=0)
    told = parser.parse_args()
    if not told.before.startswith(("http://", "https://")):
        parser.error(f"--before takes an address such as http://host/v1, not {told.before!r}")
    if not 0 <= told.faults <= 1:
        parser.error(f"--faults takes a share from 0 to 1, not {told.faults}")
    if not 0 <= told.port < 2**16:
        parser.error(f"--port takes a number from 0 to 65535, not {told.port}")
    schedule = Schedule(told.faults, told.seed, told.kinds)
    with serving(
        FaultProxy(told.before, schedule, told.latency, told.patience), told.port
    ) as proxy:
        print(URL(proxy.url).with_path(URL(told.before).path), flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        try:
            signal.pause()
        except KeyboardInterrupt:
            for kind, times in proxy.done.most_common():
                print(f"{times:8,}  {kind}")


if __name__ == "__main__":
    main()
