"""A human at the terminal as the model."""

import asyncio
import io
import json
import re
import sys
from pathlib import Path

import chess
import pytest

from cant_do_that_anymore.errors import Incomplete
from cant_do_that_anymore.game.position import Position, shipped_pool, write_positions
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.providers.base import Answer, Model, Settings
from cant_do_that_anymore.providers.catalog import model_named
from cant_do_that_anymore.providers.local import draw_board
from cant_do_that_anymore.task.conditions import conditions_for
from cant_do_that_anymore.task.prompts import DEFAULT
from testing import ask, cdta


@pytest.fixture
def human(monkeypatch: pytest.MonkeyPatch) -> Model:
    """A human who has typed nothing yet; see `type_text`."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return model_named("human")


def type_text(text: str) -> None:
    keyboard = sys.stdin
    keyboard.seek(0)
    keyboard.truncate()
    keyboard.write(text)
    keyboard.seek(0)


def test_the_board_is_drawn_from_the_side_to_move() -> None:
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


def test_an_illegal_move_is_accepted_as_the_answer(human: Model) -> None:
    type_text(" F1C4 \n")
    reply = ask(human, "e2e4", "e7e5", rules=BISHOPS_AS_KNIGHTS)
    assert reply == Answer("f1c4", version="human")


def test_prompts_go_to_stderr(human: Model, capsys: pytest.CaptureFixture[str]) -> None:
    type_text("g1f3\n" * 2)
    for moves in (("e2e4", "e7e5"), ("d2d4", "d7d5")):
        ask(human, *moves, rules=BISHOPS_AS_KNIGHTS)
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count(BISHOPS_AS_KNIGHTS.statement) == 1  # the task is stated once
    assert output.err.count("Bishops move like knights. Moves so far:") == 2
    board = chess.Board("rnbqkbnr/ppp1pppp/8/3p4/3P4/8/PPP1PPPP/RNBQKBNR w - - 0 1")
    assert draw_board(board) in output.err


NO_MOVE = "{!r} is not a move there"
NOT_YOURS = "{!r} does not move your piece: White has none on "


@pytest.mark.parametrize(
    ("typed", "refusal"),
    [
        *((text, "") for text in ("Nf3", "g1-f3", "1. Nf3!", "G1F3", "I play Nf3")),
        *((text, NO_MOVE) for text in ("", "e5", "Ne5", "e2e9", "0000", "hello")),
        ("e7e5", f"{NOT_YOURS}e7."),
        ("e4e5", f"{NOT_YOURS}e4."),
    ],
)
def test_any_notation_is_read_and_anything_else_prompts_again(
    typed: str, refusal: str, human: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    type_text(f"{typed}\ng1f3\n")
    assert ask(human).text == "g1f3"
    stderr = capsys.readouterr().err
    assert refusal.format(typed) in stderr if refusal else repr(typed) not in stderr
    assert stderr.count("Your move") == 1 + bool(refusal)


def test_end_of_input_ends_the_run(human: Model, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Incomplete, match="all answers so far are saved"):
        ask(human)
    capsys.readouterr()
    type_text("e2e4\n")
    with pytest.raises(Incomplete):
        ask(human)
    assert capsys.readouterr().err == ""


def test_legality_is_a_yes_no_question(human: Model, capsys: pytest.CaptureFixture[str]) -> None:
    type_text("e2e4\n No \n")
    (condition,) = conditions_for(["knows_forbidden"], BISHOPS_AS_KNIGHTS, DEFAULT)
    question = condition.question(Position(0, ("e2e4", "e7e5"), ("f1c4",)))
    reply = asyncio.run(human.answer(question, Settings(1.0, 16)))
    assert reply == Answer("no", version="human")
    stderr = capsys.readouterr().err
    assert "is f1c4 a legal move for you in this position?" in stderr
    assert "'e2e4' is neither yes nor no." in stderr


def test_every_prompt_shows_its_purpose_and_progress(tmp_path: Path) -> None:
    pool = [position for position in shipped_pool("pool") if position.special_moves == ("f1c4",)]
    write_positions(tmp_path / "pool.jsonl", pool[:2])
    command = ("run", "--model", "human", "--pool", tmp_path / "pool.jsonl", "-n", 2, "--json")
    done = cdta(*command, stdin=b"Bc4\n" * 6, code=0)
    assert json.loads(done.stdout)["predicted_move_in_variant_proportion"] == 1
    assert re.findall(r"^.* of 2$", done.stderr, re.MULTILINE) == [
        "finding your habits: 0 of 2",
        "finding your habits: 1 of 2",
        *["measuring your habits: 0 of 2"] * 2,  # under the standard and the changed rules
        *["measuring your habits: 1 of 2"] * 2,
    ]
