"""Bounds: whatever the unusable answers could have been, no number lies beyond them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore.comparison.pairwise import MeasureComparison, paired
from cant_do_that_anymore.habits.chess.position import shipped_pool
from cant_do_that_anymore.metrics.bounds import (
    answered,
    bounds_of,
    games_of,
    imputations,
    interval_of,
    ratio_of,
    widened,
)
from cant_do_that_anymore.metrics.diagnosis import CORRECTED, SPECIFIC
from cant_do_that_anymore.metrics.measures import MEASURES
from cant_do_that_anymore.metrics.stats.intervals import ratio_difference
from cant_do_that_anymore.metrics.types import Bounds, Measure
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.task.conditions import DIAGNOSIS_CONDITIONS, QUESTIONS
from cant_do_that_anymore.task.types import Outcome, Sample, ScoredAnswer
from testing import positions_of

POOL = shipped_pool("pool")
BOUNDED = [measure for measure in MEASURES.values() if measure.bounded]
MOVE_OUTCOMES: list[Outcome] = ["usual", "legal", "unreadable"]
KNOWLEDGE_OUTCOMES: list[Outcome] = ["right", "wrong", "unreadable"]

outcomes = st.fixed_dictionaries(
    {
        name: st.sampled_from(KNOWLEDGE_OUTCOMES if name in QUESTIONS else MOVE_OUTCOMES)
        for name in DIAGNOSIS_CONDITIONS
    }
)
few_samples = st.lists(outcomes, min_size=1, max_size=4)
Outcomes = dict[str, Outcome]


def samples_of(rows: Sequence[Outcomes]) -> list[Sample]:
    return [
        Sample(
            position,
            0,
            {name: ScoredAnswer(o, None, o, True) for name, o in row.items()},
            dict.fromkeys(row, Answer()),
        )
        for position, row in zip(POOL, rows, strict=False)
    ]


def all_imputations(rows: Sequence[Outcomes], names: Sequence[str]) -> Iterator[list[Outcomes]]:
    """Fill in the unusable answers in every possible way."""
    unusable = [
        (index, name)
        for index, row in enumerate(rows)
        for name in names
        if row[name] == "unreadable"
    ]
    choices = [(KNOWLEDGE_OUTCOMES if n in QUESTIONS else MOVE_OUTCOMES)[:2] for _, n in unusable]
    for imputed in product(*choices):
        filled = [dict(row) for row in rows]
        for (index, name), outcome in zip(unusable, imputed, strict=True):
            filled[index][name] = outcome
        yield filled


def defined_values(measure: Measure, imputed: Iterable[list[Sample]]) -> list[float]:
    return [value for samples in imputed if (value := measure.value(samples)) is not None]


class RecordingDict(dict[str, Any]):
    def __init__(self, by_condition: Mapping[str, Any], read: set[str]) -> None:
        super().__init__(by_condition)
        self.read = read

    def __getitem__(self, condition: str) -> Any:
        self.read.add(condition)
        return super().__getitem__(condition)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda measure: measure.name)
def test_a_measure_needs_exactly_the_conditions_that_it_reads(measure: Measure) -> None:
    read: set[str] = set()
    for habit, move, knowledge in product(*[MOVE_OUTCOMES[:2]] * 2, KNOWLEDGE_OUTCOMES[:2]):
        row = {name: knowledge if name in QUESTIONS else move for name in DIAGNOSIS_CONDITIONS}
        (sample,) = samples_of([row | {"standard": habit}])
        replies, answers = (RecordingDict(d, read) for d in (sample.replies, sample.answers))
        measure.value([replace(sample, replies=replies, answers=answers)])
    assert read == {*measure.needs}


@pytest.mark.parametrize("measure", BOUNDED, ids=lambda measure: measure.name)
def test_imputations_reach_the_extremes(measure: Measure) -> None:
    @settings(max_examples=25)
    @given(few_samples)
    def holds(rows: list[Outcomes]) -> None:
        values = defined_values(measure, imputations(measure, samples_of(rows)))
        possible = defined_values(measure, map(samples_of, all_imputations(rows, measure.needs)))
        assert bool(values) == bool(possible)
        if possible:
            assert (min(values), max(values)) == pytest.approx((min(possible), max(possible)))

    holds()


def test_an_imputation_keeps_a_denominator_at_the_least_loss() -> None:
    measure = Measure(
        "odd",
        "Odd",
        "twice what stays where there was no habit",
        part=lambda sample: (not sample.had_habit) * (1 + sample.kept_habit),
        whole=lambda sample: sample.had_habit,
    )
    rows: list[Outcomes] = [{"standard": "unreadable", "changed": o} for o in MOVE_OUTCOMES[:2]]
    for ordered in (rows, rows[::-1]):
        assert max(defined_values(measure, imputations(measure, samples_of(ordered)))) == 2


def test_bounds_of_the_specific_impact_factor_cover_both_groups() -> None:
    def row(placebo: Outcome, changed: Outcome) -> Outcomes:
        return {"standard": "usual", "placebo": placebo, "changed": changed}

    samples = samples_of([row("usual", "usual")] * 8 + [row("usual", "unreadable")] * 2)
    controls = samples_of([row("usual", "usual")] * 5 + [row("unreadable", "usual")] * 5)
    bounds = SPECIFIC.bounds((samples, controls))
    assert bounds
    assert (bounds.low, bounds.high) == pytest.approx((0.8 / 2 - 1, 1.0 / 1 - 1))
    assert bounds.complete == 0
    assert bounds.low and bounds.lowest and bounds.lowest < bounds.low
    usable = [replace(sample) for sample in samples[:8]]
    assert SPECIFIC.bounds((usable, usable)) is None


def test_missing_answers_affect_only_the_bounds() -> None:
    def row(placebo: Outcome) -> Outcomes:
        return {"standard": "usual", "placebo": placebo, "changed": "usual"}

    samples = samples_of([row("usual")] * 8 + [row("error")] * 2)
    assert CORRECTED.value(answered(samples)) == 0
    for bounds in (
        bounds_of(CORRECTED, samples),
        SPECIFIC.bounds((samples, samples[:8])),
    ):
        assert bounds
        assert bounds.low == 0 and bounds.high == pytest.approx(10 / 8 - 1)
        assert bounds.complete == 0


def test_a_measure_that_cannot_be_defined_has_empty_bounds() -> None:
    row: Outcomes = {"standard": "legal", "changed": "unreadable"}
    bounds = bounds_of(MEASURES["variant_impact_factor"], samples_of([row] * 5))
    assert bounds == Bounds(low=None, high=None, lowest=None, highest=None, complete=None)
    bounds = bounds_of(MEASURES["delta"], samples_of([row] * 5))
    assert bounds and (bounds.low, bounds.high, bounds.complete) == (0, 1, None)


def samples_with_habit(changed: str) -> list[Sample]:
    """Samples with these outcomes under the changed rules, by first letter (s: usual)."""
    names: dict[str, Outcome] = {
        ("s" if name == "usual" else name[0]): name
        for name in ("usual", "legal", "unreadable", "error")
    }
    return samples_of([{"standard": "usual", "changed": names[letter]} for letter in changed])


@pytest.mark.parametrize(
    ("first", "second", "p", "extremes"),
    [
        ("sssssssssl", "lllllllssl", 2 / 2**7, None),
        ("ssssssssss", "uuuuulllll", 2 / 2**5, (-1, -1 / 2)),
        ("llllllllll", "sssssuuuuu", 2 / 2**5, (1 / 2, 1)),
        ("sssssuuuuu", "llllllllll", 2 / 2**5, (-1, -1 / 2)),
        ("ssssslllll", "uuuuuuuuuu", 1, (-1 / 2, 1 / 2)),
        ("llllllllll", "uuuuuuuuuu", 1, (0, 1)),
        ("ssssssssss", "uuuuuuuuuu", 1, (-1, 0)),
    ],
)
def test_p_and_interval_of_a_difference_allow_for_unusable_answers(
    first: str, second: str, p: float, extremes: tuple[float, float] | None
) -> None:
    measure = MEASURES["predicted_move_in_variant_proportion"]
    result = paired(measure, samples_with_habit(first), samples_with_habit(second))
    assert result.p == pytest.approx(p)
    assert result.extremes == (extremes and pytest.approx(extremes))
    assert result.values == (first.count("s") / 10, second.count("s") / 10)
    assert result.interval and result.as_scored
    assert (result.interval == result.as_scored) == (extremes is None)
    low, high = extremes or (result.as_scored.low, result.as_scored.high)
    assert result.interval.low <= low <= high <= result.interval.high


def test_extremes_include_the_difference_on_answered_samples() -> None:
    measure = MEASURES["predicted_move_in_variant_proportion"]
    result = paired(measure, samples_with_habit("eeeeelllll"), samples_with_habit("lllllsssss"))
    assert (result.values, result.extremes) == ((0, 1), (0, 1))


def test_without_a_habit_there_is_no_impact_to_compare() -> None:
    never = samples_of([{"standard": "legal", "changed": "legal"}] * 5)
    undefined = MeasureComparison((None, None), p=1)
    assert paired(MEASURES["variant_impact_factor"], never, never) == undefined


def test_a_model_whose_habit_is_unknown_has_no_value_to_compare() -> None:
    measure, known = MEASURES["rule_uptake"], samples_with_habit("sssll")
    unknown = samples_of([{"standard": "unreadable", "changed": "legal"}] * 5)
    assert paired(measure, known, unknown) == MeasureComparison((2 / 5, None))
    assert paired(measure, unknown, known) == MeasureComparison((None, 2 / 5))
    with pytest.raises(ValueError, match="shorter"):
        paired(measure, known, unknown[:4])


def test_extremes_of_a_ratio_are_those_of_its_value() -> None:
    first, second = samples_with_habit("s" * 10), samples_with_habit("u" * 4 + "s" * 6)
    assert paired(MEASURES["variant_impact_factor"], first, second).extremes == (-2 / 5, 0)
    assert paired(MEASURES["variant_impact_factor"], second, first).extremes == (0, 2 / 5)
    pairs: list[tuple[Outcome, Outcome]] = [
        *(("usual", "legal"), ("usual", "usual")),
        *(("unreadable", "usual"), ("unreadable", "legal")),
    ]
    rows: list[Outcomes] = [{"standard": before, "changed": after} for before, after in pairs]
    result = paired(MEASURES["adaptation_rate"], samples_of(rows), samples_with_habit("llll"))
    assert result.extremes == pytest.approx((1 - 2 / 3, 1 - 1 / 3))


@pytest.mark.parametrize(
    ("changed", "size_of_games", "method"),
    [
        ("slslslslsl", 1, "score"),
        ("slslslslsl", 2, "score by games"),
        ("slsluuuuuu", 1, "score, bounded"),
        ("slsluuuuuu", 2, "score by games, bounded"),
    ],
)
def test_the_method_names_games_and_bounds(changed: str, size_of_games: int, method: str) -> None:
    measure = MEASURES["delta"]
    samples = [
        replace(sample, item=replace(position, game=n // size_of_games))
        for n, sample in enumerate(samples_with_habit(changed))
        for position in positions_of([sample])
    ]
    interval = interval_of(measure, samples)
    assert interval and widened(interval, bounds_of(measure, samples)).method == method


def test_p_is_that_of_the_score_if_some_samples_lack_the_habit() -> None:
    def samples(changed: Outcome, without_habit: Outcome) -> list[Sample]:
        habit: Outcomes = {"standard": "usual", "changed": changed}
        return samples_of([habit] * 8 + [{"standard": "legal", "changed": without_habit}] * 4)

    measure = MEASURES["variant_impact_factor"]
    first, second = samples("usual", "legal"), samples("legal", "usual")
    ratios = ratio_of(measure, first), ratio_of(measure, second)
    expected = ratio_difference(*ratios, games_of(first))
    assert expected and paired(measure, first, second).p == expected.p
