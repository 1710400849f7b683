"""Questions of knowledge: what is asked, and how yes and no are read."""

import re
from collections import Counter

import chess
import pytest

from cant_do_that_anymore.evaluation.conditions import conditions_for
from cant_do_that_anymore.evaluation.diagnosis import QUESTIONS
from cant_do_that_anymore.evaluation.knowledge import (
    allowed_move,
    answers_for,
    forbidden_move,
    read_yes_or_no,
)
from cant_do_that_anymore.evaluation.wordings import DEFAULT
from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules
from cant_do_that_anymore.models.model import Answer
from cant_do_that_anymore.models.pocket import CANNOT_READ

POOL = shipped_pool("pool")[:300]
FORBIDDEN, ALLOWED = conditions_for(QUESTIONS, BISHOPS_AS_KNIGHTS, DEFAULT)


@pytest.mark.parametrize(
    "reply",
    [
        *("yes", "Yes.", " YES\n", "**Yes**", '"yes"', "Yes, f1g3 is legal.", "yep", "Yeah!"),
        *(
            "Legal.",
            "The move is legal.",
            "It is a perfectly legal move.",
            "That is still allowed.",
        ),
        *("Bishops move as knights do.\n\n**Yes**", "Answer: yes"),
    ],
)
def test_yes(reply: str) -> None:
    assert read_yes_or_no(reply) is True


@pytest.mark.parametrize(
    "reply",
    [
        *("no", "No.", "NO", "`no`", "No, because bishops move as knights do now.", "Nope", "Nah."),
        *(
            "No: f1b5 is illegal; f1g3 is legal.",
            "Illegal",
            "It is not legal.",
            "It isn't allowed.",
        ),
        *("That is no longer a legal move.", "The move f1b5 is illegal.", "**No**, it is not."),
        *("The answer is **no**.", "This move would not be legal.", "No longer legal."),
    ],
)
def test_no(reply: str) -> None:
    assert read_yes_or_no(reply) is False


@pytest.mark.parametrize(
    "reply",
    [
        *("", "f1b5", "Yes or no", "yes and no", "Perhaps.", "I cannot tell whether it is legal."),
        *(
            "No idea.",
            "It depends.",
            "Is it legal? It is legal.",
            "f1b5 is illegal, f1g3 is legal.",
        ),
        *("<think>yes", "It would be legal if bishops moved.", "Knowing is easy.", CANNOT_READ),
        "It is not only legal but illegal.",
    ],
)
def test_neither(reply: str) -> None:
    assert read_yes_or_no(reply) is None


def test_of_a_reply_that_was_cut_off_only_the_beginning_counts() -> None:
    assert read_yes_or_no("No, because bishops", cut_off=True) is False
    assert read_yes_or_no(" Yes", cut_off=True) is True
    assert read_yes_or_no("It is legal", cut_off=True) is None
    assert read_yes_or_no("Let me see.\nYes", cut_off=True) is None


def test_read_exactly_only_the_bare_word_counts() -> None:
    found = [read_yes_or_no(reply, "exact") for reply in ("yes", " No\n", "No.", "no way", "")]
    assert found == [True, False, None, None, None]


@pytest.mark.parametrize(
    ("reply", "forbidden", "allowed"),
    [
        (Answer("yes"), "wrong", "right"),
        (Answer("no"), "right", "wrong"),
        (Answer("e2e4"), "unreadable", "unreadable"),
        (Answer("Well", stop_reason="length"), "truncated", "truncated"),
        (Answer("", stop_reason="refused"), "refused", "refused"),
        (Answer("", stop_reason="error"), "error", "error"),
    ],
)
def test_an_answer_is_right_or_wrong_or_of_no_use(
    reply: Answer, forbidden: str, allowed: str
) -> None:
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


class NoCastling(Rules):
    key, title, statement = "no-castling", "No castling", "Nobody may castle any more."

    def view(self, board: chess.Board) -> chess.Board:
        view = board.copy(stack=False)
        view.castling_rights = chess.BB_EMPTY
        return view


def test_where_no_move_is_new_one_is_asked_about_that_stays_legal() -> None:
    moves = ("e2e4", "e7e5", "g1f3", "g8f6", "f1c4", "f8c5")
    position = Position(0, moves, ("e1g1",))
    allowed = chess.Move.from_uci(allowed_move(position, NoCastling()))
    assert forbidden_move(position, NoCastling()) == "e1g1"
    assert NoCastling().is_legal(position.board(), allowed)


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
