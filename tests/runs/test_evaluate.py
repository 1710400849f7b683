"""The evaluation end to end, over a real server on the loopback interface."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.client import client
from cant_do_that_anymore.client.client import WINDOW
from cant_do_that_anymore.datasets.pools import drawn, positions_for
from cant_do_that_anymore.datasets.storage import Dataset, import_dataset, shipped_datasets
from cant_do_that_anymore.errors import Incomplete, InvalidInput, UserError
from cant_do_that_anymore.game import rule_pool
from cant_do_that_anymore.game.position import Position, shipped_pool, write_positions
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, rules_named
from cant_do_that_anymore.providers.base import Answer, Settings
from cant_do_that_anymore.task.quality_guard import MIN_ANSWERS, QualityGuard
from loopback import Body, Loopback, Responder, moves_in, serving
from players import habit, keeps_habit, perfect, silent_when_changed, wavering

POOL = shipped_pool("pool")


@contextmanager
def openai(server: Loopback) -> Iterator[Loopback]:
    """The server in OpenAI's place, as its users may set it."""
    with serving(server), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "a-key-for-tests")
        yield server


def test_shipped_dataset_gives_the_metrics_computed_by_hand() -> None:
    with openai(Loopback(wavering, model="gpt-3.5-turbo-0125")) as server:
        run = evaluate(Spec(model="openai/gpt-3.5-turbo"), quiet=True)

    positions = shipped_datasets(POOL)["gpt-3.5-turbo-0125"].positions
    n = len(positions)
    p = sum(keeps_habit(position.moves, changed=False) for position in positions) / n
    v = sum(keeps_habit(position.moves, changed=True) for position in positions) / n
    lengths = [len(position.moves) for position in positions]
    mean = sum(lengths) / n
    metrics = run.results.metrics
    assert n == 1000
    assert run.dataset.origin == "shipped"
    assert metrics["predicted_move_proportion"] == p
    assert metrics["predicted_move_in_variant_proportion"] == v
    assert metrics["delta"] == pytest.approx(v - p)
    assert metrics["variant_impact_factor"] == pytest.approx((v - p) / p)
    assert metrics["avg_num_previous_moves"] == pytest.approx(mean)
    assert metrics["std_num_previous_moves"] == pytest.approx(
        (sum((length - mean) ** 2 for length in lengths) / n) ** 0.5
    )
    assert len(server.requests) == 2001  # one more to learn the exact version


def measured(server: Loopback, **options: Any) -> Run:
    return evaluate(Spec(model="m", base_url=server.url, **options), quiet=True)


@pytest.mark.parametrize(
    ("respond", "impact", "adaptation"),
    [(habit, 0, 0), (perfect, -1, 1), (silent_when_changed, -1, 0)],
)
def test_models_of_known_score(respond: Responder, impact: int, adaptation: int) -> None:
    with serving(Loopback(respond)) as server:
        run = measured(server, n=60)
    assert run.results.metrics["variant_impact_factor"] == impact
    assert run.results.metrics["adaptation_rate"] == adaptation
    assert any("the drop is not adapting" in note for note in run.notes) == (
        respond is silent_when_changed
    )


def test_random_legal_moves_are_never_forbidden() -> None:
    run = evaluate(Spec(model="cdta/random", n=100), quiet=True)
    assert run.results.outcomes["changed"]["forbidden"] == 0
    assert run.results.outcomes["changed"]["special"] == 0
    assert run.results.metrics["variant_legal_proportion"] == 1


def test_a_new_model_gets_a_dataset_of_its_own_habits() -> None:
    """It has a habit in every third position of the pool, and asks no more than it needs."""

    def third(position: Position) -> bool:
        return position.game % 3 == 0

    with_habit = {position.moves for position in POOL if third(position)}

    def respond(request: Body) -> str:
        return habit(request) if moves_in(request) in with_habit else "a7a6"

    with serving(Loopback(respond, model="brand-new-7b")) as server:
        run = measured(server, n=50)
        asked = len(server.requests)
        again = measured(server, n=50)
        assert len(server.requests) == asked + 1
        larger = measured(server, n=80)
        smaller_again = measured(server, n=50)

    assert run.dataset.origin == "built"
    assert len(run.samples) == 50
    assert all(third(sample.position) for sample in run.samples)
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert asked < 50 * 3 * 2 + 100 + 32  # about three questions a hit, and those in flight
    assert again.results == run.results
    assert larger.dataset.positions[:50] == run.dataset.positions
    assert len(larger.dataset.positions) == 80
    assert smaller_again.samples == run.samples


def test_requests_hold_exactly_the_messages_specified() -> None:
    with openai(Loopback(habit, model="gpt-4-0314")) as server:
        run = evaluate(Spec(model="openai/gpt-4", n=3), quiet=True)
    probe, *asked = server.requests
    assert probe["temperature"] == 0
    expected = []
    for sample in run.samples:
        for condition in run.plan.conditions:
            turns = condition.question(sample.position).messages
            expected.append(
                {
                    "path": "/v1/chat/completions",
                    "model": "gpt-4",
                    "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
                    "temperature": 1.0,
                    "max_tokens": 16,
                }
            )
    assert sorted(asked, key=str) == sorted(expected, key=str)


def test_base_models_get_one_text_and_four_tokens() -> None:
    with openai(Loopback(habit, model="gpt-3.5-turbo-instruct")) as server:
        run = evaluate(Spec(model="openai/gpt-3.5-turbo-instruct", n=2), quiet=True)
    assert run.dataset.origin == "shipped"
    for request in server.requests:
        assert request["path"] == "/v1/completions"
        assert request["prompt"].startswith("System: ")
        assert request["prompt"].endswith("\nAssistant:")
        assert request["max_tokens"] == 4
        assert request["stop"] == ["System:", "User:", "Assistant:", "-----"]


def test_selection_and_measuring_share_no_answer() -> None:
    """At temperature 0 as well, every sample is asked again when it is measured."""
    with serving(Loopback(habit)) as server:
        measured(server, n=20, temperature=0.0)
    assert len(server.requests) >= 20 + 2 * 20


def test_another_seed_asks_anew_and_the_same_seed_asks_nothing() -> None:
    with serving(Loopback(habit)) as server:
        measured(server, n=20)
        asked = len(server.requests)
        measured(server, n=20)
        assert len(server.requests) == asked + 1  # is it the same model?
        measured(server, n=20, seed=1)
        assert len(server.requests) == asked + 2 + 2 * 20


def test_a_token_limit_that_spoils_the_answers_stops_the_run_early() -> None:
    thinking = Loopback(lambda _: "Let me think about this", finish_reason="length")
    with serving(thinking) as server, pytest.raises(Incomplete, match=r"raise --max-tokens \(now"):
        measured(server, n=500, max_connections=4)
    assert len(server.requests) <= MIN_ANSWERS + 4 * WINDOW


CUT_OFF, EMPTY = Answer("Let me", "length"), Answer(" ")


@pytest.mark.parametrize(
    ("spoiled", "sentence"),
    [
        ([CUT_OFF], "were cut off before a move; raise --max-tokens (now 16)"),
        ([CUT_OFF, EMPTY], "were empty (10) or cut off before a move; raise --max-tokens (now 16)"),
        ([EMPTY], "were empty, and no limit cut them off"),
        (
            [replace(EMPTY, reasoning="So a2a3.")],
            "were empty, and no limit cut them off; the last one was thoughts alone: 'So a2a3.'",
        ),
    ],
)
def test_what_spoiled_the_answers_is_said_as_it_is(spoiled: list[Answer], sentence: str) -> None:
    watch = QualityGuard(Settings())
    with pytest.raises(Incomplete) as problem:
        for answer in MIN_ANSWERS * spoiled:
            watch.observe(answer, usable=False, baseline=True)
    assert str(problem.value) == f"20 of the first 20 replies {sentence}"


def test_a_model_without_the_habit_cannot_be_measured(tmp_path: Path) -> None:
    write_positions(tmp_path / "pool.jsonl", POOL[:30])
    with (
        serving(Loopback(lambda _: "a1a1")) as server,
        pytest.raises(Incomplete, match="none of the 30 positions"),
    ):
        measured(server, n=10, pool=tmp_path / "pool.jsonl")


def test_a_small_pool_gives_what_there_is_and_says_so(tmp_path: Path) -> None:
    write_positions(tmp_path / "pool.jsonl", POOL[:30])
    with serving(Loopback(habit)) as server:
        run = measured(server, n=100, pool=tmp_path / "pool.jsonl")
    assert len(run.samples) == 30
    assert any("30 samples instead of the 100 asked for" in note for note in run.notes)


def test_a_dataset_file_is_taken_as_it_is(tmp_path: Path) -> None:
    write_positions(tmp_path / "mine.jsonl", POOL[:7])
    with serving(Loopback(perfect)) as server:
        run = measured(server, dataset=tmp_path / "mine.jsonl")
    assert {sample.position for sample in run.samples} == set(POOL[:7])
    assert len(server.requests) == 14


def test_repeated_positions_are_asked_as_often_as_they_stand_there(tmp_path: Path) -> None:
    write_positions(tmp_path / "twice.jsonl", [POOL[0], POOL[0]])
    with serving(Loopback(perfect)) as server:
        run = measured(server, dataset=tmp_path / "twice.jsonl")
    assert len(run.samples) == 2
    assert len(server.requests) == 4


def test_other_rule_changes_are_measured_with_a_pool_of_their_own(tmp_path: Path) -> None:
    position = Position(1, ("e2e4", "e7e5"), ("d1h5",))
    write_positions(tmp_path / "queens.jsonl", [position])
    with serving(Loopback(lambda _: "d1h5")) as server:
        run = measured(server, dataset=tmp_path / "queens.jsonl", rules="queens-as-knights")
    assert run.results.outcomes["changed"]["special"] == 1
    assert "All queens now move exactly as knights do." in str(server.requests)


def test_the_diagonal_eval_needs_no_selection() -> None:
    with serving(Loopback(perfect)) as server:
        run = measured(server, eval="all_diagonal", n=50)
    assert len(server.requests) == 100
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert run.results.metrics["predicted_move_in_variant_proportion"] == 0
    assert run.results.metrics["variant_legal_proportion"] == 1


def test_the_same_seed_draws_the_same_samples_as_the_original() -> None:
    shipped = shipped_datasets(POOL)["gpt-4-0314"]
    first = [position for _, position in drawn(shipped, Spec(n=100, seed=20220722))]
    assert first == Random(20220722).sample(shipped.positions, 100)
    few = Dataset("m", "built", shipped.positions[:5])
    drawn_of_few = [position for _, position in drawn(few, Spec(n=100, seed=1))]
    assert sorted(p.id for p in drawn_of_few) == sorted(p.id for p in few.positions)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match=r"no server answers at http://127\.0\.0\.1:9/v1"):
        evaluate(Spec(model="m", base_url="http://127.0.0.1:9/v1"), quiet=True)


def test_the_only_model_of_a_server_needs_no_name() -> None:
    with serving(Loopback(habit, model="gpt-4-0314")) as server:
        run = evaluate(Spec(base_url=server.url, n=2), quiet=True)
    assert run.model == "gpt-4-0314"


def test_a_dataset_with_unanswered_questions_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    """A few fail for good, the run goes on; when the server is well again, they are asked."""
    write_positions(tmp_path / "pool.jsonl", POOL[:60])
    unlucky = {position.moves for position in POOL[10:13]}

    async def fault(request: Body, _: int) -> web.Response | None:
        failing = request["temperature"] == 0 and moves_in(request) in unlucky
        return (
            web.json_response({"error": {"message": "bad luck"}}, status=400) if failing else None
        )

    with serving(Loopback(habit, fault=fault)) as server:
        first = measured(server, n=100, pool=tmp_path / "pool.jsonl")
        server.fault = None
        second = measured(server, n=100, pool=tmp_path / "pool.jsonl")
    assert len(first.samples) == 57
    assert len(second.samples) == 60


def test_a_server_that_refuses_most_questions_builds_no_dataset() -> None:
    async def fault(_: Body, number: int) -> web.Response | None:
        refused = number > 40 and number % 3
        return web.json_response({"error": {"message": "no"}}, status=400) if refused else None

    with (
        serving(Loopback(habit, fault=fault)) as server,
        pytest.raises(Incomplete, match="questions to find a dataset have no answer"),
    ):
        measured(server, n=500)


def test_a_server_that_fails_at_the_first_question_is_asked_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.01)

    async def fault(*_: object) -> web.Response:
        return web.json_response({"error": {"message": "no memory left"}})

    with (
        serving(Loopback(habit, fault=fault)) as server,
        pytest.raises(Incomplete, match=r"m does not answer \(.*no memory left"),
    ):
        measured(server)
    assert len({str(request) for request in server.requests}) == 1


def test_replies_without_a_move_stop_the_run_early() -> None:
    with (
        serving(Loopback(lambda _: "What a lovely position!")) as server,
        pytest.raises(
            Incomplete, match=r"name no move; the last one was 'What a lovely position!'"
        ),
    ):
        measured(server, n=500, max_connections=4)
    assert len(server.requests) <= 2 * MIN_ANSWERS + 4 * WINDOW


@pytest.mark.parametrize(
    ("version", "problem"), [("m", "holds no positions"), ("", "needs the name of a model")]
)
def test_nothing_is_no_dataset_and_nobody_has_none(
    version: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(InvalidInput, match=problem):
        import_dataset(version, tmp_path / "empty.jsonl", BISHOPS_AS_KNIGHTS)


def test_an_import_serves_the_rules_it_was_made_for_and_no_pool_of_ones_own(tmp_path: Path) -> None:
    write_positions(tmp_path / "pool.jsonl", POOL[:30])
    write_positions(tmp_path / "imported.jsonl", POOL[30:40])
    write_positions(tmp_path / "queens.jsonl", [Position(1, ("e2e4", "e7e5"), ("d1h5",))])
    import_dataset("m", tmp_path / "imported.jsonl", BISHOPS_AS_KNIGHTS)
    import_dataset("m", tmp_path / "queens.jsonl", rules_named("queens-as-knights"))
    with serving(Loopback(habit)) as server:
        assert measured(server, n=10).dataset.origin == "imported"
        own = measured(server, n=10, pool=tmp_path / "pool.jsonl")
    assert {sample.position for sample in own.samples} <= set(POOL[:30])


@pytest.mark.parametrize("pool", ["file", "games"])
def test_an_import_serves_no_pool_that_was_given_under_other_rules(
    pool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_pool, "POOL_SIZE", 40)
    spec = Spec(model="cdta/pocket", rules="no-castling", n=5)
    mined = list(positions_for(spec, quiet=True).positions)
    write_positions(tmp_path / "imported.jsonl", mined[:5])
    write_positions(tmp_path / "file", mined[5:])
    import_dataset("cdta/pocket", tmp_path / "imported.jsonl", spec.change)
    assert evaluate(spec, quiet=True).dataset.origin == "imported"
    given = tmp_path / pool if pool == "file" else pool
    own = evaluate(replace(spec, pool=given), quiet=True)
    assert own.dataset.origin == "built"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"temperature": float("nan")}, "temperature must be at least 0"),
        ({"temperature": -1.0}, "temperature must be at least 0"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, not 0"),
        ({"eval": "al"}, "unknown eval: 'al'"),
        ({"reading": "strict"}, "unknown reading: 'strict'"),
        ({"pool": Path("a"), "dataset": Path("b")}, "not both"),
    ],
)
def test_a_spec_that_cannot_work_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        evaluate(Spec(model="cdta/random", **options), quiet=True)
