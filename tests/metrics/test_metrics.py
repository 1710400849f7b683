"""Metrics of models with known behavior, and edge cases."""

import re
from dataclasses import replace
from pathlib import Path
from statistics import pstdev

import pytest

from cant_do_that_anymore.habits.chess.position import Position
from cant_do_that_anymore.metrics.measures import IMPACT, MEASURES
from cant_do_that_anymore.oaieval.record import original_violations
from cant_do_that_anymore.providers.base import Answer, Usage
from cant_do_that_anymore.task.conditions import CONTROL_CONDITIONS, DIAGNOSIS_CONDITIONS
from testing import POOL, PositionAnswers, plan_of, run_from_answers, run_with_outcomes

MOVE_OUTCOMES = ["usual", "forbidden", "adapted", "legal", "illegal"]
UNUSABLE = ["unreadable", "truncated", "refused", "error"]
PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"


def test_tokens_are_summed() -> None:
    answers = {
        "standard": Answer("", usage=Usage(10, 2, cached_tokens=4)),
        "changed": Answer("", usage=Usage(12, 1)),
    }
    metrics = run_from_answers([(position, answers) for position in POOL[:4]]).results.metrics
    kinds = {"prompt": 22, "completion": 3, "total": 25, "cached": 4}
    assert metrics.items() >= {f"usage_{kind}_tokens": 4 * n for kind, n in kinds.items()}.items()


def test_metrics_of_five_samples_match_a_hand_calculation() -> None:
    first, second, third, fourth = POOL[:4]
    replies = [
        (first, "f1b5", "f1b5"),  # usual, usual
        (second, "f8g7", "c8d7"),  # usual, forbidden
        (third, "f1a6", "a2a3"),  # legal but forbidden after the change, legal
        (fourth, "a7a5", "e4e9"),  # legal, no move
        (first, "h8h8", "a1a8"),  # no move, illegal
    ]
    metrics = run_from_answers(
        [
            (position, {"standard": Answer(a), "changed": Answer(b, reasoning="f8g7 or f1b5?")})
            for position, a, b in replies
        ]
    ).results.metrics
    shares = {
        "variant_impact_factor": -1 / 2,
        "delta": -1 / 5,
        "predicted_move_proportion": 2 / 5,
        "predicted_move_in_variant_proportion": 1 / 5,
        "adaptation_rate": 0,
        "rule_uptake": 0,
        "variant_legal_proportion": 1 / 5,
        "standard_forbidden_proportion": 3 / 5,
        "changed_forbidden_proportion": 2 / 5,
        "temptation_rate": 3 / 5,
        "resistance_rate": 2 / 3,
        "standard_unusable_proportion": 1 / 5,
        "changed_unusable_proportion": 1 / 5,
        "avg_num_previous_moves": (6 + 5 + 4 + 5 + 6) / 5,
        "std_num_previous_moves": pstdev([6, 5, 4, 5, 6]),
        "random_usual_proportion": (1 / 29 + 1 / 28 + 1 / 27 + 1 / 32 + 1 / 29) / 5,
        "mcnemar_p": 1,
    }
    counts = {"n_samples": 5, "n_games": 4, "n_failed": 0}
    usage = {f"usage_{kind}_tokens": 0 for kind in ("prompt", "completion", "total")}
    assert metrics == pytest.approx(shares | counts | usage)


def test_random_play_is_habit_if_no_other_move_is_legal() -> None:
    game = "e2e4 e7e5 g1f3 g8f6 f3e5 f6e4 d1e2 e4f2 e5c6 d8e7 c6e7 f2h1 e7c6"
    position = Position(1, tuple(game.split()), ("f8e7",))
    assert run_with_outcomes(positions=[position]).results.metrics["random_usual_proportion"] == 1


def test_measures_match_the_table_in_the_protocol() -> None:
    text = PROTOCOL.read_text(encoding="utf-8").replace("\N{MINUS SIGN}", "-")
    rows = re.findall(r"^\| `(\w+)` \|.* \| (\(.*\)|the same) \| (-?\d?) ?\|$", text, re.M)
    documented, above = {}, ""
    for name, pairs, perfect in rows:
        above = above if pairs == "the same" else pairs
        documented[name] = above, perfect
    assert documented == {
        name: (" ".join(map(str, sorted(m.pairs))), "" if m.perfect is None else f"{m.perfect:g}")
        for name, m in MEASURES.items()
    }


def test_only_control_measures_depend_on_the_controls() -> None:
    plan = plan_of(names=DIAGNOSIS_CONDITIONS)

    def replies_at(position: Position, names: tuple[str, ...], placebo: str) -> PositionAnswers:
        usual = position.usual[0]
        replies = {name: placebo if name == "placebo" else usual for name in names}
        return position, {name: Answer(text, usage=Usage(1, 0)) for name, text in replies.items()}

    samples = [replies_at(p, DIAGNOSIS_CONDITIONS, p.usual[0]) for p in POOL[:10]]
    placebos = [p.usual[0] for p in POOL[10:15]] + [""] * 5
    controls = [
        replies_at(position, CONTROL_CONDITIONS, placebo)
        for position, placebo in zip(POOL[10:20], placebos, strict=True)
    ]
    results = run_from_answers(samples, plan, controls).results
    assert results.metrics["usage_prompt_tokens"] == 6 * 10 + 3 * 10
    assert results.metrics["placebo_collateral_change"] == -1 / 2
    bounds = results.bounds["placebo_collateral_change"]
    assert (bounds.low, bounds.high, bounds.complete) == (-1 / 2, 0, 0)
    assert "placebo_impact_factor" not in results.bounds
    one_game = [(replace(position, game=1), answers) for position, answers in controls]
    clustered = run_from_answers(samples, plan, one_game).results.intervals
    collateral = "placebo_collateral_change"
    assert clustered[collateral].low < results.intervals[collateral].low
    (counts,) = {tuple(results.control_outcomes[name].items()) for name in ("standard", "changed")}
    assert dict(counts) == {"usual": 10} | dict.fromkeys([*MOVE_OUTCOMES[1:], *UNUSABLE], 0)
    assert results.control_outcomes["placebo"]["unreadable"] == 5
    one_control = run_from_answers(samples, plan, controls[:1]).results
    assert [*one_control.control_outcomes] == [*CONTROL_CONDITIONS]


@pytest.mark.parametrize("n", [0, 1])
def test_metrics_of_0_and_1_samples(n: int) -> None:
    results = run_with_outcomes("m", "adapted", positions=POOL[:n]).results
    assert results.metrics["n_samples"] == n
    assert results.metrics["delta"] == (-1 if n else None)
    assert results.metrics["mcnemar_p"] == (1 if n else None)
    assert (IMPACT in results.intervals) == bool(results.intervals) == bool(n)
    if n:
        assert results.intervals[IMPACT].low == -1
        assert results.intervals[IMPACT].high > 0


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("f1b5", ()),
        (" f1b5\n", ()),
        ("f1c4, of course", ()),
        ("f1f7", ()),
        ("e7e6=q", ("moving_invalid_piece",)),
        ("e4e5q", ()),
        ("f1d3=n", ()),
        ("f1e1", ("capturing_same_color",)),
        ("b5b6", ("moving_invalid_piece", "capturing_same_color")),
        ("e7d8", ("moving_invalid_piece", "capturing_same_color")),
        ("Bb5", ("incorrect_notation",)),
        ("e2e9", ("incorrect_notation",)),
        ("", ("incorrect_notation",)),
    ],
)
def test_violations_are_those_of_the_original(reply: str, expected: tuple[str, ...]) -> None:
    """White to move after 1. e4 d5."""
    violations = original_violations(reply, Position(0, ("e2e4", "d7d5"), ()))
    assert ("violation" in violations) == bool(expected)
    assert {name.removeprefix("violation_") for name in violations - {"violation"}} == set(expected)
