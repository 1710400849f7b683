"""Estimates: rule uptake by outcomes, and intervals over every reading of unusable replies."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore.habits.chess.position import Position
from cant_do_that_anymore.metrics.estimates import Estimate, difference
from cant_do_that_anymore.metrics.measures import MEASURES, UPTAKE, uptake_under
from cant_do_that_anymore.oaieval.record import original_violations
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.task.types import Outcome, Sample, ScoredAnswer
from testing import POOL, run_with_outcomes

Rows = Sequence[dict[str, Outcome]]


def samples_of(rows: Rows) -> list[Sample]:
    return [
        Sample(
            replace(position, game=number),
            0,
            {name: ScoredAnswer(outcome, None, outcome) for name, outcome in row.items()},
            dict.fromkeys(row, Answer()),
        )
        for number, (position, row) in enumerate(zip(POOL, rows, strict=False))
    ]


def ends(estimate: Estimate | None) -> tuple[float, float]:
    assert estimate and estimate.low is not None and estimate.high is not None
    return estimate.low, estimate.high


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
        ([("usual", "legal")] * 5 + [("usual", "usual")] * 10 + [("usual", "error")], 1 / 3),
        ([("usual", "legal")] * 5 + [("forbidden", "usual")] * 5, 1 / 2),
        ([("legal", "usual")] * 20, None),  # nothing would break the rule
        ([("forbidden", "legal")] * 20, None),  # no usual answer, so no habit to drop
        ([("unreadable", "legal")] * 20, None),  # every would-be violation is unreadable
        ([("usual", "error")] * 5, None),  # no answers
        ([], None),
    ],
)
def test_uptake_by_outcomes(pairs: list[tuple[Outcome, Outcome]], uptake: float | None) -> None:
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    results = run_with_outcomes("m", after, before).results
    if uptake is None:
        assert results.uptake is None and "rule_uptake" not in results.estimates
        return
    assert results.uptake and results.uptake.value == pytest.approx(uptake)
    assert results.failed == after.count("error") and results.n + results.failed == len(pairs)
    low, high = ends(results.uptake)
    assert low <= uptake <= high and low < high


KINDS: tuple[Outcome, ...] = ("usual", "legal", "unreadable", "error")
NAMES = ("standard", "changed", "reminded")
few_samples = st.lists(
    st.fixed_dictionaries({name: st.sampled_from(KINDS) for name in NAMES}), min_size=1, max_size=3
)


def all_readings(rows: Rows) -> Iterator[list[dict[str, Outcome]]]:
    """Fill in the unusable replies in every possible way."""
    unusable = [(i, name) for i, row in enumerate(rows) for name in row if row[name] in KINDS[2:]]
    for outcomes in product(KINDS[:2], repeat=len(unusable)):
        filled = [dict(row) for row in rows]
        for (index, name), outcome in zip(unusable, outcomes, strict=True):
            filled[index][name] = outcome
        yield filled


@settings(max_examples=25)
@given(few_samples)
def test_an_interval_covers_every_reading_of_unusable_replies(rows: Rows) -> None:
    with_reminder = uptake_under("reminded")
    estimates = {name: measure.estimate for name, measure in MEASURES.items()} | {
        "difference": lambda samples: difference(with_reminder, UPTAKE, samples)
    }
    samples = samples_of(rows)
    for name, compute in estimates.items():
        estimate = compute(samples)
        if not estimate:
            continue
        low, high = ends(estimate)
        assert estimate.n == sum(sample.answered for sample in samples)
        assert low - 1e-9 <= estimate.value <= high + 1e-9
        for filled in all_readings(rows):
            reading = compute(samples_of(filled))
            assert reading is None or low - 1e-9 <= reading.value <= high + 1e-9, name


def test_an_estimate_has_a_sign_only_if_its_interval_excludes_0() -> None:
    for low, high, sign in ((0.1, 0.4, 1), (-0.4, -0.1, -1), (0.0, 0.4, 0), (-0.2, 0.1, 0)):
        estimate = Estimate(0.1, low, high, 9)
        assert (estimate.sign, (-estimate).sign) == (sign, -sign)
        assert estimate.reach == pytest.approx((high - low) / 2)
    zero = -Estimate(0.0, 0.0, 0.5, 9)
    assert f"{zero.value} {zero.high}" == "0.0 0.0"  # never a negative zero
    without = Estimate(0.5, None, None, 9)
    assert (without.sign, without.reach, without.as_share) == (0, 0.0, "50%")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        *((reply, ()) for reply in ("f1b5", " f1b5\n", "f1c4, of course", "f1f7", "e4e5q")),
        *(("f1d3=n", ()), ("e7e6=q", ("moving_invalid_piece",))),
        ("f1e1", ("capturing_same_color",)),
        *((reply, ("moving_invalid_piece", "capturing_same_color")) for reply in ("b5b6", "e7d8")),
        *((reply, ("incorrect_notation",)) for reply in ("Bb5", "e2e9", "")),
    ],
)
def test_violations_are_those_of_the_original(reply: str, expected: tuple[str, ...]) -> None:
    """White to move after 1. e4 d5."""
    violations = original_violations(reply, Position(0, ("e2e4", "d7d5"), ()))
    assert violations.pop("violation") == bool(expected)
    committed = {name for name, is_so in violations.items() if is_so}
    assert {name.removeprefix("violation_") for name in committed} == set(expected)
