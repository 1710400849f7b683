"""Runs with a target precision stop as soon as the impact factor is known well enough."""

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
from cant_do_that_anymore.metrics.stats.intervals import RATE, RELATIVE_CHANGE, Interval, Ratio
from cant_do_that_anymore.metrics.stopping import CRITICAL_FACTOR, FIRST_LOOK, looks
from cant_do_that_anymore.runs.storage import load_run, rescored, run_json, save_run
from planted_models import PERFECT, habit_in_every_second
from processes import exit_code_when_killed
from run_builders import comparisons_of
from testing import (
    POOL,
    Body,
    Loopback,
    Responder,
    Run,
    Serve,
    Spec,
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
    serving_in_process,
)

CONNECTIONS = 2
AHEAD = 4 * CONNECTIONS
"""Requests that the search may have in flight when it has found enough positions."""


def drops_half(request: Body) -> str:
    """The habit in 90% of the cases, but in 50% under the changed rules."""
    coin = Random(str([request["messages"], request["temperature"]])).random()
    return "a2a3" if coin < (0.5 if is_changed(request) else 0.1) else habit(request)


def measure_player(server: Loopback, player: Responder = habit, **options: Any) -> Run:
    server.respond = player
    return measure(server, **{"max_connections": CONNECTIONS, "precision": 0.1} | options)


def margin(value: float | None, interval: Interval | None) -> float:
    """Distance from a value to the farther end of its interval."""
    assert value is not None and interval
    return max(value - interval.low, interval.high - value)


def impact_margin(run: Run) -> float:
    return margin(run.results.metrics[IMPACT], run.results.intervals[IMPACT])


def request_keys(server: Loopback) -> list[str]:
    """Identify every request as the cache does, by its messages and temperature."""
    return [json.dumps([body["messages"], body["temperature"]]) for body in server.requests]


def position_ids(run: Run) -> list[str]:
    return [sample.position.id for sample in run.samples]


def without_precision(run: Run) -> Run:
    return replace(run, plan=replace(run.plan, precision=None))


@pytest.fixture(name="server")
def server_without_http() -> Iterator[Loopback]:
    with serving_in_process(habit) as server:
        yield server


@dataclass
class PrecisionRuns:
    """Successive runs of the model that drops half of its habit."""

    rough: Run
    fine: Run
    repeated: Run
    plain: Run
    keys: list[list[str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrecisionRuns]:
    keys: list[list[str]] = []

    def run_with(**options: Any) -> Run:
        run = measure_player(server, drops_half, **options)
        keys.append(request_keys(server))
        return run

    with pytest.MonkeyPatch.context() as patch, serving_in_process(habit) as server:
        patch.setenv("CDTA_HOME", str(tmp_path_factory.mktemp("home")))
        rough, fine, repeated = (run_with(precision=width) for width in (0.2, 0.15, 0.2))
        yield PrecisionRuns(rough, fine, repeated, run_with(precision=None, n=100), keys)


@pytest.mark.parametrize(("player", "impact"), [(habit, 0), (PERFECT, -1)])
def test_a_consistent_model_stops_early(server: Loopback, player: Responder, impact: float) -> None:
    run = measure_player(server, player)
    assert run.results.metrics[IMPACT] == impact
    assert len(run.samples) in list(looks(1000))[:3]
    assert impact_margin(run) <= 0.1


def test_a_run_stops_at_the_first_look_that_is_narrow_enough(runs: PrecisionRuns) -> None:
    sizes = list(looks(1000))
    look = sizes.index(len(runs.fine.samples))
    assert look > 0
    assert impact_margin(runs.fine) <= 0.15
    before = runs.fine.samples[: sizes[look - 1]]
    interval = interval_of(MEASURES[IMPACT], before, CRITICAL_FACTOR)
    assert margin(MEASURES[IMPACT].value(before), interval) > 0.15
    note = f"stopped at the target precision of 0.15: after {sizes[look]} samples, the 95% interval"
    assert runs.fine.notes[0].startswith(note)


def test_positions_are_searched_as_needed(server: Loopback) -> None:
    run = measure_player(server, habit_in_every_second)
    selecting = [request for request in server.requests if request["temperature"] == 0]
    assert len(run.samples) == FIRST_LOOK
    assert run.dataset.asked is not None
    assert FIRST_LOOK < run.dataset.asked <= len(selecting) <= run.dataset.asked + AHEAD
    assert len(server.requests) == len(selecting) + 2 * FIRST_LOOK


def test_progress_expects_more_looks(server: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(Spec(base_url=server.url, precision=0.1, n=1000), quiet=False)
    first, *_ = (line for line in capsys.readouterr().err.splitlines() if "measuring" in line)
    (numbers,) = re.findall(r"(\d+) of about ([\d,]+) requests", first)
    sent, expected = (int(number.replace(",", "")) for number in numbers)
    assert expected > 3 * sent


def test_a_finer_or_plain_run_repeats_no_request(runs: PrecisionRuns) -> None:
    rough, fine = runs.rough, runs.fine
    assert len(rough.samples) < len(fine.samples)
    assert fine.samples[: len(rough.samples)] == rough.samples == runs.repeated.samples
    assert set(position_ids(rough)) <= set(position_ids(runs.plain))
    for n_earlier_runs, keys in enumerate(runs.keys):
        assert len(keys) == len(set(keys)) + n_earlier_runs  # each checks the identity once
    assert len(runs.keys[2]) == len(runs.keys[1]) + 1


def test_a_fresh_run_repeats_no_request(server: Loopback) -> None:
    run = measure_player(server, drops_half, precision=0.15, fresh=True)
    assert len(run.samples) > FIRST_LOOK
    assert len(request_keys(server)) == len(set(request_keys(server)))


def test_a_dataset_is_used_in_a_seeded_order(server: Loopback) -> None:
    def ids_of(**options: Any) -> list[str]:
        return position_ids(measure_player(server, drops_half, dataset="gpt-4-0314", **options))

    rough, fine = ids_of(precision=0.2), ids_of(precision=0.15)
    assert len(rough) < len(fine) and fine[: len(rough)] == rough
    assert set(ids_of(precision=0.2, seed=1)[:20]) != set(rough[:20])
    assert ids_of(precision=0.01, n=60) == fine[:60]  # for any -n
    dataset = shipped_datasets(POOL)["gpt-4-0314"]
    drawn = [
        [position.id for position in positions_drawn(dataset, Spec(), plan_of(n, precision=0.1))]
        for n in looks(1000)
    ]
    assert all(fewer == drawn[-1][: len(fewer)] for fewer in drawn)
    assert len(set(drawn[-1])) == 1000


@needs_posix
def test_a_killed_run_resumes(serve_http: Serve, runs: PrecisionRuns, tmp_path: Path) -> None:
    server = serve_http(drops_half, delay=0.002)
    command = (
        *("run", "--base-url", server.url, "--model", "m", "--quiet", "--precision", 0.15),
        *("--max-connections", CONNECTIONS, "--out", tmp_path / "out"),
    )
    during_search = 170
    assert exit_code_when_killed(during_search, server, *command) == -signal.SIGKILL
    cdta(*command, code=0)
    n_repeated = len(request_keys(server)) - len(set(request_keys(server)))
    assert n_repeated <= 2 * CONNECTIONS + 1  # those in flight, and the identity check
    assert [sample["id"] for sample in samples_in(tmp_path / "out")] == position_ids(runs.fine)


def test_a_note_says_if_the_precision_was_not_reached(server: Loopback) -> None:
    limited = measure_player(server, drops_half, n=60, precision=0.01)
    assert len(limited.samples) == 60
    assert limited.notes[0].startswith(
        "the target precision of 0.01 was not reached: after 60 samples, the 95% interval "
        "extends 0."
    )
    assert limited.notes[0].endswith("; -n allows no more samples; use a larger -n to continue")
    exhausted = measure_player(server, drops_half, pool=positions(70), precision=0.01)
    assert FIRST_LOOK < len(exhausted.samples) < 70
    assert exhausted.notes[0].endswith("; there are no more positions")
    assert not any("wanted): there are no" in note for note in exhausted.notes)


def test_a_diagnosis_has_as_many_controls_as_samples(server: Loopback) -> None:
    run = measure_player(server, PERFECT, diagnose=True, precision=0.2)
    assert len(run.controls) == len(run.samples) == FIRST_LOOK
    assert len(request_keys(server)) == len(set(request_keys(server)))


def test_every_interval_allows_for_repeated_looks(runs: PrecisionRuns, tmp_path: Path) -> None:
    run = runs.fine
    for name in (IMPACT, "delta", "predicted_move_proportion"):
        wider, usual = run.results.intervals[name], interval_of(MEASURES[name], run.samples, 1.0)
        assert usual and wider.low < usual.low and usual.high < wider.high
        assert wider == interval_of(MEASURES[name], run.samples, CRITICAL_FACTOR)
    plain = without_precision(run)
    for group_by in (by_opening, by_human_frequency, lambda *args: by_earlier_moves(*args)[1]):
        groups, plain_groups = (group_by(r.answered, r.plan) for r in (run, plain))
        for pair in zip(groups, plain_groups, strict=True):
            wide, narrow = (group.shares["changed"].interval for group in pair)
            assert wide and narrow and wide.high - wide.low > narrow.high - narrow.low
    save_run(run, tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert loaded.results.intervals == run.results.intervals
    assert loaded.plan.precision == run_json(run)["precision"] == 0.15
    assert rescored(run, "exact").results.intervals == run.results.intervals
    assert "precision" not in run_json(runs.plain)


def test_runs_with_different_precisions_are_pooled(server: Loopback, runs: PrecisionRuns) -> None:
    fine, other = runs.fine, measure_player(server, perfect, model="other")
    (pooled,) = pool_runs([runs.rough, fine])
    assert pooled.results.intervals == fine.results.intervals
    plan = replace(runs.plain.plan, settings=replace(fine.plan.settings, seed=7))
    plain = replace(runs.plain, plan=plan)
    (pooled,) = pool_runs([plain, fine])
    wider = interval_of(MEASURES[IMPACT], pooled.samples, CRITICAL_FACTOR)
    assert pooled.results.intervals[IMPACT] == wider
    assert not any("there are no more positions" in note for note in pooled.notes)
    (entry,) = entries_of([plain, fine])
    assert entry.notes[0] == "stopped at a precision of 0.15; intervals allow for it"
    assert rescored(fine, fine.plan.reading).notes == fine.notes
    (first, *_) = comparisons_of([fine, other])
    (usual, *_) = comparisons_of([without_precision(run) for run in (fine, other)])
    assert first.interval and usual.interval
    assert first.interval.low < usual.interval.low
    assert usual.interval.high < first.interval.high
    n_shared = len(set(position_ids(fine)) & set(position_ids(other)))
    assert first.n_samples == usual.n_samples == n_shared


@pytest.mark.usefixtures("no_plots")
def test_an_experiment_refuses_a_run_of_another_precision(server: Loopback, tmp_path: Path) -> None:
    model = ("--base-url", server.url, "--model", "m", "--quiet")
    done = cdta("run", *model, "--precision", 0.1, "--out", tmp_path / "run", code=0)
    assert "note: stopped at the target precision of 0.1: after 50 samples" in done.stdout
    assert "within ±0.1" in (tmp_path / "run" / "report.html").read_text()
    command = ("experiment", *model, "--runs", 1, "--eval", "all", "--out", tmp_path / "out")
    cdta(*command, "--precision", 0.1, code=0)
    before = len(server.requests)
    cdta(*command, "--precision", 0.1, code=0)
    refused = cdta(*command, "--precision", 0.05, code=1)
    assert "contains a run that differs in precision; give --out a new folder" in refused.stderr
    assert len(server.requests) == before + 1  # 1 to check the identity


def test_the_estimate_counts_the_expected_samples(server: Loopback) -> None:
    spec = Spec(model="m", base_url=server.url, max_connections=CONNECTIONS, precision=0.15)
    first = estimate(replace(spec, precision=0.1))
    assert first.measuring.requests.low < 2 * 378 < first.measuring.requests.high
    assert (
        "a precision of 0.1 takes about 378 samples if the model drops half of its habit (assumed "
        "here), 567 if it drops none and 75 if it drops all (with 67% special moves under the "
        "standard rules); -n allows 1,000"
    ) in first.assumptions
    rough = measure_player(server, drops_half, precision=0.2)
    second = estimate(spec)
    ending = f"samples, judging by {len(rough.samples)} cached ones; -n allows 1,000"
    (basis,) = (text for text in second.assumptions if text.endswith(ending))
    (expected,) = (size for size in looks(1000) if f"takes about {size} samples" in basis)
    low, _, high = second.measuring.requests
    assert low <= 2 * (expected - len(rough.samples)) <= high
    assert len(measure_player(server, drops_half, precision=0.15).samples) <= expected * 1.5
    done = estimate(spec)
    assert done.total.requests.high == 0


_samples = st.lists(st.sampled_from([(-1, 1), (0, 0), (0, 1), (1, 0)]), min_size=1, max_size=40)


@given(_samples, st.floats(0.01, 0.99), st.booleans())
def test_limit_holds_at_both_ends(rows: list[tuple[int, int]], limit: float, paired: bool) -> None:
    ratio = Ratio([part for part, _ in rows], [whole for _, whole in rows], RELATIVE_CHANGE)
    games = [index // 2 if paired else index for index in range(len(rows))]
    tally, interval, value = ratio.tally(games), ratio.interval(games), ratio.value
    if not tally or not interval or value is None:
        return
    reach = margin(value, interval)
    if abs(reach - limit) > 1e-9:
        assert tally.is_narrower_than(limit) == (reach < limit)
    wider = replace(tally, critical_factor=CRITICAL_FACTOR)
    assert (wider.p(0.0) < 0.05) == (not wider.contains(0.0))


def test_limit_holds_at_a_farther_lower_end() -> None:
    tally = Ratio([1] * 8 + [0] * 2, [1] * 10, RATE).tally(range(10))  # .49 to .94
    assert tally and tally.is_narrower_than(0.32) and not tally.is_narrower_than(0.3)


def test_unusable_answers_delay_the_stop(server: Loopback) -> None:
    """The note describes the printed interval, which allows for unusable answers."""

    def often_unreadable(request: Body) -> str:
        coin = Random(str(request["messages"])).random()
        return "Hm." if is_changed(request) and coin < 0.2 else habit(request)

    run = measure_player(server, often_unreadable, n=150, precision=0.15)
    assert len(run.samples) == 150
    as_scored = interval_of(MEASURES[IMPACT], run.samples, CRITICAL_FACTOR)
    assert margin(run.results.metrics[IMPACT], as_scored) < 0.15 < impact_margin(run)
    assert run.notes[0].startswith("the target precision of 0.15 was not reached: after 150 ")
    assert run.notes[0].endswith("answers without a move widen the interval")
