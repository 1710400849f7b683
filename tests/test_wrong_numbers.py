"""What once made a number wrong without anybody noticing."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.comparison.entries import pool_runs
from cant_do_that_anymore.datasets.storage import import_dataset
from cant_do_that_anymore.errors import Incomplete, InvalidInput, UserError
from cant_do_that_anymore.game.position import Position, shipped_pool, write_positions
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.task import spec
from cant_do_that_anymore.task.prompts import Wording
from loopback import Body, Loopback, is_changed, moves_in, serving
from players import CANNOT_STOP, habit, number_of

POOL = shipped_pool("pool")
LOOK = 1
"""A run whose answers are kept asks one question again: is it still the same model?"""
OVERLOADED = "The system is overloaded and does not accept requests right now"

pytestmark = pytest.mark.usefixtures("impatient")


def measured(server: Loopback, **options: object) -> Run:
    return evaluate(Spec(base_url=server.url, **{"model": "some-name", **options}), quiet=True)  # type: ignore[arg-type]


def odd_games_only(request: Body) -> str:
    """A model that has its habits in other positions, and yields when the rules change."""
    if number_of(moves_in(request)) % 2 or is_changed(request):
        return "a2a3"
    return habit(request)


def test_two_servers_that_give_their_model_one_name_have_two_datasets() -> None:
    with serving(Loopback(habit)) as one, serving(Loopback(odd_games_only)) as other:
        alone = measured(other, n=40)
        assert alone.dataset.built_now
        first = measured(one, n=40)
    assert first.dataset.built_now
    assert first.results.metrics["predicted_move_proportion"] == 1
    assert alone.results.metrics["predicted_move_proportion"] == 1
    assert {s.position for s in first.samples} != {s.position for s in alone.samples}


def test_a_base_model_does_not_take_the_dataset_built_over_chat() -> None:
    with serving(Loopback(habit)) as server:
        measured(server, n=20)
        over_text = measured(server, model="completions/some-name", n=20)
    assert over_text.dataset.built_now


def test_a_server_that_calls_itself_by_openais_name_gets_no_dataset_of_openais(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(Loopback(habit, model="gpt-4-0314")) as server:
        assert measured(server, model="gpt-4-0314", n=10).dataset.provenance.startswith("built now")
        said_so = measured(server, model="gpt-4-0314", dataset="gpt-4-0314", n=10)
        assert said_so.dataset.provenance == "shipped for gpt-4-0314"
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "a-key-for-tests")
        named = evaluate(Spec(model="openai/gpt-4-0314", n=10), quiet=True)
        assert named.dataset.provenance == "shipped for gpt-4-0314"


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
    body: dict[str, object], choice: dict[str, object], tmp_path: Path
) -> None:
    """Where it fails under the changed rules only, it once scored a perfect -1, for ever."""
    write_positions(tmp_path / "some.jsonl", POOL[:20])
    broken = True

    async def fault(request: Body, _: int) -> web.Response | None:
        if not (broken and is_changed(request)):
            return None
        completion = server.completion(request) | body
        completion["choices"][0] |= choice
        return web.json_response(completion)

    with serving(Loopback(habit, fault=fault)) as server:
        with pytest.raises(Incomplete, match=r"no answer|stopped answering"):
            measured(server, dataset=tmp_path / "some.jsonl")
        broken = False
        assert measured(server, dataset=tmp_path / "some.jsonl").results.metrics["delta"] == 0


def test_a_body_that_says_it_has_no_error_is_an_answer(tmp_path: Path) -> None:
    write_positions(tmp_path / "some.jsonl", POOL[:20])

    async def fault(request: Body, _: int) -> web.Response:
        none: dict[str, object] = {
            "error": None,
            "errors": [],
            "status": "completed",
            "type": "message",
        }
        return web.json_response(server.completion(request) | none)

    with serving(Loopback(habit, fault=fault)) as server:
        run = measured(server, dataset=tmp_path / "some.jsonl")
    assert run.results.metrics["n_failed"] == 0


@pytest.mark.parametrize("status", [500, 503, 400])
@pytest.mark.parametrize(
    "message",
    [
        OVERLOADED,
        "Worker removed from system pool",
        "GPU temperature too high, node does not respond",
        "please use the alternate region",
    ],
)
def test_a_passing_fault_does_not_change_the_form_of_later_questions(
    status: int, message: str, tmp_path: Path
) -> None:
    write_positions(tmp_path / "some.jsonl", POOL[:30])

    async def fault(_: Body, number: int) -> web.Response | None:
        error = web.json_response({"error": {"message": message}}, status=status)
        return error if number == 17 else None

    with serving(Loopback(habit, fault=fault)) as server:
        run = measured(server, dataset=tmp_path / "some.jsonl", n=30, max_connections=3)
    for request in server.requests:
        assert request["messages"][0]["role"] == "system"
        assert "temperature" in request
    assert run.notes == []
    assert run.results.metrics["n_failed"] == 0


def test_a_form_that_was_learnt_is_remembered(tmp_path: Path) -> None:
    """The answers in that form are found again, and nothing has to be refused twice."""
    write_positions(tmp_path / "some.jsonl", POOL[:30])

    async def fault(request: Body, _: int) -> web.Response | None:
        if request["messages"][0]["role"] != "system":
            return None
        error = {"error": {"message": "System role not supported"}}
        return web.json_response(error, status=400)

    with serving(Loopback(habit, fault=fault)) as server:
        first = measured(server, dataset=tmp_path / "some.jsonl")
        asked = len(server.requests)
        again = measured(server, dataset=tmp_path / "some.jsonl")
    assert len(server.requests) == asked + LOOK
    assert again.results == first.results
    assert first.results.metrics["predicted_move_proportion"] == 1


def test_answers_from_before_a_form_was_learnt_are_found_again(tmp_path: Path) -> None:
    """Black's questions are taken as they are; only White's teach that a user must come first."""
    black = [position for position in POOL if len(position.moves) % 2][:40]
    white = [position for position in POOL if not len(position.moves) % 2][:4]
    write_positions(tmp_path / "some.jsonl", [*black, *white])

    async def fault(request: Body, _: int) -> web.Response | None:
        roles = [turn["role"] for turn in request["messages"]]
        message = "Conversation roles must alternate user/assistant"
        refused = roles[:2] == ["system", "assistant"]
        return web.json_response({"error": {"message": message}}, status=400) if refused else None

    with serving(Loopback(habit, fault=fault)) as server:
        options = {"dataset": tmp_path / "some.jsonl", "n": 44, "max_connections": 1}
        first = measured(server, **options)
        asked = len(server.requests)
        again = measured(server, **options)
    assert len(server.requests) == asked + LOOK
    assert again.samples == first.samples


def test_positions_that_make_the_same_question_are_different_samples(tmp_path: Path) -> None:
    """Each is asked by itself, and a second run gives the same numbers without asking."""
    counted = [0]

    def respond(request: Body) -> str:
        counted[0] += 1
        return ("f1b5", "f1c4", "a2a3")[counted[0] % 3]

    moves = ("e2e4", "e7e5", "g1f3", "b8c6")
    pool = [Position(game, moves, (move,)) for game in range(6) for move in ("f1b5", "f1c4")]
    write_positions(tmp_path / "same.jsonl", pool)
    with serving(Loopback(respond)) as server:
        first = measured(server, dataset=tmp_path / "same.jsonl")
        assert len(server.requests) == 24
        second = measured(server, dataset=tmp_path / "same.jsonl")
    assert len(server.requests) == 24 + LOOK
    assert second.samples == first.samples


def test_conditions_with_the_same_text_are_different_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_positions(tmp_path / "some.jsonl", POOL[:20])
    monkeypatch.setattr(spec, "wording_named", lambda name: Wording(name, "Play.", "Play."))
    counted = [0]

    def respond(request: Body) -> str:
        counted[0] += 1
        return habit(request) if counted[0] % 2 else "a2a3"

    with serving(Loopback(respond)) as server:
        first = measured(server, dataset=tmp_path / "some.jsonl", wording="same")
        assert len(server.requests) == 40
        second = measured(server, dataset=tmp_path / "some.jsonl", wording="same")
    assert second.samples == first.samples


def without_most(lines: list[str]) -> list[str]:
    return lines[:7]


def with_a_line_twice(lines: list[str]) -> list[str]:
    return [*lines[:19], lines[0]]


def with_one_game(lines: list[str]) -> list[str]:
    return [json.dumps(json.loads(line) | {"game_idx": 1}) for line in lines]


@pytest.mark.parametrize("edit", [without_most, with_a_line_twice, with_one_game])
def test_a_dataset_that_was_changed_since_it_was_built_is_built_again(
    home: Path, caplog: pytest.LogCaptureFixture, edit: Callable[[list[str]], list[str]]
) -> None:
    with serving(Loopback(habit)) as server:
        first = measured(server, n=20)
        asked = len(server.requests)
        (file,) = home.glob("datasets/*/positions.jsonl")
        file.write_text("\n".join(edit(file.read_text().splitlines())))
        again = measured(server, n=20)
    assert again.samples == first.samples
    assert len(server.requests) == asked + LOOK
    assert "was changed since it was built" in caplog.text
    assert len(list(home.glob("damaged/*/positions.jsonl"))) == 1


def test_a_dataset_that_was_changed_since_it_was_imported_is_said_and_nothing_asked(
    home: Path, tmp_path: Path
) -> None:
    """To build another would cost what the import was to save."""
    write_positions(tmp_path / "mine.jsonl", POOL[:20])
    import_dataset("some-name", tmp_path / "mine.jsonl", BISHOPS_AS_KNIGHTS)
    (file,) = home.glob("datasets/*/positions.jsonl")
    write_positions(file, POOL[1:21])
    with serving(Loopback(habit)) as server:
        with pytest.raises(
            InvalidInput, match=r"was changed since it was imported.* import it again"
        ):
            measured(server, n=20)
        assert len(server.requests) <= 1  # which learns the version
        by_file = measured(server, n=20, dataset=file)
    assert len(by_file.samples) == 20


def test_a_dataset_that_only_looks_otherwise_is_the_same(home: Path) -> None:
    """Other line ends, and keys in another order: a way through an editor changes no position."""
    with serving(Loopback(habit)) as server:
        first = measured(server, n=20)
        (file,) = home.glob("datasets/*/positions.jsonl")
        lines = [
            json.dumps(json.loads(line), sort_keys=True)
            for line in file.read_text().split("\n")
            if line
        ]
        file.write_text("\r\n".join(lines))
        again = measured(server, n=20)
    assert not again.dataset.built_now
    assert again.samples == first.samples


@pytest.mark.parametrize("message", [OVERLOADED, "GPU temperature too high, node does not respond"])
def test_a_fault_that_passes_while_it_is_looked_into_changes_no_form(
    message: str, tmp_path: Path
) -> None:
    write_positions(tmp_path / "some.jsonl", POOL[:30])

    async def fault(_: Body, number: int) -> web.Response | None:
        error = web.json_response({"error": {"message": message}}, status=400)
        return error if number in (17, 18) else None

    with serving(Loopback(habit, fault=fault)) as server:
        run = measured(server, dataset=tmp_path / "some.jsonl", n=30, max_connections=1)
    assert run.notes == []
    assert run.results.metrics["predicted_move_proportion"] == 1


def test_a_run_with_a_smaller_limit_changes_no_run_with_a_larger_one(tmp_path: Path) -> None:
    write_positions(tmp_path / "some.jsonl", POOL[:20])
    counted = [0]

    def respond(request: Body) -> str:
        counted[0] += 1
        return habit(request) if counted[0] % 3 else "a2a3"

    with serving(Loopback(respond)) as server:
        runs = [
            measured(server, dataset=tmp_path / "some.jsonl", n=20, max_tokens=limit)
            for limit in (16, 64, 8, 64)
        ]
    assert runs[3].samples == runs[1].samples


def test_a_fresh_run_finds_its_own_dataset_and_leaves_the_kept_one_alone() -> None:
    with serving(Loopback(habit)) as server:
        kept = measured(server, n=20)
        asked = len(server.requests)
        fresh = measured(server, n=20, fresh=True)
        assert fresh.dataset.built_now
        assert len(server.requests) > asked + 40
        again = len(server.requests)
        assert measured(server, n=20).samples == kept.samples
    assert len(server.requests) == again + LOOK


def test_runs_on_other_positions_are_not_taken_together(tmp_path: Path) -> None:
    for name, part in (("a", POOL[:30]), ("b", POOL[30:60])):
        write_positions(tmp_path / f"{name}.jsonl", part)
    with serving(Loopback(habit)) as server:
        runs = [measured(server, dataset=tmp_path / f"{name}.jsonl", n=30) for name in "ab"]
        runs += [measured(server, pool=tmp_path / f"{name}.jsonl", n=30) for name in "ab"]
    assert len(pool_runs(runs)) == 4


def test_a_question_that_failed_when_a_dataset_was_found_is_asked_again_and_that_is_said(
    tmp_path: Path,
) -> None:
    """Once the dataset was kept without that position, and measured for ever."""
    write_positions(tmp_path / "pool.jsonl", POOL[:20])
    broken = True

    async def fault(request: Body, _: int) -> web.Response | None:
        fails = broken and moves_in(request) == POOL[3].moves
        return web.Response(status=500) if fails else None

    options = {"pool": tmp_path / "pool.jsonl", "n": 18}
    with serving(Loopback(habit, fault=fault)) as server:
        without = measured(server, **options)
        assert POOL[3] not in [sample.position for sample in without.samples]
        told = [note for note in without.notes if "may choose other positions" in note]
        assert [note.split(" to find")[0] for note in told] == ["1 question"]
        broken = False
        asked = len(server.requests)
        again = measured(server, **options)
        assert len(server.requests) <= asked + LOOK + 1 + 2 * 18
        asked = len(server.requests)
        assert measured(server, **options).samples == again.samples
        assert len(server.requests) == asked + LOOK
    with serving(Loopback(habit)) as well:
        fresh = measured(well, **options)
    assert [sample.position for sample in again.samples] == [s.position for s in fresh.samples]
    assert not [note for note in again.notes if "may choose other positions" in note]


def test_measured_answers_of_another_model_are_not_mixed_with_new_ones(tmp_path: Path) -> None:
    """Where nothing is kept of how the positions are found, or only of later ones."""
    write_positions(tmp_path / "pool.jsonl", POOL[:20])
    options = {"pool": tmp_path / "pool.jsonl", "n": 20}
    with serving(Loopback(habit, model="alias-2024")) as server:
        measured(server, eval="all_diagonal", **options)
        server.model = "alias-2025"
        with pytest.raises(UserError, match="'alias-2024' answered then, 'alias-2025' does now"):
            measured(server, **options)
        server.model = "alias-2024"
        measured(server, tag="x", **options)
        write_positions(tmp_path / "pool.jsonl", [*POOL[20:60], *POOL[18:20]])
        server.model = "alias-2025"
        with pytest.raises(UserError, match="'alias-2024' answered then, 'alias-2025' does now"):
            measured(server, tag="x", **options)


def test_controls_do_not_depend_on_what_was_measured_or_lost_before(
    home: Path, tmp_path: Path
) -> None:
    """Of a larger dataset, or of one whose answers the store has lost."""
    write_positions(tmp_path / "pool.jsonl", POOL[:40])
    options = {"pool": tmp_path / "pool.jsonl", "n": 3, "diagnose": True}
    with serving(Loopback(CANNOT_STOP)) as server:
        alone = measured(server, **options)
        (home / "answers.sqlite").unlink()
        assert measured(server, **options).controls == alone.controls
        measured(server, **options | {"n": 40})
        assert measured(server, **options).controls == alone.controls
    assert alone.controls
