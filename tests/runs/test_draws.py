"""Several draws per position: more answers, and never more certainty than they give."""

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
    is_changed,
    measure,
    moves_in,
    number_of,
    positions,
)

DRAWS = 3


def by_position(request: Body) -> str:
    """Keeps its habit in every second position, the same in every draw."""
    dropped = is_changed(request) and number_of(moves_in(request)) % 2
    return adapting(request) if dropped else habit(request)


def test_every_position_is_asked_so_often_under_each_condition(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(habit)
    once = measure(server, dataset=positions(20), n=20)
    assert len(server.requests) == 40
    run = measure(server, dataset=positions(20), n=20, draws=DRAWS)
    assert len(server.requests) == 40 * DRAWS + 1  # is it the same model? And those of one draw
    assert [sample.draw for sample in run.samples] == 20 * list(range(DRAWS))
    assert run.samples[::DRAWS] == once.samples
    assert (run.results.metrics["n_samples"], run.results.metrics["n_games"]) == (20 * DRAWS, 20)
    assert not any("wanted" in note for note in run.notes)
    saved = load(run.save(tmp_path / "run"))
    assert (saved.plan.draws, saved.results) == (DRAWS, run.results)
    assert len({sample.position.id for sample in saved.samples}) == 20


def test_n_counts_positions_also_where_they_are_found(serve: Serve) -> None:
    run = measure(serve(habit), pool=positions(100), n=10, draws=2)
    assert len(run.dataset.positions) == 10
    assert len(run.samples) == 20


def test_the_estimate_counts_every_draw() -> None:
    spec: dict[str, Any] = {"model": "m", "base_url": "http://localhost:1/v1", "n": 20}
    sources: list[tuple[dict[str, Any], int]] = [
        ({"dataset": positions(20)}, 40),
        ({"pool": positions(100)}, 40),
    ]
    for extra, least in sources:
        once, thrice = (estimate(Spec(**spec, **extra, draws=d)).measuring for d in (1, DRAWS))
        assert once.requests.high == least
        assert thrice.requests.high == DRAWS * least


def test_draws_that_repeat_each_other_do_not_narrow_an_interval(serve: Serve) -> None:
    server = serve(by_position)
    once, thrice = (
        measure(server, dataset=positions(60), n=60, draws=draws) for draws in (1, DRAWS)
    )
    for name in (UPTAKE, IMPACT, "predicted_move_in_variant_proportion"):
        narrow, wide = (run.results.intervals[name] for run in (thrice, once))
        assert narrow.high - narrow.low >= wide.high - wide.low
        assert once.results.metrics[name] == pytest.approx(thrice.results.metrics[name])


def test_comparisons_keep_the_draws_of_a_position_together(serve: Serve) -> None:
    runs = {
        draws: [
            measure(serve(player), model=name, dataset=positions(60), n=60, draws=draws)
            for name, player in (("keeps", habit), ("drops half", by_position))
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


def test_intervals_hold_the_truth_where_positions_differ_and_draws_vary() -> None:
    """A habit that is kept with a chance that each position decides; the truth is their mean."""
    random, times, held, held_alone = Random(1), 150, 0, 0
    plan, uptake = plan_of(), MEASURES[UPTAKE]
    for _ in range(times):
        asked: list[Any] = []
        for position in POOL[:40]:
            kept = random.betavariate(0.5, 0.5)  # the mean is a half
            for _ in range(DRAWS):
                after = "special" if random.random() < kept else "adapted"
                asked.append((position, {"standard": "special", "changed": after}))
        samples = samples_of(asked, plan)
        together = interval_of(uptake, samples)
        apart = zip(POOL[:120], (said for _, said in asked), strict=True)
        alone = interval_of(uptake, samples_of(list(apart), plan))
        assert together and alone
        held += together.low <= 0.5 <= together.high
        held_alone += alone.low <= 0.5 <= alone.high
    assert held >= 0.93 * times
    assert held_alone < 0.9 * times  # the test can fail: as if draws were positions


def test_two_to_five_draws_are_best_at_usual_hit_rates() -> None:
    assert all(2 <= best_draws(rate, 0.3) <= 5 for rate in (0.05, 0.075, 0.16))
    assert best_draws(0.67, 0.5) == 1
    # By the formula: the root of what finding costs, in draws, times (1 - r) / r.
    assert best_draws(0.075, 0.5) == round((1 / 0.075 / 2) ** 0.5)
    assert relative_cost(1, 0.075, 0.9) == pytest.approx(15.333, abs=1e-3)


def test_the_estimate_says_when_draws_are_cheaper() -> None:
    spec: dict[str, Any] = {"model": "m", "base_url": "http://localhost:1/v1"}
    (line,) = [a for a in estimate(Spec(**spec)).assumptions if a.startswith("draws:")]
    assert "2 to 4 draws per position take the fewest requests" in line
    others: list[dict[str, Any]] = [{"dataset": positions(20)}, {"draws": 3}]
    for other in others:
        assert not any(a.startswith("draws:") for a in estimate(Spec(**spec, **other)).assumptions)
