"""Reasoning measures of models with known reasoning, and edge cases."""

from random import Random
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore import Position
from cant_do_that_anymore.habits.chess.move_names import named_moves
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, STANDARD, board_after
from cant_do_that_anymore.metrics.stats.intervals import mean_interval
from cant_do_that_anymore.metrics.stats.score_interval import t_quantile
from cant_do_that_anymore.providers.base import Answer, StopReason, Usage
from cant_do_that_anymore.report.tables import summary
from reasoning_servers import (
    CountedInTotal,
    OpenAI,
    gives_in,
    is_tempted,
    longer_when_changed,
    tempted,
    tempted_reasoning,
)
from testing import (
    Run,
    checksum,
    measure,
    perfect,
    positions_of,
    printed,
    run_from_answers,
    serving_in_process,
)

NAMES = {
    "standard_thinking_tokens",
    "changed_thinking_tokens",
    "thinking_tokens_difference",
    "temptation_rate",
    "resistance_rate",
}
POSITION = Position(1, ("e2e4", "c7c5", "g1f3", "d7d6"), ("f1b5",))


def summary_of(run: Run) -> str:
    return " ".join(printed(summary(run), width=140).split())


@pytest.fixture(scope="module")
def planted_run() -> Run:
    """A run of a model that reasons, is tempted and gives in by known functions."""
    source = CountedInTotal(
        tempted, reasoning_tokens=longer_when_changed, reasoning_text=tempted_reasoning
    )
    with serving_in_process(source) as server:
        return measure(server, n=60)


def test_temptation_matches_the_planted_model(planted_run: Run) -> None:
    moves = [position.moves for position in positions_of(planted_run.samples)]
    tempting = [m for m in moves if is_tempted(m)]
    resisted = [m for m in tempting if not gives_in(m)]
    assert 0 < len(resisted) < len(tempting) < len(moves)
    for name, share, n in (
        ("temptation_rate", len(tempting) / len(moves), len(moves)),
        ("resistance_rate", len(resisted) / len(tempting), len(tempting)),
    ):
        assert planted_run.results.metrics[name] == share
        interval = planted_run.results.intervals[name]
        assert share - 2 / n**0.5 < interval.low < share < interval.high < share + 2 / n**0.5


def test_reasoning_tokens_match_the_planted_model(planted_run: Run) -> None:
    moves = [position.moves for position in positions_of(planted_run.samples)]
    before = mean(500 + checksum(m) * 37 % 7_501 for m in moves)
    differences = [1_000 * (checksum(m) % 4 > 0) for m in moves]
    difference = mean(differences)
    metrics, intervals = planted_run.results.metrics, planted_run.results.intervals
    assert metrics["standard_thinking_tokens"] == pytest.approx(before)
    assert metrics["changed_thinking_tokens"] == pytest.approx(before + difference)
    assert metrics["thinking_tokens_difference"] == pytest.approx(difference)
    games = [sample.item.group for sample in planted_run.samples]
    interval = mean_interval(differences, games, signed=True)
    assert interval and intervals["thinking_tokens_difference"] == interval
    assert 500 < interval.low < difference < interval.high < 1_000


def test_hidden_reasoning_counts_tokens_but_no_temptation() -> None:
    model = OpenAI(
        perfect, reasoning_tokens=lambda request: 5_000 - longer_when_changed(request) // 2
    )
    with serving_in_process(model) as server:
        run = measure(server, n=12)
    assert NAMES & run.results.metrics.keys() == {name for name in NAMES if "tokens" in name}
    difference = run.results.metrics["thinking_tokens_difference"]
    assert difference is not None and difference < 0
    output = summary_of(run)
    assert f"{-difference:,.0f} [" in output and "fewer" in output and "Temptation" not in output


def test_no_reasoning_sentence_without_reasoning() -> None:
    run = measure(perfect, n=12)
    assert not NAMES & run.results.metrics.keys()
    assert "reasoning" not in summary_of(run)


def answer_with(
    reasoning: str, text: str, stop_reason: StopReason = "stop", tokens: int = 9
) -> Answer:
    return Answer(text, stop_reason, Usage(1, tokens + 1, tokens), "m", reasoning=reasoning)


def test_only_visible_reasoning_under_the_changed_rules_counts() -> None:
    reasoning = [
        ("Bb5", ""),  # a legal habit is no temptation
        ("", "c1g5 or f1b5?"),
        ("", "Be2 or b5"),
    ]
    samples = [
        (POSITION, {"standard": answer_with(a, "f1b5"), "changed": answer_with(b, "d2d4")})
        for a, b in reasoning
    ]
    metrics = run_from_answers(samples).results.metrics
    assert metrics["temptation_rate"] == 1 / 2
    assert metrics["resistance_rate"] == 1
    untempted = run_from_answers([samples[2]]).results.metrics
    assert untempted["temptation_rate"] == 0
    assert "resistance_rate" not in untempted


@pytest.mark.parametrize(
    ("reasoning", "named"),
    [
        *(("f1b5", True), ("Hmm.\nBb5+ is a check", True), ("**Bb5** looks natural", True)),
        *(("(Bf1-b5)", True), ("1. e4 c5 2. Nf3 d6 3.Bb5+", True), ("F1B5?", True)),
        ("I'd say Bb5, but Be2", True),
        *(("", False), ("b5", False), ("Bb4", False), ("bb5", False), ("xf1b5", False)),
        *(("the bishop to b5", False), ("f1b55", False)),
    ],
)
def test_usual_moves_are_found_in_any_notation(reasoning: str, named: bool) -> None:
    assert BISHOPS_AS_KNIGHTS.mentions_usual(reasoning, POSITION) == named


def test_named_moves_are_read_as_standard_chess_first() -> None:
    board = board_after(POSITION.moves)
    text = "Be2, Bg3, f1b5; Nc3 or Nc3. Not Ke3, not c4, not Nd2 (two can)."
    moves = {
        written: move.uci() if move else None
        for written, move in named_moves(text, board, BISHOPS_AS_KNIGHTS).items()
    }
    assert moves == {
        "Be2": "f1e2",
        "Bg3": "f1g3",
        "f1b5": "f1b5",
        "Nc3": "b1c3",
        "Ke3": None,
        "Nd2": None,
    }
    assert named_moves("Bg3", board, STANDARD) == {"Bg3": None}


def test_castling_can_be_a_usual_move() -> None:
    moves = ("e2e4", "e7e5", "g1f3", "g8f6", "f1c4", "f8c5")
    assert BISHOPS_AS_KNIGHTS.mentions_usual("I castle: 0-0.", Position(0, moves, ("e1g1",)))
    assert not BISHOPS_AS_KNIGHTS.mentions_usual("I castle: 0-0-0.", Position(0, moves, ("e1g1",)))


def test_games_of_one_sample_have_the_usual_t_interval() -> None:
    values = [3, 8, 1, 9, 4]
    interval = mean_interval(values, range(5), signed=True)
    margin = 2.776445 * stdev(values) / 5**0.5
    assert interval
    assert (interval.low, interval.high) == pytest.approx((5 - margin, 5 + margin), rel=1e-6)
    smallest = mean_interval([1, 3], [1, 2], signed=False)  # two games are enough
    assert smallest and smallest.method == "t over games"


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 6)), min_size=3, max_size=30))
def test_mean_intervals_are_the_jackknife_over_games(drawn: list[tuple[int, int]]) -> None:
    values, games = [value for value, _ in drawn], [game for _, game in drawn]
    interval = mean_interval(values, games, signed=True)
    sizes = [games.count(game) for game in set(games)]
    n_games = len(games) ** 2 / sum(size**2 for size in sizes)
    means = [mean(v for v, g in drawn if g != out) for out in set(games)] if n_games > 1 else []
    error = sum((m - mean(values)) ** 2 for m in means) * (len(sizes) - 1) / len(sizes)
    if n_games < 2 or error < 1e-12:
        assert interval is None or interval.high - interval.low < 1e-3
        return
    assert interval
    assert interval.high - mean(values) == pytest.approx(t_quantile(n_games - 1) * error**0.5)
    amounts = mean_interval(values, games, signed=False)
    assert amounts
    assert 0 < amounts.low < mean(values) < amounts.high
    assert amounts.low * amounts.high == pytest.approx(mean(values) ** 2)


@pytest.mark.parametrize(
    ("values", "games"),
    [
        ([], []),
        ([5], [1]),
        ([1, 2, 3], [7, 7, 7]),
        ([0, 0, 0], [1, 2, 3]),
        ([1] * 9 + [2], [0] * 9 + [1]),
    ],
    ids=["no samples", "one sample", "one game", "no variation", "about one game"],
)
def test_too_little_data_gives_no_interval(values: list[int], games: list[int]) -> None:
    assert mean_interval(values, games, signed=False) is None


def test_coverage_for_a_skewed_amount() -> None:
    random, covered = Random(1), 0
    for _ in range(400):
        drawn = [round(1000 * random.lognormvariate(-0.125, 0.5)) for _ in range(50)]
        interval = mean_interval(drawn, range(50), signed=False)
        assert interval
        covered += interval.low <= 1000 <= interval.high
    assert 0.91 < covered / 400 < 0.98


def test_samples_without_an_answer_add_no_reasoning_tokens() -> None:
    missing = Answer("", stop_reason="error", error="gone")
    both = {"standard": answer_with("a", "f1b5", tokens=10), "changed": answer_with("b", "d2d4")}
    run = run_from_answers([(POSITION, both), (POSITION, both | {"changed": missing})])
    assert run.results.metrics["standard_thinking_tokens"] == 10
    assert run.results.metrics["thinking_tokens_difference"] == -1
