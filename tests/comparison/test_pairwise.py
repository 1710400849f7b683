"""Comparisons with known differences."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore import Answer, rules_named
from cant_do_that_anymore.comparison.pairwise import PairComparison, of_measure
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.metrics.bounds import joined
from cant_do_that_anymore.metrics.measures import IMPACT, UPTAKE
from cant_do_that_anymore.metrics.stats.intervals import Interval
from cant_do_that_anymore.providers.base import Usage
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome
from run_builders import comparisons_of as compare
from testing import (
    POOL,
    Outcomes,
    keeps_habit_in,
    plan_of,
    run_from_answers,
    run_with_outcomes,
    snapshot,
)

ADAPTATION = "adaptation_rate"


def runs_of(n: int, **plays: Outcomes) -> list[Run]:
    """Models by name on the first n positions, by their outcomes under the changed rules."""
    return [run_with_outcomes(name, play, positions=POOL[:n]) for name, play in plays.items()]


def impact(runs: list[Run]) -> PairComparison:
    [comparison] = of_measure(compare(runs), IMPACT)
    return comparison


def cut_off(percent: int) -> Callable[[int], Outcome]:
    """Ignores the rule, and this percentage of replies is truncated."""
    return lambda number: "truncated" if number % 100 < percent else "usual"


def on_one_game(model: str, percent: int) -> Run:
    return run_with_outcomes(
        model, keeps_habit_in(percent), positions=[replace(p, game=1) for p in POOL[:200]]
    )


def habit_in_two_of_three(number: int) -> Outcome:
    return "usual" if number % 3 else "legal"


def habit_in_the_first(number: int) -> Outcome:
    return "unreadable" if number else "usual"


def failing(number: int) -> Outcome:
    """No answer in 30 of 100 positions, and the habit in half of the rest."""
    return "error" if number % 100 < 30 else "usual" if number % 2 else "adapted"


SCENARIOS: dict[str, Callable[[], list[Run]]] = {
    "pairs tell more than strangers": lambda: runs_of(
        400, a=keeps_habit_in(50), b=keeps_habit_in(60)
    ),
    "a weaker habit takes more to be called equivalent": lambda: [
        run_with_outcomes(name, keeps_habit_in(50), habit_in_two_of_three, POOL[:120])
        for name in "ab"
    ],
    "a weaker habit on more samples": lambda: [
        run_with_outcomes(name, keeps_habit_in(50), habit_in_two_of_three, POOL[:400])
        for name in "ab"
    ],
    "nothing shared": lambda: [
        run_with_outcomes("a", keeps_habit_in(50), positions=POOL[:50]),
        run_with_outcomes("b", keeps_habit_in(50), positions=POOL[50:100]),
    ],
    "one without a habit": lambda: [
        *runs_of(50, a=keeps_habit_in(50)),
        run_with_outcomes("b", "adapted", "legal", POOL[:50]),
    ],
    "two without a habit": lambda: [
        run_with_outcomes(name, "adapted", "legal", POOL[:5]) for name in "ab"
    ],
    "unreadable under the standard rules is no habit": lambda: [
        *runs_of(50, a=keeps_habit_in(25)),
        run_with_outcomes("shy", "adapted", "unreadable", POOL[:50]),
    ],
    "one habit and else unreadable": lambda: [
        *runs_of(50, a=keeps_habit_in(25)),
        run_with_outcomes("shy", "adapted", habit_in_the_first, POOL[:50]),
    ],
    "one sample is too few however clear": lambda: runs_of(1, a="usual", b="adapted"),
    "only shared positions": lambda: [
        run_with_outcomes("a", positions=POOL[:300]),
        run_with_outcomes("b", "adapted", positions=POOL[200:500]),
    ],
    "only positions that both answered": lambda: runs_of(
        10,
        a=lambda n: "error" if n == 0 else "usual",
        b=lambda n: "error" if n == 1 else "usual",
    ),
    "samples of one game are not independent": lambda: [on_one_game("a", 100), on_one_game("b", 0)],
    "missing answers make no difference significant": lambda: runs_of(
        400, a=keeps_habit_in(65), b=failing
    ),
    "junk hides no certain difference": lambda: runs_of(
        300, deaf=cut_off(10), good=keeps_habit_in(10)
    ),
    "junk, so that more samples are not advised": lambda: runs_of(
        300, a=keeps_habit_in(50), b=cut_off(59)
    ),
    "little junk on few samples": lambda: runs_of(50, a=keeps_habit_in(50), b=cut_off(1)),
    "the small eval and the whole one": lambda: [
        run_with_outcomes("a", positions=POOL[:20]),
        run_with_outcomes("b", positions=POOL[:20], plan={"eval": "all_small"}),
    ],
}


def description(pair: PairComparison) -> str:
    """All sentences and numbers of a comparison."""
    intervals = {"interval": pair.interval, "as scored": pair.as_scored}
    numbers: dict[str, Sequence[float | None] | None] = {
        "values": pair.values,
        "difference": [pair.difference],
        **{name: [i.low, i.high] if i else None for name, i in intervals.items()},
        "extremes": pair.extremes,
        "p": [pair.p, pair.corrected_p],
    }
    rounded = [
        f"{name} {' '.join('-' if value is None else f'{value:.6g}' for value in values or [])}"
        for name, values in numbers.items()
    ]
    counts = f"{pair.n_samples} samples, {pair.n_games} games, "
    counts += f"{pair.required_samples} enough, {pair.verdict}"
    counts += ", blurred" if pair.is_undecidable else ""
    return f"{pair.measure.name}: {pair.sentence}\n  {counts}, {', '.join(rounded)}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_known_differences_match_snapshot(name: str) -> None:
    snapshot(f"pairs/{name}", "\n".join(map(description, compare(SCENARIOS[name]()))))


def test_a_planted_difference_is_found_in_every_measure_and_order() -> None:
    runs = runs_of(400, a=keeps_habit_in(60, first=20), b=keeps_habit_in(40))
    forward, backward = compare(runs), compare(runs[::-1])
    assert [c.measure.name for c in forward] == [UPTAKE, ADAPTATION, IMPACT]
    assert [c.difference for c in forward] == pytest.approx([0.2, 0.2, -0.2])
    for pair, reverse in zip(forward, backward, strict=True):
        assert pair.verdict == "different"
        assert pair.interval
        assert pair.difference == -(reverse.difference or 0)
        assert pair.interval.low < pair.difference < pair.interval.high
        assert pair.corrected_p == pytest.approx(reverse.corrected_p)
        assert [entry.label for entry in pair.ahead] == ["b", "a"]
    samples = "than a, by 20.0 points on 400 shared samples."
    assert (
        [c.sentence for c in forward]
        == [c.sentence for c in backward]
        == [
            f"b follows the changed rules more often {samples}",
            f"b replaces its habit with a legal move more often {samples}",
            f"b drops more of its habit {samples}",
        ]
    )


def test_copies_in_other_games_count_like_copies_in_the_same_game() -> None:
    def ten_copies(shift: int, model: str) -> Run:
        answers = [
            (
                replace(position, game=position.game + shift * copy),
                {STANDARD_CONDITION: before, CHANGED_CONDITION: after},
            )
            for copy in range(10)
            for number, position in enumerate(POOL[:30])
            for move in [*position.usual, "no move"]
            if (move == "no move") == (number % 3 == 0)
            for before in [Answer(move, usage=Usage(thinking_tokens=number))]
            for after in [Answer(move if model == "a" or number % 5 else "no move")]
        ]
        return run_from_answers(
            answers, plan_of(300), model=model, version=model, identity={"": model}
        )

    same_games, other_games = ([ten_copies(shift, model) for model in "ab"] for shift in (0, 10**6))
    assert {run.results.metrics["n_games"] for run in other_games} == {30}
    assert [run.results for run in other_games] == [run.results for run in same_games]
    for expected, actual in zip(compare(same_games), compare(other_games), strict=True):
        assert (actual.n_games, actual.interval, actual.p) == (30, expected.interval, expected.p)


def test_games_linked_by_shared_positions_are_one_cluster() -> None:
    chain = [pair for game in range(3000) for pair in ((game, game), (game, game + 1))]
    assert set(joined(chain)) == {0}
    assert len(set(joined([*chain[::-1], (-1, -1)]))) == 2


def test_the_required_samples_are_enough() -> None:
    """A difference of five points is significant on the required number of samples."""
    required = impact(
        runs_of(100, a=keeps_habit_in(50), b=keeps_habit_in(50, first=5))
    ).required_samples
    pair = impact(runs_of(required, a=keeps_habit_in(50), b=keeps_habit_in(55)))
    assert pair.difference == pytest.approx(0.05, abs=0.005)
    assert pair.verdict == "different"


def test_an_inconclusive_result_on_enough_samples_states_the_interval() -> None:
    pair = impact(runs_of(200, a=keeps_habit_in(50), b=keeps_habit_in(53)))
    pair = replace(pair, interval=Interval(-0.01, 0.09, "score"), required_samples=200)
    assert pair.sentence == (
        "It is inconclusive whether a and b differ in the impact factor on 200 shared samples: the "
        "difference is between -1.0 and +9.0 points."
    )


@pytest.mark.parametrize(
    ("low", "high", "p", "extremes", "verdict", "sentence"),
    [
        (-0.05, 0.05, 1.0, None, "equivalent", "A and b are equivalent in the impact factor to "),
        (-0.051, 0.05, 1.0, None, "inconclusive", "10 shared samples are too few to tell whether "),
        (-0.05, 0.051, 1.0, None, "inconclusive", "10 shared samples are too few to tell whether "),
        (0.0, 0.3, 0.01, None, "inconclusive", "10 shared samples are too few to tell whether "),
        (-0.3, 0.0, 0.01, None, "inconclusive", "10 shared samples are too few to tell whether "),
        (0.01, 0.3, 0.05, None, "inconclusive", "10 shared samples are too few to tell whether "),
        (0.01, 0.3, 0.049, None, "different", "B drops more of its habit than a, by 50.0 points "),
        (-0.3, 0.3, 1.0, (0.0, 0.05), "inconclusive", "10 shared samples are too few to tell "),
        (-0.3, 0.3, 1.0, (0.0, 0.06), "inconclusive", "Too many replies contain no move to tell "),
        (
            0.01,
            0.3,
            0.049,
            (0.01, 0.3),
            "different",
            "B drops more of its habit than a, by 1.0 to ",
        ),
    ],
)
def test_verdicts_at_their_limits(
    low: float,
    high: float,
    p: float,
    extremes: tuple[float, float] | None,
    verdict: str,
    sentence: str,
) -> None:
    pair = impact(runs_of(10, a="usual", b=lambda number: ("usual", "adapted")[number % 2]))
    interval = Interval(low, high, "score")
    pair = replace(pair, interval=interval, corrected_p=p, extremes=extremes)
    assert pair.verdict == verdict
    assert pair.sentence.lower().startswith(sentence.lower())
    if verdict == "equivalent":
        assert "to within 5 points on 10 shared samples" in pair.sentence


def test_required_samples_match_a_hand_calculation() -> None:
    """Two-sided 5% over three measures, a power of 80%, and the variance of the interval."""
    pair = impact(runs_of(10, a="usual", b=lambda number: ("usual", "adapted")[number % 2]))
    assert pair.as_scored
    error = (pair.as_scored.high - pair.as_scored.low) / 2 / 1.959964
    expected = (2.393980 + 0.841621) ** 2 * 10 * error**2 / 0.05**2
    assert pair.required_samples == pytest.approx(expected, abs=1)
    assert pair.corrected_p == pytest.approx(min(1, 3 * pair.p))


outcomes: st.SearchStrategy[Outcome] = st.sampled_from(
    ["usual", "legal", "adapted", "illegal", "unreadable", "error"]
)
outcome_pairs = st.lists(st.tuples(outcomes, outcomes), min_size=1, max_size=6)


@settings(max_examples=40)
@given(outcome_pairs, st.data())
def test_bounds_hold_for_every_reading_of_unusable_answers(
    original: list[tuple[Outcome, Outcome]], data: st.DataObject
) -> None:
    filler: st.SearchStrategy[Outcome] = st.sampled_from(["usual", "legal"])

    def fill(outcome: Outcome) -> Outcome:
        return data.draw(filler) if outcome in ("unreadable", "error") else outcome

    filled = [(fill(before), fill(after)) for before, after in original]
    [other] = runs_of(len(original), other=keeps_habit_in(50))
    unusable, readable = (
        run_with_outcomes("junk", [after for _, after in pairs], [before for before, _ in pairs])
        for pairs in (original, filled)
    )
    for bounded, true in zip(compare([other, unusable]), compare([other, readable]), strict=True):
        if bounded.extremes and true.difference is not None:
            low, high = bounded.extremes
            assert low - 1e-9 <= true.difference <= high + 1e-9


@pytest.mark.parametrize(
    ("part", "change", "sentence"),
    [
        ("plan", {"change": rules_named("rooks-as-knights")}, "different rules .*rooks-as-knights"),
        ("plan", {"eval": "all_diagonal"}, "different evals .*all, all_diagonal"),
        ("dataset", {"pool_name": "mine"}, "chosen from the default pool and the pool mine cannot"),
    ],
    ids=["rules", "evals", "pools"],
)
def test_runs_that_differ_in_the_task_are_refused(
    part: str, change: dict[str, Any], sentence: str
) -> None:
    [run] = runs_of(2, a="usual")
    other = replace(run, **{part: replace(getattr(run, part), **change)})
    with pytest.raises(InvalidInput, match=sentence):
        compare([run, other])
