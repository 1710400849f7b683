"""The search for habits: which positions are asked about, how often, and which are found."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest

from cant_do_that_anymore.datasets.pools import Pool
from cant_do_that_anymore.datasets.search import Query, Search, SelectionConfig, batch_size
from cant_do_that_anymore.datasets.selection import known_dataset
from cant_do_that_anymore.datasets.storage import Dataset, save_dataset
from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.game.rules import rules_named
from cant_do_that_anymore.providers.base import Answer, Request, Usage, local_info
from cant_do_that_anymore.providers.local import RandomModel
from cant_do_that_anymore.providers.request_variants import NO_TEMPERATURE
from cant_do_that_anymore.task.plan import plan_for
from cant_do_that_anymore.task.prompts import Prompt
from testing import POOL as SHIPPED
from testing import Spec

POOL = Pool("some", SHIPPED[:100])
CRITERIA = SelectionConfig(RandomModel.info, POOL, plan_for(Spec(), RandomModel.info))
ORDERED = CRITERIA.ordered
FAILED = Answer("", "error", error="gone")
Says = Callable[[int, int], bool]
"""By the number of a position and of the draw, whether the special move comes."""


def number_of(ask: Request) -> int:
    return [position.moves for position in ORDERED].index(ask.question.moves)


def answer_to(ask: Request, says: Says, *conceded: str) -> Answer:
    number = number_of(ask)
    text = ORDERED[number].special_moves[0] if says(number, ask.draw) else "no move"
    return Answer(text, usage=Usage(10, 1), conceded=conceded)


def searched(
    says: Says, *conceded: str, wanted: int, expected_positions: int = 0, most: int = 999
) -> Search:
    """Ask one question after the other until enough is found, or so many were asked."""
    search = Search(CRITERIA, wanted, expected_positions)
    for ask in islice(search.requests(), most):
        search.observe(answer_to(ask, says, *conceded))
        if search.done:
            break
    return search


def every_fourth(number: int, draw: int) -> bool:
    return number % 4 == 0


def found_by(search: Search) -> list[int]:
    return [ORDERED.index(position) for position in search.hits]


def test_the_pool_is_gone_through_in_order_until_enough_is_found() -> None:
    search = searched(every_fourth, wanted=3)
    assert found_by(search) == [0, 4, 8]
    assert (search.searched, search.left, search.done) == (9, 91, True)
    dataset = search.dataset("v")
    assert (dataset.asked, dataset.pool_ended, dataset.own_temperature) == (9, False, False)
    assert dataset.usage == Usage(90, 9)
    assert (dataset.version, dataset.origin, dataset.built_now) == ("v", "built", True)
    names = POOL.digest, POOL.display_name(CRITERIA.plan.change)
    assert (dataset.pool, dataset.pool_name) == names


def test_without_a_temperature_two_of_three_draws_decide_and_a_first_miss_ends_it() -> None:
    drawn = {0: [1, 1], 1: [1, 0, 1], 2: [1, 0, 0], 3: [0], 4: [1, 1]}

    def says(number: int, draw: int) -> bool:
        return bool(drawn[number][draw])

    search = searched(says, NO_TEMPERATURE, wanted=3)
    assert found_by(search) == [0, 1, 4]
    assert search.dataset("v").asked == 2 + 3 + 3 + 1 + 2
    assert search.dataset("v").usage == Usage(110, 11)
    assert search.dataset("v").own_temperature


def test_one_answer_without_a_temperature_is_enough_to_say_so() -> None:
    search = Search(CRITERIA, 2)
    for number, ask in enumerate(search.requests()):
        search.observe(answer_to(ask, every_fourth, *([NO_TEMPERATURE] if number == 1 else [])))
        if search.done:
            break
    assert search.dataset("v").own_temperature


def test_later_answers_do_not_overtake_a_position_that_is_open() -> None:
    search = Search(CRITERIA, 2)
    for ask in list(islice(search.requests(), 6)):
        search.observe(answer_to(ask, lambda *_: True, NO_TEMPERATURE))
    assert (found_by(search), search.searched) == ([], 0)
    assert search.next_batch_size == 3 + batch_size(2 - 6, 6, 6)  # half as many more as are missing
    again = list(islice(search.requests(), 3))
    assert [(number_of(ask), ask.draw) for ask in again] == [(0, 1), (1, 1), (2, 1)]
    search.observe(answer_to(again[0], lambda *_: True, NO_TEMPERATURE))
    assert (found_by(search), search.searched) == ([0], 1)


def test_in_a_wave_what_is_open_counts_as_likely_and_what_was_missed_as_seen() -> None:
    search = Search(CRITERIA, 10)
    for ask in list(islice(search.requests(), 6)):
        search.observe(answer_to(ask, lambda number, _: number % 2 == 0, NO_TEMPERATURE))
    assert search.searched == 0
    assert search.next_batch_size == 3 + batch_size(10 - 3, 6, 3)


def test_a_wave_is_as_large_as_what_is_missing_takes_by_the_hits_so_far() -> None:
    assert Search(CRITERIA, 30).next_batch_size == batch_size(30, 0, 0)
    assert searched(every_fourth, wanted=30, most=20).next_batch_size == batch_size(25, 20, 5)


def test_what_is_to_come_follows_from_the_hits_so_far() -> None:
    assert searched(every_fourth, wanted=10, most=20).expected() == (20, 10)
    assert searched(every_fourth, wanted=10, expected_positions=40, most=20).expected() == (80, 25)
    assert searched(lambda *_: False, wanted=10, most=20).expected() == (80, 0)
    assert Search(CRITERIA, 10).expected() == (100, 0)
    assert searched(every_fourth, wanted=10, most=1).expected() == (9, 10)
    drawn = searched(every_fourth, NO_TEMPERATURE, wanted=10, most=25)
    assert drawn.expected() == (20 * 25 / 20, 10)
    assert searched(lambda *_: True, NO_TEMPERATURE, wanted=10, most=2).expected() == (9 * 2, 10)


def test_a_pool_that_ended_holds_no_more_unless_questions_failed() -> None:
    search = searched(every_fourth, wanted=60)
    assert (len(search.hits), search.left, search.done) == (25, 0, True)
    assert search.dataset("v").pool_ended
    search = Search(CRITERIA, 60)
    for number, ask in enumerate(search.requests()):
        search.observe(FAILED if number == 50 else answer_to(ask, every_fourth))
    assert not search.dataset("v").pool_ended
    assert (search.dataset("v").asked, search.dataset("v").failed) == (100, 1)


@pytest.mark.parametrize(("answered", "most"), [(0, 5), (200, 10)])
def test_a_few_questions_may_fail(answered: int, most: int) -> None:
    large = Pool("large", SHIPPED[:300])
    search = Search(replace(CRITERIA, pool=large), 300)
    for number, _ in enumerate(islice(search.requests(), answered + most)):
        search.observe(Answer("no move") if number < answered else FAILED)
    next(search.requests())
    with pytest.raises(Incomplete, match=f"{most + 1} of the {answered + most + 1} requests"):
        search.observe(FAILED)


def test_questions_and_draws_that_failed_are_no_reason_to_give_up() -> None:
    def given_up_after(failed: int, *, first_draws: bool) -> int:
        search = Search(CRITERIA, 100)
        for ask in search.requests():
            fails = number_of(ask) < failed if first_draws else ask.draw == 1
            answer = answer_to(
                ask, lambda number, draw: number < failed and not draw, NO_TEMPERATURE
            )
            search.observe(FAILED if fails else answer)
            if search.is_futile:
                break
        return search.searched

    for first_draws in (True, False):
        without = given_up_after(0, first_draws=first_draws)
        assert given_up_after(5, first_draws=first_draws) == without + 5


def test_it_is_hopeless_only_while_most_is_left_and_the_pool_is_large_enough() -> None:
    def missed(times: int, wanted: int) -> bool:
        return searched(lambda *_: False, wanted=wanted, most=times).is_futile

    assert [missed(times, 100) for times in (0, 20, 49, 50)] == [False, True, True, False]
    assert not missed(20, 101)
    assert (Search(CRITERIA, 9).needed, Search(CRITERIA, 9, 100).needed) == (5, 50)


def test_habits_are_found_at_temperature_0_by_the_effort_for_that_whatever_the_seed() -> None:
    asked = replace(CRITERIA.plan.settings, temperature=1.0, seed=9, reasoning_effort="high")
    plan = replace(CRITERIA.plan, settings=asked, select_effort="low")
    wanted = replace(asked, temperature=0.0, seed=0, reasoning_effort="low")
    assert replace(CRITERIA, plan=plan).settings == wanted


def test_whatever_makes_another_dataset_changes_its_digest() -> None:
    plan, (baseline, *more) = CRITERIA.plan, CRITERIA.plan.conditions
    others = [
        replace(CRITERIA, model=local_info("other", connections=4)),
        replace(CRITERIA, pool=Pool("some", POOL.positions[:50])),
        replace(CRITERIA, plan=replace(plan, change=rules_named("no-castling"))),
        replace(CRITERIA, plan=replace(plan, reading="exact")),
        replace(CRITERIA, plan=replace(plan, settings=replace(plan.settings, max_tokens=17))),
        replace(
            CRITERIA,
            plan=replace(plan, conditions=(replace(baseline, prompts=(Prompt("!"),)), *more)),
        ),
    ]
    assert len({each.digest for each in (CRITERIA, *others)}) == 7
    assert {len(each.digest) for each in others} == {8}
    assert {*CRITERIA.facts} == {"rules", "pool", "text", "reading", "settings", "identity"}
    another_seed = replace(plan, settings=replace(plan.settings, seed=5))
    assert replace(CRITERIA, plan=another_seed).digest == CRITERIA.digest


def test_the_order_of_a_pool_is_always_the_same_and_that_of_a_mixed_one_its_own() -> None:
    assert [position.game for position in ORDERED[:5]] == [49, 38, 83, 15, 30]
    assert {position.game for position in ORDERED} == {position.game for position in POOL.positions}
    assert replace(CRITERIA, pool=replace(POOL, shuffled=True)).ordered == POOL.positions


def test_a_question_of_the_search_is_asked_for_selection_under_the_baseline() -> None:
    ask = CRITERIA.request(Query(3, 2))
    assert (ask.purpose, ask.condition, ask.draw) == ("selection", "standard", 2)
    assert not ask.same_limit_only
    assert ask.question.moves == ORDERED[3].moves


def test_of_a_dataset_that_was_built_as_much_is_taken_as_would_be_built_now() -> None:
    def existing(dataset: Dataset, wanted: int, *, fresh: bool = False) -> Dataset | None:
        save_dataset(dataset, CRITERIA.digest, CRITERIA.facts)
        config = replace(CRITERIA, plan=replace(CRITERIA.plan, wanted=wanted))
        found = known_dataset("v", Spec(fresh=fresh), config)
        return found and replace(found, saved_at="")

    built = replace(searched(every_fourth, wanted=20).dataset("v"), built_now=False)
    taken = replace(built, positions=built.positions[:10])
    assert known_dataset("v", Spec(), CRITERIA) is None
    assert existing(built, 10) == taken
    assert existing(built, 10, fresh=True) is None
    assert existing(built, 20) == built
    assert existing(built, 21) is None
    ended, imported = replace(built, pool_ended=True), replace(built, origin="elsewhere")
    assert existing(ended, 21) == ended
    assert existing(ended, 10) == taken
    assert existing(imported, 10) is None
    elsewhere = replace(imported, pool_ended=True)
    assert existing(elsewhere, 10) == existing(elsewhere, 10, fresh=True) == elsewhere
