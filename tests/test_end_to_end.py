"""The two ends of the scale, measured by complete runs of the bundled network."""

from pathlib import Path

import pytest

from cant_do_that_anymore.habits.chess import pools, rule_pool
from testing import cdta, measure


def test_a_network_restricted_to_legal_moves_drops_its_habit() -> None:
    """The golden runs show that the unrestricted network keeps it."""
    run = measure("cdta/pocket-rules", eval="all_small")
    assert (run["variant_impact_factor"].value, run["rule_uptake"].value) == (-1, 1)


@pytest.mark.usefixtures("small_pools")
@pytest.mark.parametrize("key", ["queens-as-rooks", "no-castling", "knights-cannot-jump"])
def test_other_rules_run_out_of_the_box(key: str) -> None:
    for model, expected in (("cdta/pocket", (0, 0)), ("cdta/pocket-rules", (-1, 1))):
        run = measure(model, rules=key, n=5, temperature=0)
        assert (run["variant_impact_factor"].value, run["rule_uptake"].value) == expected
        assert run["predicted_move_proportion"].value == 1


def test_the_first_run_mines_a_whole_pool(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rule_pool, pools):
        monkeypatch.setattr(module, "POOL_SIZE", 200)
    stderr = cdta("run", "--rules", "no-castling", "-n", 10, code=0).stderr
    assert "mining a pool for no-castling: 200/200" in stderr
    (pool,) = home.glob("pools/*")
    assert len(pool.read_bytes().splitlines()) == 200
