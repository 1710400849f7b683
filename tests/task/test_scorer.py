"""From replies to moves and outcomes."""

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.game.move_parser import move_in
from cant_do_that_anymore.game.position import Position
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules, board_after
from cant_do_that_anymore.providers.base import Answer, StopReason
from cant_do_that_anymore.task.scorer import answered_move, judge
from cant_do_that_anymore.task.types import OUTCOMES, Reading

MOVES = ("e2e4", "e7e6", "g1f3", "c7c5", "c2c3", "b7b6")
POSITION = Position(0, MOVES, ("f1b5",))
BOARD = POSITION.board()


def read_move(
    reply: str, board: chess.Board, rules: Rules, reading: Reading = "lenient"
) -> chess.Move | None:
    """The move that an answer names in the position of a board."""
    if reading == "exact":
        return answered_move(Answer(reply), POSITION, rules, reading)
    return move_in(reply, board, rules)


@pytest.mark.parametrize(
    "reply",
    [
        "f1b5",
        " f1b5\n",
        "F1B5",
        '"f1b5"',
        "`f1b5`",
        "**f1b5**",
        "f1b5.",
        "f1-b5",
        "f1 b5",
        "f1 to b5",
        "f1→b5",
        "Bf1-b5",
        "Bb5",
        "BB5",
        "Bb5+!",
        "7. Bb5",
        "7.f1b5",
        "I play f1b5.",
        "My move: f1b5",
        "The best move is **f1b5** (Bb5), pinning nothing.",
        "Perhaps d2d4? Or e4e5?\n\nf1b5",
        "```\nf1b5\n```",
    ],
)
def test_a_move_is_read_through_decoration(reply: str) -> None:
    assert read_move(reply, BOARD, STANDARD) == chess.Move.from_uci("f1b5")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " ",
        "f1",
        "f1b5 or d2d4",
        "f1b5 is illegal now, so Nf3",
        "I resign",
        "f1b5f1b5",
        "Xf1b5X",
        "0000",
        "e2e9",
        "The pawn on e4 and the knight on f3 stand well.",
        "Bb5 Bc4",
        "<script>alert(1)</script>",
    ],
)
def test_anything_else_is_unreadable(reply: str) -> None:
    assert read_move(reply, BOARD, STANDARD) is None


@pytest.mark.parametrize(
    ("moves", "reply", "move"),
    [
        ("e2e4 e7e5 g1f3 b8c6 f1c4 f8c5", "O-O", "e1g1"),
        ("e2e4 e7e5 g1f3 b8c6 f1c4 f8c5", "0-0", "e1g1"),
        ("e2e4 e7e5 g1f3 b8c6 f1c4 f8c5", "e1g1", "e1g1"),
        ("e2e4 d7d5", "exd5", "e4d5"),
        ("e2e4 d7d5 e4d5 c7c6 d5c6 a7a6 c6b7 a6a5", "bxa8=Q", "b7a8q"),
        ("e2e4 d7d5 e4d5 c7c6 d5c6 a7a6 c6b7 a6a5", "b7a8=q", "b7a8q"),
        ("e2e4 d7d5 e4d5 c7c6 d5c6 a7a6 c6b7 a6a5", "b7a8Q", "b7a8q"),
        ("e2e4 d7d5 e4d5 c7c6 d5c6 a7a6 c6b7 a6a5", "b7xa8N", "b7a8n"),
        ("e2e4 d7d5 e4d5 c7c6 d5c6 b8a6 c6b7 a6c5", "I promote: b8=Q.", "b7b8q"),
        ("d2d4 a7a6 c1f4 a6a5 d1d2 a5a4 b1c3 a4a3", "O-O-O", "e1c1"),
        ("d2d4 a7a6 c1f4 a6a5 d1d2 a5a4 b1c3 a4a3", "O-O", None),
        ("e2e4 e7e5", "2. d4", "d2d4"),
        ("e2e4 e7e5", f"2.{16 * ' '}d4", "d2d4"),
        ("g1f3 a7a6 b1c3 a6a5 c3e4 a5a4", "Nfg5", "f3g5"),
        ("b1c3 a7a6 c3e4 a6a5 e4g5 a5a4", "N1f3", "g1f3"),
        ("b1c3 a7a6 c3e4 a6a5 e4g5 a5a4", "N5f3", "g5f3"),
        ("g1f3 a7a6 b1c3 a6a5 c3e4 a5a4", "Ng5", None),
    ],
)
def test_other_notations_are_read(moves: str, reply: str, move: str | None) -> None:
    read = read_move(reply, board_after(moves.split()), STANDARD)
    assert (read.uci() if read else None) == move


def test_a_habit_in_standard_notation_never_passes_for_a_move_of_the_changed_rules() -> None:
    """Be2 is f1e2 under both rule sets, although c1e2 is legal when bishops move as knights."""
    for rules in (STANDARD, BISHOPS_AS_KNIGHTS):
        assert read_move("Be2", BOARD, rules) == chess.Move.from_uci("f1e2")
        assert read_move("Bb5", BOARD, rules) == chess.Move.from_uci("f1b5")
    assert read_move("Bg3", BOARD, BISHOPS_AS_KNIGHTS) == chess.Move.from_uci("f1g3")
    assert read_move("Bg3", BOARD, STANDARD) is None


@given(st.text())
def test_no_reply_breaks_the_reader(reply: str) -> None:
    for reading in ("lenient", "exact"):
        move = read_move(reply, BOARD, BISHOPS_AS_KNIGHTS, reading)
        assert move is None or isinstance(move, chess.Move)


@given(st.sampled_from(sorted(move.uci() for move in BOARD.legal_moves)))
def test_every_legal_move_is_read_in_uci_and_standard_notation(uci: str) -> None:
    move = chess.Move.from_uci(uci)
    for reply in (uci, uci.upper(), f" {uci}. ", BOARD.san(move), BOARD.lan(move)):
        assert read_move(reply, BOARD, STANDARD) == move


def test_the_exact_reading_takes_a_bare_uci_move_alone() -> None:
    assert read_move(" f1b5\n", BOARD, STANDARD, "exact") == chess.Move.from_uci("f1b5")
    for reply in ("F1B5", "Bb5", "f1b5.", "f1-b5", "I play f1b5"):
        assert read_move(reply, BOARD, STANDARD, "exact") is None


@pytest.mark.parametrize(
    ("reply", "standard", "changed"),
    [
        ("f1b5", "special", "special"),
        ("f1e2", "legal", "forbidden"),
        ("f1g3", "illegal", "adapted"),
        ("d2d4", "legal", "legal"),
        ("d2d5", "illegal", "illegal"),
        ("e7e8q", "illegal", "illegal"),
        ("hmm", "unreadable", "unreadable"),
    ],
)
def test_outcomes_under_both_rule_sets(reply: str, standard: str, changed: str) -> None:
    answer = Answer(reply)
    assert judge(answer, POSITION, STANDARD, "lenient").outcome == standard
    assert judge(answer, POSITION, BISHOPS_AS_KNIGHTS, "lenient").outcome == changed


@pytest.mark.parametrize(
    ("reply", "stop_reason", "outcome"),
    [
        ("Let me think", "length", "truncated"),
        ("", "length", "truncated"),
        ("", "stop", "unreadable"),
        ("f1b5", "length", "special"),
        ("Since bishops move like knights, f1b5 is ill", "length", "truncated"),
        ("Since rooks move as ever, f1b5 is well", "stop", "special"),
        ("I cannot help with that", "refused", "refused"),
        ("", "error", "error"),
    ],
)
def test_outcomes_of_answers_that_did_not_end_well(
    reply: str, stop_reason: StopReason, outcome: str
) -> None:
    answer = Answer(reply, stop_reason=stop_reason)
    assert judge(answer, POSITION, BISHOPS_AS_KNIGHTS, "lenient").outcome == outcome
    assert outcome in OUTCOMES


@pytest.mark.parametrize("reply", ["B1.c4", "e5. d5", "Nf3. e5", "d4 12. e5"])
def test_a_number_within_a_reply_is_no_number_of_a_move(reply: str) -> None:
    assert read_move(reply, BOARD, STANDARD) is None
