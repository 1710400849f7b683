"""Moves read from replies: what is read, what must never be, and the hard replies."""

from collections import Counter
from time import process_time
from typing import Any

import chess
import pytest

from cant_do_that_anymore import read_move
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.chess.reader import move_in
from cant_do_that_anymore.habits.chess.rules import (
    BISHOPS_AS_KNIGHTS,
    STANDARD,
    board_after,
    rules_named,
)
from replies import HARD_MOVES

MOVES = ["e2e4", "e7e6", "g1f3", "c7c5", "c2c3", "b7b6"]
BOARD = board_after(MOVES)


def read(reply: str, *, cut_off: bool = False) -> str | None:
    """Read a reply after 1. e4 e6 2. Nf3 c5 3. c3 b6 when bishops move like knights."""
    move = move_in(reply, BOARD, BISHOPS_AS_KNIGHTS, cut_off=cut_off)
    return move.uci() if move else None


LABELED = (
    *("Move: {}", "My move: {}", "**Move:** {}\n\nIt develops.", "Best move: **{}**", "Answer: {}"),
    *("The best move is {}.", "The final answer is $\\boxed{{\\text{{{}}}}}$.", "\\boxed{{{}}}"),
    *("<answer>{}</answer>", '{{"move": "{}"}}', '{{"note": "short", "best_move": "{}"}}'),
    *("bestmove {} ponder a7a6", "make_move {}", "### Best move\n**{}**\n\nThis eyes d7."),
    *("Here is my move:\n\n`{}`", "White: {}", "Hm.\n\n**{}**\n\nThis is a good move."),
)
ALONE = (
    *("{}", " {}\n", "{}!", "4. {}", "**{}**", "```\n{}\n```", "{}\n\nThis is a fine move."),
    *("Let me think.\n\n{}", "Bishops jump now.\n{}", "{} a7a6", "4. {} a6 5. Ba4", "b7b6 {}"),
    *("{}\nUser: a7a6\nAssistant: b5a4", "<think>Is {} legal?</think>{}", "{}<|im_end|>"),
    *("1. e4 e6 2. Nf3 c5 3. c3 b6 4. {}", "e2e4 e7e6 g1f3 c7c5 c2c3 b7b6 {}"),
)
CHOSEN = (
    *("I play {}.", "I'll go with {}, gaining space.", "Let's play {}!", "I would play **{}**."),
    *("I'm going to play {} now.", "After b6, I choose {} since it is solid.", "So, {}."),
    *("{} is my move.", "{} is the best move here.", "Then {} it is.", "Good luck! {}"),
    *("{} - develops a piece", "{}, putting pressure on d7.", "{} (preparing to castle)"),
)


@pytest.mark.parametrize("template", [*LABELED, *ALONE, *CHOSEN])
def test_labeled_lone_and_chosen_moves_are_read_also_forbidden_ones(template: str) -> None:
    for notation, uci in (("f1b5", "f1b5"), ("Bb5", "f1b5"), ("d2d4", "d2d4"), ("Bg3", "f1g3")):
        assert read(template.format(*2 * [notation])) == uci


@pytest.mark.parametrize(
    "template",
    [
        *("{} is illegal.", "I can't play {}.", "{} was legal before.", "Not {}.", "~~{}~~"),
        *("I have to drop {}.", "A mistake would be {}.", "Usually {}.", "e.g. {}", "No {}!"),
        *("Illegal moves:\n\n{}", "Illegal moves:\n\n**{}**", "## Not allowed\n- {}"),
        *('{{"move": "none", "note": "{}"}}', '{{"illegal_move": "{}"}}', "Old habit: {}"),
        *("In standard chess I would play {}.", "I'd play {} if it were legal.", "Is {} legal?"),
        *("My usual move is {}.", "The illegal move is {}.", "Move: {} (illegal)", "{} ❌"),
        *("{}\n\nWait, that is illegal.", "{}, pinning the knight, is illegal now."),
        "I choose {}. Wait, bishops are knights now.",
        *("Move: {}\nRevised: f1g3", "{} breaks the rules"),
        "X {}\nOK a4",
    ],
)
@pytest.mark.parametrize("habit", ["f1b5", "Bb5"])
def test_a_forbidden_move_that_is_only_rejected_is_not_read(template: str, habit: str) -> None:
    assert read(template.format(habit)) is None


@pytest.mark.parametrize(
    "template",
    [
        *("f1b5 is illegal, so {}.", "Instead of f1b5, I play {}.", "{} (f1b5 is illegal)"),
        *("f1b5? Not any more. {}.", "Since Bb5 is out, {}.", "{}\n\nf1b5 is no longer legal."),
        *("f1b5\n\nWait, that is illegal.\n\n{}", '{{"rejected": "f1b5", "move": "{}"}}'),
        *("Normally Bb5, but bishops jump now. My move: {}", "not Bb5 but {}"),
        *("{}\n\n(Bb5 is illegal now.)", "~~f1b5~~ {}", "f1b5? No longer possible. {}."),
        "I would normally play Bb5, but bishops now move like knights, so {}.",
        "Bishops can no longer move diagonally, which rules out Bb5.\n\n{}",
    ],
)
@pytest.mark.parametrize(("notation", "uci"), [("d2d4", "d2d4"), ("Bg3", "f1g3")])
def test_a_rejected_habit_does_not_hide_the_move(template: str, notation: str, uci: str) -> None:
    assert read(template.format(notation)) == uci


@pytest.mark.parametrize(
    "reply",
    [
        *("", "I resign.", "d2d4 or f1g3", "- d2d4\n- f1g3\n- d1a4", "Bb5 d4", "0000", "e2e9"),
        *("Your last move was b7b6.", "Moves look like e2e4.", "d2d4, f1g3 and d1a4 are possible."),
        *('{"move": null}', '{"move": ""}', "Answer: none", "Xf1b5X", "the a2-g8 diagonal"),
    ],
)
def test_a_reply_that_plays_no_move_or_several_is_unreadable(reply: str) -> None:
    assert read(reply) is None


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        *(("f1b5", "f1b5"), ("I play f1b5 bec", "f1b5"), ("f1b", None), ("I play f1", None)),
        *(("As bishops jump, f1b5 is ill", None), ("Bb5 is out. I play d2d4 because", "d2d4")),
    ],
)
def test_a_truncated_reply_is_read_as_far_as_it_goes(reply: str, move: str | None) -> None:
    assert read(reply, cut_off=True) == move


def after(moves: str) -> chess.Board:
    return board_after(moves.split())


CASTLES = after("e2e4 e7e5 g1f3 b8c6 f1c4 f8c5")
PROMOTES = after("e2e4 d7d5 e4d5 c7c6 d5c6 a7a6 c6b7 a6a5")
CASTLES_LONG = after("d2d4 a7a6 c1f4 a6a5 d1d2 a5a4 b1c3 a4a3")
TWO_KNIGHTS, KNIGHT_ON_G5 = (
    after("g1f3 a7a6 b1c3 a6a5 c3e4 a5a4"),
    after("b1c3 a7a6 c3e4 a6a5 e4g5 a5a4"),
)


@pytest.mark.parametrize(
    ("board", "reply", "uci"),
    [
        *((CASTLES, reply, "e1g1") for reply in ("O-O", "0-0", "e1g1")),
        *((PROMOTES, reply, "b7a8q") for reply in ("bxa8=Q", "b7a8=q", "b7a8Q")),
        *((PROMOTES, "b7a8", "b7a8"), (CASTLES_LONG, "O-O-O", "e1c1"), (CASTLES_LONG, "O-O", None)),
        *((TWO_KNIGHTS, "Nfg5", "f3g5"), (TWO_KNIGHTS, "Ng5", None)),
        *((KNIGHT_ON_G5, "N1f3", "g1f3"), (KNIGHT_ON_G5, "N5f3", "g5f3")),
    ],
)
def test_special_moves_are_read_in_any_notation(
    board: chess.Board, reply: str, uci: str | None
) -> None:
    """At the end of a truncated reply, O-O and b7a8 may be the beginning of another move."""
    move = move_in(reply, board, STANDARD)
    assert (move and move.uci()) == uci
    if reply in ("O-O", "b7a8"):
        assert move_in(reply, board, STANDARD, cut_off=True) is None


def read_row(row: dict[str, Any]) -> str | None:
    rules = rules_named(row["rules"])
    moves = row.get("moves", "").split()
    board = chess.Board(row["fen"]) if row.get("fen") else board_after(moves, STANDARD, rules)
    move = move_in(row["reply"], board, rules, cut_off=row.get("cut_off", False))
    return move.uci() if move else None


def test_few_hard_replies_are_misread() -> None:
    counts = Counter[str]()
    for row in HARD_MOVES:
        move = read_row(row)
        counts["unread"] += row["meant"] is not None and move is None
        counts["wrong"] += move not in (None, row["meant"])
        counts["habit"] += move not in (None, row["meant"]) and move in ("f1b5", "c8b7", "f8g7")
    shares = {kind: count / len(HARD_MOVES) for kind, count in counts.items()}
    assert shares["wrong"] < 0.03
    assert shares["habit"] < 0.005
    assert shares["unread"] < 0.18


def test_san_means_a_standard_move_if_possible() -> None:
    for rules in (STANDARD, BISHOPS_AS_KNIGHTS):
        assert move_in("Be2", BOARD, rules) == chess.Move.from_uci("f1e2")
    assert move_in("Bg3", BOARD, BISHOPS_AS_KNIGHTS) == chess.Move.from_uci("f1g3")
    assert move_in("Bg3", BOARD, STANDARD) is None


def test_many_different_moves_are_read_in_linear_time() -> None:
    squares = [chess.square_name(square) for square in chess.SQUARES]
    start = process_time()
    read("Hm: " + " ".join(a + b for a in squares for b in squares) * 3)
    assert process_time() - start < 5


def test_a_position_can_be_a_fen() -> None:
    fen = BOARD.fen()
    assert read_move("b7b6 d2d4", fen=fen) == read_move("b7b6 d2d4", moves=MOVES) == "d2d4"
    assert read_move("Bg3", fen=fen, rules=BISHOPS_AS_KNIGHTS) == "f1g3"
    assert read_move("Bg3", fen=fen, rules=rules_named("standard")) is None


def test_invalid_input_is_explained() -> None:
    with pytest.raises(InvalidInput, match="not a position in FEN: 'nonsense'"):
        read_move("e2e4", fen="nonsense")
    with pytest.raises(InvalidInput, match="does not move a piece"):
        read_move("e2e4", moves=["e2e4", "e2e4"])
