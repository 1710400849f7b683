"""The common pool: its positions, how runs report it, and no ranking across pools."""

from pathlib import Path

import pytest

from cant_do_that_anymore import compare, load
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.datasets.pools import source_for
from cant_do_that_anymore.datasets.storage import shipped_datasets
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.base import Pool
from cant_do_that_anymore.habits.chess.pools import RATES_ON_ALL, RATES_ON_COMMON
from cant_do_that_anymore.report.sentences import headline
from cant_do_that_anymore.runs.storage import save_run
from planted_models import habit, habit_in_every_second
from testing import POOL, Serve, Spec, measure, openai_server, perfect

DATASET_IDS = [{p.id for p in dataset.items} for dataset in shipped_datasets().values()]


def test_it_is_the_union_of_the_shipped_datasets() -> None:
    pool = source_for(Spec(pool="common"))
    assert isinstance(pool, Pool)
    ids = [position.id for position in pool.items]
    assert set(ids) == set.union(*DATASET_IDS)
    assert len(ids) == len(set(ids)) == 3_973


def test_hit_rates_leave_out_the_models_own_dataset() -> None:
    """Each model's share of all 3,973 positions would be 25% to 78%."""
    expected = []
    for number, own in enumerate(DATASET_IDS):
        others = set.union(*DATASET_IDS[:number], *DATASET_IDS[number + 1 :])
        expected.append(len(own & others) / len(others))
    assert list(RATES_ON_COMMON) == expected
    assert [len(own) / len(POOL) for own in DATASET_IDS] == list(RATES_ON_ALL)
    assert [f"{rate:.2f}" for rate in expected] == ["0.21", "0.29", "0.38", "0.67"]


def test_runs_name_the_common_pool_and_are_not_compared_with_others(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(habit_in_every_second)
    default, common = measure(server, n=10), measure(server, n=10, pool="common")
    other = measure(perfect, n=10, pool="common")
    assert {sample.item.id for sample in common.samples} <= set.union(*DATASET_IDS)
    provenance = f"built from {common.dataset.asked} requests of the pool common"
    assert common.dataset.provenance == provenance
    assert "of 10 positions of the pool common under standard rules" in headline(common)
    assert "pool" not in headline(default) + default.dataset.provenance
    save_run(common, tmp_path / "run")
    assert load(tmp_path / "run").dataset.pool_name == "common"
    with pytest.raises(
        InvalidInput,
        match="from different pools cannot be compared: the default pool, the pool common",
    ):
        compare(default, common)
    compare(common, other)
    titles = [ranking.entries[0].title for ranking in rankings([default, common, other])]
    assert titles == ["Bishops move like knights", "Bishops move like knights (pool common)"]


def test_a_model_that_shaped_the_pool_is_measured_normally() -> None:
    """Its shipped dataset is for the default pool only."""
    with openai_server(habit):
        shipped = measure("openai/gpt-4-0314", n=10)
        common = measure("openai/gpt-4-0314", n=10, pool="common")
    assert (shipped.dataset.origin, common.dataset.origin) == ("shipped", "built")
    assert common.dataset.asked == 10
