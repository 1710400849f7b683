"""A person at the terminal."""

import asyncio
import io
import json
import re
from pathlib import Path

import chess
import pytest

from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.game.position import Position, shipped_pool, write_positions
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules
from cant_do_that_anymore.providers.base import Answer, Settings
from cant_do_that_anymore.providers.catalogue import model_named
from cant_do_that_anymore.providers.local import HumanModel, draw_board
from cant_do_that_anymore.task.conditions import conditions_for
from cant_do_that_anymore.task.prompts import DEFAULT
from processes import cdta
from questions import question

SETTINGS = Settings(1.0, 16)


def answer(model: HumanModel, *moves: str, rules: Rules = STANDARD) -> Answer:
    return asyncio.run(model.answer(question(moves, rules), SETTINGS))


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the person types, to be written before it is read."""
    keyboard = io.StringIO()
    monkeypatch.setattr("sys.stdin", keyboard)
    return keyboard


def test_the_board_is_drawn_from_the_side_of_the_mover() -> None:
    board = chess.Board()
    board.push_uci("e2e4")
    assert draw_board(board).splitlines() == [
        "1 ♖ ♘ ♗ ♔ ♕ ♗ ♘ ♖",
        "2 ♙ ♙ ♙ · ♙ ♙ ♙ ♙",
        "3 · · · · · · · ·",
        "4 · · · ♙ · · · ·",
        "5 · · · · · · · ·",
        "6 · · · · · · · ·",
        "7 ♟ ♟ ♟ ♟ ♟ ♟ ♟ ♟",
        "8 ♜ ♞ ♝ ♚ ♛ ♝ ♞ ♜",
        "  h g f e d c b a",
    ]


def test_what_is_typed_is_the_answer_even_if_it_is_illegal(typing: io.StringIO) -> None:
    typing.write(" F1C4 \n")
    typing.seek(0)
    reply = answer(HumanModel(), "e2e4", "e7e5", rules=BISHOPS_AS_KNIGHTS)
    assert reply == Answer("f1c4", version="human")


def test_the_question_is_shown_on_standard_error(
    typing: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    typing.write("g1f3\n" * 2)
    typing.seek(0)
    model = HumanModel()
    for moves in (("e2e4", "e7e5"), ("d2d4", "d7d5")):
        answer(model, *moves, rules=BISHOPS_AS_KNIGHTS)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count(BISHOPS_AS_KNIGHTS.statement) == 1  # the task is told once
    assert shown.err.count("Bishops move as knights do. Moves so far:") == 2
    assert (
        draw_board(chess.Board("rnbqkbnr/ppp1pppp/8/3p4/3P4/8/PPP1PPPP/RNBQKBNR w - - 0 1"))
        in shown.err
    )


@pytest.mark.parametrize("written", ["Nf3", "g1-f3", "1. Nf3!", "G1F3", "I play Nf3"])
def test_a_move_is_taken_however_the_lenient_reader_takes_it(
    written: str, typing: io.StringIO
) -> None:
    typing.write(f"{written}\n")
    typing.seek(0)
    assert answer(HumanModel()).text == "g1f3"


@pytest.mark.parametrize(("typed", "square"), [("e7e5", "e7"), ("e4e5", "e4")])
def test_a_piece_that_is_not_one_s_own_is_refused(
    typed: str, square: str, typing: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    typing.write(f"{typed}\ne2e4\n")
    typing.seek(0)
    assert answer(HumanModel()).text == "e2e4"
    refusal = f"'{typed}' moves no piece of yours: White has none on {square}."
    assert refusal in capsys.readouterr().err


@pytest.mark.parametrize("no_move", ["", "e5", "Ne5", "e2e9", "0000", "hello"])
def test_it_asks_again_when_no_move_was_typed(
    no_move: str, typing: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    typing.write(f"{no_move}\ne2e4\n")
    typing.seek(0)
    assert answer(HumanModel()).text == "e2e4"
    assert f"{no_move!r} names no move there" in capsys.readouterr().err


def test_leaving_ends_the_run_and_nothing_is_asked_afterwards(
    typing: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    model = HumanModel()
    with pytest.raises(Incomplete, match="all answers so far are saved"):
        answer(model)
    capsys.readouterr()
    typing.write("e2e4\n")
    typing.seek(0)
    with pytest.raises(Incomplete):
        answer(model)
    assert capsys.readouterr().err == ""


def test_a_person_is_a_model_like_any_other() -> None:
    assert isinstance(model_named("human"), HumanModel)


def test_whether_a_move_is_legal_is_answered_with_yes_or_no(
    typing: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    typing.write("e2e4\n No \n")
    typing.seek(0)
    (condition,) = conditions_for(["knows_forbidden"], BISHOPS_AS_KNIGHTS, DEFAULT)
    asked = condition.question(Position(0, ("e2e4", "e7e5"), ("f1c4",)))
    reply = asyncio.run(HumanModel().answer(asked, SETTINGS))
    assert reply == Answer("no", version="human")
    shown = capsys.readouterr().err
    assert "is f1c4 a legal move for you in this position?" in shown
    assert "'e2e4' is neither yes nor no." in shown


def test_a_person_is_told_what_for_and_how_far_with_every_question(tmp_path: Path) -> None:
    pool = [position for position in shipped_pool("pool") if position.special_moves == ("f1c4",)]
    write_positions(tmp_path / "pool.jsonl", pool[:2])
    asked = ("run", "--model", "human", "--pool", tmp_path / "pool.jsonl", "-n", 2, "--json")
    done = cdta(*asked, stdin=b"Bc4\n" * 6)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["predicted_move_in_variant_proportion"] == 1
    assert re.findall(r"^.* of 2$", done.stderr, re.MULTILINE) == [
        "finding your habits: 0 of 2",
        "finding your habits: 1 of 2",
        *["measuring your habits: 0 of 2"] * 2,  # under the standard and under the changed rules
        *["measuring your habits: 1 of 2"] * 2,
    ]
