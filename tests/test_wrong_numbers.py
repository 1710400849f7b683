"""Faults that once gave a wrong number without notice."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore import Position
from cant_do_that_anymore.comparison.entries import pool_runs
from cant_do_that_anymore.datasets.storage import import_dataset
from cant_do_that_anymore.errors import Incomplete, InvalidInput, UserError
from cant_do_that_anymore.game.position import write_positions
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.task.prompts import Wording
from planted_models import CANNOT_STOP
from testing import (
    POOL,
    Body,
    Loopback,
    Responder,
    Serve,
    fails,
    habit,
    is_changed,
    measure,
    moves_in,
    number_of,
    openai_server,
    positions,
)

LOOK = 1
"""A run whose answers are kept asks one question again: is it still the same model?"""
OVERLOADED = "The system is overloaded and does not accept requests right now"
HOT = "GPU temperature too high, node does not respond"

pytestmark = pytest.mark.usefixtures("impatient")


def in_turn(*replies: str) -> Responder:
    """One reply after the other, whatever is asked; "habit" for the special move."""
    turns: Iterator[str] = cycle(replies)
    return lambda request: habit(request) if (reply := next(turns)) == "habit" else reply


def test_two_servers_that_give_their_model_one_name_have_two_datasets(serve: Serve) -> None:
    def odd_games_only(request: Body) -> str:
        """A model that has its habits in other positions, and yields when the rules change."""
        yields = number_of(moves_in(request)) % 2 or is_changed(request)
        return "a2a3" if yields else habit(request)

    runs = [measure(serve(player), n=12) for player in (odd_games_only, habit)]
    for run in runs:
        assert run.dataset.built_now
        assert run.results.metrics["predicted_move_proportion"] == 1
    assert {s.position for s in runs[0].samples} != {s.position for s in runs[1].samples}


def test_a_base_model_does_not_take_the_dataset_built_over_chat(server: Loopback) -> None:
    measure(server, model="m", n=6)
    assert measure(server, model="completions/m", n=6).dataset.built_now


def test_a_server_that_calls_itself_by_openais_name_gets_no_dataset_of_openais() -> None:
    name = "gpt-4-0314"
    with openai_server(habit, model=name) as server:
        named = measure(server, model=name, n=6)
        given, openais = (
            measure(server, model=name, dataset=name, n=6),
            measure(f"openai/{name}", n=6),
        )
    assert named.dataset.provenance.startswith("built now")
    assert given.dataset.provenance == openais.dataset.provenance == f"shipped for {name}"


def test_a_fallback_of_the_same_name_is_said_as_any_other(caplog: pytest.LogCaptureFixture) -> None:
    name = "gpt-4-0314"
    with openai_server(habit, model=name) as server:
        measure(f"openai/{name}", n=2, fallback_dataset=name)
        assert "has no dataset" not in caplog.text
        measure(server, model=name, n=2, fallback_dataset=name)
    assert f"{name} has no dataset; using that of {name}" in caplog.messages


REASONS = ("error", "ERROR", "abort", "canceled", "timeout", "insufficient_system_resource", None)
CALLED_ERRORS = (
    {"error": {"message": OVERLOADED}},
    {"errors": [{"message": OVERLOADED}]},
    {"object": "error"},
    {"type": "error"},
    {"status": "error"},
)


@pytest.mark.parametrize(
    ("body", "choice"),
    [
        *(({}, {"finish_reason": reason, "message": {"content": ""}}) for reason in REASONS),
        *((body, {}) for body in CALLED_ERRORS),
    ],
)
def test_a_fault_under_http_200_is_no_answer(
    body: dict[str, object], choice: dict[str, object], server: Loopback
) -> None:
    """Where it fails under the changed rules only, it once scored a perfect -1, for ever."""

    async def fault(request: Body, _: int) -> web.Response | None:
        if not is_changed(request):
            return None
        completion = server.completion(request) | body
        completion["choices"][0] |= choice
        return web.json_response(completion)

    server.fault = fault
    with pytest.raises(Incomplete, match=r"no answer|stopped answering"):
        measure(server, dataset=positions(3))
    server.fault = None
    assert measure(server, dataset=positions(3)).results.metrics["delta"] == 0


MOVED = ("Worker removed from system pool", "please use the alternate region")


@pytest.mark.parametrize(
    ("message", "status", "failing"),
    [
        *((m, status, (17,)) for m in (OVERLOADED, HOT, *MOVED) for status in (500, 503, 400)),
        *((message, 400, (17, 18)) for message in (OVERLOADED, HOT)),  # while it is looked into
    ],
)
def test_a_passing_fault_does_not_change_the_form_of_later_questions(
    message: str, status: int, failing: tuple[int, ...], server: Loopback
) -> None:
    server.fault = fails(lambda _, number: number in failing, message, status)
    looked_into = len(failing) > 1  # other forms are tried meanwhile
    run = measure(server, dataset=positions(14), n=14, max_connections=1 if looked_into else 3)
    for request in server.requests[20 * looked_into :]:
        assert request["messages"][0]["role"] == "system"
        assert "temperature" in request
    assert run.notes == []
    assert run.results.metrics["n_failed"] == 0
    assert run.results.metrics["predicted_move_proportion"] == 1


def check_same_again(server: Loopback, **options: Any) -> None:
    """A second run has the samples of the first and sends nothing but one request."""
    first, sent = measure(server, **options), len(server.requests)
    again = measure(server, **options)
    assert len(server.requests) == sent + LOOK
    assert (again.samples, again.results) == (first.samples, first.results)


def test_a_form_that_was_learnt_is_remembered(server: Loopback) -> None:
    """The answers in that form are found again, and nothing has to be refused twice."""
    server.fault = fails(
        lambda request, _: request["messages"][0]["role"] == "system",
        "System role not supported",
        400,
    )
    check_same_again(server, dataset=positions(10))


def test_answers_from_before_a_form_was_learnt_are_found_again(
    server: Loopback, tmp_path: Path
) -> None:
    """Black's questions are taken as they are; only White's teach that a user must come first."""
    black = [position for position in POOL if len(position.moves) % 2][:20]
    white = [position for position in POOL if not len(position.moves) % 2][:4]
    write_positions(tmp_path / "some.jsonl", [*black, *white])
    server.fault = fails(
        lambda request, _: request["messages"][1]["role"] == "assistant",
        "Conversation roles must alternate user/assistant",
        400,
    )
    check_same_again(server, dataset=tmp_path / "some.jsonl", n=24, max_connections=1)


def test_positions_that_make_the_same_question_are_different_samples(
    serve: Serve, tmp_path: Path
) -> None:
    """Each is asked by itself, and a second run gives the same numbers without asking."""
    moves = ("e2e4", "e7e5", "g1f3", "b8c6")
    pool = [Position(game, moves, (move,)) for game in range(6) for move in ("f1b5", "f1c4")]
    write_positions(tmp_path / "same.jsonl", pool)
    server = serve(in_turn("f1c4", "a2a3", "f1b5"))
    check_same_again(server, dataset=tmp_path / "same.jsonl")
    assert len(server.requests) == 24 + LOOK


def test_conditions_with_the_same_text_are_different_questions(serve: Serve) -> None:
    server = serve(in_turn("habit", "a2a3"))
    same = Wording("same", "Play.", "Play.")
    check_same_again(server, dataset=positions(10), wording=same)
    assert len(server.requests) == 20 + LOOK


def with_one_game(lines: list[str]) -> list[str]:
    return [json.dumps(json.loads(line) | {"game_idx": 1}) for line in lines]


@pytest.mark.parametrize(
    "edit", [lambda lines: lines[:7], lambda lines: [*lines[:9], lines[0]], with_one_game]
)
def test_a_dataset_that_was_changed_since_it_was_built_is_built_again(
    home: Path,
    caplog: pytest.LogCaptureFixture,
    server: Loopback,
    edit: Callable[[list[str]], list[str]],
) -> None:
    first, sent = measure(server, n=10), len(server.requests)
    (file,) = home.glob("datasets/*/positions.jsonl")
    file.write_text("\n".join(edit(file.read_text().splitlines())))
    assert measure(server, n=10).samples == first.samples
    assert len(server.requests) == sent + LOOK
    assert "was changed since it was built" in caplog.text
    assert len(list(home.glob("damaged/*/positions.jsonl"))) == 1


def test_a_dataset_that_was_changed_since_it_was_imported_is_said_and_nothing_asked(
    home: Path, server: Loopback
) -> None:
    """To build another would cost what the import was to save."""
    import_dataset("m", positions(10), BISHOPS_AS_KNIGHTS)
    (file,) = home.glob("datasets/*/positions.jsonl")
    write_positions(file, POOL[1:11])
    with pytest.raises(InvalidInput, match=r"was changed since it was imported.* import it again"):
        measure(server, n=10)
    assert len(server.requests) <= 1  # which learns the version
    assert len(measure(server, n=10, dataset=file).samples) == 10


def test_a_dataset_that_only_looks_otherwise_is_the_same(home: Path, server: Loopback) -> None:
    """Other line ends, and keys in another order: a way through an editor changes no position."""
    first = measure(server, n=10)
    (file,) = home.glob("datasets/*/positions.jsonl")
    lines = map(json.loads, file.read_text().splitlines())
    file.write_text("\r\n".join(json.dumps(line, sort_keys=True) for line in lines))
    again = measure(server, n=10)
    assert not again.dataset.built_now
    assert again.samples == first.samples


def test_a_run_with_a_smaller_limit_changes_no_run_with_a_larger_one(serve: Serve) -> None:
    server = serve(in_turn("habit", "habit", "a2a3"))
    limits = (16, 64, 8, 64)
    runs = [measure(server, dataset=positions(10), max_tokens=limit) for limit in limits]
    assert runs[3].samples == runs[1].samples


def test_a_fresh_run_finds_its_own_dataset_and_leaves_the_kept_one_alone(server: Loopback) -> None:
    cached, sent = measure(server, n=10), len(server.requests)
    assert measure(server, n=10, fresh=True).dataset.built_now
    assert len(server.requests) > sent + 20
    sent = len(server.requests)
    assert measure(server, n=10).samples == cached.samples
    assert len(server.requests) == sent + LOOK


def test_runs_on_other_positions_are_not_taken_together(server: Loopback) -> None:
    files = positions(10), positions(10, first=10)
    runs = [measure(server, n=10, **{kind: f}) for kind in ("dataset", "pool") for f in files]
    assert len(pool_runs(runs)) == 4


def test_a_question_that_failed_when_a_dataset_was_found_is_asked_again_and_that_is_said(
    serve: Serve, server: Loopback
) -> None:
    """Once the dataset was kept without that position, and measured for ever."""
    run = partial(measure, pool=positions(20), n=18)
    server.fault = fails(lambda request, _: moves_in(request) == POOL[3].moves)
    without = run(server)
    assert POOL[3] not in [sample.position for sample in without.samples]
    told = [note for note in without.notes if "may choose other positions" in note]
    assert [note.split(" to build")[0] for note in told] == ["1 request"]
    server.fault, asked = None, len(server.requests)
    again = run(server)
    assert len(server.requests) <= asked + LOOK + 1 + 2 * 18
    asked = len(server.requests)
    assert run(server).samples == again.samples
    assert len(server.requests) == asked + LOOK
    fresh = run(serve(habit))
    assert [sample.position for sample in again.samples] == [s.position for s in fresh.samples]
    assert not [note for note in again.notes if "may choose other positions" in note]


def test_measured_answers_of_another_model_are_not_mixed_with_new_ones(
    serve: Serve, tmp_path: Path
) -> None:
    """Where nothing is kept of how the positions are found, or only of later ones."""
    pool, server = tmp_path / "pool.jsonl", serve(habit, model="alias-2024")
    write_positions(pool, POOL[:20])
    for first, then, later in (
        ({"eval": "all_diagonal"}, {}, POOL[:20]),
        ({"tag": "x"}, {"tag": "x"}, [*POOL[20:60], *POOL[18:20]]),
    ):
        server.model = "alias-2024"
        measure(server, pool=pool, n=20, **first)
        write_positions(pool, later)
        server.model = "alias-2025"
        with pytest.raises(UserError, match="'alias-2024', now 'alias-2025'"):
            measure(server, pool=pool, n=20, **then)


def test_controls_do_not_depend_on_what_was_measured_or_lost_before(
    home: Path, serve: Serve
) -> None:
    """Of a larger dataset, or of one whose answers the store has lost."""
    run = partial(measure, serve(CANNOT_STOP), pool=positions(20), diagnose=True)
    alone = run(n=3)
    assert alone.controls
    (home / "answers.sqlite").unlink()
    assert run(n=3).controls == alone.controls
    run(n=20)
    assert run(n=3).controls == alone.controls
