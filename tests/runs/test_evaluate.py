"""Whole evaluations of models on loopback servers."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from cant_do_that_anymore.client.client import WINDOW
from cant_do_that_anymore.datasets.pools import drawn
from cant_do_that_anymore.datasets.storage import Dataset, shipped_datasets
from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.game.position import Position, write_positions
from cant_do_that_anymore.providers.base import Answer, Settings
from cant_do_that_anymore.task.samples import MIN_ANSWERS_TO_JUDGE, QualityGuard
from planted_models import keeps_habit
from testing import (
    POOL,
    Body,
    Loopback,
    Serve,
    Spec,
    error_when,
    habit,
    measure,
    moves_in,
    openai_server,
    perfect,
    positions,
    wavering,
)


def test_metrics_on_a_shipped_dataset_match_a_direct_calculation() -> None:
    with openai_server(wavering, model="gpt-3.5-turbo-0125") as server:
        run = measure("openai/gpt-3.5-turbo", n=100)

    shipped, n = shipped_datasets(POOL)["gpt-3.5-turbo-0125"].positions, 100
    sampled = Random(Spec.seed).sample(shipped, n)
    p = sum(keeps_habit(position.moves, changed=False) for position in sampled) / n
    v = sum(keeps_habit(position.moves, changed=True) for position in sampled) / n
    lengths = [len(position.moves) for position in sampled]
    mean = sum(lengths) / n
    metrics = run.results.metrics
    assert len(shipped) == 1000
    assert run.dataset.origin == "shipped"
    assert metrics["predicted_move_proportion"] == p
    assert metrics["predicted_move_in_variant_proportion"] == v
    assert metrics["delta"] == pytest.approx(v - p)
    assert metrics["variant_impact_factor"] == pytest.approx((v - p) / p)
    assert metrics["avg_num_previous_moves"] == pytest.approx(mean)
    assert metrics["std_num_previous_moves"] == pytest.approx(
        (sum((length - mean) ** 2 for length in lengths) / n) ** 0.5
    )
    assert len(server.requests) == 201  # one request to learn the exact version


def test_random_legal_moves_are_never_forbidden() -> None:
    run = measure("cdta/random", dataset=positions(100))
    assert run.results.outcomes["changed"]["forbidden"] == 0
    assert run.results.outcomes["changed"]["special"] == 0
    assert run.results.metrics["variant_legal_proportion"] == 1


def test_a_new_model_gets_a_dataset_of_its_own_habits(serve: Serve) -> None:
    """It has a habit in every third position of the pool; no more requests than needed are sent."""

    def has_habit(position: Position) -> bool:
        return position.game % 3 == 0

    moves_with_habit = {position.moves for position in POOL if has_habit(position)}

    def respond(request: Body) -> str:
        return habit(request) if moves_in(request) in moves_with_habit else "a7a6"

    server = serve(respond, model="brand-new-7b")
    run = measure(server, n=50)
    sent = len(server.requests)
    repeated = measure(server, n=50)
    assert len(server.requests) == sent + 1
    larger = measure(server, n=80)
    smaller_again = measure(server, n=50)

    assert run.dataset.origin == "built"
    assert len(run.samples) == 50
    assert all(has_habit(sample.position) for sample in run.samples)
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert sent < 50 * 3 * 2 + 100 + 32  # about three requests per hit, and those in flight
    assert repeated.results == run.results
    assert larger.dataset.positions[:50] == run.dataset.positions
    assert len(larger.dataset.positions) == 80
    assert smaller_again.samples == run.samples


def test_requests_contain_exactly_the_specified_messages() -> None:
    with openai_server(habit, model="gpt-4-0314") as server:
        run = measure("openai/gpt-4", n=3)
    probe, *sent = server.requests
    assert probe["temperature"] == 0
    common: Body = {"path": "/v1/chat/completions", "model": "gpt-4"}
    common |= {"temperature": 1.0, "max_tokens": 16}
    expected = [
        common | {"messages": [{"role": m.role, "content": m.content} for m in messages]}
        for sample in run.samples
        for condition in run.plan.conditions
        for messages in [condition.question(sample.position).messages]
    ]

    def sorted_by_messages(requests: list[Body]) -> list[Body]:
        return sorted(requests, key=lambda request: str(request["messages"]))

    assert sorted_by_messages(sent) == sorted_by_messages(expected)


def test_base_models_get_one_text_and_a_limit_of_four_tokens() -> None:
    with openai_server(habit, model="gpt-3.5-turbo-instruct") as server:
        run = measure("openai/gpt-3.5-turbo-instruct", n=2)
    assert run.dataset.origin == "shipped"
    for request in server.requests:
        assert request["path"] == "/v1/completions"
        assert request["prompt"].startswith("System: ")
        assert request["prompt"].endswith("\nAssistant:")
        assert request["max_tokens"] == 4
        assert request["stop"] == ["System:", "User:", "Assistant:", "-----"]


def test_selection_and_measuring_share_no_answer(server: Loopback) -> None:
    """Even at temperature 0, measuring asks about every sample again."""
    measure(server, n=20, temperature=0.0)
    assert len(server.requests) >= 20 + 2 * 20


@pytest.mark.parametrize(
    ("reply", "finish_reason", "message", "max_requests"),
    [
        (
            "Let me think",
            "length",
            r"such as 'Let me think'.*--max-tokens \(now",
            MIN_ANSWERS_TO_JUDGE,
        ),
        (
            "Lovely!",
            "stop",
            "contain no move; the last one was 'Lovely!'",
            2 * MIN_ANSWERS_TO_JUDGE,
        ),
    ],
)
def test_useless_answers_stop_the_run_early(
    reply: str, finish_reason: str, message: str, max_requests: int, serve: Serve
) -> None:
    server = serve(lambda _: reply, finish_reason=finish_reason)
    with pytest.raises(Incomplete, match=message):
        measure(server, n=500, max_connections=4)
    assert len(server.requests) <= max_requests + 4 * WINDOW


TRUNCATED, EMPTY = Answer("Let me", "length"), Answer(" ")
NO_MOVE_YET = (
    "begin without a move, such as 'Let me'; try another --wording, or raise --max-tokens (now 16) "
    "if a move would follow"
)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([TRUNCATED], f"were cut off and {NO_MOVE_YET}"),
        ([TRUNCATED, EMPTY], f"were empty (10) or cut off and {NO_MOVE_YET}"),
        ([Answer("", "length")], "were cut off before a move; raise --max-tokens (now 16)"),
        ([EMPTY], "were empty without reaching a token limit"),
        (
            [replace(EMPTY, reasoning="So a2a3.")],
            "were empty without reaching a token limit; the last one was reasoning only: 'So "
            "a2a3.'",
        ),
    ],
)
def test_the_error_says_why_answers_are_useless(answers: list[Answer], message: str) -> None:
    guard = QualityGuard(Settings())
    with pytest.raises(Incomplete) as error:
        for answer in MIN_ANSWERS_TO_JUDGE * answers:
            guard.observe(answer, usable=False, baseline=True)
    assert str(error.value) == f"20 of the first 20 replies {message}"


@pytest.mark.parametrize(("share", "low", "high"), [(0.1, 0, 0), (0.2, 0, 0.01), (0.4, 0.99, 1)])
def test_few_replies_cut_off_rarely_end_a_run(share: float, low: float, high: float) -> None:
    """In 200 runs of 1,000 positions."""
    random, stopped = Random(1), 0
    for _ in range(200):
        guard = QualityGuard(Settings())
        try:
            for _ in range(1_000):
                is_truncated = random.random() < share
                guard.observe(TRUNCATED, usable=not is_truncated, baseline=False)
        except Incomplete:
            stopped += 1
    assert low <= stopped / 200 <= high


def test_a_repeated_position_counts_each_time(server: Loopback, tmp_path: Path) -> None:
    write_positions(tmp_path / "mine.jsonl", [*POOL[:7], POOL[0]])
    run = measure(server, dataset=tmp_path / "mine.jsonl")
    assert {sample.position for sample in run.samples} == set(POOL[:7])
    assert (len(run.samples), len(server.requests)) == (8, 16)


def test_other_rule_changes_use_their_own_positions(serve: Serve, tmp_path: Path) -> None:
    write_positions(tmp_path / "queens.jsonl", [Position(1, ("e2e4", "e7e5"), ("d1h5",))])
    server = serve(lambda _: "d1h5")
    run = measure(server, dataset=tmp_path / "queens.jsonl", rules="queens-as-knights")
    assert run.results.outcomes["changed"]["special"] == 1
    assert "All queens now move exactly as knights do." in str(server.requests)


def test_the_diagonal_eval_needs_no_selection(serve: Serve) -> None:
    server = serve(perfect)
    metrics = measure(server, eval="all_diagonal", n=50).results.metrics
    assert len(server.requests) == 100
    assert metrics["predicted_move_proportion"] == 1
    assert metrics["predicted_move_in_variant_proportion"] == 0
    assert metrics["variant_legal_proportion"] == 1


def test_a_seed_draws_the_same_samples_as_the_original() -> None:
    shipped = shipped_datasets(POOL)["gpt-4-0314"]
    sampled = [position for _, position in drawn(shipped, Spec(n=100, seed=20220722))]
    assert sampled == Random(20220722).sample(shipped.positions, 100)
    small = Dataset("m", "built", shipped.positions[:5])
    all_drawn = [position for _, position in drawn(small, Spec(n=100, seed=1))]
    assert sorted(p.id for p in all_drawn) == sorted(p.id for p in small.positions)


def test_a_dataset_with_unanswered_requests_counts_as_incomplete(serve: Serve) -> None:
    """The run continues after a few failures, and the next run sends those requests again."""
    failing = {position.moves for position in POOL[10:13]}
    fault = error_when(
        lambda r, _: r["temperature"] == 0 and moves_in(r) in failing, "bad luck", 400
    )
    server = serve(habit, fault=fault)
    assert len(measure(server, n=100, pool=positions(60)).samples) == 57
    server.fault = None
    assert len(measure(server, n=100, pool=positions(60)).samples) == 60


def test_a_failed_first_request_is_the_only_one(serve: Serve, no_retry_delay: None) -> None:
    server = serve(habit, fault=error_when(lambda *_: True, "no memory left", 200))
    with pytest.raises(Incomplete, match=r"m does not answer \(.*no memory left"):
        measure(server)
    assert len({str(request) for request in server.requests}) == 1
