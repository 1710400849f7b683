"""Mining on a Ray cluster, started and stopped here."""

from pathlib import Path
from random import Random

import pytest

from cant_do_that_anymore.habits.chess.mining import inputs
from pgn_styles import plain_pgn, pool_games
from processes import cdta


@pytest.mark.filterwarnings("default")  # do not fail on Ray's own warnings
def test_a_cluster_finds_the_same_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "CHUNK_BYTES", 2**13)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("TMPDIR", raising=False)  # its logs need not be in memory
    from ray.cluster_utils import Cluster

    games = tmp_path / "games.pgn"
    games.write_text("".join(map(plain_pgn, pool_games(100, Random(2)))) * 4, encoding="utf-8")
    machine = {"num_cpus": 2, "object_store_memory": 100 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=machine)
    try:
        distributed = cdta("mine", games, "--cluster", cluster.address, code=0).stdout
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]
    assert distributed == cdta("mine", games, code=0).stdout
    assert len(distributed.splitlines()) == 100
