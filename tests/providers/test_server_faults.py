"""A server that misbehaves in every way: answers are retried, or recorded as what they are."""

import asyncio
import socket
import time
from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.client import client
from cant_do_that_anymore.errors import Incomplete, InvalidInput, UserError
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.providers import http, openai_api
from cant_do_that_anymore.providers.access import Access
from cant_do_that_anymore.providers.base import TransientError
from cant_do_that_anymore.providers.catalogue import model_named, server_info
from cant_do_that_anymore.providers.openai_api import ServerModel
from cant_do_that_anymore.providers.responses import Response
from cant_do_that_anymore.runs.results import Run
from faults import FAULTS, error
from loopback import Body, Loopback, moves_in, serving
from players import wavering

POOL = shipped_pool("pool")[:100]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.01)
    monkeypatch.setattr(openai_api, "TIME_OUT", aiohttp.ClientTimeout(total=0.4))


def measured(loopback: Loopback, n: int, folder: Path, **options: object) -> Run:
    file = folder / "positions.jsonl"
    write_positions(file, POOL[:n])
    spec = Spec(model="m", base_url=loopback.url, dataset=file, n=n, **options)  # type: ignore[arg-type]
    return evaluate(spec, quiet=True)


@pytest.mark.parametrize("name", FAULTS)
def test_a_passing_fault_is_retried(name: str, tmp_path: Path) -> None:
    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        return FAULTS[name]() if number in (2, 3) else None

    with serving(Loopback(wavering, fault=fault)) as loopback:
        run = measured(loopback, 3, tmp_path, max_connections=2)
    assert run.results.metrics["n_samples"] == 3
    assert len(loopback.requests) == 6 + 2


@pytest.mark.parametrize("name", [name for name in FAULTS if "429" not in name])
def test_a_lasting_fault_is_recorded_as_an_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_FAILED_ATTEMPTS", 2)
    monkeypatch.setattr(client, "REQUEST_DEADLINE", 0.05)
    hopeless = POOL[3].moves

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        return FAULTS[name]() if moves_in(request) == hopeless else None

    with serving(Loopback(wavering, fault=fault)) as loopback:
        run = measured(loopback, 6, tmp_path, max_error_rate=0.5)
    failed = [sample for sample in run.samples if not sample.answered]
    assert [sample.position.moves for sample in failed] == [hopeless]
    assert failed[0].answers["standard"].error
    assert run.results.metrics["n_failed"] == 1
    assert any("1 sample without an answer" in note for note in run.notes)


PASSING: dict[str, web.Response] = {
    "HTTP 202": web.json_response({"id": "later"}, status=202),
    "HTTP 204": web.Response(status=204),
    "HTTP 425": error(425, "too early"),
    "HTTP 499": error(499, "client closed the request"),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_status_in_passing_is_retried_and_what_may_be_paid_is(name: str) -> None:
    model = ServerModel(server_info("m", "http://localhost/v1"), Access("KEY"))
    response = PASSING[name]
    body = response.body if isinstance(response.body, bytes) else b""
    with pytest.raises(TransientError) as fault:
        model.answer_in(Response(response.status, None, body), ())
    assert fault.value.maybe_billed == (name != "HTTP 425")


@pytest.mark.parametrize("status", [200, 201, 203])
def test_a_whole_completion_is_an_answer_under_any_status_of_success(
    status: int, tmp_path: Path
) -> None:
    async def created(request: Body, number: int) -> web.StreamResponse | None:
        return web.json_response(loopback.completion(request), status=status)

    with serving(Loopback(wavering, fault=created)) as loopback:
        assert measured(loopback, 2, tmp_path).results.metrics["n_samples"] == 2
    assert len(loopback.requests) == 4


def test_a_megabyte_of_text_is_an_answer_like_any_other(tmp_path: Path) -> None:
    for filler in ("blah " * 200_000, "Nf3 Bc4 " * 125_000, "e2e4" * 250_000, "\n" * 1_000_000):
        with serving(Loopback(lambda _, text=filler: text)) as loopback:  # type: ignore[misc]
            began = time.process_time()
            run = measured(loopback, 1, tmp_path)
        assert run.samples[0].answers["standard"].text == filler
        assert run.samples[0].replies["standard"].outcome == "unreadable"
        assert time.process_time() - began < 5


def test_a_reply_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_api, "MAX_RESPONSE_BYTES", 10_000)
    monkeypatch.setattr(client, "MAX_FAILED_ATTEMPTS", 2)
    with (
        serving(Loopback(lambda _: "x" * 20_000)) as loopback,
        pytest.raises(Incomplete, match="a reply of more than 10000 bytes"),
    ):
        measured(loopback, 1, tmp_path)


def test_a_server_that_takes_few_at_once_is_pressed_no_harder(tmp_path: Path) -> None:
    """More than four at once are refused; the pressure settles and everything is answered."""
    inside = 0
    refused: Counter[bool] = Counter()

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        nonlocal inside
        refused[inside >= 4] += 1
        if inside >= 4:
            return web.json_response({"error": {"message": "slow down"}}, status=429)
        inside += 1
        await asyncio.sleep(0.005)
        inside -= 1
        return None

    with serving(Loopback(wavering, fault=fault)) as loopback:
        began = time.monotonic()
        run = measured(loopback, 100, tmp_path, max_connections=32)
    assert run.results.metrics["n_failed"] == 0
    assert refused[False] == 200
    assert refused[True] < 150
    assert time.monotonic() - began < 20


def test_retry_after_is_honoured(tmp_path: Path) -> None:
    refused_at = 0.0
    next_at: list[float] = []

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        nonlocal refused_at
        if number == 3:
            refused_at = time.monotonic()
            return web.Response(status=429, headers={"Retry-After": "0.5"})
        if refused_at:
            next_at.append(time.monotonic())
        return None

    with serving(Loopback(wavering, fault=fault)) as loopback:
        run = measured(loopback, 10, tmp_path, max_connections=1)
    assert run.results.metrics["n_samples"] == 10
    assert min(next_at) - refused_at >= 0.5


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (401, "bad key", "refuses the key (HTTP 401: bad key); set CDTA_API_KEY to a valid one"),
        (403, "forbidden", "refuses the key (HTTP 403: forbidden)"),
        (404, "no such model", "refuses 'm' (HTTP 404: no such model)"),
        (402, "no credit", "wants money (HTTP 402: no credit)"),
        (400, "bad request", "refuses 'm' (HTTP 400: bad request)"),
    ],
)
def test_what_no_further_try_will_mend_stops_the_run_at_once(
    status: int, body: str, sentence: str, tmp_path: Path
) -> None:
    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        return web.json_response({"error": {"message": body}}, status=status)

    with serving(Loopback(wavering, fault=fault)) as loopback, pytest.raises(UserError) as problem:
        measured(loopback, 50, tmp_path, max_connections=1)
    assert sentence in str(problem.value)
    assert len(loopback.requests) == 1


@pytest.mark.parametrize("model", ["m", None])
def test_an_address_without_v1_is_refused_with_the_one_to_try(model: str | None) -> None:
    with serving(Loopback(wavering)) as loopback, pytest.raises(UserError) as problem:
        evaluate(Spec(model=model, base_url=loopback.url.removesuffix("/v1")), quiet=True)
    assert str(problem.value).endswith(f"; most servers answer below /v1: try {loopback.url}")
    assert loopback.requests == []


def test_an_exhausted_quota_stops_the_run_but_a_rate_limit_that_says_quota_does_not(
    tmp_path: Path,
) -> None:
    def quota(kind: str) -> web.Response:
        message = "You exceeded your current quota"
        return web.json_response({"error": {"message": message, "type": kind}}, status=429)

    async def rate_limit(request: Body, number: int) -> web.StreamResponse | None:
        return quota("rate_limit") if number == 1 else None

    async def exhausted(request: Body, number: int) -> web.StreamResponse | None:
        return quota("insufficient_quota")

    with serving(Loopback(wavering, fault=rate_limit)) as loopback:
        assert measured(loopback, 2, tmp_path).results.metrics["n_samples"] == 2
    with (
        serving(Loopback(wavering, fault=exhausted)) as loopback,
        pytest.raises(UserError, match="wants money"),
    ):
        measured(loopback, 3, tmp_path)


def test_a_server_that_dies_ends_the_run_with_a_sentence_and_the_answers_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dead(request: Body, number: int) -> web.StreamResponse | None:
        return FAULTS["reset"]() if number > 60 else None

    with (
        serving(Loopback(wavering, fault=dead)) as loopback,
        pytest.raises(Incomplete, match=r"m stopped answering .* run the same command again"),
    ):
        measured(loopback, 100, tmp_path, max_connections=4)
    answered = 60
    port = int(loopback.url.split(":")[2].removesuffix("/v1"))
    with serving(Loopback(wavering), port) as loopback:
        run = measured(loopback, 100, tmp_path, max_connections=4)
    assert len(loopback.requests) == 200 - answered + 1  # is it the same model?
    assert run.results.metrics["n_samples"] == 100


def test_questions_that_are_refused_again_do_not_end_a_run_that_has_the_other_answers(
    tmp_path: Path,
) -> None:
    refused = [position.moves for position in POOL[10::15]]

    async def policy(request: Body, number: int) -> web.StreamResponse | None:
        return error(400, "content policy") if moves_in(request) in refused else None

    with serving(Loopback(wavering, fault=policy)) as loopback:
        for _ in range(2):
            run = measured(loopback, len(POOL), tmp_path, max_error_rate=0.1)
            assert run.results.metrics["n_samples"] == len(POOL) - len(refused)
    assert 2 * len(refused) > client.MAX_CONSECUTIVE_FAILURES


def test_a_connection_is_kept_alive_while_a_model_thinks() -> None:
    address = socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)[0]
    with http.keepalive_socket(address) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert made.type == socket.SOCK_STREAM


def test_a_long_answer_is_waited_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_api, "LONG_TIME_OUT", aiohttp.ClientTimeout(total=60))
    with serving(Loopback(wavering, delay=0.6)) as loopback:  # TIME_OUT is 0.4 here
        measured(loopback, 1, tmp_path, max_tokens=8_000)
    assert len(loopback.requests) == 2


def test_no_server_at_all_is_one_sentence(tmp_path: Path) -> None:
    with serving(Loopback(wavering)) as loopback:
        pass
    with pytest.raises(UserError, match=r"no server answers at http://127.0.0.1:.*start it"):
        measured(loopback, 2, tmp_path)


@pytest.mark.parametrize(
    "address", ["http://", "http:///v1", "http://[bad", "http://h:99999/v1", "http://h:port/v1"]
)
def test_an_address_that_cannot_be_is_one_sentence(address: str) -> None:
    with pytest.raises(InvalidInput, match="not the address of a server"):
        model_named("m", address)
