"""The two ends of the scale, measured by the whole evaluation with the network in the package."""

from pathlib import Path

import pytest

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.datasets import pools
from cant_do_that_anymore.game import rule_pool
from cant_do_that_anymore.game.rules import CATALOGUE
from processes import cdta


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_network_that_cannot_read_keeps_its_habit(temperature: float) -> None:
    spec = Spec(model="cdta/pocket", eval="all_small", temperature=temperature)
    run = evaluate(spec, quiet=True)
    interval = run.results.intervals["variant_impact_factor"]
    assert run.results.metrics["n_samples"] == 100
    assert interval.low <= 0 <= interval.high
    if temperature == 0:
        assert run.results.metrics["predicted_move_proportion"] == 1
        assert run.results.metrics["variant_impact_factor"] == 0
        assert run.results.metrics["adaptation_rate"] == 0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_same_network_held_to_the_rules_drops_it_altogether(temperature: float) -> None:
    spec = Spec(model="cdta/pocket-rules", eval="all_small", temperature=temperature)
    metrics = evaluate(spec, quiet=True).results.metrics
    assert metrics["variant_impact_factor"] == -1
    assert metrics["adaptation_rate"] == 1
    assert metrics["variant_legal_proportion"] == 1


def test_the_diagonal_eval_tells_the_two_apart() -> None:
    shares = {
        model: evaluate(Spec(model=model, eval="all_diagonal", n=100), quiet=True).results.metrics[
            "predicted_move_in_variant_proportion"
        ]
        for model in ("cdta/pocket", "cdta/pocket-rules")
    }
    assert shares["cdta/pocket"]
    assert shares["cdta/pocket-rules"] == 0


def ends_of_the_scale(rules: str) -> list[object]:
    """The impact factors and adaptation rates of both, at temperature 0."""
    runs = [
        evaluate(Spec(model=model, rules=rules, n=10, temperature=0), quiet=True)
        for model in ("cdta/pocket", "cdta/pocket-rules")
    ]
    names = ("variant_impact_factor", "adaptation_rate")
    return [run.results.metrics[name] for run in runs for name in names]


@pytest.mark.parametrize("key", [key for key in CATALOGUE if CATALOGUE[key].forbids_something])
def test_every_rule_runs_out_of_the_box(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_pool, "POOL_SIZE", 40)
    assert ends_of_the_scale(key) == [0, 0, -1, 1]


def test_a_whole_pool_is_mined_by_the_first_run(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (rule_pool, pools):
        monkeypatch.setattr(module, "POOL_SIZE", 2_000)
    done = cdta("run", "--rules", "no-castling", "-n", 10)
    assert done.returncode == 0, done.stderr
    assert "mining a pool for no-castling: 2000/2000" in done.stderr
    (pool,) = home.glob("pools/*")
    assert len(pool.read_bytes().splitlines()) == 2_000
