"""Bounds: no unusable answer, whatever it had been, could carry a number beyond them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore.comparison.pairwise import Paired, paired
from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.metrics.bounds import (
    answered,
    bounds_of,
    games_of,
    imputations,
    interval_of,
    ratio_of,
    widened,
)
from cant_do_that_anymore.metrics.diagnosis import CORRECTED, DIAGNOSIS, SPECIFIC
from cant_do_that_anymore.metrics.measures import MEASURES
from cant_do_that_anymore.metrics.stats.intervals import ratio_difference
from cant_do_that_anymore.metrics.types import Bounds, Measure
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.task.conditions import DIAGNOSIS_CONDITIONS, QUESTIONS
from cant_do_that_anymore.task.types import Outcome, Sample, ScoredAnswer

POOL = shipped_pool("pool")
BOUNDED = [measure for measure in MEASURES.values() if measure.bounded]
OF_MOVES: list[Outcome] = ["special", "legal", "unreadable"]
OF_KNOWLEDGE: list[Outcome] = ["right", "wrong", "unreadable"]

outcomes = st.fixed_dictionaries(
    {
        name: st.sampled_from(OF_KNOWLEDGE if name in QUESTIONS else OF_MOVES)
        for name in DIAGNOSIS_CONDITIONS
    }
)
few = st.lists(outcomes, min_size=1, max_size=4)
Told = dict[str, Outcome]


def samples_of(told: Sequence[Told]) -> list[Sample]:
    return [
        Sample(
            position,
            0,
            {name: ScoredAnswer(o, None, o, True) for name, o in each.items()},
            dict.fromkeys(each, Answer()),
        )
        for position, each in zip(POOL, told, strict=False)
    ]


def everything(told: Sequence[Told], conditions: Sequence[str]) -> Iterator[list[Told]]:
    """All that the unusable answers may have been, each for itself."""
    open_ones = [
        (number, name)
        for number, each in enumerate(told)
        for name in conditions
        if each[name] == "unreadable"
    ]
    choices = [OF_KNOWLEDGE[:2] if name in QUESTIONS else OF_MOVES[:2] for _, name in open_ones]
    for said in product(*choices):
        filled = [dict(each) for each in told]
        for (number, name), outcome in zip(open_ones, said, strict=True):
            filled[number][name] = outcome
        yield filled


def values(measure: Measure, guessed: Iterable[list[Sample]]) -> list[float]:
    return [value for each in guessed if (value := measure.value(each)) is not None]


class Watched(dict[str, Any]):
    def __init__(self, by_condition: Mapping[str, Any], looked_at: set[str]) -> None:
        super().__init__(by_condition)
        self.looked_at = looked_at

    def __getitem__(self, condition: str) -> Any:
        self.looked_at.add(condition)
        return super().__getitem__(condition)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda measure: measure.name)
def test_a_measure_needs_the_conditions_that_it_looks_at_and_no_others(measure: Measure) -> None:
    looked_at: set[str] = set()
    for habit, move, known in product(OF_MOVES[:2], OF_MOVES[:2], OF_KNOWLEDGE[:2]):
        told = {name: known if name in QUESTIONS else move for name in DIAGNOSIS_CONDITIONS}
        (sample,) = samples_of([told | {"standard": habit}])
        replies, said = (Watched(each, looked_at) for each in (sample.replies, sample.answers))
        measure.value([replace(sample, replies=replies, stored=said)])
    assert looked_at == {*measure.needs}


def test_what_unusable_answers_can_carry_away_has_bounds() -> None:
    of_moves = {"variant_impact_factor", "delta", "adaptation_rate", "rule_uptake"}
    assert {m.name for m in BOUNDED} == {*of_moves, "resistance_rate", *(m.name for m in DIAGNOSIS)}


@pytest.mark.parametrize("measure", BOUNDED, ids=lambda measure: measure.name)
def test_bounds_are_the_extremes_over_all_that_could_have_been_said(measure: Measure) -> None:
    @settings(max_examples=25)
    @given(few)
    def holds(told: list[Told]) -> None:
        found = values(measure, imputations(measure, samples_of(told)))
        every = values(measure, map(samples_of, everything(told, measure.needs)))
        assert bool(found) == bool(every)
        if every:
            assert (min(found), max(found)) == pytest.approx((min(every), max(every)))

    holds()


def test_something_to_divide_by_is_kept_where_it_costs_least() -> None:
    measure = Measure(
        "odd",
        "Odd",
        "twice what stays where there was no habit",
        part=lambda sample: (not sample.had_habit) * (1 + sample.kept_habit),
        whole=lambda sample: sample.had_habit,
    )
    told: list[Told] = [{"standard": "unreadable", "changed": each} for each in OF_MOVES[:2]]
    for each in (told, told[::-1]):
        assert max(values(measure, imputations(measure, samples_of(each)))) == 2


def test_of_the_contrast_both_groups_are_bounded() -> None:
    def told(placebo: Outcome, changed: Outcome) -> Told:
        return {"standard": "special", "placebo": placebo, "changed": changed}

    samples = samples_of([told("special", "special")] * 8 + [told("special", "unreadable")] * 2)
    controls = samples_of([told("special", "special")] * 5 + [told("unreadable", "special")] * 5)
    bounds = SPECIFIC.bounds((samples, controls))
    assert bounds
    assert (bounds.low, bounds.high) == pytest.approx((0.8 / 2 - 1, 1.0 / 1 - 1))
    assert bounds.complete == 0
    assert bounds.low and bounds.lowest and bounds.lowest < bounds.low
    usable = [replace(sample) for sample in samples[:8]]
    assert SPECIFIC.bounds((usable, usable)) is None


def test_answers_that_never_came_are_in_no_number_but_in_the_bounds() -> None:
    def told(placebo: Outcome) -> Told:
        return {"standard": "special", "placebo": placebo, "changed": "special"}

    samples = samples_of([told("special")] * 8 + [told("error")] * 2)
    assert CORRECTED.value(answered(samples)) == 0
    for bounds in (bounds_of(CORRECTED, samples), SPECIFIC.bounds((samples, samples[:8]))):
        assert bounds
        assert bounds.low == 0 and bounds.high == pytest.approx(10 / 8 - 1)
        assert bounds.complete == 0


def test_answers_about_knowledge_do_not_touch_other_numbers() -> None:
    told: Told = {
        name: "unreadable" if name in QUESTIONS else "special" for name in DIAGNOSIS_CONDITIONS
    }
    samples = samples_of([told] * 5)
    bounded = {measure.name for measure in BOUNDED if bounds_of(measure, samples)}
    assert bounded == {m.name for m in DIAGNOSIS if set(m.needs) & set(QUESTIONS)}


def test_what_exists_whatever_was_meant_has_bounds_and_what_cannot_exist_has_none() -> None:
    told: Told = {"standard": "legal", "changed": "unreadable"}
    bounds = bounds_of(MEASURES["variant_impact_factor"], samples_of([told] * 5))
    assert bounds == Bounds(low=None, high=None, lowest=None, highest=None, complete=None)
    bounds = bounds_of(MEASURES["delta"], samples_of([told] * 5))
    assert bounds and (bounds.low, bounds.high, bounds.complete) == (0, 1, None)


def outcomes_of(changed: str) -> list[Sample]:
    """Samples with a habit, by the first letter of what was said after the change."""
    names: dict[str, Outcome] = {
        each[0]: each for each in ("special", "legal", "unreadable", "error")
    }
    return samples_of([{"standard": "special", "changed": names[each]} for each in changed])


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
def test_of_two_models_only_a_lead_that_no_unusable_answer_could_turn_is_one(
    first: str, second: str, p: float, extremes: tuple[float, float] | None
) -> None:
    measure = MEASURES["predicted_move_in_variant_proportion"]
    found = paired(measure, outcomes_of(first), outcomes_of(second))
    assert found.p == pytest.approx(p)
    assert found.extremes == (extremes and pytest.approx(extremes))
    assert found.values == (first.count("s") / 10, second.count("s") / 10)
    assert found.interval and found.as_scored
    assert (found.interval == found.as_scored) == (extremes is None)
    low, high = extremes or (found.as_scored.low, found.as_scored.high)
    assert found.interval.low <= low <= high <= found.interval.high


def test_what_both_answered_is_among_what_could_have_been_said() -> None:
    measure = MEASURES["predicted_move_in_variant_proportion"]
    found = paired(measure, outcomes_of("eeeeelllll"), outcomes_of("lllllsssss"))
    assert (found.values, found.extremes) == ((0, 1), (0, 1))


def test_where_nobody_had_the_habit_there_is_no_difference_in_what_became_of_it() -> None:
    never = samples_of([{"standard": "legal", "changed": "legal"}] * 5)
    assert paired(MEASURES["variant_impact_factor"], never, never) == Paired((None, None), p=1)


def test_a_model_whose_habit_is_unknown_has_no_value_to_compare() -> None:
    measure, known = MEASURES["rule_uptake"], outcomes_of("sssll")
    unknown = samples_of([{"standard": "unreadable", "changed": "legal"}] * 5)
    assert paired(measure, known, unknown) == Paired((2 / 5, None))
    assert paired(measure, unknown, known) == Paired((None, 2 / 5))
    with pytest.raises(ValueError, match="shorter"):
        paired(measure, known, unknown[:4])


def test_a_ratio_is_least_and_greatest_by_its_value() -> None:
    first, second = outcomes_of("s" * 10), outcomes_of("u" * 4 + "s" * 6)
    assert paired(MEASURES["variant_impact_factor"], first, second).extremes == (-2 / 5, 0)
    assert paired(MEASURES["variant_impact_factor"], second, first).extremes == (0, 2 / 5)
    pairs: list[tuple[Outcome, Outcome]] = [
        *(("special", "legal"), ("special", "special")),
        *(("unreadable", "special"), ("unreadable", "legal")),
    ]
    told: list[Told] = [{"standard": one, "changed": other} for one, other in pairs]
    found = paired(MEASURES["adaptation_rate"], samples_of(told), outcomes_of("llll"))
    assert found.extremes == pytest.approx((1 - 2 / 3, 1 - 1 / 3))


def test_a_run_that_looks_once_has_intervals_that_are_not_stretched() -> None:
    measure, samples = MEASURES["delta"], outcomes_of("slslu")
    for of in (interval_of, bounds_of):
        assert of(measure, samples) == of(measure, samples, 1.0) != of(measure, samples, 1.5)
    once, often = (paired(measure, samples, samples[::-1], by) for by in (1.0, 1.5))
    assert paired(measure, samples, samples[::-1]) == once != often


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
        replace(sample, position=replace(sample.position, game=n // size_of_games))
        for n, sample in enumerate(outcomes_of(changed))
    ]
    interval = interval_of(measure, samples)
    assert interval and widened(interval, bounds_of(measure, samples)).method == method


def test_where_the_habit_is_not_always_there_p_is_that_of_the_score() -> None:
    def told(changed: Outcome, without_habit: Outcome) -> list[Sample]:
        had: Told = {"standard": "special", "changed": changed}
        return samples_of([had] * 8 + [{"standard": "legal", "changed": without_habit}] * 4)

    measure = MEASURES["variant_impact_factor"]
    first, second = told("special", "legal"), told("legal", "special")
    ratios = ratio_of(measure, first), ratio_of(measure, second)
    expected = ratio_difference(*ratios, games_of(first))
    assert expected and paired(measure, first, second).p == expected.p
