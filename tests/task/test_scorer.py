"""What replies mean: outcomes of moves, and yes or no to the questions about knowledge.

tests/habits/chess/test_reader.py tests how moves are read.
"""

import re
from collections import Counter

import chess
import pytest

from cant_do_that_anymore.habits.chess.position import Position
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, STANDARD
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.providers.bundled import CANNOT_READ
from cant_do_that_anymore.task.conditions import QUESTIONS, conditions_for
from cant_do_that_anymore.task.prompts import answers_for, shipped_wording
from cant_do_that_anymore.task.scorer import allowed_answer, forbidden_answer, judge
from cant_do_that_anymore.task.types import OUTCOMES
from cant_do_that_anymore.task.yes_no import read_yes_no
from replies import HARD_YES_NO
from testing import POOL as SHIPPED

POSITION = Position(0, ("e2e4", "e7e6", "g1f3", "c7c5", "c2c3", "b7b6"), ("f1b5",))
POOL = SHIPPED[:300]
PLAIN = shipped_wording("plain", BISHOPS_AS_KNIGHTS)
FORBIDDEN, ALLOWED = conditions_for(QUESTIONS, BISHOPS_AS_KNIGHTS, PLAIN)


def test_exact_reading_accepts_only_the_bare_answer() -> None:
    for reply in (" f1b5\n", "F1B5", "Bb5", "f1b5.", "f1-b5", "I play f1b5"):
        is_bare = reply.strip() == "f1b5"
        assert judge(Answer(reply), POSITION, STANDARD, "exact").usable == is_bare
    replies = [Answer(reply) for reply in ("yes", " No\n", "No.", "no way", "")]
    scores = [FORBIDDEN.read(reply, POOL[0], BISHOPS_AS_KNIGHTS, "exact") for reply in replies]
    assert [score.outcome for score in scores] == ["wrong", "right", *3 * ["unreadable"]]


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


@pytest.mark.parametrize(
    ("reply", "forbidden", "allowed"),
    [
        (Answer("yes"), "wrong", "right"),
        (Answer("no"), "right", "wrong"),
        (Answer("e2e4"), "unreadable", "unreadable"),
        (Answer("Well", stop_reason="length"), "truncated", "truncated"),
        (Answer("It is legal"), "wrong", "right"),
        (Answer("Of course a1a8 is legal."), "unreadable", "unreadable"),
        (Answer("", stop_reason="refused"), "refused", "refused"),
        (Answer("", stop_reason="error"), "error", "error"),
    ],
)
def test_an_answer_is_right_wrong_or_unusable(reply: Answer, forbidden: str, allowed: str) -> None:
    for condition, expected in ((FORBIDDEN, forbidden), (ALLOWED, allowed)):
        score = condition.read(reply, POOL[0], condition.rules, "lenient")
        assert (score.outcome, score.answer) == (expected, None)
        assert score.outcome in condition.outcomes


YES = """yes|**Yes**|Yes, bishops jump now.|Yes - it is a jump.|Answer: yes|\\boxed{yes}
|So the answer is yes.|{"answer": "yes"}|Bishops jump.\n\nYes|f1g3 is legal.
|Yes, although it would be illegal in standard chess.
|Is it diagonal? No. Is it a jump? Yes. The answer is yes because of that."""
NO = """no|No.|No, because bishops jump.|Final answer: No|It is illegal.|<answer>no</answer>
|It is no longer legal.|Hm.\n\n**No**|In standard chess, yes. Here, no.|So, no.
|It looks legal. Verdict: no|No, f1b5 is illegal; f1g3 would be legal.
|It was legal. Now it is illegal."""
NEITHER = """|Perhaps.|No idea.|No piece blocks it|Reply with yes or no.|Yes, it is illegal.
|Is it legal?|Yes. No.|I wonder if it is legal."""


@pytest.mark.parametrize(("says", "replies"), [(True, YES), (False, NO), (None, NEITHER)])
def test_yes_and_no_are_read(says: bool | None, replies: str) -> None:
    assert [r for r in replies.split("|") if read_yes_no(r) is not says] == []


def test_unfinished_sentences_and_those_about_other_moves_are_not_read() -> None:
    assert read_yes_no(CANNOT_READ) is None
    assert read_yes_no("No, because bishops", cut_off=True) is False
    assert read_yes_no(" Yes", cut_off=True) is True
    assert read_yes_no("It is legal", cut_off=True) is None
    assert read_yes_no("Let me see.\nYes", cut_off=True) is True
    assert read_yes_no("It is legal. It is", cut_off=True) is True
    assert read_yes_no("f1-g3 is legal. f1-b5 is illegal.", move="f1g3") is True
    assert read_yes_no("f1b5 is illegal. f1g3 is legal.", move="d2d4") is None


def test_few_hard_replies_are_misread() -> None:
    readings = [(read_yes_no(row["reply"]), row["says"]) for row in HARD_YES_NO]
    assert sum(read not in (None, says) for read, says in readings) < 0.04 * len(readings)
    assert sum(read is None and says is not None for read, says in readings) < 0.3 * len(readings)


def test_questions_are_about_a_forbidden_and_a_newly_allowed_answer() -> None:
    for position in POOL:
        board = position.board()
        forbidden, allowed = (
            chess.Move.from_uci(choose_move(position, BISHOPS_AS_KNIGHTS))
            for choose_move in (forbidden_answer, allowed_answer)
        )
        assert BISHOPS_AS_KNIGHTS.forbids(board, forbidden)
        assert BISHOPS_AS_KNIGHTS.is_legal(board, allowed)
        legal_now = {*BISHOPS_AS_KNIGHTS.legal_moves(board)}
        newly_allowed = legal_now - {*STANDARD.legal_moves(board)}
        assert not newly_allowed or allowed in newly_allowed
    moves = [allowed_answer(position, BISHOPS_AS_KNIGHTS) for position in POOL[:8]]
    assert " ".join(moves) == "f1e3 c8b6 f1e3 f8e6 f8g6 f1g3 f1g3 c1b3"  # must not change


def test_the_two_questions_differ_only_in_the_move() -> None:
    for position in POOL[:50]:
        forbidden, allowed = (c.question(position) for c in (FORBIDDEN, ALLOWED))
        assert forbidden.about != allowed.about
        assert forbidden.messages[:-1] == allowed.messages[:-1]
        texts = [
            re.sub(rf"\b{question.about}\b", "MOVE", question.messages[-1].content)
            for question in (forbidden, allowed)
        ]
        assert texts[0] == texts[1]
        assert texts[0].startswith(f"{position.moves[-1]}\n\n")


def test_yes_comes_first_in_half_of_the_positions() -> None:
    orders = Counter(answers_for(position) for position in SHIPPED)
    assert orders.keys() == {"yes or no", "no or yes"}
    assert abs(orders["yes or no"] - orders["no or yes"]) < 3 * sum(orders.values()) ** 0.5
    for position in POOL[:20]:
        last = FORBIDDEN.question(position).messages[-1].content
        assert f"Reply with {answers_for(position)} and nothing else." in last
