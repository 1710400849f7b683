"""Positions by length: rule uptake by length and by pool in reports."""

from typing import Any

import pytest

from cant_do_that_anymore.datasets.storage import common_positions
from cant_do_that_anymore.metrics.groups import by_common, by_length, shows_trend
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.runs.storage import run_json
from run_builders import run_from_answers, run_with_outcomes
from testing import POOL, cdta

COMMON = {position.id for position in common_positions()}


def forgetting(step: int) -> Any:
    """Outcomes of a model that forgets the rule in longer games: up to 3/4 are special."""
    return lambda number: "special" if number % 4 < min(3, number // step) else "adapted"


def test_the_report_shows_rule_uptake_by_length_if_lengths_vary_enough() -> None:
    shortest_first = sorted(POOL[:400], key=lambda position: len(position.moves))
    run = run_with_outcomes(changed=forgetting(100), positions=shortest_first)
    groups = by_length(run.answered, run.plan)
    assert shows_trend(groups)
    assert groups[0].uptake.value == pytest.approx(1.0, abs=0.05)
    assert groups[-2].uptake.value == pytest.approx(0.25, abs=0.05)
    assert "Rule uptake by length" in page(run)
    short = run_with_outcomes(positions=[p for p in POOL if len(p.moves) == 8][:60])
    assert "Rule uptake by length" not in page(short)
    assert "Rule uptake by length" not in page(run_with_outcomes(positions=POOL[:15]))


def test_rule_uptake_inside_and_outside_the_common_pool() -> None:
    inside = [p for p in POOL if p.id in COMMON][:30]
    outside = [p for p in POOL if p.id not in COMMON][:50]
    after: Any = ["adapted"] * 30 + ["special"] * 50
    run = run_with_outcomes(changed=after, positions=[*inside, *outside])
    pools = run_json(run)["rule_uptake_by"]["pool"]
    assert {name: (uptake["n"], uptake["value"]) for name, uptake in pools.items()} == {
        "in the common pool": (30, 1.0),
        "not in it": (50, 0.0),
    }
    assert pools["not in it"]["low"] <= 0 <= pools["not in it"]["high"]
    assert "It is another population" in page(run)
    only_inside = run_with_outcomes(positions=inside)
    assert by_common(only_inside.answered, only_inside.plan, only_inside.dataset) == []
    assert "pool" not in run_json(only_inside)["rule_uptake_by"]
    assert "It is another population" not in page(only_inside)
    assert run_json(run_from_answers([]))["rule_uptake_by"] == {}


def test_the_estimate_says_that_the_common_pool_is_another_population(small_pools: None) -> None:
    options = ["estimate", "--model", "openai/gpt-4o", "--reasoning-effort", "none"]
    default = cdta(*options, code=0).stdout
    common = cdta(*options, "--pool", "common", code=0).stdout
    for output in (default, common):
        assert "common measures another population" in " ".join(output.split())
    assert "another population" not in cdta(*options, "--pool", "games", code=0).stdout
