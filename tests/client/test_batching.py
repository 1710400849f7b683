"""Batches give the same numbers for half the price, and no answer is paid for twice."""

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

from batch_server import SINGLE_REQUESTS, BatchServer, Line, RequestFault, failed_line
from cant_do_that_anymore.client.batch.client import MIN_BATCH
from cant_do_that_anymore.datasets.pools import Pool
from cant_do_that_anymore.datasets.search import Search, SelectionConfig
from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.providers.local import RandomModel
from cant_do_that_anymore.task.plan import plan_for
from faults import Reset
from planted_models import habit_in_every_fifth
from processes import forked_cdta
from testing import (
    POOL,
    Run,
    Serve,
    Spec,
    cdta,
    measure,
    needs_posix,
    positions,
    results_in,
    samples_in,
    serving,
    start_cdta,
    wavering,
)

SIZE = 15
"""Number of positions in most runs."""

pytestmark = pytest.mark.usefixtures("no_retry_delay")
small = pytest.mark.usefixtures("small_batches")


@pytest.fixture(scope="module")
def unbatched() -> Run:
    """The run without batches that all others must equal."""
    return measure(wavering, dataset=positions(SIZE))


def measure_in_batches(server: BatchServer, size: int = SIZE) -> Run:
    return measure(server, dataset=positions(size), batch=True)


def are_equal(first: Run, second: Run) -> bool:
    """Whether two runs have the same samples, results and notes, except notes on lost answers."""
    notes = [[note for note in run.notes if "got lost" not in note] for run in (first, second)]
    return (first.samples, first.results, notes[0]) == (second.samples, second.results, notes[1])


def spoiling(spoil: Callable[[Line], Any]) -> BatchServer:
    """Spoils every second line of the first batch, which is more lines than are sent singly."""
    line_numbers = count()
    return BatchServer(
        wavering,
        line_fault=lambda line, number: (
            spoil(line) if not number and next(line_numbers) % 2 else None
        ),
    )


def ending(status: str) -> BatchServer:
    """The first batch ends with this status."""
    return BatchServer(wavering, final_status=lambda number: "completed" if number else status)


def server_with(fault: RequestFault) -> BatchServer:
    return BatchServer(wavering, request_fault=fault)


async def repeat_answers(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
    """Add an error, a repetition and broken lines to every answer."""
    if http.path != "/v1/files/output-0/content":
        return None
    answered = [json.loads(line) for line in server.files["output-0"].splitlines()]
    lines = [result for line in answered for result in (failed_line(line), line, line)]
    return web.Response(body="\n\n{broken\n".join(map(json.dumps, lines)).encode())


async def create_then_reset(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
    """Create the first batch, but reset the connection."""
    if (http.method, http.path) != ("POST", "/v1/batches") or server.batches:
        return None
    server.create_batch(await http.json())
    return Reset()


async def create_unlisted(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
    if (http.method, http.path) == ("GET", "/v1/batches"):
        return web.json_response({"error": "no such page"}, status=404)
    return await create_then_reset(server, http)


def flaky() -> RequestFault:
    """Any request may fail."""
    chance = Random(0)

    async def fail(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
        junk = None if http.path.endswith("content") else web.Response(text="<html>")
        return chance.choice((None, web.Response(status=502), Reset(), junk))

    return fail


def delayed() -> RequestFault:
    """Nothing is found before the fourth request for it."""
    lookups = Counter[str]()

    async def hide(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
        lookups[http.path] += http.method == "GET"
        is_hidden = 0 < lookups[http.path] < 4
        return web.json_response({"error": "not found"}, status=404) if is_hidden else None

    return hide


def losing(path_prefix: str) -> BatchServer:
    """Part of the first batch is gone for good."""

    async def lose(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
        is_gone = http.path.startswith(path_prefix) and len(server.batches) == 1
        return web.json_response({"error": "gone"}, status=404) if is_gone else None

    return server_with(lose)


LOST_RESULTS = "the provider no longer has the results in output-0; their requests are sent again"
LOST_BATCH = (
    f"the provider no longer has the batch batch_0 with {2 * SIZE - SINGLE_REQUESTS} requests"
)
UNLISTED = "cannot check whether a batch was sent before"
# The server, the number of batches it gets, and the warning if some answers are paid for twice.
SERVERS: dict[str, tuple[BatchServer, int, str]] = {
    "no fault": (BatchServer(wavering), 1, ""),
    "error with status 200": (spoiling(lambda line: failed_line(line, 200)), 2, ""),
    "overload": (spoiling(lambda line: failed_line(line, 429, "slow down")), 2, ""),
    "null response": (spoiling(lambda line: line | {"response": None, "error": None}), 2, ""),
    "no choices": (spoiling(lambda line: line | {"response": {"body": {}}}), 2, ""),
    "no body": (spoiling(lambda line: line | {"response": {"status_code": 200}}), 2, ""),
    "error as text": (spoiling(lambda line: line | {"error": "server_error"}), 2, ""),
    "unknown id": (spoiling(lambda line: failed_line({"custom_id": "of another"})), 2, ""),
    "number as id": (spoiling(lambda line: {"custom_id": 7}), 2, ""),
    "list": (spoiling(lambda line: ["no", "result"]), 2, ""),
    "missing": (spoiling(lambda line: {}), 2, ""),
    "repeated answers": (server_with(repeat_answers), 1, ""),
    "failed": (ending("failed"), 2, ""),
    "cancelled": (ending("cancelled"), 2, ""),
    "token limit per batch": (BatchServer(wavering, max_lines=SIZE), 3, ""),
    "connection reset": (server_with(create_then_reset), 1, ""),
    "reset and unlisted": (server_with(create_unlisted), 2, UNLISTED),
    "flaky": (server_with(flaky()), 1, ""),
    "delayed": (server_with(delayed()), 1, ""),
    "lost batch": (losing("/v1/batches/"), 2, LOST_BATCH),
    "lost results": (losing("/v1/files/output-0"), 2, LOST_RESULTS),
}


@small
@pytest.mark.parametrize("kind", SERVERS)
def test_server_faults_change_no_number_and_nothing_is_paid_twice(
    kind: str, unbatched: Run, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server, batches, warning = SERVERS[kind]
    assert are_equal(measure_in_batches(serve(server)), unbatched)
    assert len(server.batches) == batches
    assert bool(server.charged_twice) == bool(warning)
    assert warning in caplog.text


@small
def test_an_expired_batch_with_failed_lines_changes_no_number(serve: Serve) -> None:
    line_numbers, server = count(), ending("expired")
    server.line_fault = lambda line, number: (
        failed_line(line) if number < 2 and next(line_numbers) % 5 == 0 else None
    )
    run = measure_in_batches(serve(server), 25)
    assert sum(server.charged.values()) == 2 * 25
    assert not server.charged_twice
    assert sum(server.single.values()) <= 2 * SINGLE_REQUESTS
    assert len(server.batches) == 3
    assert are_equal(run, measure(wavering, dataset=positions(25)))


@small
def test_a_run_without_batches_reuses_batched_answers(serve: Serve) -> None:
    server = serve(BatchServer(wavering))
    batched = measure_in_batches(server)
    assert sum(server.charged.values()) == 2 * SIZE
    unbatched = measure(server, dataset=positions(SIZE))
    assert sum(server.charged.values()) == 2 * SIZE + 1  # one checks the model's identity
    assert batched.samples == unbatched.samples


def test_only_as_many_hits_are_drawn_again_as_needed() -> None:
    plan = plan_for(Spec(n=50), RandomModel.info)
    search = Search(SelectionConfig(RandomModel.info, Pool("pool", POOL[:2_000]), plan), 50)
    first_size = search.next_batch_size
    assert len(list(islice(search.requests(), first_size))) == first_size
    for _ in range(first_size):
        search.advance(True, draws=3)
    assert first_size == 300
    assert search.next_batch_size == 75


@small
def test_a_dataset_is_built_in_few_batches(serve: Serve) -> None:
    server = serve(BatchServer(habit_in_every_fifth))
    run = measure(server, pool=positions(600), n=75, batch=True)
    first, *more, measuring = server.sizes
    assert (first, measuring) == (300 - SINGLE_REQUESTS, 2 * 75 - SINGLE_REQUESTS)
    assert len(more) == 1
    assert not server.charged_twice
    assert run.dataset.asked
    assert sum(server.charged.values()) - 2 * 75 < 1.4 * run.dataset.asked


KILLS = [
    ("POST", "/v1/files"),
    ("POST", "/v1/batches"),
    ("GET", "/v1/files/output-0/content"),
    ("POST", "/v1/batches"),
    ("GET", "/v1/batches/batch_2"),
]
"""Requests at which the process is killed, in this order."""


@dataclass
class KillingServer(BatchServer):
    """Kills the client after handling the next of these requests."""

    process: Any = None
    polls: int = 0

    def add_routes(self, app: web.Application) -> None:
        super().add_routes(app)
        self.kills = kills = list(KILLS)

        @web.middleware
        async def kill(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await handler(request)
            if kills and (request.method, request.path) == kills[0]:
                kills.pop(0)
                os.kill(self.process.pid, signal.SIGKILL)
            return response

        app.middlewares.append(kill)


@needs_posix
def test_nothing_is_paid_twice_after_repeated_kills(tmp_path: Path, serve: Serve) -> None:
    server, out = serve(KillingServer(habit_in_every_fifth)), tmp_path / "killed"
    pool = positions(600)
    arguments = ("run", "--model", "m", "--pool", pool, "-n", 75, "--quiet", "--base-url")
    deaths = 0
    while server.kills:
        server.process = forked_cdta(*arguments, server.url, "--batch", "--out", out)
        server.process.start()
        server.process.join(60)
        assert server.process.exitcode == -signal.SIGKILL
        deaths += 1
    cdta(*arguments, server.url, "--batch", "--out", out, code=0)
    assert deaths == len(KILLS)
    assert not server.charged_twice
    with serving(habit_in_every_fifth) as other:
        other_home, expected = str(tmp_path / "other-home"), tmp_path / "expected"
        cdta(*arguments, other.url, "--out", expected, code=0, CDTA_HOME=other_home)
    assert results_in(out) == results_in(expected)
    assert samples_in(out) == samples_in(expected)


@needs_posix
def test_ctrl_c_leaves_the_batch_running(tmp_path: Path, serve: Serve) -> None:
    server = serve(BatchServer(wavering, polls=10**9))
    run = ("run", "--base-url", server.url, "--model", "m", "--dataset", positions(30), "--batch")
    process = start_cdta(*run, "--out", tmp_path / "run")
    while not server.polls_by_batch:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 1
    assert stderr == (
        "cdta: stopped; the batch batch_0 continues at the provider. Run the same command again "
        "to continue\n"
    )
    server.polls = 0
    cdta(*run, "--out", tmp_path / "run", code=0)
    assert (server.sizes, server.charged_twice) == ([2 * 30 - MIN_BATCH], [])


@small
def test_answers_are_saved_when_every_batch_fails(unbatched: Run, serve: Serve) -> None:
    server = serve(BatchServer(wavering, final_status=lambda _: "failed"))
    message = r"13 of 15 samples have no answer \(the first: no answer in 3 batches; the last"
    with pytest.raises(Incomplete, match=message):
        measure_in_batches(server)
    assert len(server.batches) == 3
    server.final_status = lambda _: "completed"
    assert are_equal(measure_in_batches(server), unbatched)
    assert not server.charged_twice
