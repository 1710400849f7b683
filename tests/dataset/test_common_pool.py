"""The pool of common habits: what it holds, that runs say so, that nobody ranks across pools."""

from dataclasses import replace
from pathlib import Path

import pytest

from cant_do_that_anymore import compare, load
from cant_do_that_anymore.comparison.entries import entries_of
from cant_do_that_anymore.comparison.experiment import run_or_load
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.datasets.pools import Pool, positions_for
from cant_do_that_anymore.datasets.storage import RATES_ON_ALL, RATES_ON_COMMON, shipped_datasets
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.report.sentences import headline
from cant_do_that_anymore.runs.storage import save_run
from planted_models import in_every_second
from testing import POOL, Loopback, Serve, Spec, habit, measure, openai_server, perfect

HELD = [{p.id for p in dataset.positions} for dataset in shipped_datasets(POOL).values()]


def test_it_holds_every_position_of_the_shipped_datasets_once_and_no_other() -> None:
    pool = positions_for(Spec(pool="common"))
    assert isinstance(pool, Pool)
    ids = [position.id for position in pool.positions]
    assert set(ids) == set.union(*HELD)
    assert len(ids) == len(set(ids)) == 3_973


def test_the_rates_are_of_models_that_the_pool_was_not_chosen_by() -> None:
    """Counted in the shipped datasets; a model's share of all 3,973 would be 25 to 78 %."""
    expected = []
    for place, own in enumerate(HELD):
        seen = [p.id for p in POOL if any(p.id in h for h in HELD[:place] + HELD[place + 1 :])]
        expected.append(sum(each in own for each in seen) / len(seen))
    assert list(RATES_ON_COMMON) == expected
    assert [len(own) / len(POOL) for own in HELD] == list(RATES_ON_ALL)
    assert [f"{rate:.2f}" for rate in expected] == ["0.21", "0.29", "0.38", "0.67"]


def test_a_run_on_it_says_so_everywhere_and_goes_on_saying_so(serve: Serve, tmp_path: Path) -> None:
    server = serve(in_every_second)
    now = measure(server, n=10, pool="common")
    later = measure(server, n=10, pool="common", seed=1)
    usual = measure(server, n=10)
    assert {sample.position.id for sample in now.samples} <= set.union(*HELD)
    assert (
        now.dataset.provenance == f"built now from {now.dataset.asked} requests of the pool common"
    )
    assert not later.dataset.built_now
    assert later.dataset.provenance.endswith("requests of the pool common")
    assert "of 10 positions of the pool common under standard rules" in headline(now)
    assert "pool" not in headline(usual) + usual.dataset.provenance
    save_run(now, tmp_path / "run")
    assert load(tmp_path / "run").dataset.pool_name == "common"


def test_a_pool_that_is_mistyped_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"unknown pool: 'comon' \(did you mean 'common'\?\)"):
        positions_for(Spec(pool="comon"))
    with pytest.raises(InvalidInput, match="cannot read missing"):
        positions_for(Spec(pool="missing.jsonl"))


def test_a_model_that_it_was_chosen_by_is_asked_like_any_other_and_told() -> None:
    """Its shipped dataset is for the whole pool."""
    with openai_server(habit):
        shipped = measure("openai/gpt-4-0314", n=10)
        chosen = measure("openai/gpt-4-0314", n=10, pool="common")
    assert (shipped.dataset.origin, chosen.dataset.origin) == ("shipped", "built")
    assert chosen.dataset.asked == 10
    assert any("one of the four models" in note for note in chosen.notes)
    assert not any("one of the four models" in note for note in shipped.notes)


def test_nobody_is_ranked_across_pools(server: Loopback) -> None:
    usual, common = measure(server, n=10), measure(server, n=10, pool="common")
    given = measure(server, n=10, dataset="gpt-4-0314")
    other = measure(perfect, n=10, pool="common")
    with pytest.raises(
        InvalidInput, match="from the default pool and the pool common cannot be ranked"
    ):
        compare(usual, common)
    with pytest.raises(InvalidInput, match="evaluate all models on one pool"):
        compare(given, common)
    compare(common, other)
    found = entries_of([usual, common, other])
    assert [each.pool for each in found] == ["", "common", "common"]
    alone, together = rankings(found)
    assert together.title.endswith("(positions from the pool common)")
    assert "pool" not in alone.title


def test_an_experiment_takes_no_run_on_another_pool_for_its_own(tmp_path: Path) -> None:
    """All positions of a shipped dataset are in the common pool, too."""
    with openai_server(habit):
        spec = Spec(model="openai/gpt-4-0314", n=10)
        for first, second in ((None, "common"), ("common", None)):
            out = tmp_path / str(first)
            run_or_load(replace(spec, pool=first), out, save_run, quiet=True)
            with pytest.raises(InvalidInput, match="differs in positions"):
                run_or_load(replace(spec, pool=second), out, save_run, quiet=True)
            run_or_load(replace(spec, pool=first), out, save_run, quiet=True)


def test_an_estimate_knows_how_much_more_often_it_is_hit() -> None:
    usual, common = (estimate(Spec(model="openai/gpt-4o", pool=p)) for p in (None, "common"))
    assert usual.dataset.requests.high > 13_000
    assert common.dataset.requests.low < 3_000 < common.dataset.requests.high  # 33% hits
    assert 2 * common.dataset.requests.expected < usual.dataset.requests.expected
    (told,) = [each for each in common.assumptions if each.startswith("dataset")]
    assert "the shipped datasets (21." in told
    assert "21.2 to 66.8%, each on the positions of the others" in told
