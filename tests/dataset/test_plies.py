"""Positions by length: the filter on pools, and rule uptake by length and by pool in reports."""

from typing import Any

import pytest

from cant_do_that_anymore.comparison.entries import entries_of
from cant_do_that_anymore.datasets.pools import positions_for
from cant_do_that_anymore.datasets.search import SelectionConfig
from cant_do_that_anymore.datasets.storage import common_positions
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.rule_pool import positions_in_games
from cant_do_that_anymore.game.rules import CATALOG
from cant_do_that_anymore.metrics.groups import by_common, by_length, shows_trend
from cant_do_that_anymore.providers.local import RandomModel
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.runs.storage import run_json
from run_builders import plan_of, run_from_answers, run_with_outcomes
from testing import POOL, Spec, cdta, habit, measure

COMMON = {position.id for position in common_positions()}


def lengths(**options: Any) -> list[int]:
    return [len(position.moves) for position in positions_for(Spec(**options)).positions]


@pytest.mark.parametrize(
    ("plies", "allowed"),
    [("8-12", range(8, 13)), ("20-", range(20, 99)), ("-6", range(7)), ("9-9", range(9, 10))],
)
def test_plies_filter_the_pool(plies: str, allowed: range) -> None:
    assert sorted(lengths(plies=plies)) == sorted(n for n in lengths() if n in allowed)
    assert lengths(plies=plies, eval="all_diagonal") == [
        n for n in lengths(eval="all_diagonal") if n in allowed
    ]


@pytest.mark.parametrize("plies", ["12-8", "-", "8", "a-b", "8-12-16", "-1-3", "８-９"])
def test_an_invalid_range_is_refused(plies: str) -> None:
    with pytest.raises(InvalidInput, match=r"plies must be MIN-MAX, MIN- or -MAX, such as 30-60"):
        Spec(plies=plies)


def test_one_range_has_one_spelling() -> None:
    """It is part of the pool's name, and runs on different pools are not ranked together."""
    assert [Spec(plies=plies).plies for plies in ("08-012", "0-6", "020-")] == ["8-12", "-6", "20-"]


def test_an_empty_or_conflicting_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match="after 90-99 plies; its positions are after 2 to 37"):
        positions_for(Spec(plies="90-99"))
    with pytest.raises(InvalidInput, match="give plies or a dataset, not both"):
        Spec(plies="8-12", dataset="gpt-4-0314")


def test_the_range_is_part_of_the_identity_of_pool_and_dataset() -> None:
    pools = [positions_for(Spec(plies=plies)) for plies in (None, "8-12", "8-13")]
    digests = {SelectionConfig(RandomModel.info, p, plan_of()).digest for p in pools}  # type: ignore
    assert len(digests) == 3
    run = measure(habit, n=5, plies="8-12")
    assert {len(sample.position.moves) for sample in run.samples} <= set(range(8, 13))
    assert run.dataset.pool_name == "shipped, 8-12 plies"
    other = measure(habit, n=5)
    assert len({entry.category for entry in entries_of([run, other])}) == 2


def test_bundled_games_give_long_positions_and_do_not_change_the_default_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cant_do_that_anymore.game.rule_pool.POOL_SIZE", 60)
    rules = CATALOG["no-castling"]
    pool, late = list(positions_in_games(rules)), lengths(rules=rules, plies="30-60", pool="games")
    assert len(late) == 60 and min(late) >= 30
    assert positions_for(Spec(rules=rules)).positions == pool
    assert lengths(rules=rules, plies="30-60", pool="games") == late  # cached


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
