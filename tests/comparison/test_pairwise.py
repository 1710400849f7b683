"""Comparisons with known differences."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore.comparison.entries import entries_of, pool_runs
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan
from cant_do_that_anymore.comparison.pairwise import Comparison, of_measure
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.game.rules import identity_of, rules_named
from cant_do_that_anymore.metrics.bounds import joined
from cant_do_that_anymore.metrics.measures import IMPACT, MEASURES, UPTAKE
from cant_do_that_anymore.metrics.stats.intervals import Interval
from cant_do_that_anymore.metrics.stats.tests import holm
from cant_do_that_anymore.providers.base import Answer, Settings, Usage
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome
from own_rules import NoEnPassant
from runs import comparisons_of as compare
from runs import plan_of
from runs import run_of as run_that_said

POOL = shipped_pool("pool")
ADAPTATION = "adaptation_rate"

Play = Callable[[int], Outcome]
"""The outcome under the changed rules of the n-th position."""


def run_of(
    model: str,
    positions: Sequence[Position],
    play: Play,
    before: Play = lambda _: "special",
    *,
    seed: int = 0,
) -> Run:
    """A run in which the model has the habit under the standard rules, unless told otherwise."""
    asked = [
        (position, {STANDARD_CONDITION: before(number), CHANGED_CONDITION: play(number)})
        for number, position in enumerate(positions)
    ]
    plan = plan_of(len(positions), settings=Settings(seed=seed))
    return run_that_said(asked, plan, model=model, version=model, identity={"name": model})


def keeps(percent: int, *, from_: int = 0) -> Play:
    """Keep the habit in so many of a hundred positions, counted from the given one."""
    return lambda number: "special" if (number - from_) % 100 < percent else "adapted"


def mostly(number: int) -> Outcome:
    """The habit in two of three positions."""
    return "special" if number % 3 else "legal"


def impact(comparisons: list[Comparison]) -> Comparison:
    return of_measure(comparisons, IMPACT)[0]


def test_a_planted_difference_is_found_with_its_size_in_every_measure() -> None:
    runs = [run_of("a", POOL[:400], keeps(60, from_=20)), run_of("b", POOL[:400], keeps(40))]
    found = compare(runs)
    assert [c.measure.name for c in found] == [UPTAKE, ADAPTATION, IMPACT]
    assert [c.difference for c in found] == pytest.approx([0.2, 0.2, -0.2])
    for each in found:
        assert each.verdict == "different"
        assert each.interval
        assert each.difference
        assert each.interval.low < each.difference < each.interval.high
        assert [model.label for model in each.ahead] == ["b", "a"]
    assert [c.sentence for c in found] == [
        "b follows the changed rules more often than a, by 20.0 points on 400 shared samples.",
        "b puts a legal move in the habit's place more often than a, by 20.0 points on 400 shared "
        "samples.",
        "b drops more of its habit than a, by 20.0 points on 400 shared samples.",
    ]


def test_the_sentences_do_not_depend_on_who_is_named_first() -> None:
    runs = [run_of("a", POOL[:400], keeps(60, from_=20)), run_of("b", POOL[:400], keeps(40))]
    there, back = compare(runs), compare(runs[::-1])
    assert [c.sentence for c in there] == [c.sentence for c in back]
    for one, other in zip(there, back, strict=True):
        assert one.difference == -(other.difference or 0)
        assert one.corrected_p == pytest.approx(other.corrected_p)


def test_the_paired_interval_is_narrower_than_chance_between_strangers() -> None:
    """40 of 400 positions differ, all in one direction: unpaired, that would be 0.1 +- 0.07."""
    runs = [run_of("a", POOL[:400], keeps(50)), run_of("b", POOL[:400], keeps(60))]
    interval = impact(compare(runs)).interval
    assert interval
    assert interval.high - interval.low < 0.07


@pytest.mark.parametrize("percent", [0, 30, 50, 90, 100])
def test_equal_to_within_five_points_takes_73_shared_samples_without_a_difference(
    percent: int,
) -> None:
    def verdicts(n: int) -> set[str]:
        runs = [run_of(name, POOL[:n], keeps(percent)) for name in "ab"]
        return {c.verdict for c in compare(runs)}

    assert verdicts(72) == {"inconclusive"}
    assert verdicts(73) == {"equivalent"}


def test_a_habit_that_is_not_always_there_takes_more_to_be_called_equal() -> None:
    def found(n: int) -> Comparison:
        return impact(compare([run_of(name, POOL[:n], keeps(50), mostly) for name in "ab"]))

    assert found(120).verdict == "inconclusive"
    assert found(400).verdict == "equivalent"
    assert found(400).corrected_p == 1


def test_disjoint_datasets_say_that_nothing_is_shared_and_what_would_be_enough() -> None:
    runs = [run_of("a", POOL[:50], keeps(50)), run_of("b", POOL[50:100], keeps(50))]
    for found in compare(runs):
        assert found.n_samples == 0
        assert found.difference is None
        assert found.interval is None
        assert found.verdict == "inconclusive"
        assert found.sentence.startswith("a and b share no position")
        assert f"{found.enough:,} shared samples would be enough" in found.sentence
        assert 1_000 < found.enough < 4_000


def test_a_model_without_a_habit_on_shared_positions_is_named() -> None:
    runs = [
        run_of("a", POOL[:50], keeps(50)),
        run_of("b", POOL[:50], keeps(0), lambda _: "legal"),
    ]
    uptake, _, factor = compare(runs)
    for found, title in ((uptake, "rule uptake"), (factor, "impact factor")):
        assert found.sentence == (
            "On 50 shared samples b never showed the habit, so nothing can be said about the "
            f"{title}."
        )


def test_unreadable_answers_under_the_standard_rules_are_no_habit_that_was_dropped() -> None:
    runs = [
        run_of("a", POOL[:50], keeps(25)),
        run_of("shy", POOL[:50], keeps(0), lambda _: "unreadable"),
    ]
    [found] = of_measure(compare(runs), UPTAKE)
    assert (found.values[1], found.verdict) == (None, "inconclusive")
    one_habit = run_of("shy", POOL[:50], keeps(0), lambda n: "unreadable" if n else "special")
    [found] = of_measure(compare([runs[0], one_habit]), UPTAKE)
    assert (found.values, found.verdict) == ((0.5, 1.0), "inconclusive")


def test_one_shared_sample_is_too_few_however_clear_it_looks() -> None:
    runs = [run_of("a", POOL[:1], keeps(100)), run_of("b", POOL[:1], keeps(0))]
    found = impact(compare(runs))
    assert found.values == (0.0, -1.0)
    assert found.p == 1
    assert found.verdict == "inconclusive"
    assert found.enough > 100
    assert "1 shared sample is too few to tell" in found.sentence


def test_only_shared_positions_are_compared() -> None:
    runs = [run_of("a", POOL[:300], keeps(100)), run_of("b", POOL[200:500], keeps(0))]
    found = impact(compare(runs))
    assert (found.n_samples, found.values) == (100, (0.0, -1.0))


def test_samples_of_one_game_do_not_count_as_independent() -> None:
    one_game = [replace(position, game=1) for position in POOL[:200]]
    runs = [run_of("a", one_game, keeps(100)), run_of("b", one_game, keeps(0))]
    found = impact(compare(runs))
    assert (found.n_samples, found.n_games) == (200, 1)
    assert found.verdict == "inconclusive"


def test_copies_of_a_position_in_other_games_tell_no_more_than_those_in_its_own() -> None:
    def asked_ten_times(shift: int, model: str) -> Run:
        asked = [
            (
                replace(position, game=position.game + shift * time),
                {STANDARD_CONDITION: before, CHANGED_CONDITION: after},
            )
            for time in range(10)
            for number, position in enumerate(POOL[:30])
            for said in [*position.special_moves, "no move"]
            if (said == "no move") == (number % 3 == 0)
            for before in [Answer(said, usage=Usage(thinking_tokens=number))]
            for after in [Answer(said if model == "a" or number % 5 else "no move")]
        ]
        return run_that_said(asked, plan_of(300), model=model, version=model, identity={"": model})

    own, other = ([asked_ten_times(shift, model) for model in "ab"] for shift in (0, 10**6))
    assert {run.results.metrics["n_games"] for run in other} == {30}
    assert [run.results for run in other] == [run.results for run in own]
    for mine, yours in zip(compare(own), compare(other), strict=True):
        assert (yours.n_games, yours.interval, yours.p) == (30, mine.interval, mine.p)


def test_games_with_a_position_in_common_are_one_however_long_the_chain() -> None:
    chain = [pair for game in range(3000) for pair in ((game, game), (game, game + 1))]
    assert set(joined(chain)) == {0}
    assert len(set(joined([*chain[::-1], (-1, -1)]))) == 2


def test_what_was_enough_is_enough() -> None:
    """As many samples as were asked for show a difference of five points."""
    few = [run_of("a", POOL[:100], keeps(50)), run_of("b", POOL[:100], keeps(50, from_=5))]
    enough = impact(compare(few)).enough
    many = [
        run_of("a", POOL[:enough], keeps(50)),
        run_of("b", POOL[:enough], lambda n: keeps(50, from_=5)(n) if n % 100 >= 5 else "special"),
    ]
    found = impact(compare(many))
    assert found.difference == pytest.approx(0.05, abs=0.005)
    assert found.verdict == "different"


def test_what_is_inconclusive_on_enough_samples_says_how_far_apart_they_may_be() -> None:
    runs = [run_of("a", POOL[:200], keeps(50)), run_of("b", POOL[:200], keeps(53))]
    found = replace(impact(compare(runs)), interval=Interval(-0.01, 0.09, "score"), enough=200)
    assert found.sentence == (
        "It is inconclusive whether a and b differ in the impact factor on 200 shared samples: the "
        "difference is between -1.0 and +9.0 points."
    )


def test_more_comparisons_ask_for_more_evidence() -> None:
    a, b = (run_of("a", POOL[:200], keeps(50)), run_of("b", POOL[:200], keeps(57)))
    alone = impact(compare([a, b]))
    among_many = impact(compare([a, b, *(run_of(x, POOL[:200], keeps(50)) for x in "cde")]))
    assert alone.p == among_many.p
    assert alone.p < alone.corrected_p < among_many.corrected_p


def test_no_difference_is_significant_whose_interval_holds_0_whatever_p_says() -> None:
    runs = [run_of("a", POOL[:200], keeps(50)), run_of("b", POOL[:200], keeps(60))]
    found = impact(compare(runs))
    assert found.verdict == "different"
    assert found.interval
    assert replace(found, interval=replace(found.interval, low=-0.01)).verdict == "inconclusive"


def test_samples_without_an_answer_are_left_out() -> None:
    runs = [
        run_of("a", POOL[:10], lambda n: "error" if n == 0 else "special"),
        run_of("b", POOL[:10], lambda n: "error" if n == 1 else "special"),
    ]
    assert impact(compare(runs)).n_samples == 8


# Answers that name no move


def cut_off(percent: int) -> Play:
    """Deaf to rules, and cut off in so many of a hundred positions."""
    return lambda number: "truncated" if number % 100 < percent else "special"


def failing(percent: int) -> Play:
    """Yields in half of the rest, and gives no answer in so many of a hundred positions."""
    return lambda n: "error" if n % 100 < percent else "special" if n % 2 else "adapted"


def test_answers_that_never_came_make_no_difference_sure() -> None:
    """All of them may have been habits, or none."""
    runs = [run_of("a", POOL[:400], keeps(65)), run_of("b", POOL[:400], failing(30))]
    found = impact(compare(runs))
    assert found.n_samples == 280
    assert found.extremes == pytest.approx((-0.3, 0))
    assert found.verdict == "inconclusive"
    assert found.blurred


@pytest.mark.parametrize("percent", [3, 15, 59, 100])
def test_junk_never_wins(percent: int) -> None:
    runs = [run_of("deaf", POOL[:300], keeps(100)), run_of("junk", POOL[:300], cut_off(percent))]
    for found in compare(runs):
        assert found.verdict != "different"
        assert found.p == 1
        assert found.interval
        assert found.interval.low <= 0 <= found.interval.high


def test_junk_does_not_hide_a_difference_that_holds_whatever_it_would_have_said() -> None:
    runs = [run_of("deaf", POOL[:300], cut_off(10)), run_of("good", POOL[:300], keeps(10))]
    found = impact(compare(runs))
    assert found.verdict == "different"
    assert found.extremes == pytest.approx((-0.9, -0.8))
    assert found.difference == pytest.approx(-0.8)
    assert found.sentence == (
        "good drops more of its habit than deaf, by 80.0 to 90.0 points, depending on what answers "
        "without a move would have said, on 300 shared samples."
    )


def test_more_samples_are_not_advised_where_junk_keeps_it_open() -> None:
    runs = [run_of("a", POOL[:300], keeps(50)), run_of("junk", POOL[:300], cut_off(59))]
    found = impact(compare(runs))
    assert found.blurred
    assert found.sentence.startswith("Too many answers name no move to tell whether a and junk")
    few = [run_of("a", POOL[:50], keeps(50)), run_of("b", POOL[:50], cut_off(1))]
    assert not impact(compare(few)).blurred
    assert "too few to tell" in impact(compare(few)).sentence


answers: st.SearchStrategy[Outcome] = st.sampled_from(
    ["special", "legal", "adapted", "illegal", "unreadable", "error"]
)
two_answers = st.lists(st.tuples(answers, answers), min_size=1, max_size=6)


@settings(max_examples=40)
@given(two_answers, st.data())
def test_bounds_hold_whatever_each_unusable_answer_would_have_said(
    said: list[tuple[Outcome, Outcome]], data: st.DataObject
) -> None:
    filler: st.SearchStrategy[Outcome] = st.sampled_from(["special", "legal"])

    def truly(outcome: Outcome) -> Outcome:
        return data.draw(filler) if outcome in ("unreadable", "error") else outcome

    told = [(truly(before), truly(after)) for before, after in said]
    other = run_of("other", POOL[: len(said)], keeps(50))
    junk = run_of("junk", POOL[: len(said)], lambda n: said[n][1], lambda n: said[n][0])
    really = run_of("junk", POOL[: len(said)], lambda n: told[n][1], lambda n: told[n][0])
    for bounded, true in zip(compare([other, junk]), compare([other, really]), strict=True):
        if bounded.extremes and true.difference is not None:
            low, high = bounded.extremes
            assert low - 1e-9 <= true.difference <= high + 1e-9


# Runs of one model


def test_seeds_of_one_model_are_taken_together() -> None:
    runs = [
        run_of(name, POOL[100 * seed : 100 * seed + 100], keeps(kept), seed=seed)
        for name, kept in (("a", 30), ("b", 60))
        for seed in (2, 0, 1)
    ]
    found = impact(compare(runs))
    assert found.n_samples == 300
    assert [run.plan.settings.seed for run in found.first.runs] == [0, 1, 2]
    assert found.values == (-0.7, -0.4)


def test_positions_asked_in_several_seeds_are_still_one_game_each() -> None:
    def width(seeds: int) -> float:
        runs = [
            run_of(name, POOL[:100], keeps(kept), seed=seed)
            for name, kept in (("a", 30), ("b", 60))
            for seed in range(seeds)
        ]
        found = impact(compare(runs))
        assert (found.n_samples, found.n_games) == (100 * seeds, 100)
        assert found.interval
        return found.interval.high - found.interval.low

    assert width(3) > 0.95 * width(1)


def test_a_run_that_is_given_twice_or_repeats_kept_answers_counts_once() -> None:
    a, b = run_of("a", POOL[:100], keeps(30)), run_of("b", POOL[:100], keeps(60))
    again = replace(a, started_at="2026-02-02T00:00:00Z", seconds=0.1)
    assert compare([a, b]) == compare([a, a, again, b])
    longer = run_of("a", POOL[:150], keeps(30))
    for order in ([a, longer], [longer, a]):
        [model] = pool_runs(order)
        assert len(model.samples) == 150
        assert len(model.runs) == 1


def test_answers_asked_anew_with_one_seed_are_another_run() -> None:
    [model] = pool_runs([run_of("a", POOL[:100], keeps(30)), run_of("a", POOL[:100], keeps(31))])
    assert (len(model.runs), len(model.samples)) == (2, 200)


def test_a_repeat_that_found_more_positions_adds_only_those() -> None:
    one, other = (run_of("a", POOL[start : start + 100], keeps(100)) for start in (0, 50))
    [model] = pool_runs([one, other])
    assert (len(model.runs), len(model.samples)) == (2, 150)


def test_runs_that_cannot_be_compared_are_refused() -> None:
    one = run_of("a", POOL[:2], keeps(50))
    with pytest.raises(
        InvalidInput, match=r"needs runs of two models or settings; these are 1 run"
    ):
        compare([one])
    with pytest.raises(InvalidInput, match=r"these are 2 runs of one"):
        compare([one, replace(one, plan=replace(one.plan, settings=Settings(seed=1)))])
    other = replace(one, plan=replace(one.plan, change=rules_named("rooks-as-knights")))
    with pytest.raises(InvalidInput, match=r"different rules .*rooks-as-knights"):
        compare([one, other])
    diagonal = replace(one, plan=replace(one.plan, eval="all_diagonal"))
    with pytest.raises(InvalidInput, match=r"different evals .*all, all_diagonal"):
        compare([one, diagonal])


def test_rules_of_ones_own_that_changed_under_one_key_are_other_rules() -> None:
    class Changed(NoEnPassant):
        statement = "En passant is over: such a move is now illegal."

    runs = [
        replace(run, plan=replace(run.plan, change=change))
        for change in (NoEnPassant(), Changed())
        for run in [run_of(type(change).__name__, POOL[:2], keeps(50))]
    ]
    first, second = (identity_of(run.plan.change) for run in runs)
    with pytest.raises(
        InvalidInput, match=f"different rules .*{', '.join(sorted((first, second)))}"
    ):
        compare(runs)
    assert len({standing.category for standing in entries_of(runs)}) == 2
    assert differences_in_plan(pool_runs(runs)) == [
        "the runs differ in change, which may be why they score apart "
        f"(NoEnPassant: {first}; Changed: {second})"
    ]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_only_raises_p_values_and_keeps_their_order(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(p <= c <= 1 for p, c in zip(p_values, corrected, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [corrected[i] for i in order] == sorted(corrected)
    assert corrected[order[0]] == min(1, len(p_values) * p_values[order[0]])


def test_what_is_compared_says_what_is_better_by_it() -> None:
    assert {name for name, measure in MEASURES.items() if measure.compared} == {
        *(IMPACT, ADAPTATION, UPTAKE)
    }
