"""Batches: the same numbers for half the price, and nothing is paid twice whatever happens."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from batches import BatchServer, Line, failed_line
from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.client.batch.client import MIN_BATCH
from cant_do_that_anymore.datasets.pools import Pool
from cant_do_that_anymore.datasets.search import Search, SelectionConfig
from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.providers.local import RandomModel
from cant_do_that_anymore.task.spec import plan_for
from loopback import Loopback, serving
from machines import needs_posix
from players import in_every_fifth, wavering
from processes import cdta, forked, process_of, results_in, samples_in

POOL = shipped_pool("pool")
SIZE = 100
"""Positions of most runs."""

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture(scope="module")
def positions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("data") / "positions.jsonl", SIZE)


@pytest.fixture(scope="module")
def at_once(positions: Path) -> Run:
    """The run without batches that all others are to equal."""
    return run_of(Loopback(wavering), dataset=positions)


def written(path: Path, size: int) -> Path:
    write_positions(path, POOL[:size])
    return path


def run_of(server: Loopback, **spec: Any) -> Run:
    with serving(server):
        return evaluate(Spec(model="m", base_url=server.url, **spec), quiet=True)


def same(one: Run, other: Run) -> bool:
    """Whether two runs have the same samples, answers and numbers."""
    return (one.samples, one.results, one.notes) == (other.samples, other.results, other.notes)


def a_tenth_fails(line: Line, number: int) -> Line | None:
    """Another tenth in every batch."""
    failing = int(line["custom_id"], 16) % 10 == number % 10
    return failed_line(line) if failing else None


def in_the_first(spoilt: Callable[[Line], Line]) -> Callable[[Line, int], Line | None]:
    """Spoils every third line of the first batch."""
    return lambda line, number: (
        spoilt(line) if not number and int(line["custom_id"], 16) % 3 == 0 else None
    )


def test_an_expired_batch_and_a_tenth_that_fails_of_many_questions_give_the_same_numbers(
    tmp_path: Path,
) -> None:
    server = BatchServer(
        wavering,
        ends=lambda number: "completed" if number else "expired",
        spoils=a_tenth_fails,
    )
    positions = written(tmp_path / "positions.jsonl", 1000)
    run = run_of(server, dataset=positions, batch=True)
    assert sum(server.charged.values()) == 2000
    assert not server.twice
    assert sum(server.live.values()) <= 2 * MIN_BATCH
    assert len(server.batches) == 3
    assert same(run, run_of(Loopback(wavering), dataset=positions))


def test_a_run_without_batches_takes_the_answers_of_one_with_them(positions: Path) -> None:
    server = BatchServer(wavering)
    with serving(server):
        spec = Spec(model="m", base_url=server.url, dataset=positions, batch=True)
        in_batches = evaluate(spec, quiet=True)
        asked = sum(server.charged.values())
        at_once = evaluate(replace(spec, batch=False), quiet=True)
    assert sum(server.charged.values()) - 1 == asked == 2 * SIZE  # is it the same model?
    assert in_batches.samples == at_once.samples


def test_of_hits_that_are_drawn_no_more_are_asked_again_than_are_needed() -> None:
    plan = plan_for(Spec(n=50), RandomModel.info)
    search = Search(
        SelectionConfig(RandomModel.info, Pool("pool", shipped_pool("pool")[:2_000]), plan), 50
    )
    first = search.next_batch_size
    assert len(list(islice(search.requests(), first))) == first
    for _ in range(first):
        search.advance(True, draws=3)
    assert first == 300
    assert search.next_batch_size == 75


def test_a_dataset_is_found_in_waves_and_little_is_wasted(tmp_path: Path) -> None:
    pool, server = written(tmp_path / "pool.jsonl", 1500), BatchServer(in_every_fifth)
    run = run_of(server, pool=pool, n=150, batch=True)
    first, *waves, measured = server.sizes
    assert (first, measured) == (300 - MIN_BATCH + 1, 300 - MIN_BATCH)
    assert len(waves) == 1
    assert not server.twice
    assert run.dataset.asked
    assert sum(server.charged.values()) - 300 < 1.4 * run.dataset.asked


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
        left = list(KILLS)
        self.left = left

        @web.middleware
        async def kill(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await handler(request)
            if left and (request.method, request.path) == left[0]:
                left.pop(0)
                os.kill(self.process.pid, signal.SIGKILL)
            return response

        app.middlewares.append(kill)


@needs_posix
def test_a_process_that_is_killed_again_and_again_pays_for_nothing_twice(tmp_path: Path) -> None:
    server, pool = Deadly(in_every_fifth), written(tmp_path / "pool.jsonl", 1500)
    arguments = ("run", "--model", "m", "--pool", pool, "-n", 120, "--quiet", "--base-url")
    with serving(server):
        deaths = 0
        while server.left:
            server.process = forked(*arguments, server.url, "--batch", "--out", tmp_path / "there")
            server.process.start()
            server.process.join(60)
            assert server.process.exitcode == -signal.SIGKILL
            deaths += 1
        assert cdta(*arguments, server.url, "--batch", "--out", tmp_path / "there").returncode == 0
    assert deaths == len(KILLS)
    assert not server.twice
    with serving(Loopback(in_every_fifth)) as other:
        home = str(tmp_path / "elsewhere")
        done = cdta(*arguments, other.url, "--out", tmp_path / "here", CDTA_HOME=home)
    assert done.returncode == 0
    assert results_in(tmp_path / "here") == results_in(tmp_path / "there")
    assert samples_in(tmp_path / "here") == samples_in(tmp_path / "there")


@needs_posix
def test_ctrl_c_leaves_the_batch_running_and_says_how_to_come_back(
    tmp_path: Path, positions: Path
) -> None:
    server = BatchServer(wavering, polls=10**9)
    with serving(server):
        run = ("run", "--base-url", server.url, "--model", "m", "--dataset", positions, "--batch")
        process = process_of(*run, "--out", tmp_path / "run")
        while not server.looks:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
        assert process.returncode == 1
        assert told == (
            "cdta: stopped; the batch batch_0 goes on at its provider, run the same command again "
            "to go on\n"
        )
        server.polls = 0
        assert cdta(*run, "--out", tmp_path / "run").returncode == 0
    assert (server.sizes, server.twice) == ([2 * SIZE - MIN_BATCH], [])


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda line: failed_line(line, 200),
        lambda line: failed_line(line, 429, "slow down"),
        lambda line: {"custom_id": line["custom_id"], "response": None, "error": None},
        lambda line: {"custom_id": line["custom_id"], "response": {"body": {"choices": []}}},
        lambda line: {"custom_id": line["custom_id"], "response": {"status_code": 200}},
        lambda line: {"custom_id": line["custom_id"], "error": "server_error"},
        lambda line: {"custom_id": "somebody else's", "response": {"body": {"choices": []}}},
        lambda line: {"custom_id": 7},
        lambda line: ["no", "result"],
        lambda line: {},
    ],
    ids=[
        *("an error in a 200", "overload", "null", "no choice", "no body", "an error in words"),
        *("of another", "a number", "a list", "missing"),
    ],
)
def test_what_is_no_answer_is_asked_again_and_never_kept(
    spoilt: Callable[[Line], Any], positions: Path, at_once: Run
) -> None:
    server = BatchServer(wavering, spoils=in_the_first(spoilt))
    run = run_of(server, dataset=positions, batch=True)
    assert len(server.batches) == 2
    assert not server.twice
    assert same(run, at_once)


def test_an_answer_counts_although_a_fault_stands_beside_it(positions: Path, at_once: Run) -> None:
    server = BatchServer(wavering)

    async def doubled(http: web.Request) -> web.StreamResponse | None:
        if http.path != "/v1/files/output-0/content":
            return None
        answered = [json.loads(line) for line in server.files["output-0"].splitlines()]
        lines = [each for line in answered for each in (failed_line(line), line, line)]
        return web.Response(body="\n\n{broken\n".join(map(json.dumps, lines)).encode())

    server.disturbs = doubled
    run = run_of(server, dataset=positions, batch=True)
    assert (len(server.batches), server.twice) == (1, [])
    assert same(run, at_once)


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_batch_that_ends_badly_is_followed_by_another(
    status: str, positions: Path, at_once: Run
) -> None:
    server = BatchServer(wavering, ends=lambda number: "completed" if number else status)
    run = run_of(server, dataset=positions, batch=True)
    assert len(server.batches) == 2
    assert not server.twice
    assert same(run, at_once)


def test_when_no_batch_works_the_run_says_so_and_keeps_what_it_has(
    positions: Path, at_once: Run
) -> None:
    server = BatchServer(wavering, ends=lambda _: "failed")
    told = r"90 of 100 samples have no answer \(the first: no answer in 3 batches, the last time: "
    with serving(server):
        spec = Spec(model="m", base_url=server.url, dataset=positions, batch=True)
        with pytest.raises(Incomplete, match=told):
            evaluate(spec, quiet=True)
        assert len(server.batches) == 3
        server.ends = lambda _: "completed"
        assert same(evaluate(spec, quiet=True), at_once)
    assert not server.twice


def test_where_fewer_tokens_may_be_under_way_batches_are_smaller(
    positions: Path, at_once: Run
) -> None:
    server = BatchServer(wavering, most_tokens=20_000)
    run = run_of(server, dataset=positions, batch=True)
    assert [
        size
        for size, batch in zip(server.sizes, server.batches.values(), strict=True)
        if batch["ends"] == "completed"
    ] == [45] * 4
    assert not server.twice
    assert same(run, at_once)
