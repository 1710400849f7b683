"""Faults that once silently gave a wrong number."""

from collections.abc import Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore import Position
from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.task.prompts import Wording
from testing import (
    POOL,
    Body,
    Loopback,
    Serve,
    checksum,
    error_when,
    habit,
    is_changed,
    measure,
    moves_in,
    openai_server,
    positions,
)

IDENTITY_CHECK = 3
"""A run that selects positions with cached answers sends so many of these requests again."""
OVERLOADED = "The system is overloaded and does not accept requests right now"
HOT = "GPU temperature too high, node does not respond"

pytestmark = pytest.mark.usefixtures("no_retry_delay")


def test_a_server_and_an_api_have_a_dataset_of_their_own(serve: Serve) -> None:
    def habit_in_half(request: Body) -> str:
        """A model that has the habit in half of the positions, and adapts when the rules change."""
        plays_other = checksum(moves_in(request)) % 2 or is_changed(request)
        return "a2a3" if plays_other else habit(request)

    server, other = serve(habit_in_half), serve(habit)
    runs = [measure(server, n=12), measure(other, n=12)]
    for run in (*runs, measure(server, model="completions/m", n=6)):
        assert run.dataset.provenance.startswith("built from")
        assert run.results["predicted_move_proportion"].value == 1
    assert {s.item for s in runs[0].samples} != {s.item for s in runs[1].samples}


def test_a_server_with_the_name_of_an_openai_model_gets_no_shipped_dataset(
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = "gpt-4-0314"
    with openai_server(habit, model=name) as server:
        assert measure(server, model=name, n=6).dataset.provenance.startswith("built from")
        openai = measure(f"openai/{name}", n=6, fallback_dataset=name)
        assert openai.dataset.provenance == f"shipped for {name}"
        assert "has no dataset" not in caplog.text
        measure(server, model=name, tag="new", n=2, fallback_dataset=name)
    assert f"{name} has no dataset; using that of {name}" in caplog.messages


FAILED = {"choices": [{"finish_reason": "abort", "message": {"content": ""}}]}


@pytest.mark.parametrize("body", [FAILED, {"error": {"message": OVERLOADED}}])
def test_an_error_with_http_200_is_not_an_answer(body: Body, server: Loopback) -> None:
    """A server that failed only under the changed rules once scored a perfect -1 forever."""

    async def fault(request: Body, _: int) -> web.Response | None:
        if not is_changed(request):
            return None
        return web.json_response(server.completion(request) | body)

    server.fault = fault
    with pytest.raises(Incomplete, match=r"no answer|stopped answering"):
        measure(server, dataset=positions(3))
    server.fault = None
    assert measure(server, dataset=positions(3)).results["delta"].value == 0


@pytest.mark.parametrize(
    ("message", "status", "failing"),
    [
        (HOT, 400, (17,)),
        ("Worker removed from system pool", 400, range(17, 23)),  # lasts for a while
    ],
)
def test_a_temporary_fault_does_not_change_later_requests(
    message: str, status: int, failing: Sequence[int], server: Loopback
) -> None:
    server.fault = error_when(lambda _, number: number in failing, message, status)
    run = measure(server, dataset=positions(60), max_connections=3)
    for request in server.requests:
        assert request["messages"][0]["role"] == "system"
        assert "temperature" in request
    assert (run.results.failed or 0) <= 3 * (len(failing) > 1)
    assert run.results["predicted_move_proportion"].value == 1
    server.fault = None
    again = measure(server, dataset=positions(60))
    assert again.results.failed == 0
    assert len(server.requests) == 120 + len(failing)


def check_second_run_is_cached(server: Loopback, **options: Any) -> None:
    """A second run has the samples of the first and sends nothing."""
    first, n_sent = measure(server, **options), len(server.requests)
    again = measure(server, **options)
    assert len(server.requests) == n_sent
    assert (again.samples, again.results) == (first.samples, first.results)


def test_answers_before_a_form_was_learned_are_found_again(
    server: Loopback, tmp_path: Path
) -> None:
    """Only White's requests show that a user message must come first; Black's are accepted."""
    black = [position for position in POOL if len(position.moves) % 2][:20]
    white = [position for position in POOL if not len(position.moves) % 2][:4]
    write_positions(tmp_path / "some.jsonl", [*black, *white])
    server.fault = error_when(
        lambda request, _: request["messages"][1]["role"] == "assistant",
        "Conversation roles must alternate user/assistant",
        400,
    )
    check_second_run_is_cached(server, dataset=tmp_path / "some.jsonl", n=24, max_connections=1)


def test_requests_with_the_same_text_are_different_samples(serve: Serve, tmp_path: Path) -> None:
    """Each position and condition has its own request, and a second run reads the cache."""
    moves = ("e2e4", "e7e5", "g1f3", "b8c6")
    pool = [Position(game, moves, (move,)) for game in range(6) for move in ("f1b5", "f1c4")]
    write_positions(tmp_path / "same.jsonl", pool)
    turns = cycle(("f1c4", "a2a3", "f1b5"))
    server, wording = serve(lambda _: next(turns)), Wording("same", "Play.", "Play.")
    check_second_run_is_cached(server, dataset=tmp_path / "same.jsonl", wording=wording)
    assert len(server.requests) == 24


def test_a_fresh_run_builds_its_own_dataset_and_keeps_the_cached_one(server: Loopback) -> None:
    cached, n_sent = measure(server, n=10), len(server.requests)
    measure(server, n=10, fresh=True)
    n_with_fresh = len(server.requests)
    assert n_with_fresh > n_sent + 20
    assert measure(server, n=10).samples == cached.samples
    assert len(server.requests) == n_with_fresh + IDENTITY_CHECK


def test_a_request_that_failed_during_selection_is_noted_and_sent_again(
    serve: Serve, server: Loopback
) -> None:
    """The dataset was once cached without that position, and measured forever."""
    run, missing = partial(measure, pool=positions(20), n=18), "1 of them without an answer"
    server.fault = error_when(lambda request, _: moves_in(request) == POOL[3].moves)
    incomplete = run(server)
    assert POOL[3] not in [sample.item for sample in incomplete.samples]
    assert missing in incomplete.dataset.provenance
    server.fault, n_sent = None, len(server.requests)
    again, fresh = run(server), run(serve(habit))
    assert len(server.requests) <= n_sent + IDENTITY_CHECK + 1 + 2 * 18
    assert [sample.item for sample in again.samples] == [s.item for s in fresh.samples]
    assert missing not in again.dataset.provenance
