"""Batches: the same numbers for half the price, and nothing is paid twice whatever happens."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from batch_server import SINGLY, BatchServer, Disturbs, Line, failed_line
from cant_do_that_anymore.client.batch.client import MIN_BATCH
from cant_do_that_anymore.datasets.pools import Pool
from cant_do_that_anymore.datasets.search import Search, SelectionConfig
from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.providers.local import RandomModel
from cant_do_that_anymore.task.plan import plan_for
from faults import Reset
from planted_models import in_every_fifth
from processes import forked
from testing import (
    POOL,
    Run,
    Serve,
    Spec,
    cdta,
    measure,
    needs_posix,
    positions,
    process_of,
    results_in,
    samples_in,
    serving,
    wavering,
)

SIZE = 15
"""Positions of most runs."""

pytestmark = pytest.mark.usefixtures("impatient")
small = pytest.mark.usefixtures("small_batches")


@pytest.fixture(scope="module")
def at_once() -> Run:
    """The run without batches that all others are to equal."""
    return measure(wavering, dataset=positions(SIZE))


def in_batches(server: BatchServer, size: int = SIZE) -> Run:
    return measure(server, dataset=positions(size), batch=True)


def same(one: Run, other: Run) -> bool:
    """Whether two runs have the same samples, answers, numbers and notes, but for lost answers."""
    notes = [[note for note in run.notes if "got lost" not in note] for run in (one, other)]
    return (one.samples, one.results, notes[0]) == (other.samples, other.results, notes[1])


def spoils(spoilt: Callable[[Line], Any]) -> BatchServer:
    """Spoils every second line of the first batch: more than are sent singly."""
    seen = count()
    return BatchServer(
        wavering,
        spoils=lambda line, number: spoilt(line) if not number and next(seen) % 2 else None,
    )


def ends(status: str) -> BatchServer:
    """The first batch ends in that status."""
    return BatchServer(wavering, ends=lambda number: "completed" if number else status)


def disturbed(disturbs: Disturbs) -> BatchServer:
    return BatchServer(wavering, disturbs=disturbs)


async def doubled(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
    """Faults and broken lines stand beside every answer."""
    if http.path != "/v1/files/output-0/content":
        return None
    answered = [json.loads(line) for line in server.files["output-0"].splitlines()]
    lines = [each for line in answered for each in (failed_line(line), line, line)]
    return web.Response(body="\n\n{broken\n".join(map(json.dumps, lines)).encode())


async def unheard(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
    """The first batch is made, and that is not heard of."""
    if (http.method, http.path) != ("POST", "/v1/batches") or server.batches:
        return None
    server.made(await http.json())
    return Reset()


async def unheard_and_unlisted(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
    if (http.method, http.path) == ("GET", "/v1/batches"):
        return web.json_response({"error": "no such page"}, status=404)
    return await unheard(server, http)


def troubled() -> Disturbs:
    """Whatever is asked for, something else may come."""
    chance = Random(0)

    async def disturb(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
        junk = None if http.path.endswith("content") else web.Response(text="<html>")
        return chance.choice((None, web.Response(status=502), Reset(), junk))

    return disturb


def late() -> Disturbs:
    """What is there is found only at the fourth look."""
    seen = Counter[str]()

    async def disturb(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
        seen[http.path] += http.method == "GET"
        is_late = 0 < seen[http.path] < 4
        return web.json_response({"error": "not found"}, status=404) if is_late else None

    return disturb


def loses(what: str) -> BatchServer:
    """Something of the first batch is gone for good."""

    async def disturb(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
        gone = http.path.startswith(what) and len(server.batches) == 1
        return web.json_response({"error": "gone"}, status=404) if gone else None

    return disturbed(disturb)


LOST = "the provider no longer has the results in output-0; their requests are sent again"
UNKNOWN = f"the provider no longer has the batch batch_0 with {2 * SIZE - SINGLY} requests"
UNSURE = "cannot check whether a batch was sent before"
# By server: how many batches it takes, and the warning where some of it is paid twice.
SERVERS: dict[str, tuple[BatchServer, int, str]] = {
    "as it should be": (BatchServer(wavering), 1, ""),
    "an error in a 200": (spoils(lambda line: failed_line(line, 200)), 2, ""),
    "overload": (spoils(lambda line: failed_line(line, 429, "slow down")), 2, ""),
    "null": (spoils(lambda line: line | {"response": None, "error": None}), 2, ""),
    "no choice": (spoils(lambda line: line | {"response": {"body": {}}}), 2, ""),
    "no body": (spoils(lambda line: line | {"response": {"status_code": 200}}), 2, ""),
    "an error in words": (spoils(lambda line: line | {"error": "server_error"}), 2, ""),
    "of another": (spoils(lambda line: failed_line({"custom_id": "of another"})), 2, ""),
    "a number": (spoils(lambda line: {"custom_id": 7}), 2, ""),
    "a list": (spoils(lambda line: ["no", "result"]), 2, ""),
    "missing": (spoils(lambda line: {}), 2, ""),
    "a fault beside each answer": (disturbed(doubled), 1, ""),
    "failed": (ends("failed"), 2, ""),
    "cancelled": (ends("cancelled"), 2, ""),
    "fewer tokens at once": (BatchServer(wavering, most_lines=SIZE), 3, ""),
    "unheard": (disturbed(unheard), 1, ""),
    "unheard and unlisted": (disturbed(unheard_and_unlisted), 2, UNSURE),
    "in trouble": (disturbed(troubled()), 1, ""),
    "late": (disturbed(late()), 1, ""),
    "a lost batch": (loses("/v1/batches/"), 2, UNKNOWN),
    "lost results": (loses("/v1/files/output-0"), 2, LOST),
}


@small
@pytest.mark.parametrize("kind", SERVERS)
def test_whatever_the_server_does_the_numbers_are_the_same_and_nothing_is_paid_twice(
    kind: str, at_once: Run, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server, batches, warning = SERVERS[kind]
    assert same(in_batches(serve(server)), at_once)
    assert len(server.batches) == batches
    assert bool(server.twice) == bool(warning)
    assert warning in caplog.text


@small
def test_an_expired_batch_and_a_fifth_that_fails_give_the_same_numbers(serve: Serve) -> None:
    seen, server = count(), ends("expired")
    server.spoils = lambda line, number: (
        failed_line(line) if number < 2 and next(seen) % 5 == 0 else None
    )
    run = in_batches(serve(server), 25)
    assert sum(server.charged.values()) == 2 * 25
    assert not server.twice
    assert sum(server.live.values()) <= 2 * SINGLY
    assert len(server.batches) == 3
    assert same(run, measure(wavering, dataset=positions(25)))


@small
def test_a_run_without_batches_takes_the_answers_of_one_with_them(serve: Serve) -> None:
    server = serve(BatchServer(wavering))
    batched = in_batches(server)
    assert sum(server.charged.values()) == 2 * SIZE
    single = measure(server, dataset=positions(SIZE))
    assert sum(server.charged.values()) == 2 * SIZE + 1  # is it the same model?
    assert batched.samples == single.samples


def test_of_hits_that_are_drawn_no_more_are_asked_again_than_are_needed() -> None:
    plan = plan_for(Spec(n=50), RandomModel.info)
    search = Search(SelectionConfig(RandomModel.info, Pool("pool", POOL[:2_000]), plan), 50)
    first = search.next_batch_size
    assert len(list(islice(search.requests(), first))) == first
    for _ in range(first):
        search.advance(True, draws=3)
    assert first == 300
    assert search.next_batch_size == 75


@small
def test_a_dataset_is_found_in_waves_and_little_is_wasted(serve: Serve) -> None:
    server = serve(BatchServer(in_every_fifth))
    run = measure(server, pool=positions(600), n=75, batch=True)
    first, *waves, measured = server.sizes
    assert (first, measured) == (300 - SINGLY, 2 * 75 - SINGLY)
    assert len(waves) == 1
    assert not server.twice
    assert run.dataset.asked
    assert sum(server.charged.values()) - 2 * 75 < 1.4 * run.dataset.asked


KILLS = [
    ("POST", "/v1/files"),
    ("POST", "/v1/batches"),
    ("GET", "/v1/files/output-0/content"),
    ("POST", "/v1/batches"),
    ("GET", "/v1/batches/batch_2"),
]
"""Where the process dies, one time after the other."""


@dataclass
class Deadly(BatchServer):
    """Kills who asks when the next of these is asked for, and before that does what was asked."""

    process: Any = None
    polls: int = 0

    def add_routes(self, app: web.Application) -> None:
        super().add_routes(app)
        self.left = left = list(KILLS)

        @web.middleware
        async def kill(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await handler(request)
            if left and (request.method, request.path) == left[0]:
                left.pop(0)
                os.kill(self.process.pid, signal.SIGKILL)
            return response

        app.middlewares.append(kill)


@needs_posix
def test_repeated_kills_pay_for_nothing_twice(tmp_path: Path, serve: Serve) -> None:
    server, here, there = serve(Deadly(in_every_fifth)), tmp_path / "here", tmp_path / "there"
    pool = positions(600)
    arguments = ("run", "--model", "m", "--pool", pool, "-n", 75, "--quiet", "--base-url")
    deaths = 0
    while server.left:
        server.process = forked(*arguments, server.url, "--batch", "--out", there)
        server.process.start()
        server.process.join(60)
        assert server.process.exitcode == -signal.SIGKILL
        deaths += 1
    cdta(*arguments, server.url, "--batch", "--out", there, code=0)
    assert deaths == len(KILLS)
    assert not server.twice
    with serving(in_every_fifth) as other:
        elsewhere = str(tmp_path / "elsewhere")
        cdta(*arguments, other.url, "--out", here, code=0, CDTA_HOME=elsewhere)
    assert results_in(here) == results_in(there)
    assert samples_in(here) == samples_in(there)


@needs_posix
def test_ctrl_c_leaves_the_batch_and_says_how_to_come_back(tmp_path: Path, serve: Serve) -> None:
    server = serve(BatchServer(wavering, polls=10**9))
    run = ("run", "--base-url", server.url, "--model", "m", "--dataset", positions(30), "--batch")
    process = process_of(*run, "--out", tmp_path / "run")
    while not server.looks:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=30)
    assert process.returncode == 1
    assert message == (
        "cdta: stopped; the batch batch_0 continues at the provider. Run the same command again "
        "to continue\n"
    )
    server.polls = 0
    cdta(*run, "--out", tmp_path / "run", code=0)
    assert (server.sizes, server.twice) == ([2 * 30 - MIN_BATCH], [])


@small
def test_when_no_batch_works_the_answers_so_far_are_saved(at_once: Run, serve: Serve) -> None:
    server = serve(BatchServer(wavering, ends=lambda _: "failed"))
    sentence = r"13 of 15 samples have no answer \(the first: no answer in 3 batches; the last"
    with pytest.raises(Incomplete, match=sentence):
        in_batches(server)
    assert len(server.batches) == 3
    server.ends = lambda _: "completed"
    assert same(in_batches(server), at_once)
    assert not server.twice
