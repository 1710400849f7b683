"""Early stopping: a search ends if hits are too rare."""

import re

import pytest

from cant_do_that_anymore.datasets.search import SelectionConfig
from cant_do_that_anymore.errors import Incomplete, NoHabit
from cant_do_that_anymore.habits.base import Pool
from cant_do_that_anymore.providers.bundled import RandomModel
from planted_models import habit
from run_builders import plan_of
from testing import POOL, Body, Serve, cdta, measure, moves_in, positions

SMALL_POOL = positions(480)


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


def test_keep_looking_sends_nothing_twice_and_uses_all_hits(serve: Serve) -> None:
    pool, hits = positions(1_000), 2
    config = SelectionConfig(RandomModel.info, Pool("", POOL[:1_000]), plan_of())
    habits = {item.subject for item in config.ordered[-hits:]}
    server = serve(lambda request: habit(request) if moves_in(request) in habits else "a2a3")
    with pytest.raises(Incomplete, match="The search stopped"):
        measure(server, pool=pool, n=400)
    assert len(server.requests) < 500
    run = measure(server, pool=pool, n=400, keep_looking=True)
    assert len(run.samples) == hits
    assert "too few samples for a measurement (2); treat the numbers as a trial run" in run.notes
    assert len(server.requests) == 1_000 + 2 * hits + 3  # the identity check


def test_the_suggested_n_measures_the_hits_found(serve: Serve) -> None:
    config = SelectionConfig(RandomModel.info, Pool("", POOL[:2_000]), plan_of())
    found = config.ordered[100].subject
    server = serve(lambda request: habit(request) if moves_in(request) == found else "a2a3")
    with pytest.raises(NoHabit, match=r"-n \d+ to measure the \d+ found") as error:
        measure(server, n=20, pool=positions(2_000))
    (suggested,) = re.findall(r"or -n (\d+)", str(error.value))
    sent = len(server.requests)
    run = measure(server, n=int(suggested), pool=positions(2_000))
    assert len(run.samples) == int(suggested)
    assert len(server.requests) == sent + 2 * len(run.samples) + 3  # the identity check
