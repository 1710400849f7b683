"""Whole evaluations of models on loopback servers."""

from pathlib import Path

import pytest

from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.habits.chess.position import Position, write_positions
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.task.samples import (
    REPLIES_TO_JUDGE_CUTS,
    REPLIES_TO_JUDGE_READING,
    FirstReplies,
)
from testing import (
    POOL,
    Body,
    Loopback,
    Serve,
    error_when,
    habit,
    measure,
    moves_in,
    openai_server,
    perfect,
    plan_of,
    positions_of,
)


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
    assert len(server.requests) == sent + 3  # the identity check
    larger = measure(server, n=80)
    smaller_again = measure(server, n=50)

    assert run.dataset.origin == "built"
    assert len(run.samples) == 50
    assert all(map(has_habit, positions_of(run.samples)))
    assert run.results["predicted_move_proportion"].value == 1
    assert sent < 50 * 3 * 2 + 100 + 32  # about three requests per hit, and those in flight
    assert repeated.results == run.results
    assert larger.dataset.items[:50] == run.dataset.items
    assert len(larger.dataset.items) == 80
    assert smaller_again.samples == run.samples


def test_requests_contain_exactly_the_specified_messages() -> None:
    with openai_server(habit, model="gpt-4-0314") as server:
        run = measure("openai/gpt-4", n=3)
    probe, *sent = server.requests
    assert (probe["temperature"], probe["max_tokens"]) == (0, 32_768)
    common: Body = {"path": "/v1/chat/completions", "model": "gpt-4"}
    common |= {"temperature": 1.0, "max_tokens": 512}
    expected = [
        common | {"messages": [{"role": m.role, "content": m.content} for m in messages]}
        for sample in run.samples
        for condition in run.plan.conditions
        for messages in [condition.question(sample.item).messages]
    ]

    def sorted_by_messages(requests: list[Body]) -> list[Body]:
        return sorted(requests, key=lambda request: str(request["messages"]))

    assert sorted_by_messages(sent) == sorted_by_messages(expected)


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
            r"50 of the first 50 .* \(the limit is 32,768 tokens\); raise it with --max-tokens",
            REPLIES_TO_JUDGE_CUTS,
        ),
        (
            "Lovely!",
            "stop",
            "40 of the first 40 .* contain no move; the last one was 'Lovely!'",
            REPLIES_TO_JUDGE_READING,
        ),
    ],
)
def test_useless_answers_stop_the_run_early(
    reply: str, finish_reason: str, message: str, max_requests: int, serve: Serve
) -> None:
    server = serve(lambda _: reply, finish_reason=finish_reason)
    with pytest.raises(Incomplete, match=message):
        measure(server, n=500, max_connections=4)
    assert len(server.requests) <= max_requests + 4 * 4


CUT_OFF = Answer("Let me", "length", limit=512)


@pytest.mark.parametrize(
    ("unusable", "answer", "baseline", "stops"),
    [
        (10, CUT_OFF, True, False),
        (11, CUT_OFF, True, True),
        (11, CUT_OFF, False, True),
        (32, Answer("Lovely!"), True, False),
        (33, Answer("Lovely!"), True, True),
        (50, Answer("Lovely!"), False, False),  # silence when the rules change is a result
        (50, Answer("", "error", error="gone"), True, False),
    ],
)
def test_the_first_replies_are_judged_once(
    unusable: int, answer: Answer, baseline: bool, stops: bool
) -> None:
    """The cut-off replies come last, and the unreadable ones first."""
    first_replies = FirstReplies(plan_of())
    is_usable = [*([False] * unusable), *([True] * (50 - unusable))]
    if answer is CUT_OFF:
        is_usable.reverse()
    raised = ""
    try:
        for usable in is_usable:
            first_replies.observe(
                Answer("e2e4") if usable else answer, usable=usable, baseline=baseline
            )
        for _ in range(1_000):
            first_replies.observe(answer, usable=False, baseline=baseline)
    except Incomplete as error:
        raised = str(error)
    assert bool(raised) == stops


def test_a_repeated_position_counts_each_time(server: Loopback, tmp_path: Path) -> None:
    write_positions(tmp_path / "mine.jsonl", [*POOL[:7], POOL[0]])
    run = measure(server, dataset=tmp_path / "mine.jsonl")
    assert {sample.item for sample in run.samples} == set(POOL[:7])
    assert (len(run.samples), len(server.requests)) == (8, 16)


def test_the_diagonal_eval_needs_no_selection(serve: Serve) -> None:
    server = serve(perfect)
    run = measure(server, eval="all_diagonal", n=50)
    assert len(server.requests) == 100
    assert run["predicted_move_proportion"].value == run["rule_uptake"].value == 1
    assert run["predicted_move_in_variant_proportion"].value == 0


def test_a_failed_first_request_is_the_only_one(serve: Serve, no_retry_delay: None) -> None:
    server = serve(habit, fault=error_when(lambda *_: True, "no memory left", 200))
    with pytest.raises(Incomplete, match=r"m does not answer \(.*no memory left"):
        measure(server)
    assert len({str(request) for request in server.requests}) == 1
