"""Questions of knowledge: what is asked, and how yes and no are read."""

import re
from collections import Counter

import chess
import pytest

from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.game.reply_text import plain_text
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, rules_named
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.providers.pocket import CANNOT_READ
from cant_do_that_anymore.task.conditions import QUESTIONS, conditions_for
from cant_do_that_anymore.task.prompts import DEFAULT, answers_for
from cant_do_that_anymore.task.scorer import allowed_move, forbidden_move
from cant_do_that_anymore.task.yes_no import READERS, read_yes_no
from replies import HARD_YES_NO, documented, filled

POOL = shipped_pool("pool")[:300]
FORBIDDEN, ALLOWED = conditions_for(QUESTIONS, BISHOPS_AS_KNIGHTS, DEFAULT)


EXAMPLES = documented("### Yes or no", "A **statement** is", r"^(\d)\. \*\*")


@pytest.mark.parametrize(("rule", "reply", "said"), EXAMPLES)
def test_each_rule_reads_its_examples_in_the_protocol(rule: str, reply: str, said: str) -> None:
    meant = {"yes": True, "no": False, "none": None}[said]
    assert read_yes_no(reply) is meant
    assert meant is None or READERS[int(rule) - 1](plain_text(reply), "") == {meant}


def test_the_protocol_has_examples_of_every_rule() -> None:
    assert sorted({name for name, _, _ in EXAMPLES}) == ["1", "2", "3", "4"]


def test_each_word_that_the_rules_know_counts() -> None:
    replies = filled("says")
    assert len(replies) > 300
    misread = {reply: meant for reply, meant in replies if read_yes_no(reply) is not meant}
    assert misread == {}


def test_of_a_reply_that_was_cut_off_an_unfinished_sentence_says_nothing() -> None:
    assert read_yes_no(CANNOT_READ) is None
    assert read_yes_no("No, because bishops", cut_off=True) is False
    assert read_yes_no(" Yes", cut_off=True) is True
    assert read_yes_no("It is legal", cut_off=True) is None
    assert read_yes_no("Let me see.\nYes", cut_off=True) is True
    assert read_yes_no("It is legal. It is", cut_off=True) is True


def test_hard_replies_are_read_as_a_person_reads_them_or_as_before() -> None:
    read = {
        row["reply"]: (read_yes_no(row["reply"]), row.get("read", row["says"]))
        for row in HARD_YES_NO
    }
    assert {reply: pair for reply, pair in read.items() if pair[0] is not pair[1]} == {}
    wrong = [row for row in HARD_YES_NO if row.get("read") is not None]
    unread = [row for row in HARD_YES_NO if "read" in row and row["read"] is None]
    assert len(wrong) <= 1
    assert len(unread) < 0.07 * len(HARD_YES_NO)


def test_read_exactly_only_the_bare_word_counts() -> None:
    replies = [Answer(reply) for reply in ("yes", " No\n", "No.", "no way", "")]
    read = [FORBIDDEN.read(reply, POOL[0], BISHOPS_AS_KNIGHTS, "exact") for reply in replies]
    assert [each.outcome for each in read] == ["wrong", "right", *3 * ["unreadable"]]


def test_what_is_said_of_another_move_does_not_count() -> None:
    assert read_yes_no("f1-g3 is legal, f1-b5 is illegal.", move="f1g3") is True
    reply = "f1b5 is illegal, f1g3 is legal."
    assert [read_yes_no(reply, move=move) for move in ("f1b5", "f1g3", "d2d4")] == [
        False,
        True,
        None,
    ]


@pytest.mark.parametrize(
    ("reply", "forbidden", "allowed"),
    [
        (Answer("yes"), "wrong", "right"),
        (Answer("no"), "right", "wrong"),
        (Answer("e2e4"), "unreadable", "unreadable"),
        (Answer("Well", stop_reason="length"), "truncated", "truncated"),
        (Answer("It is legal", stop_reason="length"), "truncated", "truncated"),
        (Answer("It is legal"), "wrong", "right"),
        (Answer("Of course a1a8 is legal."), "unreadable", "unreadable"),
        (Answer("", stop_reason="refused"), "refused", "refused"),
        (Answer("", stop_reason="error"), "error", "error"),
    ],
)
def test_an_answer_is_right_wrong_or_useless(reply: Answer, forbidden: str, allowed: str) -> None:
    for condition, expected in ((FORBIDDEN, forbidden), (ALLOWED, allowed)):
        judged = condition.read(reply, POOL[0], condition.rules, "lenient")
        assert (judged.outcome, judged.move) == (expected, None)
        assert judged.outcome in condition.outcomes


def test_a_move_is_asked_about_that_the_change_forbids_and_one_that_only_it_allows() -> None:
    for position in POOL:
        board = position.board()
        forbidden, allowed = (
            chess.Move.from_uci(about(position, BISHOPS_AS_KNIGHTS))
            for about in (forbidden_move, allowed_move)
        )
        assert BISHOPS_AS_KNIGHTS.forbids(board, forbidden)
        assert BISHOPS_AS_KNIGHTS.is_legal(board, allowed)
        only_now = [
            move
            for move in BISHOPS_AS_KNIGHTS.legal_moves(board)
            if not STANDARD.is_legal(board, move)
        ]
        assert not only_now or allowed in only_now
    asked = [allowed_move(position, BISHOPS_AS_KNIGHTS) for position in POOL[:8]]
    assert " ".join(asked) == "f1e3 c8b6 f1e3 f8e6 f8g6 f1g3 f1g3 c1b3"  # as in every run so far


def test_where_no_move_is_new_one_is_asked_about_that_stays_legal() -> None:
    moves = ("e2e4", "e7e5", "g1f3", "g8f6", "f1c4", "f8c5")
    position, no_castling = Position(0, moves, ("e1g1",)), rules_named("no-castling")
    allowed = chess.Move.from_uci(allowed_move(position, no_castling))
    assert forbidden_move(position, no_castling) == "e1g1"
    assert no_castling.is_legal(position.board(), allowed)


def test_nothing_but_the_move_tells_the_two_questions_apart() -> None:
    for position in POOL[:50]:
        forbidden, allowed = (each.question(position) for each in (FORBIDDEN, ALLOWED))
        assert forbidden.about != allowed.about
        assert forbidden.messages[:-1] == allowed.messages[:-1]
        texts = [
            re.sub(rf"\b{each.about}\b", "MOVE", each.messages[-1].content)
            for each in (forbidden, allowed)
        ]
        assert texts[0] == texts[1]
        assert texts[0].startswith(f"{position.moves[-1]}\n\n")


def test_yes_comes_first_in_half_of_the_positions_whatever_the_move() -> None:
    orders = Counter(answers_for(position) for position in shipped_pool("pool"))
    assert orders.keys() == {"yes or no", "no or yes"}
    assert abs(orders["yes or no"] - orders["no or yes"]) < 3 * sum(orders.values()) ** 0.5
    for position in POOL[:20]:
        last = FORBIDDEN.question(position).messages[-1].content
        assert f"Reply with {answers_for(position)} and nothing else." in last


def test_before_the_first_move_of_a_game_the_question_is_a_turn_of_its_own() -> None:
    first, last = FORBIDDEN.question(Position(0, (), ("f1b5",))).messages
    assert (first.role, last.role) == ("system", "user")
    assert last.content.startswith("Do not move yet")
