"""Comparisons with known differences."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore import Answer, rules_named
from cant_do_that_anymore.comparison.entries import entries_of, pool_runs
from cant_do_that_anymore.comparison.leaderboard import differences_in_plan
from cant_do_that_anymore.comparison.pairwise import PairComparison, of_measure
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.rules import identity_of
from cant_do_that_anymore.metrics.bounds import joined
from cant_do_that_anymore.metrics.measures import IMPACT, UPTAKE
from cant_do_that_anymore.metrics.stats.intervals import Interval
from cant_do_that_anymore.providers.base import Settings, Usage
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome
from custom_rules import NoEnPassant
from run_builders import comparisons_of as compare
from testing import POOL, Play, keeps, plan_of, played, run_of, snapshot

ADAPTATION = "adaptation_rate"


def runs_of(n: int, **plays: Play) -> list[Run]:
    """Models by name on the first positions, by their outcomes under the changed rules."""
    return [played(name, play, positions=POOL[:n]) for name, play in plays.items()]


def impact(runs: list[Run]) -> PairComparison:
    [comparison] = of_measure(compare(runs), IMPACT)
    return comparison


def cut_off(percent: int) -> Callable[[int], Outcome]:
    """Deaf to rules, and cut off in so many of a hundred positions."""
    return lambda number: "truncated" if number % 100 < percent else "special"


def seeds_of(n: int, apart: int) -> list[Run]:
    """Two models with so many seeds each, on 100 positions that lie so far apart."""
    return [
        played(
            name,
            keeps(kept),
            positions=POOL[apart * seed : apart * seed + 100],
            settings=Settings(seed=seed),
        )
        for name, kept in (("a", 30), ("b", 60))
        for seed in reversed(range(n))
    ]


def on_one_game(model: str, percent: int) -> Run:
    return played(model, keeps(percent), positions=[replace(p, game=1) for p in POOL[:200]])


def in_two_of_three(number: int) -> Outcome:
    return "special" if number % 3 else "legal"


def once(number: int) -> Outcome:
    return "unreadable" if number else "special"


def failing(number: int) -> Outcome:
    """No answer in 30 of a hundred positions, and the habit in half of the rest."""
    return "error" if number % 100 < 30 else "special" if number % 2 else "adapted"


SCENARIOS: dict[str, Callable[[], list[Run]]] = {
    "pairs tell more than strangers": lambda: runs_of(400, a=keeps(50), b=keeps(60)),
    "a weaker habit takes more to be called equivalent": lambda: [
        played(name, keeps(50), in_two_of_three, POOL[:120]) for name in "ab"
    ],
    "a weaker habit on more samples": lambda: [
        played(name, keeps(50), in_two_of_three, POOL[:400]) for name in "ab"
    ],
    "nothing shared": lambda: [
        played("a", keeps(50), positions=POOL[:50]),
        played("b", keeps(50), positions=POOL[50:100]),
    ],
    "one without a habit": lambda: [
        *runs_of(50, a=keeps(50)),
        played("b", "adapted", "legal", POOL[:50]),
    ],
    "two without a habit": lambda: [played(name, "adapted", "legal", POOL[:5]) for name in "ab"],
    "unreadable under the standard rules is no habit": lambda: [
        *runs_of(50, a=keeps(25)),
        played("shy", "adapted", "unreadable", POOL[:50]),
    ],
    "one habit and else unreadable": lambda: [
        *runs_of(50, a=keeps(25)),
        played("shy", "adapted", once, POOL[:50]),
    ],
    "one sample is too few however clear": lambda: runs_of(1, a="special", b="adapted"),
    "only shared positions": lambda: [
        played("a", positions=POOL[:300]),
        played("b", "adapted", positions=POOL[200:500]),
    ],
    "only positions that both answered": lambda: runs_of(
        10,
        a=lambda n: "error" if n == 0 else "special",
        b=lambda n: "error" if n == 1 else "special",
    ),
    "samples of one game are not independent": lambda: [on_one_game("a", 100), on_one_game("b", 0)],
    "missing answers make no difference significant": lambda: runs_of(400, a=keeps(65), b=failing),
    "junk hides no certain difference": lambda: runs_of(300, deaf=cut_off(10), good=keeps(10)),
    "junk, so that more samples are not advised": lambda: runs_of(300, a=keeps(50), b=cut_off(59)),
    "little junk on few samples": lambda: runs_of(50, a=keeps(50), b=cut_off(1)),
    "seeds are pooled": lambda: seeds_of(3, apart=100),
    "the small eval and the whole one": lambda: [
        played("a", positions=POOL[:20]),
        played("b", positions=POOL[:20], plan={"eval": "all_small"}),
    ],
}


def told(found: PairComparison) -> str:
    """All that a comparison says and computed."""
    both = {"interval": found.interval, "as scored": found.as_scored}
    numbers: dict[str, Sequence[float | None] | None] = {
        "values": found.values,
        "difference": [found.difference],
        **{name: [each.low, each.high] if each else None for name, each in both.items()},
        "extremes": found.extremes,
        "p": [found.p, found.corrected_p],
    }
    rounded = [
        f"{name} {' '.join('-' if each is None else f'{each:.6g}' for each in values or [])}"
        for name, values in numbers.items()
    ]
    counts = f"{found.n_samples} samples, {found.n_games} games, "
    counts += f"{found.required_samples} enough, {found.verdict}"
    counts += ", blurred" if found.is_undecidable else ""
    return f"{found.measure.name}: {found.sentence}\n  {counts}, {', '.join(rounded)}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_numbers_and_sentences_of_known_differences_are_as_before(name: str) -> None:
    snapshot(f"pairs/{name}", "\n".join(map(told, compare(SCENARIOS[name]()))))


def test_a_planted_difference_is_found_with_its_size_in_every_measure_and_order() -> None:
    runs = runs_of(400, a=keeps(60, first=20), b=keeps(40))
    found, back = compare(runs), compare(runs[::-1])
    assert [c.measure.name for c in found] == [UPTAKE, ADAPTATION, IMPACT]
    assert [c.difference for c in found] == pytest.approx([0.2, 0.2, -0.2])
    for each, reverse in zip(found, back, strict=True):
        assert each.verdict == "different"
        assert each.interval
        assert each.difference == -(reverse.difference or 0)
        assert each.interval.low < each.difference < each.interval.high
        assert each.corrected_p == pytest.approx(reverse.corrected_p)
        assert [entry.label for entry in each.ahead] == ["b", "a"]
    samples = "than a, by 20.0 points on 400 shared samples."
    assert (
        [c.sentence for c in found]
        == [c.sentence for c in back]
        == [
            f"b follows the changed rules more often {samples}",
            f"b replaces its habit with a legal move more often {samples}",
            f"b drops more of its habit {samples}",
        ]
    )


@pytest.mark.parametrize("percent", [0, 30, 50, 90, 100])
def test_equal_to_within_five_points_takes_73_shared_samples_without_a_difference(
    percent: int,
) -> None:
    for n, verdict in ((72, "inconclusive"), (73, "equivalent")):
        assert {c.verdict for c in compare(runs_of(n, a=keeps(percent), b=keeps(percent)))} == {
            verdict
        }


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
        return run_of(asked, plan_of(300), model=model, version=model, identity={"": model})

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
    enough = impact(runs_of(100, a=keeps(50), b=keeps(50, first=5))).required_samples
    found = impact(runs_of(enough, a=keeps(50), b=keeps(55)))
    assert found.difference == pytest.approx(0.05, abs=0.005)
    assert found.verdict == "different"


def test_what_is_inconclusive_on_enough_samples_says_how_far_apart_they_may_be() -> None:
    found = impact(runs_of(200, a=keeps(50), b=keeps(53)))
    found = replace(found, interval=Interval(-0.01, 0.09, "score"), required_samples=200)
    assert found.sentence == (
        "It is inconclusive whether a and b differ in the impact factor on 200 shared samples: the "
        "difference is between -1.0 and +9.0 points."
    )


def test_more_comparisons_ask_for_more_evidence() -> None:
    two = runs_of(200, a=keeps(50), b=keeps(57))
    alone = impact(two)
    among_many, *_ = of_measure(compare([*two, *runs_of(200, c=keeps(50), d=keeps(50))]), IMPACT)
    assert alone.p == among_many.p
    assert alone.p < alone.corrected_p < among_many.corrected_p


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
        (-0.3, 0.3, 1.0, (0.0, 0.06), "inconclusive", "Too many answers contain no move to tell "),
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
def test_a_verdict_holds_up_to_its_limits(
    low: float,
    high: float,
    p: float,
    extremes: tuple[float, float] | None,
    verdict: str,
    sentence: str,
) -> None:
    found = impact(runs_of(10, a="special", b=lambda number: ("special", "adapted")[number % 2]))
    interval = Interval(low, high, "score")
    found = replace(found, interval=interval, corrected_p=p, extremes=extremes)
    assert found.verdict == verdict
    assert found.sentence.lower().startswith(sentence.lower())
    if verdict == "equivalent":
        assert "to within 5 points on 10 shared samples" in found.sentence


def test_what_is_enough_is_worked_out_by_hand() -> None:
    """Two-sided 5% over three measures and a power of 80%; the variance is that of the interval."""
    found = impact(runs_of(10, a="special", b=lambda number: ("special", "adapted")[number % 2]))
    assert found.as_scored
    error = (found.as_scored.high - found.as_scored.low) / 2 / 1.959964
    expected = (2.393980 + 0.841621) ** 2 * 10 * error**2 / 0.05**2
    assert found.required_samples == pytest.approx(expected, abs=1)
    assert found.corrected_p == pytest.approx(min(1, 3 * found.p))


# Answers that name no move


@pytest.mark.parametrize("percent", [3, 15, 59, 100])
def test_junk_never_wins(percent: int) -> None:
    for found in compare(runs_of(300, deaf="special", junk=cut_off(percent))):
        assert found.verdict != "different"
        assert found.p == 1
        assert found.interval
        assert found.interval.low <= 0 <= found.interval.high


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
    [other] = runs_of(len(said), other=keeps(50))
    junk, really = (
        played("junk", [after for _, after in each], [before for before, _ in each])
        for each in (said, told)
    )
    for bounded, true in zip(compare([other, junk]), compare([other, really]), strict=True):
        if bounded.extremes and true.difference is not None:
            low, high = bounded.extremes
            assert low - 1e-9 <= true.difference <= high + 1e-9


def test_the_same_positions_in_more_seeds_are_no_more_games() -> None:
    def width(seeds: int) -> float:
        found = impact(seeds_of(seeds, apart=0))
        assert (found.n_samples, found.n_games) == (100 * seeds, 100)
        assert found.interval
        return found.interval.high - found.interval.low

    assert width(3) > 0.95 * width(1)


def test_a_run_that_is_given_twice_or_repeats_cached_answers_counts_once() -> None:
    a, b = runs_of(100, a=keeps(30), b=keeps(60))
    again = replace(a, started_at="2026-02-02T00:00:00Z", seconds=0.1)
    assert compare([a, b]) == compare([a, a, again, b])


@pytest.mark.parametrize(
    ("first", "second", "n_runs", "n_samples"),
    [
        ((0, 100, 30), (0, 150, 30), 1, 150),  # the shorter repeats the longer
        ((0, 150, 30), (0, 100, 30), 1, 150),
        ((0, 100, 30), (0, 100, 31), 2, 200),  # asked anew: another run
        ((0, 100, 100), (50, 150, 100), 2, 150),  # more positions were found
    ],
)
def test_runs_of_one_seed_add_what_they_do_not_repeat(
    first: tuple[int, int, int], second: tuple[int, int, int], n_runs: int, n_samples: int
) -> None:
    runs = [
        played("a", keeps(kept), positions=POOL[start:end]) for start, end, kept in (first, second)
    ]
    [entry] = pool_runs(runs)
    assert (len(entry.runs), len(entry.samples)) == (n_runs, n_samples)


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ({"change": rules_named("rooks-as-knights")}, r"different rules .*rooks-as-knights"),
        ({"eval": "all_diagonal"}, r"different evals .*all, all_diagonal"),
    ],
    ids=["rules", "evals"],
)
def test_runs_that_cannot_be_compared_are_refused(plan: dict[str, Any], sentence: str) -> None:
    [one] = runs_of(2, a="special")
    with pytest.raises(InvalidInput, match=sentence):
        compare([one, replace(one, plan=replace(one.plan, **plan))])


@pytest.mark.parametrize(
    ("dataset", "sentence"),
    [
        (
            {"own_temperature": True},
            "runs on positions selected at temperature 0 and by 2 of 3 draws at the provider's "
            "own temperature cannot be ranked together; evaluate all models on one set: cdta "
            "dataset union A B",
        ),
        (
            {"pool_name": "mine"},
            "runs on positions chosen from the default pool and the pool mine cannot be ranked "
            "together; evaluate all models on one pool",
        ),
        ({"origin": "file"}, ""),
    ],
    ids=["selection", "pool", "unknown"],
)
def test_runs_on_positions_of_another_selection_or_pool_are_refused(
    dataset: dict[str, Any], sentence: str
) -> None:
    one, other = runs_of(2, a="special", b="special")
    runs = [one, replace(other, dataset=replace(other.dataset, **dataset))]
    if not sentence:
        assert compare(runs)
        return
    with pytest.raises(InvalidInput, match=f"^{sentence}"):
        compare(runs)


def test_rules_of_ones_own_that_changed_under_one_key_are_other_rules() -> None:
    class Changed(NoEnPassant):
        statement = "En passant is over: such a move is now illegal."

    runs = [
        replace(run, plan=replace(run.plan, change=change))
        for change in (NoEnPassant(), Changed())
        for run in runs_of(2, **{type(change).__name__: keeps(50)})
    ]
    first, second = (identity_of(run.plan.change) for run in runs)
    with pytest.raises(
        InvalidInput, match=f"different rules .*{', '.join(sorted((first, second)))}"
    ):
        compare(runs)
    assert len({entry.category for entry in entries_of(runs)}) == 2
    assert differences_in_plan(pool_runs(runs)) == [
        "these runs differ in change, which may explain the difference "
        f"(NoEnPassant: {first}; Changed: {second})"
    ]
