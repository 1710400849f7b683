"""The numbers: models whose score is known, and the edges."""

import re
from dataclasses import replace
from pathlib import Path
from statistics import pstdev

import pytest

from cant_do_that_anymore.game.move_parser import moves_in
from cant_do_that_anymore.game.position import Position
from cant_do_that_anymore.game.rules import STANDARD
from cant_do_that_anymore.metrics.measures import IMPACT, MEASURES
from cant_do_that_anymore.providers.base import Answer, Usage
from cant_do_that_anymore.task.conditions import CONTROL_CONDITIONS, DIAGNOSIS_CONDITIONS
from cant_do_that_anymore.task.scorer import original_violations
from testing import POOL, Asked, Play, plan_of, played, run_of

OF_MOVES = ["special", "forbidden", "adapted", "legal", "illegal"]
UNUSABLE = ["unreadable", "truncated", "refused", "error"]
PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"


@pytest.mark.parametrize(
    ("standard", "changed", "expected", "noted"),
    [
        ("special", "special", {IMPACT: 0, "adaptation_rate": 0, "mcnemar_p": 1}, ""),
        (
            *("special", "adapted"),
            {IMPACT: -1, "adaptation_rate": 1, "variant_legal_proportion": 1},
            "",
        ),
        # Falling silent looks perfect but never adapts, and the notes say so.
        (
            *("special", "unreadable"),
            {IMPACT: -1, "adaptation_rate": 0},
            "the drop is not adaptation",
        ),
        (
            *("unreadable", "special"),
            {IMPACT: None, "delta": 1, "adaptation_rate": None},
            "impact factor is undefined",
        ),
    ],
    ids=["always special", "perfect", "silent", "no habit"],
)
def test_models_of_known_behavior_have_known_numbers(
    standard: Play, changed: Play, expected: dict[str, float | None], noted: str
) -> None:
    run = played("m", changed, standard, POOL[:40])
    notes = " | ".join(run.notes)
    assert run.results.metrics.items() >= expected.items()
    assert noted in notes
    assert ("not adaptation" in notes) == (changed == "unreadable")
    assert ("40 unreadable" in notes) == ("unreadable" in (standard, changed))


def test_tokens_are_summed() -> None:
    answers = {
        "standard": Answer("", usage=Usage(10, 2, cached_tokens=4)),
        "changed": Answer("", usage=Usage(12, 1)),
    }
    metrics = run_of([(position, answers) for position in POOL[:4]]).results.metrics
    kinds = {"prompt": 22, "completion": 3, "total": 25, "cached": 4}
    assert metrics.items() >= {f"usage_{kind}_tokens": 4 * n for kind, n in kinds.items()}.items()


def test_every_number_of_five_samples_is_the_one_worked_out_by_hand() -> None:
    first, second, third, fourth = POOL[:4]
    told = [
        (first, "f1b5", "f1b5"),  # special, special
        (second, "f8g7", "c8d7"),  # special, forbidden
        (third, "f1a6", "a2a3"),  # legal but forbidden after the change, legal
        (fourth, "a7a5", "e4e9"),  # legal, no move
        (first, "h8h8", "a1a8"),  # no move, illegal
    ]
    found = run_of(
        [
            (position, {"standard": Answer(a), "changed": Answer(b, reasoning="f8g7 or f1b5?")})
            for position, a, b in told
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
        "random_special_proportion": (1 / 29 + 1 / 28 + 1 / 27 + 1 / 32 + 1 / 29) / 5,
        "mcnemar_p": 1,
    }
    counts = {"n_samples": 5, "n_games": 4, "n_failed": 0}
    usage = {f"usage_{kind}_tokens": 0 for kind in ("prompt", "completion", "total")}
    violated = {
        "standard_violation_rate": 1 / 5,
        "standard_violation_moving_invalid_piece_rate": 1 / 5,
        "standard_violation_capturing_same_color_rate": 1 / 5,
        "variant_violation_rate": 1 / 5,
        "variant_violation_incorrect_notation_rate": 1 / 5,
    }
    moved = ("moved_outside_board", "moving_invalid_piece", "capturing_same_color")
    kinds = ["", *(f"_{each}" for each in (*moved, "incorrect_notation"))]
    none = {f"{who}_violation{kind}_rate": 0 for who in ("standard", "variant") for kind in kinds}
    assert found == pytest.approx(shares | counts | usage | none | violated)


def test_where_the_special_move_is_the_only_one_chance_plays_it() -> None:
    told = "1. e4 e5 2. Nf3 Nf6 3. Nxe5 Nxe4 4. Qe2 Nxf2 5. Nc6+ Qe7 6. Nxe7 Nxh1 7. Nc6+"
    only = Position(1, tuple(moves_in(told, STANDARD)), ("f8e7",))
    assert played(positions=[only]).results.metrics["random_special_proportion"] == 1


def test_the_measures_are_those_of_the_protocol() -> None:
    text = PROTOCOL.read_text(encoding="utf-8").replace("\N{MINUS SIGN}", "-")
    rows = re.findall(r"^\| `(\w+)` \|.* \| (\(.*\)|the same) \| (-?\d?) ?\|$", text, re.M)
    told, above = {}, ""
    for name, pairs, perfect in rows:
        above = above if pairs == "the same" else pairs
        told[name] = above, perfect
    assert told == {
        name: (" ".join(map(str, sorted(m.pairs))), "" if m.perfect is None else f"{m.perfect:g}")
        for name, m in MEASURES.items()
        if "violation" not in name
    }


def test_moves_and_answers_about_knowledge_are_counted_by_kinds_of_their_own() -> None:
    for condition in plan_of(names=DIAGNOSIS_CONDITIONS).conditions:
        kinds = ["right", "wrong"] if condition.name.startswith("knows_") else OF_MOVES
        assert condition.outcomes == [*kinds, *UNUSABLE]


def test_numbers_over_controls_are_made_of_their_answers_and_others_are_not() -> None:
    plan = plan_of(names=DIAGNOSIS_CONDITIONS)

    def asked(position: Position, names: tuple[str, ...], placebo: str) -> Asked:
        special = position.special_moves[0]
        said = {name: placebo if name == "placebo" else special for name in names}
        return position, {name: Answer(text, usage=Usage(1, 0)) for name, text in said.items()}

    asked_samples = [asked(p, DIAGNOSIS_CONDITIONS, p.special_moves[0]) for p in POOL[:10]]
    placebos = [p.special_moves[0] for p in POOL[10:15]] + [""] * 5
    asked_controls = [
        asked(p, CONTROL_CONDITIONS, said) for p, said in zip(POOL[10:20], placebos, strict=True)
    ]
    found = run_of(asked_samples, plan, asked_controls).results
    assert found.metrics["usage_prompt_tokens"] == 6 * 10 + 3 * 10
    assert found.metrics["placebo_collateral_change"] == -1 / 2
    bounds = found.bounds["placebo_collateral_change"]
    assert (bounds.low, bounds.high, bounds.complete) == (-1 / 2, 0, 0)
    assert "placebo_impact_factor" not in found.bounds
    of_one_game = [(replace(position, game=1), said) for position, said in asked_controls]
    around = run_of(asked_samples, plan, of_one_game).results.intervals
    collateral = "placebo_collateral_change"
    assert around[collateral].low < found.intervals[collateral].low
    (said,) = {tuple(found.control_outcomes[name].items()) for name in ("standard", "changed")}
    assert dict(said) == {"special": 10} | dict.fromkeys([*OF_MOVES[1:], *UNUSABLE], 0)
    assert found.control_outcomes["placebo"]["unreadable"] == 5
    one_control = run_of(asked_samples, plan, asked_controls[:1]).results
    assert [*one_control.control_outcomes] == [*CONTROL_CONDITIONS]
    wider = run_of(asked_samples, replace(plan, precision=0.1), asked_controls).results
    for plain, stretched in (
        (found.intervals, wider.intervals),
        (found.by_special_move, wider.by_special_move),
    ):
        one, other = plain["specific_impact_factor"], stretched["specific_impact_factor"]
        assert other.low < one.low < one.high < other.high


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_samples_are_no_trouble(n: int) -> None:
    results = played("m", "adapted", positions=POOL[:n]).results
    assert results.metrics["n_samples"] == n
    assert results.metrics["delta"] == (-1 if n else None)
    assert results.metrics["mcnemar_p"] == (1 if n else None)
    assert (IMPACT in results.intervals) == bool(results.intervals) == bool(n)
    if n:
        assert results.intervals[IMPACT].low == -1
        assert results.intervals[IMPACT].high > 0


def test_reading_exactly_is_noted_where_it_would_differ() -> None:
    said = [
        (p, {"standard": Answer(f"**{p.special_moves[0]}**"), "changed": Answer("")})
        for p in POOL[:3]
    ]
    told = "exact reading would change “Special move, standard rules” from 1.000 to 0.000"
    assert any(note.startswith(told) for note in run_of(said).notes)


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
    found = original_violations(reply, Position(0, ("e2e4", "d7d5"), ()))
    assert ("violation" in found) == bool(expected)
    assert {name.removeprefix("violation_") for name in found - {"violation"}} == set(expected)
