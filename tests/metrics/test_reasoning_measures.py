"""What thinking shows: models whose thoughts and their number are known, and the edges."""

import re
from pathlib import Path
from random import Random
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore import Position
from cant_do_that_anymore.game.move_parser import named_moves
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, board_after
from cant_do_that_anymore.metrics.stats.intervals import mean_interval
from cant_do_that_anymore.metrics.stats.score_interval import t_quantile
from cant_do_that_anymore.providers.base import Answer, StopReason, Usage
from cant_do_that_anymore.report.tables import summary
from cant_do_that_anymore.runs.storage import load_run, rescored, save_run
from cant_do_that_anymore.task.scorer import names_special
from reasoning_servers import (
    OpenAI,
    Outside,
    gives_in,
    is_tempted,
    longer_when_changed,
    tempted,
    tempted_thoughts,
)
from testing import Run, answering, measure, number_of, perfect, printed, run_of

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
def planted() -> Run:
    """Of a model that thinks, is tempted and gives in by known functions."""
    thinker = Outside(tempted, thinks=longer_when_changed, thoughts=tempted_thoughts)
    with answering(thinker) as server:
        return measure(server, n=60)


def test_temptation_is_as_planted(planted: Run) -> None:
    moves = [sample.position.moves for sample in planted.samples]
    of_special = [each for each in moves if is_tempted(each)]
    resisted = [each for each in of_special if not gives_in(each)]
    assert 0 < len(resisted) < len(of_special) < len(moves)
    for name, share, whole in (
        ("temptation_rate", len(of_special) / len(moves), len(moves)),
        ("resistance_rate", len(resisted) / len(of_special), len(of_special)),
    ):
        assert planted.results.metrics[name] == share
        around = planted.results.intervals[name]
        assert share - 2 / whole**0.5 < around.low < share < around.high < share + 2 / whole**0.5


def test_thinking_tokens_are_as_planted(planted: Run) -> None:
    moves = [sample.position.moves for sample in planted.samples]
    before = mean(500 + number_of(each) * 37 % 7_501 for each in moves)
    differences = [1_000 * (number_of(each) % 4 > 0) for each in moves]
    more = mean(differences)
    metrics, around = planted.results.metrics, planted.results.intervals
    assert metrics["standard_thinking_tokens"] == pytest.approx(before)
    assert metrics["changed_thinking_tokens"] == pytest.approx(before + more)
    assert metrics["thinking_tokens_difference"] == pytest.approx(more)
    games = [sample.position.game for sample in planted.samples]
    signed = mean_interval(differences, games, signed=True)
    assert signed and around["thinking_tokens_difference"] == signed
    assert 500 < signed.low < more < signed.high < 1_000


def test_the_terminal_tells_of_thinking(planted: Run) -> None:
    shown, metrics = summary_of(planted), planted.results.metrics
    around = r"([\d,]+) \[[\d,]+, [\d,]+\]"
    told = re.search(
        rf"It uses {around} reasoning tokens under standard rules and {around} under the changed "
        rf"rules: {around} more",
        shown,
    )
    assert told
    names = ("standard_thinking_tokens", "changed_thinking_tokens", "thinking_tokens_difference")
    assert list(told.groups()) == [f"{metrics[name]:,.0f}" for name in names]
    assert f"Temptation {metrics['temptation_rate']:.3f} [" in shown


def test_a_run_read_back_or_rescored_tells_the_same(planted: Run, tmp_path: Path) -> None:
    save_run(planted, tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert loaded.samples == planted.samples
    assert loaded.results == planted.results
    exact = rescored(loaded, "exact").results.metrics
    assert {name: exact[name] for name in NAMES} == {
        name: planted.results.metrics[name] for name in NAMES
    }


def test_thoughts_that_are_not_shown_tempt_nobody_but_are_counted() -> None:
    thinks = OpenAI(perfect, thinks=lambda request: 5_000 - longer_when_changed(request) // 2)
    with answering(thinks) as server:
        run = measure(server, n=12)
    assert NAMES & run.results.metrics.keys() == {name for name in NAMES if "tokens" in name}
    difference = run.results.metrics["thinking_tokens_difference"]
    assert difference is not None and difference < 0
    shown = summary_of(run)
    assert f"{-difference:,.0f} [" in shown and "fewer" in shown and "temptation" not in shown


def test_of_a_model_that_does_not_think_nothing_is_told() -> None:
    run = measure(perfect, n=12)
    assert not NAMES & run.results.metrics.keys()
    assert "think" not in summary_of(run)


def thoughtful(
    thoughts: str, text: str, stop_reason: StopReason = "stop", tokens: int = 9
) -> Answer:
    return Answer(text, stop_reason, Usage(1, tokens + 1, tokens), "m", thoughts)


def test_only_thoughts_that_are_shown_under_the_changed_rules_count() -> None:
    said = [
        ("Bb5", ""),  # the habit is no temptation where it is legal
        ("", "c1g5 or f1b5?"),
        ("", "Be2 or b5"),
    ]
    asked = [
        (POSITION, {"standard": thoughtful(a, "f1b5"), "changed": thoughtful(b, "d2d4")})
        for a, b in said
    ]
    metrics = run_of(asked).results.metrics
    assert metrics["temptation_rate"] == 1 / 2
    assert metrics["resistance_rate"] == 1
    never = run_of([asked[2]]).results.metrics
    assert never["temptation_rate"] == 0
    assert "resistance_rate" not in never


def test_a_reply_that_was_cut_off_gives_resistance_bounds() -> None:
    said = [thoughtful("f1b5!", "", "length"), thoughtful("f1b5!", "f1b5")]
    run = run_of([(POSITION, {"standard": Answer("f1b5"), "changed": each}) for each in said])
    assert run.results.metrics["resistance_rate"] == 1 / 2
    bounds = run.results.bounds["resistance_rate"]
    assert (bounds.low, bounds.high, bounds.complete) == (0, 1 / 2, 0)


@pytest.mark.parametrize(
    ("thoughts", "named"),
    [
        *(("f1b5", True), ("Hmm.\nBb5+ is a check", True), ("**Bb5** looks natural", True)),
        *(("(Bf1-b5)", True), ("1. e4 c5 2. Nf3 d6 3.Bb5+", True), ("F1B5?", True)),
        ("I'd say Bb5, but Be2", True),
        *(("", False), ("b5", False), ("Bb4", False), ("bb5", False), ("xf1b5", False)),
        *(("the bishop to b5", False), ("f1b55", False)),
    ],
)
def test_a_special_move_is_found_however_it_is_written(thoughts: str, named: bool) -> None:
    assert names_special(thoughts, POSITION) == named


def test_every_move_in_a_text_is_read_as_standard_chess_first() -> None:
    board = board_after(POSITION.moves)
    text = "Be2, Bg3, f1b5; Nc3 or Nc3. Not Ke3, not c4, not Nd2 (two can)."
    read = {
        written: move.uci() if move else None
        for written, move in named_moves(text, board, BISHOPS_AS_KNIGHTS).items()
    }
    assert read == {
        "Be2": "f1e2",
        "Bg3": "f1g3",
        "f1b5": "f1b5",
        "Nc3": "b1c3",
        "Ke3": None,
        "Nd2": None,
    }
    assert named_moves("Bg3", board, STANDARD) == {"Bg3": None}


def test_castling_can_be_a_special_move() -> None:
    moves = ("e2e4", "e7e5", "g1f3", "g8f6", "f1c4", "f8c5")
    assert names_special("I castle: 0-0.", Position(0, moves, ("e1g1",)))
    assert not names_special("I castle: 0-0-0.", Position(0, moves, ("e1g1",)))


def test_equal_games_of_one_sample_have_the_usual_interval() -> None:
    values = [3, 8, 1, 9, 4]
    around = mean_interval(values, range(5), signed=True)
    reach = 2.776445 * stdev(values) / 5**0.5
    assert around
    assert (around.low, around.high) == pytest.approx((5 - reach, 5 + reach), rel=1e-6)
    wider = mean_interval(values, range(5), signed=True, critical_factor=1.1)
    assert wider and wider.high == pytest.approx(5 + 1.1 * reach, rel=1e-6)
    least = mean_interval([1, 3], [1, 2], signed=False)  # two games are the fewest
    assert least and least.method == "t over games"


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 6)), min_size=3, max_size=30))
def test_intervals_are_those_of_leaving_out_each_game(drawn: list[tuple[int, int]]) -> None:
    values, games = [value for value, _ in drawn], [game for _, game in drawn]
    around = mean_interval(values, games, signed=True)
    sizes = [games.count(game) for game in set(games)]
    n_games = len(games) ** 2 / sum(size**2 for size in sizes)
    without = [mean(v for v, g in drawn if g != out) for out in set(games)] if n_games > 1 else []
    error = sum((each - mean(values)) ** 2 for each in without) * (len(sizes) - 1) / len(sizes)
    if n_games < 2 or error < 1e-12:
        assert around is None or around.high - around.low < 1e-3
        return
    assert around
    assert around.high - mean(values) == pytest.approx(t_quantile(n_games - 1) * error**0.5)
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
    ids=["no samples", "one sample", "one game", "nothing varies", "hardly more than one game"],
)
def test_no_interval_is_made_of_nothing(values: list[int], games: list[int]) -> None:
    assert mean_interval(values, games, signed=False) is None


def test_the_interval_of_a_skewed_amount_holds_the_truth() -> None:
    chance, held = Random(1), 0
    for _ in range(400):
        drawn = [round(1000 * chance.lognormvariate(-0.125, 0.5)) for _ in range(50)]
        around = mean_interval(drawn, range(50), signed=False)
        assert around
        held += around.low <= 1000 <= around.high
    assert 0.91 < held / 400 < 0.98


def test_samples_without_an_answer_think_nothing() -> None:
    lost = Answer("", stop_reason="error", error="gone")
    whole = {"standard": thoughtful("a", "f1b5", tokens=10), "changed": thoughtful("b", "d2d4")}
    run = run_of([(POSITION, whole), (POSITION, whole | {"changed": lost})])
    assert run.results.metrics["standard_thinking_tokens"] == 10
    assert run.results.metrics["thinking_tokens_difference"] == -1
