"""The design by example: whatever is a dimension takes a new value as one entry in one place.

Each addition below is as short as it would be in the package, and everything else follows: asking,
answers, files, pages, the terminal, comparisons.
"""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest
from markupsafe import escape

from cant_do_that_anymore import Position, Spec, evaluate
from cant_do_that_anymore.client.cache import request_key
from cant_do_that_anymore.datasets.pools import Pool
from cant_do_that_anymore.datasets.search import SelectionConfig
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.game.rules import CATALOGUE, STANDARD
from cant_do_that_anymore.metrics import measures
from cant_do_that_anymore.metrics.types import Measure
from cant_do_that_anymore.providers.base import Request, Settings
from cant_do_that_anymore.providers.local import RandomModel
from cant_do_that_anymore.report.run_page import page, save_with_page
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import facts_of, load_run
from cant_do_that_anymore.task.conditions import CONDITIONS, ConditionTemplate
from cant_do_that_anymore.task.spec import plan_for
from own_rules import NoEnPassant
from processes import cdta
from questions import question

POOL = shipped_pool("pool")[:12]


def saved_and_loaded(run: Run, folder: Path) -> Run:
    """The run by way of its files, which must tell the same."""
    save_with_page(run, folder)
    loaded = load_run(folder)
    assert facts_of(loaded) == facts_of(run)
    assert loaded.samples == run.samples
    return loaded


def test_a_condition_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    politely = ConditionTemplate(
        lambda _: STANDARD, lambda wording, _: wording.standard + " If you please."
    )
    monkeypatch.setitem(CONDITIONS, "politely", politely)

    write_positions(tmp_path / "few.jsonl", POOL)
    names = ("standard", "changed", "politely")
    spec = Spec(model="cdta/random", dataset=tmp_path / "few.jsonl", n=12, conditions=names)
    run = saved_and_loaded(evaluate(spec, quiet=True), tmp_path / "run")
    assert all(tuple(sample.replies) == names for sample in run.samples)
    assert sum(run.results.outcomes["politely"].values()) == 12
    assert run.plan.conditions[2].text.endswith("If you please.")
    assert 'data-condition="politely"' in page(run)
    assert "politely" in cdta("rescore", tmp_path / "run", "--out", tmp_path / "again").stdout


def test_a_rule_that_is_no_swap_is_one_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CATALOGUE, NoEnPassant.key, NoEnPassant())

    moves = ("e2e4", "a7a6", "e4e5", "d7d5")
    (tmp_path / "games.pgn").write_text("1. e4 a6 2. e5 d5 3. exd6 *\n")
    pool = tmp_path / "pool.jsonl"
    mined = cdta("mine", "--rules", NoEnPassant.key, tmp_path / "games.pgn", "-o", pool)
    assert mined.returncode == 0, mined.stderr
    assert json.loads(pool.read_text())["next_filtered_moves"] == ["e5d6"]
    run = evaluate(Spec(model="cdta/random", rules=NoEnPassant(), dataset=pool, n=1), quiet=True)
    assert saved_and_loaded(run, tmp_path / "run").plan.change == NoEnPassant()
    assert run.samples[0].position == Position(0, moves, ("e5d6",))
    assert run.plan.conditions[1].text.count(NoEnPassant.statement) == 1


def test_a_measure_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queens = Measure(
        "queen_proportion",
        "Queen moves",
        "how often the queen moves under the changed rules",
        part=lambda sample: (sample.replies["changed"].move or "").startswith("d"),
        needs=("changed",),
    )
    monkeypatch.setitem(measures.MEASURES, queens.name, queens)

    write_positions(tmp_path / "few.jsonl", POOL)
    spec = Spec(model="cdta/random", dataset=tmp_path / "few.jsonl", n=12)
    run = saved_and_loaded(evaluate(spec, quiet=True), tmp_path / "run")
    hits = sum(queens.part(sample) for sample in run.samples)
    assert run.results.metrics["queen_proportion"] == hits / 12
    assert run.results.intervals["queen_proportion"].low <= hits / 12
    assert "Queen moves" in page(run)


@dataclass(frozen=True)
class MoreSettings(Settings):
    haste: str = "none"


def test_a_setting_is_one_field() -> None:
    """Keys, the dataset's digest, run.json, the page and what runs differ in follow from it."""
    model = RandomModel()
    plan = replace(plan_for(Spec(), model), settings=MoreSettings())
    high = replace(plan, settings=MoreSettings(haste="high"))
    ask = Request(question(("e2e4",)), "measuring", "standard")
    assert request_key(model, ask, plan.settings) == request_key(model, ask, Settings())
    assert request_key(model, ask, plan.settings) != request_key(model, ask, high.settings)
    digests = [SelectionConfig(model, Pool("pool", POOL), each).digest for each in (plan, high)]
    assert digests[0] != digests[1]
    assert plan.differences(high) == ["haste"]


@pytest.mark.parametrize("name", [each.name for each in fields(Settings)])
def test_no_field_of_the_settings_can_be_forgotten(name: str, tmp_path: Path) -> None:
    other = Settings(0.25, 99, 7, "none", 77, '{"top_k": 3}')
    value = getattr(other, name)
    write_positions(tmp_path / "few.jsonl", POOL[:2])
    options = {name: value}
    run = evaluate(Spec(model="cdta/random", dataset=tmp_path / "few.jsonl", n=2, **options))
    assert facts_of(run)["settings"][name] == value
    assert escape(str(value)) in page(run)
    ask = Request(question(("e2e4",)), "measuring", "standard")
    changed = replace(Settings(), **options)
    assert request_key(RandomModel(), ask, changed) != request_key(RandomModel(), ask, Settings())
