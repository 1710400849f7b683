"""Runs that stop by themselves: as soon as the impact factor is known well enough, and no later."""

import json
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.comparison.entries import entries_of, pool_runs
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.datasets.pools import positions_drawn
from cant_do_that_anymore.datasets.storage import shipped_datasets
from cant_do_that_anymore.metrics.bounds import interval_of
from cant_do_that_anymore.metrics.groups import by_earlier_moves, by_human_frequency, by_opening
from cant_do_that_anymore.metrics.measures import IMPACT, MEASURES
from cant_do_that_anymore.metrics.stats.intervals import RATE, RELATIVE_CHANGE, Ratio
from cant_do_that_anymore.metrics.stopping import CRITICAL_FACTOR, FIRST_LOOK, looks
from cant_do_that_anymore.runs.storage import load_run, rescored, run_json, save_run
from planted_models import PERFECT, in_every_second
from processes import killed
from run_builders import comparisons_of
from testing import (
    POOL,
    Body,
    Loopback,
    Responder,
    Run,
    Serve,
    Spec,
    answering,
    cdta,
    evaluate,
    habit,
    is_changed,
    measure,
    needs_posix,
    perfect,
    plan_of,
    positions,
    samples_in,
)

CONNECTIONS = 2
AHEAD = 4 * CONNECTIONS
"""Questions of the search that may be under way when it has found enough."""


def drops_half(request: Body) -> str:
    """The habit in nine of ten cases, and in half of them under the changed rules."""
    coin = Random(str([request["messages"], request["temperature"]])).random()
    return "a2a3" if coin < (0.5 if is_changed(request) else 0.1) else habit(request)


def measured(server: Loopback, player: Responder = habit, **options: Any) -> Run:
    server.respond = player
    return measure(server, **{"max_connections": CONNECTIONS, "precision": 0.1} | options)


def reach(run: Run) -> float:
    """How far the interval of the impact factor goes from the value."""
    value, around = run.results.metrics[IMPACT], run.results.intervals[IMPACT]
    assert value is not None
    return max(value - around.low, around.high - value)


def asked(server: Loopback) -> list[str]:
    """Every question, told from others as the store does: by what is said, and to what end."""
    return [json.dumps([each["messages"], each["temperature"]]) for each in server.requests]


def ids(run: Run) -> list[str]:
    return [sample.position.id for sample in run.samples]


def as_if_all_were_measured(run: Run) -> Run:
    return replace(run, plan=replace(run.plan, precision=None))


@pytest.fixture(name="server")
def server_without_http() -> Iterator[Loopback]:
    with answering(habit) as server:
        yield server


@dataclass
class Halves:
    """Runs of the model that drops half of its habit, one after the other."""

    rough: Run
    fine: Run
    again: Run
    plain: Run
    questions: list[list[str]]


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Halves]:
    questions: list[list[str]] = []

    def run(**options: Any) -> Run:
        made = measured(server, drops_half, **options)
        questions.append(asked(server))
        return made

    with pytest.MonkeyPatch.context() as patch, answering(habit) as server:
        patch.setenv("CDTA_HOME", str(tmp_path_factory.mktemp("halves")))
        rough, fine, again = (run(precision=width) for width in (0.2, 0.15, 0.2))
        yield Halves(rough, fine, again, run(precision=None, n=100), questions)


@pytest.mark.parametrize(("player", "impact"), [(habit, 0), (PERFECT, -1)])
def test_who_never_wavers_is_soon_known(server: Loopback, player: Responder, impact: float) -> None:
    run = measured(server, player)
    assert run.results.metrics[IMPACT] == impact
    assert len(run.samples) in list(looks(1000))[:3]
    assert reach(run) <= 0.1


def test_who_wavers_stops_at_the_first_look_that_is_narrow_enough(halves: Halves) -> None:
    sizes = list(looks(1000))
    place = sizes.index(len(halves.fine.samples))
    assert place > 0
    assert reach(halves.fine) <= 0.15
    before = halves.fine.samples[: sizes[place - 1]]
    around, value = (
        interval_of(MEASURES[IMPACT], before, CRITICAL_FACTOR),
        MEASURES[IMPACT].value(before),
    )
    assert around and value is not None
    assert max(value - around.low, around.high - value) > 0.15
    told = (
        f"stopped at the target precision of 0.15: after {sizes[place]} samples, the 95% interval"
    )
    assert halves.fine.notes[0].startswith(told)


def test_positions_are_found_as_they_are_needed(server: Loopback) -> None:
    run = measured(server, in_every_second)
    selecting = [each for each in server.requests if each["temperature"] == 0]
    assert len(run.samples) == FIRST_LOOK
    assert run.dataset.asked is not None
    assert FIRST_LOOK < run.dataset.asked <= len(selecting) <= run.dataset.asked + AHEAD
    assert len(server.requests) == len(selecting) + 2 * FIRST_LOOK


def test_progress_expects_more_looks(server: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(Spec(base_url=server.url, precision=0.1, n=1000), quiet=False)
    first, *_ = (line for line in capsys.readouterr().err.splitlines() if "measuring" in line)
    (told,) = re.findall(r"(\d+) of about ([\d,]+) requests", first)
    asked, about = (int(number.replace(",", "")) for number in told)
    assert about > 3 * asked


def test_a_smaller_precision_and_a_plain_run_go_on_and_ask_nothing_twice(halves: Halves) -> None:
    rough, fine = halves.rough, halves.fine
    assert len(rough.samples) < len(fine.samples)
    assert fine.samples[: len(rough.samples)] == rough.samples == halves.again.samples
    assert set(ids(rough)) <= set(ids(halves.plain))
    for runs_before, questions in enumerate(halves.questions):
        assert len(questions) == len(set(questions)) + runs_before  # is it the same model?
    assert len(halves.questions[2]) == len(halves.questions[1]) + 1


def test_with_fresh_answers_it_asks_nothing_twice_either(server: Loopback) -> None:
    run = measured(server, drops_half, precision=0.15, fresh=True)
    assert len(run.samples) > FIRST_LOOK
    assert len(asked(server)) == len(set(asked(server)))


def test_of_a_dataset_it_takes_the_beginning_of_a_seeded_order(server: Loopback) -> None:
    def of_dataset(**options: Any) -> list[str]:
        return ids(measured(server, drops_half, dataset="gpt-4-0314", **options))

    rough, fine = of_dataset(precision=0.2), of_dataset(precision=0.15)
    assert len(rough) < len(fine) and fine[: len(rough)] == rough
    assert set(of_dataset(precision=0.2, seed=1)[:20]) != set(rough[:20])
    assert of_dataset(precision=0.01, n=60) == fine[:60]  # whatever the most is
    dataset = shipped_datasets(POOL)["gpt-4-0314"]
    taken = [
        [each.id for each in positions_drawn(dataset, Spec(), plan_of(size, precision=0.1))]
        for size in looks(1000)
    ]
    assert all(fewer == taken[-1][: len(fewer)] for fewer in taken)
    assert len(set(taken[-1])) == 1000


@needs_posix
def test_after_a_kill_it_goes_on(serve_http: Serve, halves: Halves, tmp_path: Path) -> None:
    server = serve_http(drops_half, delay=0.002)
    command = (
        *("run", "--base-url", server.url, "--model", "m", "--quiet", "--precision", 0.15),
        *("--max-connections", CONNECTIONS, "--out", tmp_path / "out"),
    )
    looking_for_more = 170
    assert killed(looking_for_more, server, *command) == -signal.SIGKILL
    cdta(*command, code=0)
    counted = len(asked(server)) - len(set(asked(server)))
    assert counted <= 2 * CONNECTIONS + 1  # those under way, and whether it is the same model
    assert [sample["id"] for sample in samples_in(tmp_path / "out")] == ids(halves.fine)


def test_where_it_ends_before_it_says_so_and_how_far_it_came(server: Loopback) -> None:
    limited = measured(server, drops_half, n=60, precision=0.01)
    assert len(limited.samples) == 60
    assert limited.notes[0].startswith(
        "the target precision of 0.01 was not reached: after 60 samples, the 95% interval "
        "extends 0."
    )
    assert limited.notes[0].endswith("; -n allows no more samples; use a larger -n to continue")
    ended = measured(server, drops_half, pool=positions(70), precision=0.01)
    assert FIRST_LOOK < len(ended.samples) < 70
    assert ended.notes[0].endswith("; there are no more positions")
    assert not any("wanted): there are no" in note for note in ended.notes)


def test_controls_of_a_diagnosis_go_along(server: Loopback) -> None:
    run = measured(server, PERFECT, diagnose=True, precision=0.2)
    assert len(run.controls) == len(run.samples) == FIRST_LOOK
    assert len(asked(server)) == len(set(asked(server)))


def test_every_interval_allows_for_having_been_looked_at(halves: Halves, tmp_path: Path) -> None:
    run = halves.fine
    for name in (IMPACT, "delta", "predicted_move_proportion"):
        wider, usual = run.results.intervals[name], interval_of(MEASURES[name], run.samples)
        assert usual and wider.low < usual.low and usual.high < wider.high
        assert wider == interval_of(MEASURES[name], run.samples, CRITICAL_FACTOR)
    plain = as_if_all_were_measured(run)
    for grouped in (by_opening, by_human_frequency, lambda *of: by_earlier_moves(*of)[1]):
        wide, narrow = (grouped(each.answered, each.plan) for each in (run, plain))
        for group, alike in zip(wide, narrow, strict=True):
            its, others = (each.shares["changed"].interval for each in (group, alike))
            assert its and others and its.high - its.low > others.high - others.low
    save_run(run, tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert loaded.results.intervals == run.results.intervals
    assert loaded.plan.precision == run_json(run)["precision"] == 0.15
    assert rescored(run, "exact").results.intervals == run.results.intervals
    assert "precision" not in run_json(halves.plain)


def test_runs_of_one_model_are_one_at_any_precision(server: Loopback, halves: Halves) -> None:
    fine, other = halves.fine, measured(server, perfect, model="other")
    (one,) = pool_runs([halves.rough, fine])
    assert one.results.intervals == fine.results.intervals
    seed = replace(halves.plain.plan, settings=replace(fine.plan.settings, seed=7))
    plain = replace(halves.plain, plan=seed)
    (both,) = pool_runs([plain, fine])
    wider = interval_of(MEASURES[IMPACT], both.samples, CRITICAL_FACTOR)
    assert both.results.intervals[IMPACT] == wider
    assert not any("there are no more positions" in note for note in both.notes)
    (entry,) = entries_of([plain, fine])
    assert entry.notes[0] == "stopped at a precision of 0.15; intervals allow for it"
    assert rescored(fine, fine.plan.reading).notes == fine.notes
    (first, *_) = comparisons_of([fine, other])
    (usual, *_) = comparisons_of([as_if_all_were_measured(each) for each in (fine, other)])
    assert first.interval and usual.interval
    assert first.interval.low < usual.interval.low
    assert usual.interval.high < first.interval.high
    assert first.n_samples == usual.n_samples == len(set(ids(fine)) & set(ids(other)))


@pytest.mark.usefixtures("no_plots")
def test_commands_take_no_run_of_another_precision(server: Loopback, tmp_path: Path) -> None:
    whom = ("--base-url", server.url, "--model", "m", "--quiet")
    done = cdta("run", *whom, "--precision", 0.1, "--out", tmp_path / "run", code=0)
    assert "note: stopped at the target precision of 0.1: after 50 samples" in done.stdout
    assert "within ±0.1" in (tmp_path / "run" / "report.html").read_text()
    command = ("experiment", *whom, "--runs", 1, "--eval", "all", "--out", tmp_path / "out")
    cdta(*command, "--precision", 0.1, code=0)
    before = len(server.requests)
    cdta(*command, "--precision", 0.1, code=0)
    refused = cdta(*command, "--precision", 0.05, code=1)
    assert "contains a run that differs in precision; give --out a new folder" in refused.stderr
    assert len(server.requests) == before + 1  # is it the same model?


def test_the_estimate_counts_the_samples_that_it_expects(server: Loopback) -> None:
    spec = Spec(model="m", base_url=server.url, max_connections=CONNECTIONS, precision=0.15)
    first = estimate(replace(spec, precision=0.1))
    assert first.measuring.requests.low < 2 * 378 < first.measuring.requests.high
    assert (
        "a precision of 0.1 takes about 378 samples if the model drops half of its habit (assumed "
        "here), 567 if it drops none and 75 if it drops all (with 67% special moves under the "
        "standard rules); -n allows 1,000"
    ) in first.assumptions
    rough = measured(server, drops_half, precision=0.2)
    second = estimate(spec)
    told = f"samples, judging by {len(rough.samples)} cached ones; -n allows 1,000"
    (basis,) = (each for each in second.assumptions if each.endswith(told))
    (expected,) = (size for size in looks(1000) if f"takes about {size} samples" in basis)
    low, _, high = second.measuring.requests
    assert low <= 2 * (expected - len(rough.samples)) <= high
    assert len(measured(server, drops_half, precision=0.15).samples) <= expected * 1.5
    done = estimate(spec)
    assert done.total.requests.high == 0


_samples = st.lists(st.sampled_from([(-1, 1), (0, 0), (0, 1), (1, 0)]), min_size=1, max_size=40)


@given(_samples, st.floats(0.01, 0.99), st.booleans())
def test_both_ends_are_within_it(rows: list[tuple[int, int]], far: float, together: bool) -> None:
    ratio = Ratio([part for part, _ in rows], [whole for _, whole in rows], RELATIVE_CHANGE)
    games = [place // 2 if together else place for place in range(len(rows))]
    tally, around, value = ratio.tally(games), ratio.interval(games), ratio.value
    if not tally or not around or value is None:
        return
    reached = max(value - around.low, around.high - value)
    if abs(reached - far) > 1e-9:
        assert tally.is_narrower_than(far) == (reached < far)
    wider = replace(tally, critical_factor=CRITICAL_FACTOR)
    assert (wider.p(0.0) < 0.05) == (not wider.contains(0.0))


def test_an_interval_that_goes_further_down_than_up_is_within_reach_by_its_lower_end() -> None:
    tally = Ratio([1] * 8 + [0] * 2, [1] * 10, RATE).tally(range(10))  # .49 to .94
    assert tally and tally.is_narrower_than(0.32) and not tally.is_narrower_than(0.3)


def test_it_waits_while_unusable_answers_leave_the_impact_factor_open(server: Loopback) -> None:
    """What is told of the stop is the interval that is printed, not the one without them."""

    def often_silent(request: Body) -> str:
        coin = Random(str(request["messages"])).random()
        return "Hm." if is_changed(request) and coin < 0.2 else habit(request)

    silent = measured(server, often_silent, n=150, precision=0.15)
    assert len(silent.samples) == 150
    as_scored = interval_of(MEASURES[IMPACT], silent.samples, CRITICAL_FACTOR)
    value = silent.results.metrics[IMPACT]
    assert as_scored and value is not None
    assert max(value - as_scored.low, as_scored.high - value) < 0.15 < reach(silent)
    assert silent.notes[0].startswith("the target precision of 0.15 was not reached: after 150 ")
    assert silent.notes[0].endswith("answers without a move widen the interval")
