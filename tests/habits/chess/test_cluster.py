"""Mining on a Ray cluster of two workers, started and stopped here."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cant_do_that_anymore.habits.chess.mining import inputs
from cant_do_that_anymore.habits.chess.mining.miner import map_cluster
from pgn_styles import plain_pgn, pool_games
from processes import cdta

pytestmark = pytest.mark.filterwarnings("default")  # do not fail on Ray's own warnings


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Address of a cluster that looks to Ray like two machines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("TMPDIR", raising=False)  # its logs need not be in memory
        from ray.cluster_utils import Cluster

        machine: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
        machine |= {"include_log_monitor": False, "no_monitor": True}
        head = machine | {"include_dashboard": False}
        ray_cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            ray_cluster.add_node(**machine)
            yield ray_cluster.address
        finally:
            ray_cluster.shutdown()  # type: ignore[no-untyped-call]


def test_work_runs_on_both_machines_and_returns_in_order(cluster: str) -> None:
    def locate(number: int) -> tuple[int, str]:
        import ray

        return number, ray.get_runtime_context().get_node_id()

    machines = set()
    results = map_cluster(locate, count(), cluster)
    for expected in range(10_000):
        number, machine = next(results)
        assert number == expected
        machines.add(machine)
        if len(machines) == 2:
            break
    results.close()
    assert len(machines) == 2


def test_a_cluster_finds_the_same_positions(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "CHUNK_BYTES", 2**13)
    games = tmp_path / "games.pgn"
    games.write_text("".join(map(plain_pgn, pool_games(100, Random(2)))) * 4, encoding="utf-8")
    local, distributed = (
        cdta("mine", games, *options, code=0).stdout for options in ([], ["--cluster", cluster])
    )
    assert distributed == local
    assert len(local.splitlines()) == 100
