"""No habit, no bill: a search that cannot give enough, or takes too many requests, ends early."""

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
from planted_models import habit, in_every_fifth, in_every_second
from testing import POOL, Body, Serve, Spec, cdta, evaluate, measure, moves_in, number_of, positions

FEW = positions(480)


def without_habit(request: Body) -> str:
    return "a2a3"


def given_up_after(pool: int, hits: int, needed: int, seed: int) -> int | None:
    """How many positions of a shuffled pool are looked at before it is given up."""
    are_hits = [True] * hits + [False] * (pool - hits)
    Random(seed).shuffle(are_hits)
    prospect = FutilityTest(pool, needed)
    for place, hit in enumerate(are_hits, 1):
        prospect.observe(hit)
        if prospect.is_futile:
            return place
    return None


@pytest.mark.parametrize(("pool", "needed"), [(300, 8), (150, 60)])
def test_a_pool_that_holds_enough_is_given_up_in_1_percent_at_most(pool: int, needed: int) -> None:
    """Although it is looked at after every single position."""
    times = 1_500
    wrong = sum(given_up_after(pool, needed, needed, seed) is not None for seed in range(times))
    assert wrong <= times * FUTILITY_ERROR + 3 * (times * FUTILITY_ERROR) ** 0.5
    assert all(given_up_after(pool, needed // 2, needed, seed) for seed in range(50))


def test_without_a_hit_some_hundred_positions_are_enough() -> None:
    assert given_up_after(19_841, 0, 500, 1) == 248
    assert given_up_after(3_973, 0, 500, 1) == 47


@given(st.data())
def test_no_pool_that_holds_enough_gains_the_bet_in_the_mean(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 60))
    needed = data.draw(st.integers(1, size))
    held = data.draw(st.integers(needed, size))
    order = data.draw(st.permutations([True] * held + [False] * (size - held)))
    seen = order[: data.draw(st.integers(0, size - 1))]

    def stake(*more: bool) -> float:
        prospect = FutilityTest(size, needed)
        for hit in (*seen, *more):
            prospect.observe(hit)
        return prospect._stake

    chance = (held - sum(seen)) / (size - len(seen))
    after = sum(p * stake(hit) for hit, p in ((True, chance), (False, 1 - chance)) if p)
    assert after <= stake() * (1 + 1e-9)
    if held == needed and chance < 1:  # the odds are fair
        assert after == pytest.approx(stake())


def test_a_pool_of_which_all_that_is_left_would_have_to_be_hits_ends_with_the_first_miss() -> None:
    prospect = FutilityTest(5, 4)
    prospect.observe(False)
    assert not prospect.is_futile
    prospect.observe(False)
    assert prospect.is_futile


def test_a_model_without_the_habit_hears_so_after_some_hundred_questions(serve: Serve) -> None:
    server = serve(without_habit)
    command = ["run", "--base-url", server.url, "--quiet"]
    first = cdta(*command, code=1)
    sent = len(server.requests)
    again = cdta(*command, code=1)
    assert len(server.requests) == sent + 1  # is it the same model? And no other
    assert 248 <= sent < 600
    for done in (first, again):
        (sentence,) = done.stderr.splitlines()
        assert "in 0 of 248 positions" in sentence
        assert "with 99% confidence the pool contains fewer than 500, half of the 1,000" in sentence
        assert "the other 19,593 (" in sentence  # in tokens: nobody knows the price
        assert sentence.endswith(" Use --keep-looking to continue. All answers are saved")


def test_so_it_does_where_a_precision_is_wanted(serve: Serve) -> None:
    """By what such a run usually takes, and not by the fifty samples of its first look."""
    server = serve(without_habit)
    with pytest.raises(NoHabit, match="fewer than 189, half of the 378 wanted") as told:
        measure(server, precision=0.1, pool=positions(2_000))
    assert str(told.value).endswith(" Use --keep-looking to continue. All answers are saved")
    assert len(server.requests) < 1_000
    with pytest.raises(NoHabit, match="fewer than 30, half of the 60 wanted") as told:
        measure(server, precision=0.1, n=60, pool=FEW, fresh=True)
    assert "with 99% confidence" in str(told.value)
    assert str(told.value).endswith(" Use --keep-looking to continue")


def test_who_keeps_looking_asks_nothing_twice_and_gets_what_there_is(serve: Serve) -> None:
    server = serve(in_every_fifth)
    with pytest.raises(Incomplete, match="fewer than 200, half of the 400 wanted"):
        measure(server, pool=FEW, n=400)
    assert len(server.requests) < 300
    run = measure(server, pool=FEW, n=400, keep_looking=True)
    found = sum(1 for p in POOL[:480] if number_of(p.moves) % 5 == 0)
    assert len(run.samples) == found
    assert len(server.requests) == 480 + 2 * found + 1  # is it the same model?
    measure(server, pool=FEW, n=2 * found)  # of which the pool can give half
    assert len(server.requests) == 480 + 2 * found + 2


def test_half_is_enough_a_small_pool_is_gone_through_and_so_is_one_that_is_free() -> None:
    half = measure(in_every_second, pool=FEW, n=440)
    assert any("(440 wanted)" in note for note in half.notes)
    assert len(measure(in_every_fifth, pool=positions(100), n=101).samples) > 5
    assert 5 < len(measure("cdta/random", pool=FEW, n=400).samples) < 200


def stopped_as_too_rare(pool: int, hits: int, seed: int) -> bool:
    """Whether a shuffled pool is given up before half of it is looked at."""
    places = set(Random(seed).sample(range(pool), hits))
    found = 0
    for place in range(pool // 2):
        found += place in places
        if is_too_rare(found, place + 1):
            return True
    return False


def test_a_model_that_costs_half_of_the_limit_is_seldom_stopped_and_twice_nearly_always() -> None:
    pool, times = 8_000, 300
    acceptable, rare = (
        sum(stopped_as_too_rare(pool, round(pool / each), seed) for seed in range(times))
        for each in (MAX_REQUESTS_PER_HIT / 2, 2 * MAX_REQUESTS_PER_HIT)
    )
    assert acceptable <= times * RARITY_ERROR + 3 * (times * RARITY_ERROR) ** 0.5
    assert rare >= 0.98 * times


@pytest.mark.parametrize("wanted", [{"n": 5}, {"n": 20}, {"eval": "all_small"}])
def test_few_samples_stop_by_cost(serve: Serve, wanted: dict[str, Any]) -> None:
    """They asked the whole pool, 9,199 and 2,363 positions before, since few hits would do."""
    server = serve(without_habit)
    with pytest.raises(NoHabit, match="each further sample takes more than about 200") as told:
        measure(server, **wanted)
    assert "in 0 of 397 positions" in str(told.value)
    assert len(server.requests) < 700  # and those in flight
    assert "smaller" not in str(told.value)


def test_a_free_server_stops_by_cost_and_goes_on_if_asked_to(serve: Serve) -> None:
    server, pool = serve(without_habit), positions(850)
    with pytest.raises(NoHabit, match="in 0 of 397 positions"):
        measure(server, n=5, price="0,0", pool=pool)
    with pytest.raises(NoHabit, match="in none of the 850 positions"):
        measure(server, n=5, price="0,0", pool=pool, keep_looking=True)


def test_those_found_are_measured_with_the_advised_n(serve: Serve) -> None:
    first = POOL[:2_000]
    hits = {position.moves for position in first[::600]}
    server = serve(lambda request: habit(request) if moves_in(request) in hits else "a2a3")
    with pytest.raises(NoHabit, match=r"-n \d+ to measure the \d+ found") as told:
        measure(server, n=20, pool=positions(2_000))
    (advised,) = re.findall(r"or -n (\d+)", str(told.value))
    sent = len(server.requests)
    run = measure(server, n=int(advised), pool=positions(2_000))
    assert len(run.samples) == int(advised)
    assert len(server.requests) == sent + 2 * len(run.samples) + 1  # is it the same model?


def test_the_habits_its_answers_show_are_named(serve: Serve) -> None:
    def with_knights(request: Body) -> str:
        board = board_after(moves_in(request))
        of_knights = (m for m in board.legal_moves if board.piece_type_at(m.from_square) == 2)
        return str(next(of_knights, "a2a3")) if number_of(moves_in(request)) % 4 else "a2a3"

    with pytest.raises(NoHabit) as told:
        measure(serve(with_knights), n=20)
    (share,) = re.findall(r"try --rules knights-as-bishops \((\d+)%\)", str(told.value))
    assert 60 < int(share) < 80
    assert "bishops-as-knights" not in str(told.value)
    assert other_habits([], BISHOPS_AS_KNIGHTS) == ""


def test_the_three_rules_are_suggested_that_forbid_most_of_the_moves_played() -> None:
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
    server = serve(in_every_second)
    spec = Spec(
        base_url=server.url, model="priced", pool=FEW, n=20, max_cost=100, max_connections=1
    )
    run = evaluate(spec)
    lines = capsys.readouterr().err.splitlines()
    evaluate(replace(spec, model="other", max_cost=None))
    unknown = capsys.readouterr().err.splitlines()
    assert run.cost.measuring and run.cost.dataset and run.dataset.asked
    in_all = run.dataset.asked + 40
    cost = dollars(run.cost.measuring + run.cost.dataset)
    assert "building the dataset of priced: 20/20, 0 s left, about $" in lines[-2]
    assert f" in total, {run.dataset.asked} of about {in_all} requests, " in lines[-2]
    assert f", {20 / run.dataset.asked:.0%} hits, " in lines[-2]
    requests = f"in total, {in_all} of about {in_all} requests, "
    assert f": 20/20, 0 s left, about {cost} {requests}" in lines[-1]
    assert f" tokens {requests}" in unknown[-1]
    dearer = evaluate(replace(spec, price="1000,10000", max_cost=None, ask_above=None, draws=2))
    assert dearer.cost.measuring  # cached answers as well, at the price given now
    assert f"about {dollars(dearer.cost.measuring)} in total" in capsys.readouterr().err
