"""Batches on servers that differ, reject, lose or charge, and models without a batch API."""

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from batch_server import SINGLE_REQUESTS, BatchServer, RequestFault, failed_line
from cant_do_that_anymore.client.batch import jobs
from cant_do_that_anymore.client.batch.client import MAX_VARIANT_PROBES, MIN_BATCH, BatchClient
from cant_do_that_anymore.client.store import Store
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.errors import Incomplete, InvalidInput, UserError
from cant_do_that_anymore.providers.base import Request, Settings
from cant_do_that_anymore.providers.catalog import model_named
from faults import Reset
from priced_servers import charge
from reasoning_servers import OpenAI
from testing import (
    POOL,
    Body,
    Loopback,
    Serve,
    Spec,
    cdta,
    checksum,
    evaluate,
    measure,
    moves_in,
    positions,
    question,
    wavering,
)

SIZE = 15
"""Number of positions in most runs."""

pytestmark = pytest.mark.usefixtures("no_retry_delay", "small_batches")


async def create_then_reset(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
    """Create the batch, but reset this and every other connection about batches."""
    if (http.method, http.path) == ("POST", "/v1/batches"):
        server.create_batch(await http.json())
    return Reset() if "batches" in http.path else None


def reject_gets(status: int, path_part: str = "/") -> RequestFault:
    async def reject(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
        is_rejected = http.method == "GET" and path_part in http.path
        return web.json_response({"error": "no"}, status=status) if is_rejected else None

    return reject


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        (
            [reject_gets(500, "content")],
            r"cannot reach the batch API \(HTTP 500: no\); the batches that were sent continue",
        ),
        ([create_then_reset, reject_gets(401)], "needs a key"),
        ([create_then_reset, reject_gets(402)], "requires payment"),
        ([create_then_reset, reject_gets(500)], "cannot reach the batch API"),
    ],
)
def test_a_batch_survives_an_unreachable_batch_api(
    faults: list[RequestFault], message: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "REQUEST_DEADLINE", 0.02)
    server = serve(BatchServer(wavering))
    for server.request_fault in faults:
        with pytest.raises(UserError) as error:
            measure(server, dataset=positions(SIZE), batch=True)
    error.match(message)
    server.request_fault = None
    measure(server, dataset=positions(SIZE), batch=True)
    assert (len(server.batches), server.charged_twice) == (1, [])


JUNK: list[object] = [
    *(None, [1], {"job": 7}, {"id": "x", "status": 7, "data": [7]}),
    {"status": "failed", "errors": 7, "request_counts": [1]},
    {"status": "completed", "error_file_id": {}, "request_counts": {"total": "all"}},
    {"data": [{"input_file_id": "file-0"}], "has_more": True},
]
ENDPOINTS = ["POST /v1/files", "POST /v1/batches", "GET /v1/batches/", "GET /v1/files/"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_run_recovers_from_junk_responses(
    endpoint: str, tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "REQUEST_DEADLINE", 0.01)
    server = serve(BatchServer(wavering))

    async def send_junk(server: BatchServer, http: web.Request) -> web.StreamResponse | None:
        is_endpoint = f"{http.method} {http.path}".startswith(endpoint)
        return web.json_response(JUNK[number]) if is_endpoint else None

    for number in range(len(JUNK)):
        server.request_fault = send_junk
        with suppress(UserError):
            asyncio.run(replies(server, tmp_path, number))
        server.request_fault = None
        assert len(asyncio.run(replies(server, tmp_path, number))) == SIZE
    assert len(server.batches) >= len(JUNK)


async def replies(
    server: BatchServer,
    folder: Path,
    draw: int = 0,
    on_status: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Replies to batched requests, with the cache in ``folder``."""
    requests = [Request(question(p.moves), "measuring", "standard", draw) for p in POOL[:SIZE]]
    model = model_named("m", server.url)
    with closing(Store(folder / "answers.sqlite")) as store:
        try:
            answers = BatchClient(model, store).answers(requests, Settings(), on_status=on_status)
            return [answer.text async for answer in answers if not answer.error]
        finally:
            await model.close()


class Together(BatchServer):
    """Has Together's field names, and resets the connection that creates its first batch."""

    async def upload(self, http: web.Request) -> web.StreamResponse:
        form = await http.post()
        assert http.path == "/v1/files/upload"
        assert (form["purpose"], form["file_name"]) == ("batch-api", "questions.jsonl")
        return await super().upload(http)

    async def create(self, http: web.Request) -> web.StreamResponse:
        is_first = not self.batches
        job = {"job": self.create_batch(await http.json()), "warning": ""}
        return Reset() if is_first else web.json_response(job, status=201)

    async def listing(self, http: web.Request) -> web.StreamResponse:
        return web.json_response([self.as_json(batch) for batch in self.batches.values()])

    def as_json(self, batch: dict[str, Any]) -> dict[str, Any]:
        job = super().as_json(batch)
        return job | {"status": job["status"].upper(), "request_counts": None, "progress": 40}


def test_batches_work_with_together(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(
        Together(wavering, final_status=lambda number: "completed" if number else "failed")
    )
    monkeypatch.setenv("TOGETHER_BASE_URL", server.url)
    monkeypatch.setenv("TOGETHER_API_KEY", "key")
    run = evaluate(Spec(model="together/m", dataset=positions(SIZE), batch=True), quiet=True)
    assert run.results.metrics
    assert (len(server.batches), server.charged_twice) == (2, [])


def test_batches_work_with_base_models(serve: Serve) -> None:
    server = serve(BatchServer(wavering))
    spec: dict[str, Any] = {"model": "completions/m", "dataset": positions(SIZE)}
    run = measure(server, **spec, batch=True)
    assert len(server.batches) == 1
    assert all("prompt" in json.loads(body) for body in server.charged)
    assert run.samples == measure(wavering, **spec).samples


@dataclass
class ChangingServer(OpenAI, BatchServer):
    """Rejects parameters and reasons, from the start or only after its first batch."""

    strict: bool = True
    reasons: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reasoning_tokens = lambda request: (
            700 if self.reasons or (self.batches and checksum(moves_in(request)) % 3 == 0) else 0
        )
        self.line_fault = lambda line, _: (
            failed_line(line, 400, message)
            if (message := self.rejection_of(line["body"]))
            else None
        )

    def rejection_of(self, request: Body) -> str:
        return super().rejection_of(request) if self.strict or self.batches else ""

    def batch_completion(self, body: Body) -> dict[str, Any]:
        return self.completion_with_reasoning(body)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("reasons", [True, False])
def test_few_requests_find_the_right_variant(strict: bool, reasons: bool, serve: Serve) -> None:
    server = serve(ChangingServer(wavering, strict=strict, reasons=reasons))
    run = measure(server, dataset=positions(2 * SIZE), batch=True)
    unbatched = measure(wavering, dataset=positions(2 * SIZE))
    assert run.results.outcomes == unbatched.results.outcomes
    assert len(server.batches) == 1 + (not strict) + (not reasons)
    assert sum(server.single.values()) <= 2 * SINGLE_REQUESTS + 3 * MAX_VARIANT_PROBES
    assert not server.charged_twice


@pytest.mark.parametrize(
    ("message", "error", "batches", "single_requests"),
    [
        (
            "The model 'm' is not supported by the batch API.",
            r"have no answer \(the first: \S+ refuses 'm' \(HTTP 400: .* supported by the batch",
            *(1, SINGLE_REQUESTS),
        ),
        (
            "temperature is not supported in batches",
            "no answer in 3 batches; the last error: ",
            *(3, SINGLE_REQUESTS + 3 * MAX_VARIANT_PROBES),
        ),
    ],
)
def test_a_batch_api_that_rejects_every_request_ends_the_run(
    message: str, error: str, batches: int, single_requests: int, serve: Serve
) -> None:
    server = serve(
        BatchServer(wavering, line_fault=lambda line, _: failed_line(line, 400, message))
    )
    with pytest.raises(Incomplete, match=error):
        measure(server, dataset=positions(SIZE), batch=True)
    assert (len(server.batches), sum(server.single.values())) == (batches, single_requests)


def full_price(server: BatchServer, bodies: Iterable[str]) -> float:
    """Cost of these requests outside a batch."""
    usages = (Loopback.completion(server, json.loads(body))["usage"] for body in bodies)
    return sum(map(charge, usages))


def test_batches_cost_half_and_respect_max_cost(serve: Serve, priced: None) -> None:
    def cost_on(server: BatchServer) -> float:
        return (full_price(server, server.charged) + full_price(server, server.single)) / 2

    server = serve(BatchServer(wavering))
    run = measure(server, model="priced", dataset=positions(SIZE), batch=True)
    assert run.cost.spent == pytest.approx(cost_on(server))
    assert run.cost.total == run.cost.measuring == pytest.approx(run.cost.spent)
    limited = serve(BatchServer(wavering))
    with pytest.raises(Incomplete, match=r"--max-cost 0.5: .* spent, and the next batch may cost"):
        measure(limited, model="priced", dataset=positions(2 * SIZE), batch=True, max_cost=0.5)
    assert 0.25 < cost_on(limited) < 0.5
    assert len(limited.batches) > 1


def test_unsaved_results_are_not_paid_again(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server, put = serve(BatchServer(wavering)), Store.put

    def fail_after_a_batch(store: Store, *row: Any) -> "asyncio.Future[bool]":
        if server.batches:
            raise store.unusable(OSError("the disk is full"))
        return put(store, *row)

    with monkeypatch.context() as patch, pytest.raises(UserError, match="cannot save answers"):
        patch.setattr(Store, "put", fail_after_a_batch)
        measure(server, dataset=positions(SIZE), batch=True)
    measure(server, dataset=positions(SIZE), batch=True)
    assert (len(server.batches), server.charged_twice) == (1, [])


def test_the_status_comes_from_the_provider(tmp_path: Path, serve: Serve) -> None:
    server, statuses = serve(BatchServer(wavering, polls=2)), list[str]()
    asyncio.run(replies(server, tmp_path, on_status=statuses.append))
    assert (
        statuses
        == [f"batch in progress: {SIZE - SINGLE_REQUESTS} of {SIZE - SINGLE_REQUESTS} answered"] * 2
    )


def test_two_clients_at_once_share_a_batch(tmp_path: Path, serve: Serve) -> None:
    server = serve(BatchServer(wavering, polls=5))

    async def replies_of_both() -> list[list[str]]:
        return await asyncio.gather(*(replies(server, tmp_path) for _ in range(2)))

    first, second = asyncio.run(replies_of_both())
    assert first == second
    assert server.sizes == [SIZE - SINGLE_REQUESTS]


def test_a_plain_run_names_a_running_batch(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(BatchServer(wavering, polls=10**9))
    run = ("run", "--base-url", server.url, "--model", "m", "--dataset", positions(SIZE), "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "LONGEST_BATCH", 0.0)
        done = cdta(*run, "--batch")
    assert "the batch batch_0 has not finished in 0 s; cancel it at the provider" in done.stderr
    batched = 2 * SIZE - SINGLE_REQUESTS
    note = f"a batch with {batched} requests is still running; use --batch to wait for its answers"
    assert note in cdta(*run).stderr
    assert "still running" not in cdta(*run).stderr


WITHOUT_BATCHES = {
    "cdta/pocket": "cdta/pocket runs on this machine at no cost; leave out --batch",
    "human": "human runs on this machine at no cost; leave out --batch",
    "cot/openai/gpt-4o": "needs two requests per answer, one after the other",
    "anthropic/claude-sonnet-4-5": "inspect eval cant_do_that_anymore/all --model "
    "anthropic/claude-sonnet-4-5 --batch",
}


@pytest.mark.parametrize("command", ["run", "estimate", "experiment", "dataset build"])
def test_models_without_batches_give_a_one_line_error(command: str, tmp_path: Path) -> None:
    for model, reason in WITHOUT_BATCHES.items():
        out = ["--out", tmp_path] if command == "experiment" else []
        done = cdta(*command.split(), "--model", model, "--batch", *out, code=2)
        assert reason in done.stderr
        assert done.stderr.count("\n") == 1


def test_batch_is_refused_without_server_support_or_with_fresh() -> None:
    with pytest.raises(UserError, match=r"does not support OpenAI's batch API \(HTTP 404"):
        measure(wavering, dataset=positions(SIZE), batch=True)
    with pytest.raises(InvalidInput, match="leave out --fresh or --batch"):
        measure(wavering, dataset=positions(SIZE), batch=True, fresh=True)


def test_the_estimate_discounts_only_batched_requests() -> None:
    """A price given by the user has no discount."""
    spec = Spec(model="openai/gpt-4o", dataset=positions(50))
    listed, listed_batch, custom, custom_batch = (
        estimate(replace(spec, batch=batch, price=price)).measuring.dollars
        for price in (None, (5, 20))
        for batch in (False, True)
    )
    assert listed and listed_batch and custom
    share = (2 * 50 - MIN_BATCH) / (2 * 50)
    assert listed_batch.expected == pytest.approx(listed.expected * (1 - share / 2))
    assert custom_batch == custom
    few = Spec(model="openai/gpt-4o", dataset=positions(MIN_BATCH))
    assert estimate(few).measuring.dollars == estimate(replace(few, batch=True)).measuring.dollars


def test_the_estimate_allows_a_day_per_batch() -> None:
    day, one_batch = 24 * 3600, Spec(model="openai/gpt-4o", dataset="gpt-4-0314", batch=True)
    six_batches = replace(one_batch, precision=0.1)  # after 50, 75, 112, 168, 252, 378 samples
    for spec, days in ((one_batch, 1), (six_batches, 6)):
        seconds = estimate(spec).measuring.seconds
        assert 0.9 * days * day < seconds.high <= days * day
