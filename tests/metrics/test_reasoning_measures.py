"""Reasoning measures of models with known reasoning, and edge cases."""

from statistics import mean

import pytest

from cant_do_that_anymore import Position
from cant_do_that_anymore.formatting import amount
from cant_do_that_anymore.habits.chess.move_names import named_moves
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, STANDARD, board_after
from cant_do_that_anymore.metrics.intervals import mean_interval
from cant_do_that_anymore.metrics.measures import REASONING_DIFFERENCE, reasoning_name
from cant_do_that_anymore.providers.base import Answer, Usage
from cant_do_that_anymore.report.sentences import reasoning_sentence
from reasoning_servers import (
    CountedInTotal,
    OpenAI,
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
    run_from_answers,
    serving_in_process,
)

NAMES = {*map(reasoning_name, ("standard", "changed")), REASONING_DIFFERENCE}
POSITION = Position(1, ("e2e4", "c7c5", "g1f3", "d7d6"), ("f1b5",))


@pytest.fixture(scope="module")
def planted_run() -> Run:
    """A run of a model that reasons, is tempted and gives in by known functions."""
    source = CountedInTotal(
        tempted, reasoning_tokens=longer_when_changed, reasoning_text=tempted_reasoning
    )
    with serving_in_process(source) as server:
        return measure(server, n=60)


def test_reasoning_tokens_match_the_planted_model(planted_run: Run) -> None:
    moves = [position.moves for position in positions_of(planted_run.samples)]
    before = mean(500 + checksum(m) * 37 % 7_501 for m in moves)
    differences = [1_000 * (checksum(m) % 4 > 0) for m in moves]
    values = {name: planted_run[name].value for name in NAMES}
    assert values == pytest.approx(
        {
            "standard_reasoning_tokens": before,
            "changed_reasoning_tokens": before + mean(differences),
            REASONING_DIFFERENCE: mean(differences),
        }
    )
    estimate = planted_run[REASONING_DIFFERENCE]
    games = [sample.item.group for sample in planted_run.samples]
    assert mean_interval(differences, games, signed=True) == (estimate.low, estimate.high)
    assert reasoning_sentence(planted_run).endswith(
        f"a difference of {amount(estimate.value)} "
        f"[{amount(estimate.low or 0)}, {amount(estimate.high or 0)}]."
    )


def test_hidden_reasoning_counts_tokens_and_may_be_less_under_the_change() -> None:
    model = OpenAI(perfect, reasoning_tokens=lambda r: 5_000 - longer_when_changed(r) // 2)
    with serving_in_process(model) as server:
        run = measure(server, n=12)
    assert run[REASONING_DIFFERENCE].value < 0
    assert "a difference of −" in reasoning_sentence(run)


def test_no_reasoning_sentence_without_reasoning() -> None:
    run = measure(perfect, n=12)
    assert not NAMES & run.results.estimates.keys()
    assert reasoning_sentence(run) == ""


def test_samples_without_an_answer_add_no_reasoning_tokens() -> None:
    def answer(tokens: int) -> Answer:
        return Answer("f1b5", usage=Usage(1, tokens + 1, tokens))

    missing = Answer("", stop_reason="error", error="gone")
    both = {"standard": answer(10), "changed": answer(9)}
    run = run_from_answers([(POSITION, both), (POSITION, both | {"changed": missing})])
    estimate = run[REASONING_DIFFERENCE]
    assert (estimate.value, estimate.low, estimate.n) == (-1, None, 1)
    assert run["standard_reasoning_tokens"].value == 10


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
