"""Rule uptake ranks what models do. Neither habit strength nor unusable answers decide."""

import json
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore import compare, load
from cant_do_that_anymore.comparison.entries import entries_of
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.metrics.measures import IMPACT, UPTAKE
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import save_run
from cant_do_that_anymore.task.types import Eval, Outcome
from testing import POOL, cdta, keeps_habit_in, run_with_outcomes


def test_a_perfect_model_leads_one_that_keeps_half_of_a_stronger_habit(tmp_path: Path) -> None:
    perfect = run_with_outcomes("perfect", "legal", keeps_habit_in(45, "legal"))
    half = run_with_outcomes("half", keeps_habit_in(45, "legal"), keeps_habit_in(95, "legal"))
    assert perfect.results.metrics[UPTAKE] == 1
    for run in (perfect, half):
        save_run(run, tmp_path / run.model)
    output = json.loads(cdta("compare", tmp_path / "half", tmp_path / "perfect", "--json").stdout)
    assert output["ranking"] == ["perfect", "half"]
    assert [pair["measure"] for pair in output["pairs"]] == [UPTAKE, "adaptation_rate", IMPACT]
    first = output["pairs"][0]
    assert (first["models"], first["verdict"]) == (["perfect", "half"], "different")
    assert 0.3 < first["low"] < first["difference"] < first["high"] < 1
    assert first["p_uncorrected"] < first["p"] < 0.001
    assert (
        compare(load(tmp_path / "half"), load(tmp_path / "perfect"))
        .summary()
        .startswith("perfect adapts most; its lead over half is significant: ")
    )


@pytest.mark.parametrize(
    ("pairs", "uptake"),
    [
        ([("usual", "usual")] * 20, 0),
        ([("usual", "legal")] * 20, 1),
        ([("usual", "adapted")] * 5 + [("legal", "legal")] * 15, 1),
        ([("usual", "forbidden")] * 20, 0),
        ([("usual", "illegal")] * 20, 0),
        ([("usual", "unreadable")] * 10 + [("usual", "refused")] * 10, 0),
        ([("usual", "legal")] * 10 + [("legal", "usual")] * 10, 0),
        (
            [("usual", "legal")] * 5 + [("usual", "usual")] * 10 + [("usual", "error")],
            1 / 3,
        ),
        ([("legal", "usual")] * 20, None),
    ],
)
def test_uptake_by_outcomes(pairs: list[tuple[Outcome, Outcome]], uptake: float | None) -> None:
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    run = run_with_outcomes("m", after, before)
    value = run.results.metrics[UPTAKE]
    assert value == (uptake if uptake is None else pytest.approx(uptake))
    assert (UPTAKE in run.results.intervals) == (uptake is not None)


def test_p_is_corrected_for_all_tables_shown_together() -> None:
    def two_runs(dropped: int, eval_: Eval) -> list[Run]:
        def outcome(number: int) -> Outcome:
            return "legal" if number < dropped else "usual"

        common: dict[str, Any] = {"positions": POOL[:100], "plan": {"eval": eval_}}
        return [run_with_outcomes("a", **common), run_with_outcomes("b", outcome, **common)]

    [alone] = rankings(entries_of(two_runs(9, "all")))
    runs = [*two_runs(9, "all"), *two_runs(0, "all_small"), *two_runs(0, "all_diagonal")]
    several = rankings(entries_of(runs))
    assert [len(ranking.comparisons) for ranking in several] == [3, 3, 3]
    for single, joint in zip(alone.comparisons, several[0].comparisons, strict=True):
        assert single.p == joint.p
        assert single.corrected_p == pytest.approx(3 * single.p)
        assert joint.corrected_p == pytest.approx(9 * single.p)
        assert (single.verdict, joint.verdict) == ("different", "different")
        assert joint.required_samples > single.required_samples
