"""Another model with the same name and address: a few cached requests, sent again, reveal it."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.runs.identity import DIFFERENCES_TO_REJECT, PROBES
from cant_do_that_anymore.runs.run import ALL_CACHED
from cant_do_that_anymore.task.types import answers_of
from testing import (
    Loopback,
    Responder,
    Run,
    adapting,
    cdta,
    error_when,
    habit,
    measure,
    perfect,
    positions,
    serving,
)

N = 4
POSITIONS = positions(N)


def measure_few(server: Loopback, **options: object) -> Run:
    return measure(server, **{"n": N, "pool": "common", **options})


def with_reasoning(player: Responder) -> Responder:
    return lambda request: f"<think>hm</think>{player(request)}"


def habit_after_one(number: Iterator[int]) -> Responder:
    """The first reply is another one."""
    return lambda request: habit(request) if next(number) else "a2a3"


@pytest.mark.parametrize(
    ("before", "now", "options", "probes"),
    [
        (habit, habit, {}, PROBES),
        (habit, lambda request: f"**{habit(request)}**", {}, PROBES),  # the same move
        (habit, with_reasoning(adapting), {}, PROBES),  # may end differently each time
        (habit, habit_after_one(count()), {}, PROBES),  # may be a tie
        (with_reasoning(habit), adapting, {}, 0),
        (habit, adapting, {"price": "1,1"}, 0),
        (habit, adapting, {"pool": None, "dataset": POSITIONS}, 0),
    ],
)
def test_the_same_model_adds_no_note(
    before: Responder, now: Responder, options: dict[str, Any], probes: int, server: Loopback
) -> None:
    server.respond = before
    first = measure_few(server, **options)
    sent, server.respond = len(server.requests), now
    second = measure_few(server, **options)
    assert len(server.requests) == sent + probes
    assert second.samples == first.samples
    assert second.notes == [*first.notes, ALL_CACHED]


def test_another_checkpoint_is_refused(server: Loopback) -> None:
    command = ["run", "--base-url", server.url, "--model", "m", "--pool", POSITIONS, "-n", N]
    cdta(*command, "--quiet", code=0)
    sent, server.respond = len(server.requests), adapting
    done = cdta(*command, code=1)
    assert len(server.requests) == sent + DIFFERENCES_TO_REJECT
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("cdta: m has changed, or is not deterministic")
    assert line.endswith("; use --fresh, or --tag NAME for a new cache")
    cdta(*command, "--fresh", "--quiet", code=1)  # this model has no habit
    server.respond = habit
    cdta(*command, "--quiet", code=0)  # the cached answers are unchanged


@pytest.mark.usefixtures("no_retry_delay")
def test_a_model_that_is_not_deterministic_is_refused_also_while_it_loads(server: Loopback) -> None:
    measure_few(server)
    sent, numbers = len(server.requests), count()
    server.respond = lambda _: f"a{next(numbers)}"
    server.fault = error_when(lambda _, number: number <= sent + 2, "Loading model", 503)
    with pytest.raises(UserError, match=r"not deterministic .* \(its answer was '.*', now 'a0'"):
        measure_few(server)


@pytest.mark.parametrize("earlier", [{"eval": "all_diagonal", "n": 20}, {"n": 10}])
def test_answers_of_a_moved_alias_are_not_mixed_with_earlier_ones(
    earlier: dict[str, Any], server: Loopback
) -> None:
    """It moves before the selection, or between two sizes of a dataset."""
    server.model = "alias-2024"
    measure(server, **{"pool": positions(40)} | earlier)
    server.model, server.respond = "alias-2025", perfect
    run = measure(server, pool=positions(40), n=30)
    assert {answer.version for answer in answers_of(run.samples)} == {run.version}
    assert run.version == "alias-2025"
    assert run.results["variant_impact_factor"].value == -1
    (note,) = (note for note in run.notes if "now answers as" in note)
    assert note == "m now answers as alias-2025; cached answers of alias-2024 do not count"


def test_a_fully_cached_run_works_offline() -> None:
    with serving(habit) as server:
        first = measure_few(server)
    second = measure_few(server)
    assert (second.samples, second.notes) == (first.samples, [*first.notes, ALL_CACHED])
    with pytest.raises(UserError, match="no server answers") as error:
        measure_few(server, n=N + 1)
    assert "changed" not in str(error.value)
