"""Questions of knowledge: what is asked, and how yes and no are read."""

import re
from collections import Counter

import chess
import pytest

from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.game.reply_text import plain_text
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.providers.pocket import CANNOT_READ
from cant_do_that_anymore.task.conditions import QUESTIONS, conditions_for
from cant_do_that_anymore.task.knowledge import allowed_move, answers_for, forbidden_move
from cant_do_that_anymore.task.prompts import DEFAULT
from cant_do_that_anymore.task.yes_no import RULES, Rule, read_yes_no
from replies import HARD_YES_NO

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
    assert read_yes_no(reply) is True


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
    assert read_yes_no(reply) is False


@pytest.mark.parametrize(
    "reply",
    [
        *("", "f1b5", "Yes or no", "yes and no", "Perhaps.", "I cannot tell whether it is legal."),
        *("No idea.", "It depends."),
        *("<think>yes", "It would be legal if bishops moved.", "Knowing is easy.", CANNOT_READ),
    ],
)
def test_neither(reply: str) -> None:
    assert read_yes_no(reply) is None


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("c1b3 is illegal in standard chess but legal under these rules", True),
        ("It is legal in standard chess, but here it is illegal.", False),
        ("c1b3 would normally be legal, but not here.", False),
        ("In ordinary chess yes, but here no.", False),
        ("In standard chess no, but under these rules yes.", True),
        ("There is nothing illegal about c1b3.", True),
        ("It's not illegal.", True),
        ("It isn't allowed.", False),
        ("c1b3 cannot legally be played.", False),
        ("It can't be played.", False),
        ("This is possible.", True),
        ("The move is permitted.", True),
        ("It is valid.", True),
        ("No problem, yes it is legal.", True),
        ("Yes, it is illegal.", None),
        ("Is c1b3 legal? Yes.", True),
        ("Is c1b3 legal? No, it isn't.", False),
        ("Is c1b3 a legal move?", None),
        ("Answer: no", False),
        ("Final answer: **yes**", True),
        ("The bishop moves like a knight, so c1b3 is legal.", True),
        ("Bishops now move like knights. c1 to b3 is a knight's move. Therefore yes.", True),
        ("Therefore, the answer is no.", False),
        ('{"answer": "no"}', False),
        ('{"legal": true}', True),
        ("\\boxed{No}", False),
        ("<answer>yes</answer>", True),
        ("I first thought it is legal, but it is not.", False),
        (
            "Normally f1b5 would be legal. Now bishops move like knights, so it is not.",
            False,
        ),
        ("f1b5 is illegal, f1g3 is legal.", True),
        ("Yes and no.", None),
        ("It depends.", None),
        ("I'm not sure whether it is legal.", None),
        ("No, it's legal.", None),
        ("No. It would be legal in standard chess.", False),
        ("Yes. It would be illegal in standard chess.", True),
        ("Yes — although it is illegal in standard chess.", True),
        ("No: legal in standard chess, illegal here.", False),
        ("Not legal.", False),
        ("no longer legal", False),
        ("Ja", True),
        ("Nein.", False),
        ("Oui, c'est légal.", None),
        (
            "Yes, f1g3 is a legal move because bishops jump and f1b5 would be illegal.",
            True,
        ),
        ("The move c1b3 is a legal knight-like jump.", True),
        ("It's legal.", True),
        ("It is against the rules.", False),
        ("It violates the rule.", False),
        ("It does not violate any rule.", True),
        (
            "Let me think. Bishops move like knights. From c1, b3 is reachable. It's legal.\n\nYes",
            True,
        ),
        ("yes\n\nExplanation: in standard chess this is illegal.", True),
        ("No\n\nBishops can no longer move diagonally.", False),
        ("The answer is not yes.", False),
        ("Yes, that's right: the move isn't legal.", None),
        ("Under standard rules it would be illegal. Under these rules: legal.", True),
        ("This move is not just legal, it is strong.", True),
        ("No, you can't.", False),
        ("Hmm, I believe it's fine: yes.", True),
        ("My answer: yes", True),
        ("I would say no.", False),
        ("I'd answer yes", True),
        ('The correct reply is "no".', False),
        ("no or yes", None),
        ("Legal: no", False),
        ("Legal? Yes.", True),
        ("Verdict: illegal", False),
        ("That's a legal move in both standard chess and this variant.", True),
        (
            "c1b3 is not legal in standard chess. Here bishops jump. So it is a legal move.",
            True,
        ),
        ("In this game it's illegal for bishops to move diagonally, so f1b5 is illegal.", False),
        (
            "It is illegal to move bishops diagonally; f1g3 is a knight move, so f1g3 is legal.",
            True,
        ),
        ("Diagonal bishop moves are illegal, but c1b3 is not diagonal.", None),
        ("Bishops cannot move diagonally. c1b3 is a knight's jump, which is allowed.", True),
        ("Bishops no longer move diagonally, so no.", False),
        ("Yes, because bishops can no longer move diagonally but like knights.", True),
    ],
)
def test_what_a_sentence_says_of_this_game_counts(reply: str, said: bool | None) -> None:
    assert read_yes_no(reply) is said


@pytest.mark.parametrize(
    ("rule", "reply", "said"), [(r, *example) for r in RULES for example in r.examples.items()]
)
def test_each_rule_reads_its_examples(rule: Rule, reply: str, said: bool | None) -> None:
    assert read_yes_no(reply) is said
    assert said is None or rule.read(plain_text(reply), "") is said


def test_of_a_reply_that_was_cut_off_an_unfinished_sentence_says_nothing() -> None:
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
    assert len(unread) < 0.08 * len(HARD_YES_NO)


def test_read_exactly_only_the_bare_word_counts() -> None:
    replies = [Answer(reply) for reply in ("yes", " No\n", "No.", "no way", "")]
    read = [FORBIDDEN.read(reply, POOL[0], BISHOPS_AS_KNIGHTS, "exact") for reply in replies]
    assert [each.outcome for each in read] == ["wrong", "right", *3 * ["unreadable"]]


def test_what_is_said_of_another_move_does_not_count() -> None:
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
