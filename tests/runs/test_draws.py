"""Several draws per position: more answers, but not more certainty than they justify."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from cant_do_that_anymore import compare, load
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.metrics.bounds import interval_of
from cant_do_that_anymore.metrics.measures import IMPACT, MEASURES, UPTAKE
from cant_do_that_anymore.metrics.stopping import best_draws, relative_cost
from planted_models import adapting, habit
from run_builders import plan_of, samples_of
from testing import (
    POOL,
    Body,
    Serve,
    Spec,
    checksum,
    is_changed,
    measure,
    moves_in,
    positions,
)

DRAWS = 3


def half_adapting(request: Body) -> str:
    """Drops its habit in every second position, the same positions in every draw."""
    is_dropped = is_changed(request) and checksum(moves_in(request)) % 2
    return adapting(request) if is_dropped else habit(request)


def test_each_condition_is_asked_once_per_draw(serve: Serve, tmp_path: Path) -> None:
    server = serve(habit)
    once = measure(server, dataset=positions(20), n=20)
    assert len(server.requests) == 40
    run = measure(server, dataset=positions(20), n=20, draws=DRAWS)
    # The first draw is cached, and one request checks the model's identity.
    assert len(server.requests) == 40 * DRAWS + 1
    assert [sample.draw for sample in run.samples] == 20 * list(range(DRAWS))
    assert run.samples[::DRAWS] == once.samples
    assert (run.results.metrics["n_samples"], run.results.metrics["n_games"]) == (20 * DRAWS, 20)
    assert not any("wanted" in note for note in run.notes)
    saved = load(run.save(tmp_path / "run"))
    assert (saved.plan.draws, saved.results) == (DRAWS, run.results)
    assert len({sample.position.id for sample in saved.samples}) == 20


def test_n_counts_positions_of_a_built_dataset(serve: Serve) -> None:
    run = measure(serve(habit), pool=positions(100), n=10, draws=2)
    assert len(run.dataset.positions) == 10
    assert len(run.samples) == 20


def test_the_estimate_counts_every_draw() -> None:
    spec: dict[str, Any] = {"model": "m", "base_url": "http://localhost:1/v1", "n": 20}
    sources: list[dict[str, Any]] = [{"dataset": positions(20)}, {"pool": positions(100)}]
    for source in sources:
        once, thrice = (estimate(Spec(**spec, **source, draws=d)).measuring for d in (1, DRAWS))
        assert once.requests.high == 40
        assert thrice.requests.high == DRAWS * 40


def test_identical_draws_do_not_narrow_an_interval(serve: Serve) -> None:
    server = serve(half_adapting)
    once, thrice = (
        measure(server, dataset=positions(60), n=60, draws=draws) for draws in (1, DRAWS)
    )
    for name in (UPTAKE, IMPACT, "predicted_move_in_variant_proportion"):
        interval, interval_of_three = (run.results.intervals[name] for run in (once, thrice))
        assert interval_of_three.high - interval_of_three.low >= interval.high - interval.low
        assert once.results.metrics[name] == pytest.approx(thrice.results.metrics[name])


def test_comparisons_cluster_the_draws_of_a_position(serve: Serve) -> None:
    runs = {
        draws: [
            measure(serve(player), model=name, dataset=positions(60), n=60, draws=draws)
            for name, player in (("keeps", habit), ("drops half", half_adapting))
        ]
        for draws in (1, DRAWS)
    }
    widths = {}
    for draws, pair in runs.items():
        (comparison, *_) = compare(*pair).comparisons
        assert comparison.n_games == 60
        assert comparison.n_samples == 60 * draws
        assert comparison.interval
        widths[draws] = comparison.interval.high - comparison.interval.low
    assert widths[DRAWS] >= widths[1]


def test_intervals_cover_the_truth_if_positions_differ_and_draws_vary() -> None:
    """Each position has its own chance to keep the habit; the true value is their mean."""
    random, runs, covered, covered_unclustered = Random(1), 150, 0, 0
    plan, uptake = plan_of(), MEASURES[UPTAKE]
    for _ in range(runs):
        answers: list[Any] = []
        for position in POOL[:40]:
            chance = random.betavariate(0.5, 0.5)  # the mean is 0.5
            for _ in range(DRAWS):
                outcome = "special" if random.random() < chance else "adapted"
                answers.append((position, {"standard": "special", "changed": outcome}))
        samples = samples_of(answers, plan)
        clustered = interval_of(uptake, samples, 1.0)
        separate = zip(POOL[:120], (outcomes for _, outcomes in answers), strict=True)
        unclustered = interval_of(uptake, samples_of(list(separate), plan), 1.0)
        assert clustered and unclustered
        covered += clustered.low <= 0.5 <= clustered.high
        covered_unclustered += unclustered.low <= 0.5 <= unclustered.high
    assert covered >= 0.93 * runs
    assert covered_unclustered < 0.9 * runs  # without clustering, the test would fail


def test_two_to_five_draws_are_best_at_usual_hit_rates() -> None:
    assert all(2 <= best_draws(rate, 0.3) <= 5 for rate in (0.05, 0.075, 0.16))
    assert best_draws(0.67, 0.5) == 1
    # The square root of the cost of finding a position, in draws, times (1 - r) / r.
    assert best_draws(0.075, 0.5) == round((1 / 0.075 / 2) ** 0.5)
    assert relative_cost(1, 0.075, 0.9) == pytest.approx(15.333, abs=1e-3)


def test_the_estimate_mentions_cheaper_draws() -> None:
    spec: dict[str, Any] = {"model": "m", "base_url": "http://localhost:1/v1"}
    (line,) = [text for text in estimate(Spec(**spec)).assumptions if text.startswith("draws:")]
    assert "2 to 4 draws per position take the fewest requests" in line
    without_advice: list[dict[str, Any]] = [{"dataset": positions(20)}, {"draws": 3}]
    for options in without_advice:
        texts = estimate(Spec(**spec, **options)).assumptions
        assert not any(text.startswith("draws:") for text in texts)
