"""Rule uptake ranks what models do: neither the strength of a habit nor useless answers decide."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore import Spec, compare, evaluate
from cant_do_that_anymore.comparison.entries import entries_of
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.metrics.measures import IMPACT, UPTAKE
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION, Eval, Outcome
from loopback import Body, Loopback, is_changed, moves_in, serving
from players import habit, legal_under_both, number_of
from processes import cdta
from runs import plan_of, run_of

POOL = shipped_pool("pool")[:200]


def plays_habit(standard: int, changed: int) -> Callable[[Body], str]:
    """The special move in so many of a hundred positions under each rule set, else a legal one."""

    def answer(request: Body) -> str:
        moves = moves_in(request)
        often = changed if is_changed(request) else standard
        return habit(request) if number_of(moves) % 100 < often else legal_under_both(moves)[0]

    return answer


def measured(answer: Callable[[Body], str], model: str, positions: Path) -> Any:
    with serving(Loopback(answer)) as server:
        spec = Spec(model=model, base_url=server.url, dataset=positions, n=len(POOL))
        return evaluate(spec, quiet=True)


def said(pairs: list[tuple[Outcome, Outcome]], **fields: Any) -> Run:
    told = [{STANDARD_CONDITION: before, CHANGED_CONDITION: after} for before, after in pairs]
    return run_of(list(zip(POOL, told, strict=False)), plan_of(len(pairs)), **fields)


def test_a_perfect_model_leads_one_that_keeps_half_of_a_stronger_habit(tmp_path: Path) -> None:
    positions = tmp_path / "both.jsonl"
    write_positions(positions, POOL)
    perfect = measured(plays_habit(45, 0), "perfect", positions)
    half = measured(plays_habit(95, 45), "half", positions)
    assert perfect.results.metrics[UPTAKE] == 1
    for run in (perfect, half):
        run.save(tmp_path / run.model)
    found = cdta("compare", str(tmp_path / "half"), str(tmp_path / "perfect"), "--json")
    told = json.loads(found.stdout)
    assert told["ranking"] == ["perfect", "half"]
    assert [pair["measure"] for pair in told["pairs"]] == [UPTAKE, "adaptation_rate", IMPACT]
    first = told["pairs"][0]
    assert (first["models"], first["verdict"]) == (["perfect", "half"], "different")
    assert 0.3 < first["low"] < first["difference"] < first["high"] < 1
    assert first["p_uncorrected"] < first["p"] < 0.001
    assert compare(half, perfect).verdict.startswith(
        "perfect adapts most; its lead over half is significant: "
    )


def test_two_perfect_models_are_not_different_however_strong_their_habits_are() -> None:
    runs = [
        evaluate(Spec(model="cdta/pocket-rules", temperature=heat, n=300), quiet=True)
        for heat in (0.2, 1.5)
    ]
    strong, weak = (run.results.intervals["predicted_move_proportion"] for run in runs)
    assert strong.low > weak.high + 0.2
    for found in compare(*runs).comparisons:
        assert found.values == ((1, 1) if found.measure.perfect == 1 else (-1, -1))
        assert found.verdict == "equivalent"


@pytest.mark.parametrize(
    ("pairs", "uptake"),
    [
        ([("special", "special")] * 20, 0),
        ([("special", "legal")] * 20, 1),
        ([("special", "adapted")] * 5 + [("legal", "legal")] * 15, 1),
        ([("special", "forbidden")] * 20, 0),
        ([("special", "illegal")] * 20, 0),
        ([("special", "unreadable")] * 10 + [("special", "refused")] * 10, 0),
        ([("special", "legal")] * 10 + [("legal", "special")] * 10, 0),
        (
            [("special", "legal")] * 5 + [("special", "special")] * 10 + [("special", "error")],
            1 / 3,
        ),
        ([("legal", "special")] * 20, None),
    ],
)
def test_it_is_the_share_of_broken_rules_that_stating_them_takes_away(
    pairs: list[tuple[Outcome, Outcome]], uptake: float | None
) -> None:
    run = said(pairs)
    found = run.results.metrics[UPTAKE]
    assert found == (uptake if uptake is None else pytest.approx(uptake))
    assert (UPTAKE in run.results.intervals) == (uptake is not None)


def test_p_is_corrected_for_all_tables_that_are_shown_together() -> None:
    def two(rare: int, eval_: Eval) -> list[Run]:
        kept: list[tuple[Outcome, Outcome]] = [("special", "special")] * 100
        legal: list[tuple[Outcome, Outcome]] = [("special", "legal")] * rare
        some = [*legal, *kept[rare:]]
        return [
            replace(run, plan=replace(run.plan, eval=eval_), model=name, version=name)
            for name, pairs in (("a", kept), ("b", some))
            for run in [said(pairs, identity={"name": name})]
        ]

    [alone] = rankings(entries_of(two(9, "all")))
    several = rankings(entries_of([*two(9, "all"), *two(0, "all_small"), *two(0, "all_diagonal")]))
    assert [len(each.comparisons) for each in several] == [3, 3, 3]
    for one, among in zip(alone.comparisons, several[0].comparisons, strict=True):
        assert one.p == among.p
        assert one.corrected_p == pytest.approx(3 * one.p)
        assert among.corrected_p == pytest.approx(9 * one.p)
        assert (one.verdict, among.verdict) == ("different", "different")
        assert among.enough > one.enough
