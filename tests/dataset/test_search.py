"""The search for habits: which positions are asked about, which are found, and when it ends."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest

from cant_do_that_anymore.datasets import search as module
from cant_do_that_anymore.datasets.search import Search, SelectionConfig
from cant_do_that_anymore.datasets.selection import known_dataset
from cant_do_that_anymore.datasets.storage import Dataset, save_dataset
from cant_do_that_anymore.errors import Unmeasurable
from cant_do_that_anymore.habits.base import Pool
from cant_do_that_anymore.habits.chess.habit import CHESS
from cant_do_that_anymore.habits.chess.rules import rules_named
from cant_do_that_anymore.providers.base import Answer, local_info
from cant_do_that_anymore.providers.bundled import RandomModel
from cant_do_that_anymore.task.plan import plan_for
from cant_do_that_anymore.task.prompts import Prompt
from testing import POOL as SHIPPED
from testing import Serve, Spec, cdta, habit, measure, moves_in, positions

POOL = Pool("some", SHIPPED[:100])
CONFIG = SelectionConfig(RandomModel.info, POOL, plan_for(Spec(wording="plain"), RandomModel.info))
ORDERED = CONFIG.ordered
DEFAULTS = Spec()
FAILED = Answer("", "error", error="gone")
IsHit = Callable[[int], bool]
"""Whether an answer is a hit, by the number of the position."""


def run_search(is_hit: IsHit, wanted: int, failing: int | None = None) -> Search:
    """Answer one request after another until the search is done; one may fail."""
    search = Search(replace(CONFIG, plan=replace(CONFIG.plan, wanted=wanted)))
    for number, request in enumerate(search.requests()):
        item = request.question.item
        assert item == ORDERED[number]
        answer = Answer(item.usual[0] if is_hit(number) else "no move", cost=0.5)
        search.observe(FAILED if number == failing else answer)
        if search.done:
            break
    return search


def every_fourth(number: int) -> bool:
    return number % 4 == 0


def test_the_pool_is_searched_in_order_until_enough_is_found_or_it_ends() -> None:
    search = run_search(every_fourth, wanted=3)
    assert search.hits == [ORDERED[number] for number in (0, 4, 8)]
    assert (search.searched, search.left) == (9, 91)
    dataset = search.dataset("v")
    assert (dataset.version, dataset.origin, dataset.pool_name) == ("v", "built", "")
    assert (dataset.asked, dataset.pool_ended, dataset.cost) == (9, False, 4.5)
    whole = run_search(every_fourth, wanted=60).dataset("v")
    assert (len(whole.items), whole.asked, whole.pool_ended) == (25, 100, True)
    failed = run_search(every_fourth, wanted=60, failing=50).dataset("v")
    assert (failed.asked, failed.failed, failed.pool_ended) == (100, 1, False)


def test_a_search_gives_up_only_while_most_of_the_pool_is_left() -> None:
    config = replace(CONFIG, pool=Pool("large", SHIPPED[:900]))

    def gives_up(misses: int, reply: str = "a2a3", spec: Spec = DEFAULTS) -> bool:
        search = Search(config)
        for _ in islice(search.requests(), misses):
            search.observe(Answer(reply))
        return search.gives_up(spec)

    assert [gives_up(misses) for misses in (399, 400, 449, 450)] == [False, True, True, False]
    assert not gives_up(400, spec=Spec(keep_looking=True))
    assert [gives_up(misses, "no move") for misses in (59, 60, 450)] == [False, True, True]
    assert not gives_up(60, "no move", Spec(keep_looking=True))


def test_selection_uses_temperature_0_its_own_effort_and_the_default_seed() -> None:
    settings = replace(CONFIG.plan.settings, temperature=1.0, seed=9, reasoning_effort="high")
    plan = replace(CONFIG.plan, settings=settings, select_effort="low")
    expected = replace(settings, temperature=0.0, seed=0, reasoning_effort="low")
    assert replace(CONFIG, plan=plan).settings == expected


def test_whatever_changes_a_dataset_changes_its_digest() -> None:
    plan, (baseline, *more) = CONFIG.plan, CONFIG.plan.conditions
    others = [
        replace(CONFIG, model=local_info("other", connections=4)),
        replace(CONFIG, pool=Pool("some", POOL.items[:50])),
        replace(CONFIG, plan=replace(plan, change=rules_named("no-castling"))),
        replace(CONFIG, plan=replace(plan, reading="exact")),
        replace(CONFIG, plan=replace(plan, settings=replace(plan.settings, max_tokens=17))),
        replace(
            CONFIG,
            plan=replace(plan, conditions=(replace(baseline, prompts=(Prompt("!"),)), *more)),
        ),
    ]
    assert len({config.digest for config in (CONFIG, *others)}) == 7
    assert {len(config.digest) for config in others} == {8}
    another_seed = replace(plan, settings=replace(plan.settings, seed=5))
    assert replace(CONFIG, plan=another_seed).digest == CONFIG.digest


def test_the_order_of_a_pool_is_fixed_and_a_shuffled_pool_keeps_its_own() -> None:
    assert [position.group for position in ORDERED[:5]] == [49, 38, 83, 15, 30]
    assert {position.group for position in ORDERED} == {position.group for position in POOL.items}
    assert replace(CONFIG, pool=replace(POOL, shuffled=True)).ordered == POOL.items


def test_a_saved_dataset_is_reused_as_far_as_it_is_wanted() -> None:
    def reuse(dataset: Dataset, wanted: int, *, fresh: bool = False) -> Dataset | None:
        save_dataset(dataset, CONFIG.digest, CONFIG.facts, CHESS)
        config = replace(CONFIG, plan=replace(CONFIG.plan, wanted=wanted))
        return known_dataset("v", Spec(fresh=fresh), config)

    built = run_search(every_fourth, wanted=20).dataset("v")
    first_ten = replace(built, items=built.items[:10])
    assert known_dataset("v", Spec(), CONFIG) is None
    assert reuse(built, 10) == first_ten
    assert reuse(built, 10, fresh=True) is None
    assert reuse(built, 20) == built
    assert reuse(built, 21) is None
    ended = replace(built, pool_ended=True)
    assert reuse(ended, 21) == ended
    assert reuse(ended, 10) == first_ten


def test_a_model_without_the_habit_stops_after_a_few_hundred_requests(serve: Serve) -> None:
    server = serve(lambda _: "a2a3")
    command = ["run", "--base-url", server.url, "--quiet"]
    first = cdta(*command, code=1)
    sent = len(server.requests)
    second = cdta(*command, code=1)
    assert len(server.requests) == sent + 3  # the identity check
    assert 400 <= sent < 700
    for result in (first, second):
        (sentence,) = result.stderr.splitlines()
        assert "in none of the 400 positions. The search stopped" in sentence
        assert "the other 19,441. " in sentence
        assert sentence.endswith(" Use --keep-looking to continue")


def test_the_hits_found_can_be_measured_and_the_search_continued(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ITEMS_PER_HIT", 100)
    pool, config = positions(500), replace(CONFIG, pool=Pool("", SHIPPED[:500]))
    habits = {config.ordered[number].subject for number in (60, -1)}
    server = serve(lambda request: habit(request) if moves_in(request) in habits else "a2a3")
    with pytest.raises(Unmeasurable, match="-n 1 to measure the 1 found"):
        measure(server, pool=pool, n=400)
    sent = len(server.requests)
    assert 200 <= sent < 300
    assert len(measure(server, pool=pool, n=1).samples) == 1
    assert len(server.requests) == sent + 2 + 3  # the identity check
    run = measure(server, pool=pool, n=400, keep_looking=True)
    assert len(run.samples) == 2
    assert "too few samples for a measurement (2); treat the numbers as a trial run" in run.notes
    assert len(server.requests) == 500 + 2 * 2 + 2 * 3
