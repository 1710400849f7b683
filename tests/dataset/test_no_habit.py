"""Early stopping: a search ends if the pool holds too few hits, or if each hit costs too much."""

import re
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.datasets.futility import (
    FUTILITY_ERROR,
    MAX_REQUESTS_PER_HIT,
    RARITY_ERROR,
    FutilityTest,
    is_too_rare,
    other_habits,
)
from cant_do_that_anymore.errors import Incomplete, NoHabit
from cant_do_that_anymore.formatting import dollars
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, board_after
from planted_models import habit, habit_in_every_fifth, habit_in_every_second
from testing import POOL, Body, Serve, Spec, cdta, checksum, evaluate, measure, moves_in, positions

SMALL_POOL = positions(480)


def without_habit(request: Body) -> str:
    return "a2a3"


def given_up_after(pool: int, hits: int, needed: int, seed: int) -> int | None:
    """Return after how many positions of a shuffled pool the search gives up."""
    are_hits = [True] * hits + [False] * (pool - hits)
    Random(seed).shuffle(are_hits)
    futility = FutilityTest(pool, needed)
    for number, hit in enumerate(are_hits, 1):
        futility.observe(hit)
        if futility.is_futile:
            return number
    return None


@pytest.mark.parametrize(("pool", "needed"), [(300, 8), (150, 60)])
def test_a_sufficient_pool_is_given_up_in_at_most_1_percent(pool: int, needed: int) -> None:
    """Although the test is applied after every position."""
    trials = 1_500
    errors = sum(given_up_after(pool, needed, needed, seed) is not None for seed in range(trials))
    assert errors <= trials * FUTILITY_ERROR + 3 * (trials * FUTILITY_ERROR) ** 0.5
    assert all(given_up_after(pool, needed // 2, needed, seed) for seed in range(50))


def test_a_pool_without_hits_is_given_up_early() -> None:
    assert given_up_after(19_841, 0, 500, 1) == 248
    assert given_up_after(3_973, 0, 500, 1) == 47


@given(st.data())
def test_the_expected_stake_does_not_grow_if_the_pool_holds_enough(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 60))
    needed = data.draw(st.integers(1, size))
    hits = data.draw(st.integers(needed, size))
    order = data.draw(st.permutations([True] * hits + [False] * (size - hits)))
    seen = order[: data.draw(st.integers(0, size - 1))]

    def stake(*more: bool) -> float:
        futility = FutilityTest(size, needed)
        for hit in (*seen, *more):
            futility.observe(hit)
        return futility._stake

    chance = (hits - sum(seen)) / (size - len(seen))
    expected = sum(p * stake(hit) for hit, p in ((True, chance), (False, 1 - chance)) if p)
    assert expected <= stake() * (1 + 1e-9)
    if hits == needed and chance < 1:  # the odds are fair
        assert expected == pytest.approx(stake())


def test_the_search_ends_when_too_few_positions_are_left() -> None:
    futility = FutilityTest(5, 4)
    futility.observe(False)
    assert not futility.is_futile
    futility.observe(False)
    assert futility.is_futile


def test_a_model_without_the_habit_stops_after_a_few_hundred_requests(serve: Serve) -> None:
    server = serve(without_habit)
    command = ["run", "--base-url", server.url, "--quiet"]
    first = cdta(*command, code=1)
    sent = len(server.requests)
    second = cdta(*command, code=1)
    assert len(server.requests) == sent + 1  # one identity check
    assert 248 <= sent < 600
    for result in (first, second):
        (sentence,) = result.stderr.splitlines()
        assert "in 0 of 248 positions" in sentence
        assert "with 99% confidence the pool contains fewer than 500, half of the 1,000" in sentence
        assert "the other 19,593 (" in sentence  # in tokens, because the price is unknown
        assert sentence.endswith(" Use --keep-looking to continue. All answers are saved")


def test_keep_looking_sends_nothing_twice_and_uses_all_hits(serve: Serve) -> None:
    server = serve(habit_in_every_fifth)
    with pytest.raises(Incomplete, match="fewer than 200, half of the 400 wanted"):
        measure(server, pool=SMALL_POOL, n=400)
    assert len(server.requests) < 300
    run = measure(server, pool=SMALL_POOL, n=400, keep_looking=True)
    hits = sum(1 for p in POOL[:480] if checksum(p.moves) % 5 == 0)
    assert len(run.samples) == hits
    assert len(server.requests) == 480 + 2 * hits + 1  # one identity check
    measure(server, pool=SMALL_POOL, n=2 * hits)  # the pool contains half of them
    assert len(server.requests) == 480 + 2 * hits + 2


def test_no_early_stop_for_half_the_hits_a_small_pool_or_a_free_model() -> None:
    half = measure(habit_in_every_second, pool=SMALL_POOL, n=440)
    assert any("(440 wanted)" in note for note in half.notes)
    assert len(measure(habit_in_every_fifth, pool=positions(100), n=101).samples) > 5
    assert 5 < len(measure("cdta/random", pool=SMALL_POOL, n=400).samples) < 200


def stopped_as_too_rare(pool: int, hits: int, seed: int) -> bool:
    """Whether the search stops in the first half of a shuffled pool."""
    hit_places = set(Random(seed).sample(range(pool), hits))
    count = 0
    for place in range(pool // 2):
        count += place in hit_places
        if is_too_rare(count, place + 1):
            return True
    return False


def test_hits_at_half_the_cost_limit_rarely_stop_and_at_twice_nearly_always() -> None:
    pool, trials = 8_000, 300
    acceptable, rare = (
        sum(stopped_as_too_rare(pool, round(pool / cost), seed) for seed in range(trials))
        for cost in (MAX_REQUESTS_PER_HIT / 2, 2 * MAX_REQUESTS_PER_HIT)
    )
    assert acceptable <= trials * RARITY_ERROR + 3 * (trials * RARITY_ERROR) ** 0.5
    assert rare >= 0.98 * trials


@pytest.mark.parametrize("options", [{"n": 5}, {"n": 20}, {"eval": "all_small"}])
def test_few_samples_stop_by_cost(serve: Serve, options: dict[str, Any]) -> None:
    """Before this rule, they took the whole pool, 9,199 and 2,363 positions to find a few hits."""
    server = serve(without_habit)
    with pytest.raises(NoHabit, match="each further sample takes more than about 200") as error:
        measure(server, **options)
    assert "in 0 of 397 positions" in str(error.value)
    assert len(server.requests) < 700  # including those in flight
    assert "smaller" not in str(error.value)


def test_a_free_server_stops_by_cost_unless_told_to_keep_looking(serve: Serve) -> None:
    server, pool = serve(without_habit), positions(850)
    with pytest.raises(NoHabit, match="in 0 of 397 positions"):
        measure(server, n=5, price="0,0", pool=pool)
    with pytest.raises(NoHabit, match="in none of the 850 positions"):
        measure(server, n=5, price="0,0", pool=pool, keep_looking=True)


def test_the_suggested_n_measures_the_hits_found(serve: Serve) -> None:
    first = POOL[:2_000]
    hits = {position.moves for position in first[::600]}
    server = serve(lambda request: habit(request) if moves_in(request) in hits else "a2a3")
    with pytest.raises(NoHabit, match=r"-n \d+ to measure the \d+ found") as error:
        measure(server, n=20, pool=positions(2_000))
    (suggested,) = re.findall(r"or -n (\d+)", str(error.value))
    sent = len(server.requests)
    run = measure(server, n=int(suggested), pool=positions(2_000))
    assert len(run.samples) == int(suggested)
    assert len(server.requests) == sent + 2 * len(run.samples) + 1  # one identity check


def test_other_habits_in_the_answers_are_suggested(serve: Serve) -> None:
    def play_knights(request: Body) -> str:
        board = board_after(moves_in(request))
        knight_moves = (m for m in board.legal_moves if board.piece_type_at(m.from_square) == 2)
        return str(next(knight_moves, "a2a3")) if checksum(moves_in(request)) % 4 else "a2a3"

    with pytest.raises(NoHabit) as error:
        measure(serve(play_knights), n=20)
    (share,) = re.findall(r"try --rules knights-as-bishops \((\d+)%\)", str(error.value))
    assert 60 < int(share) < 80
    assert "bishops-as-knights" not in str(error.value)
    assert other_habits([], BISHOPS_AS_KNIGHTS) == ""


def test_the_three_rules_that_forbid_most_moves_are_suggested() -> None:
    random = Random(0)
    played = [
        (position, random.choice(sorted(move.uci() for move in position.board().legal_moves)))
        for position in POOL[:60]
    ]
    assert other_habits(played, BISHOPS_AS_KNIGHTS) == (
        ". Its 60 moves show other habits: try --rules bishops-as-rooks (27%), "
        "--rules knights-as-bishops (20%) or --rules knights-cannot-jump (17%)"
    )


def test_progress_and_total(serve: Serve, priced: None, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve(habit_in_every_second)
    spec = Spec(
        base_url=server.url, model="priced", pool=SMALL_POOL, n=20, max_cost=100, max_connections=1
    )
    run = evaluate(spec)
    lines = capsys.readouterr().err.splitlines()
    evaluate(replace(spec, model="other", max_cost=None))
    unpriced = capsys.readouterr().err.splitlines()
    assert run.cost.measuring and run.cost.dataset and run.dataset.asked
    total = run.dataset.asked + 40
    cost = dollars(run.cost.measuring + run.cost.dataset)
    assert "building the dataset of priced: 20/20, 0 s left, about $" in lines[-2]
    assert f" in total, {run.dataset.asked} of about {total} requests, " in lines[-2]
    assert f", {20 / run.dataset.asked:.0%} hits, " in lines[-2]
    requests = f"in total, {total} of about {total} requests, "
    assert f": 20/20, 0 s left, about {cost} {requests}" in lines[-1]
    assert f" tokens {requests}" in unpriced[-1]
    repriced = evaluate(replace(spec, price="1000,10000", max_cost=None, ask_above=None))
    assert repriced.cost.measuring  # includes cached answers, at the new price
    assert f"about {dollars(repriced.cost.measuring)} in total" in capsys.readouterr().err
