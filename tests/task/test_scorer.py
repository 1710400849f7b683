"""Moves and outcomes of replies; tests/habits/chess/test_reader.py tests the rules of reading."""

import pytest

from cant_do_that_anymore.habits.chess.position import Position
from cant_do_that_anymore.habits.chess.reader import move_in
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, STANDARD, board_after
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.task.scorer import judge
from cant_do_that_anymore.task.types import OUTCOMES

MOVES = ("e2e4", "e7e6", "g1f3", "c7c5", "c2c3", "b7b6")
POSITION = Position(0, MOVES, ("f1b5",))
CASTLES = "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5"
PROMOTES = "e2e4 d7d5 e4d5 c7c6 d5c6 a7a6 c6b7 a6a5"
CASTLES_LONG = "d2d4 a7a6 c1f4 a6a5 d1d2 a5a4 b1c3 a4a3"
TWO_KNIGHTS, KNIGHT_ON_G5 = "g1f3 a7a6 b1c3 a6a5 c3e4 a5a4", "b1c3 a7a6 c3e4 a6a5 e4g5 a5a4"


@pytest.mark.parametrize(
    ("moves", "reply", "move"),
    [
        *((CASTLES, reply, "e1g1") for reply in ("O-O", "0-0", "e1g1")),
        *((PROMOTES, reply, "b7a8q") for reply in ("bxa8=Q", "b7a8=q", "b7a8Q")),
        *((CASTLES_LONG, "O-O-O", "e1c1"), (CASTLES_LONG, "O-O", None)),
        *((TWO_KNIGHTS, "Nfg5", "f3g5"), (TWO_KNIGHTS, "Ng5", None)),
        *((KNIGHT_ON_G5, "N1f3", "g1f3"), (KNIGHT_ON_G5, "N5f3", "g5f3")),
    ],
)
def test_special_moves_are_read_in_any_notation(moves: str, reply: str, move: str | None) -> None:
    parsed = move_in(reply, board_after(moves.split()), STANDARD)
    assert (parsed and parsed.uci()) == move


def test_exact_reading_accepts_only_a_bare_uci_move() -> None:
    def exact(reply: str) -> str | None:
        return judge(Answer(reply), POSITION, STANDARD, "exact").answer

    assert exact(" f1b5\n") == "f1b5"
    assert not any(map(exact, ("F1B5", "Bb5", "f1b5.", "f1-b5", "I play f1b5")))


@pytest.mark.parametrize(
    ("answer", "standard", "changed"),
    [
        (Answer("f1b5"), "usual", "usual"),
        (Answer("f1e2"), "legal", "forbidden"),
        (Answer("f1g3"), "illegal", "adapted"),
        (Answer("d2d4"), "legal", "legal"),
        (Answer("d2d5"), "illegal", "illegal"),
        (Answer("hmm"), "unreadable", "unreadable"),
        (Answer("Let me think", "length"), "truncated", "truncated"),
        (Answer("f1b5", "length"), "usual", "usual"),
        (Answer("As bishops move like knights, f1b5 is ill", "length"), "truncated", "truncated"),
        (Answer("Since rooks move as ever, f1b5 is well"), "usual", "unreadable"),
        (Answer("I cannot help with that", "refused"), "refused", "refused"),
        (Answer("", "error"), "error", "error"),
    ],
)
def test_outcomes_under_both_rule_sets(answer: Answer, standard: str, changed: str) -> None:
    outcomes = [judge(answer, POSITION, r).outcome for r in (STANDARD, BISHOPS_AS_KNIGHTS)]
    assert outcomes == [standard, changed]
    assert {*outcomes} <= {*OUTCOMES}
