"""Early stopping: a search ends if hits are too rare."""

import pytest

from cant_do_that_anymore.datasets.search import SelectionConfig
from cant_do_that_anymore.errors import NoHabit
from cant_do_that_anymore.habits.base import Pool
from cant_do_that_anymore.providers.bundled import RandomModel
from planted_models import habit
from run_builders import plan_of
from testing import POOL, Body, Serve, cdta, measure, moves_in, positions


def without_habit(request: Body) -> str:
    return "a2a3"


def test_a_model_without_the_habit_stops_after_a_few_hundred_requests(serve: Serve) -> None:
    server = serve(without_habit)
    command = ["run", "--base-url", server.url, "--quiet"]
    first = cdta(*command, code=1)
    sent = len(server.requests)
    second = cdta(*command, code=1)
    assert len(server.requests) == sent + 3  # the identity check
    assert 400 <= sent < 700
    for result in (first, second):
        (sentence,) = result.stderr.splitlines()
        assert "in 0 of 400 positions. The search stopped" in sentence
        assert "the other 19,441. " in sentence
        assert sentence.endswith(" Use --keep-looking to continue")


def test_the_hits_found_can_be_measured_and_the_search_continued(serve: Serve) -> None:
    pool = positions(1_700)
    config = SelectionConfig(RandomModel.info, Pool("", POOL[:1_700]), plan_of())
    habits = {config.ordered[number].subject for number in (60, -1)}
    server = serve(lambda request: habit(request) if moves_in(request) in habits else "a2a3")
    with pytest.raises(NoHabit, match="-n 1 to measure the 1 found"):
        measure(server, pool=pool, n=400)
    sent = len(server.requests)
    assert 800 <= sent < 1_100
    assert len(measure(server, pool=pool, n=1).samples) == 1
    assert len(server.requests) == sent + 2 + 3  # the identity check
    run = measure(server, pool=pool, n=400, keep_looking=True)
    assert len(run.samples) == 2
    assert "too few samples for a measurement (2); treat the numbers as a trial run" in run.notes
    assert len(server.requests) == 1_700 + 2 * 2 + 2 * 3
