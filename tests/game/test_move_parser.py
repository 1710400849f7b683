"""Moves read from replies: the parser's rules, hard replies, and what must never be read."""

from typing import Any

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore import read_move
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.mentions import Resolver, mentions_in
from cant_do_that_anymore.game.move_extraction import EXTRACTORS, Reply
from cant_do_that_anymore.game.move_parser import move_in, named_moves
from cant_do_that_anymore.game.reply_text import piece_letters, plain_text
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, board_after, rules_named
from replies import HARD_MOVES, documented_examples, replies_with_words

MOVES = ["e2e4", "e7e6", "g1f3", "c7c5", "c2c3", "b7b6"]
BOARD = board_after(MOVES)


def read(reply: str, *, cut_off: bool = False) -> str | None:
    """Read a reply after 1. e4 e6 2. Nf3 c5 3. c3 b6 when bishops move like knights."""
    move = move_in(reply, BOARD, BISHOPS_AS_KNIGHTS, cut_off=cut_off, previous=MOVES[-1])
    return move.uci() if move else None


EXAMPLES = documented_examples("*Rules.*", "If boxes or tags", r"^\| `(\w+)` \|")


@pytest.mark.parametrize(("rule", "reply", "move"), EXAMPLES)
def test_each_rule_reads_its_examples_in_the_protocol(rule: str, reply: str, move: str) -> None:
    parsed = Reply(plain_text(reply), BOARD, BISHOPS_AS_KNIGHTS, False, MOVES[-1])
    assert read(reply) == (None if move == "none" else move)
    matches = (e.__name__ for e in EXTRACTORS if e(parsed) is not None)
    assert next(matches, "none") == (move if move == "none" else rule)


def test_the_protocol_has_examples_of_every_rule_in_order() -> None:
    assert list(dict.fromkeys(name for name, _, _ in EXAMPLES)) == [
        extractor.__name__ for extractor in EXTRACTORS
    ]


def test_every_known_word_is_read() -> None:
    replies = replies_with_words("meant")
    assert len(replies) > 1000
    misread = {reply: (read(reply), move) for reply, move in replies if read(reply) != move}
    assert misread == {}


def read_row(row: dict[str, Any]) -> str | None:
    if row.get("cut_off"):
        moves = row["moves"].split()
        rules = rules_named(row["rules"])
        move = move_in(row["reply"], board_after(moves), rules, cut_off=True, previous=moves[-1])
        return move.uci() if move else None
    return read_move(
        row["reply"], moves=row.get("moves", ()), fen=row.get("fen"), rules=row["rules"]
    )


def test_hard_replies_are_read_as_recorded() -> None:
    """A row that is misread records the wrong reading; update it when the parser improves."""
    readings = [(row["reply"], read_row(row), row.get("read", row["meant"])) for row in HARD_MOVES]
    assert [reading for reading in readings if reading[1] != reading[2]] == []


def test_few_hard_replies_are_unread_or_misread() -> None:
    rows = [(row["meant"], row.get("read", row["meant"])) for row in HARD_MOVES]
    with_move = [(move, read) for move, read in rows if move]
    assert sum(read == move for move, read in with_move) / len(with_move) > 0.93
    assert sum(read not in (None, move) for move, read in with_move) / len(with_move) < 0.003
    assert sum(read is not None for move, read in rows if not move) < 6


CHOSEN = (
    *("{}", "{}.", "**{}**", "`{}`", "```\n{}\n```", "4. {}", "My move: {}", "I play {}."),
    *("Move: {}\n\nIt develops a piece.", "{}\n\nThis is a good move.", "Let me think.\n\n{}"),
    *(
        "\\boxed{{{}}}",
        '{{"move": "{}"}}',
        "<answer>{}</answer>",
        "bestmove {}",
        "You played b6. {}",
    ),
    *("f1b5 is illegal, so {}", "Instead of f1b5, I play {}.", "{} (f1b5 is illegal)"),
    *("~~f1b5~~ {}", "{}\n\nf1b5 is no longer legal.", "I can't play f1b5. I'll go with {}."),
    *("1. e4 e6 2. Nf3 c5 3. c3 b6 4. {}", "e2e4 e7e6 g1f3 c7c5 c2c3 b7b6 {}", "b7b6 {}"),
    *("I would normally play f1b5, but bishops now move like knights, so {}.", "White: {}"),
)
REJECTED = (
    *("{} is illegal.", "I can't play {}.", "{} is no longer possible.", "Not {}.", "~~{}~~"),
    *("In standard chess I would play {}.", "{} would be my move in a normal game.", "e.g. {}"),
    *("If {} were legal, I would play it.", "Instead of {}", "Is {} legal?", "Rather than {}"),
    *("{} isn't allowed here.", "{} (illegal)", "{}? No longer legal.", "I cannot play {} now."),
)
LEGAL = sorted(move.uci() for move in BISHOPS_AS_KNIGHTS.legal_moves(BOARD))


@given(st.sampled_from(CHOSEN), st.sampled_from(LEGAL))
def test_a_legal_move_is_read_from_every_template(template: str, uci: str) -> None:
    assert read(template.format(uci)) == uci


@given(st.sampled_from(CHOSEN), st.sampled_from(sorted(BOARD.legal_moves, key=str)))
def test_san_is_read_from_every_template(template: str, move: chess.Move) -> None:
    if move.uci() != "f1b5":
        assert read(template.format(BOARD.san(move))) == move.uci()


@given(st.sampled_from(REJECTED), st.sampled_from(LEGAL), st.booleans())
def test_a_rejected_move_is_never_read(template: str, uci: str, in_san: bool) -> None:
    move = chess.Move.from_uci(uci)
    notation = BOARD.san(move) if in_san and STANDARD.is_legal(BOARD, move) else uci
    assert read(template.format(notation)) is None


@given(st.sampled_from(REJECTED), st.sampled_from(CHOSEN[:11]), st.sampled_from(["d2d4", "f1g3"]))
def test_a_rejected_habit_does_not_hide_the_answer(rejected: str, chosen: str, uci: str) -> None:
    assert read(rejected.format("f1b5") + "\n\n" + chosen.format(uci)) in (uci, None)
    assert read(rejected.format("f1b5") + "\n\n" + f"I play {uci}.") == uci


@pytest.mark.parametrize("habit", ["f1b5", "Bb5", "4. Bb5", "bishop to b5"])
@pytest.mark.parametrize("tail", [" a6", " a7a6", "\n\na7a6", "\na6", " 4... a6", "\nUser: a7a6"])
def test_the_reply_to_the_habit_is_not_part_of_it(habit: str, tail: str) -> None:
    assert read(habit + tail) == "f1b5"


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        ("f1b5", "f1b5"),
        ("f1b5\nUs", "f1b5"),
        ("I play f1b5 bec", "f1b5"),
        ("Bb5 is out. I play d2d4 because it is str", "d2d4"),
        ("Let me think.\n\nf1b5", "f1b5"),
        ("Since bishops move like knights, f1b5 is ill", None),
        ("f1b", None),
        ("I play f1", None),
    ],
)
def test_a_truncated_reply_is_read_as_far_as_it_goes(reply: str, move: str | None) -> None:
    assert read(reply, cut_off=True) == move
    if move:
        assert read(reply) == move


def test_san_means_a_standard_move_if_possible() -> None:
    for rules in (STANDARD, BISHOPS_AS_KNIGHTS):
        assert move_in("Be2", BOARD, rules) == chess.Move.from_uci("f1e2")
    assert move_in("Bg3", BOARD, BISHOPS_AS_KNIGHTS) == chess.Move.from_uci("f1g3")
    assert move_in("Bg3", BOARD, STANDARD) is None


def test_a_reply_with_too_many_moves_is_unreadable() -> None:
    assert read("I play d2d4. " + "f1b5 is illegal. " * 1_999) == "d2d4"
    assert read("I play d2d4. " + "f1b5 is illegal. " * 2_000) is None


def test_two_squares_with_a_space_are_one_move_only_if_legal() -> None:
    resolver = Resolver(BOARD, STANDARD)
    assert [mention.text for mention in mentions_in("d2 d4", resolver)] == ["d2 d4"]
    assert [mention.text for mention in mentions_in("Bb5 a6", resolver)] == ["Bb5", "a6"]
    assert [mention.text for mention in mentions_in("d2 d5", resolver)] == ["d2", "d5"]
    assert mentions_in("the a2-g8 diagonal, a4-a5-a6", resolver) == []


def test_piece_letters_follow_the_language_of_the_text() -> None:
    assert piece_letters("Ich spiele Sf3. Mein Zug.")["S"] == "N"
    assert piece_letters("Je joue mon coup")["F"] == "B"
    assert piece_letters("I play Nf3.") == {}


def test_named_moves_include_rejected_ones() -> None:
    moves = named_moves("Bb5? Not f1b5. The bishop to b5, d4, exd5 or O-O.", BOARD, STANDARD)
    assert list(moves) == ["Bb5", "f1b5", "exd5", "O-O"]


def test_a_position_can_be_a_fen_with_the_moves_before_it() -> None:
    fen = BOARD.fen()
    assert read_move("Bb5", fen=fen) == "f1b5"
    assert read_move("b7b6 d2d4", fen=fen, moves=["b7b6"]) == "d2d4"
    assert read_move("b7b6 d2d4", moves=" ".join(MOVES)) == "d2d4"
    assert read_move("Bg3", fen=fen, rules=BISHOPS_AS_KNIGHTS) == "f1g3"
    assert read_move("Bg3", fen=fen, rules=rules_named("standard")) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fen": "nonsense"}, "not a position in FEN: 'nonsense'"),
        ({"moves": "e2e9"}, "e2e9"),
        ({"moves": ["e2e4", "e2e4"]}, "does not move a piece"),
        ({"rules": "no-such-rule"}, "unknown rules"),
        ({"fen": chess.STARTING_FEN, "moves": "hm"}, "not a move in UCI such as 'e2e4': 'hm'"),
    ],
)
def test_invalid_input_is_explained(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_move("e2e4", **arguments)
