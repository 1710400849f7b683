"""Legality under changed rules, checked against Fairy-Stockfish and by counting positions."""

import pickle
from collections import Counter

import chess
import pyffish
import pytest

from cant_do_that_anymore.errors import BadInput
from cant_do_that_anymore.game.rules import (
    BISHOPS_AS_KNIGHTS,
    CATALOGUE,
    STANDARD,
    Rules,
    board_after,
    rules_named,
)
from written_games import random_positions

CHANGES = [rules for rules in CATALOGUE.values() if rules != STANDARD]
LETTERS = {"knights": "n", "bishops": "b", "rooks": "r", "queens": "q"}
MOVEMENTS = {"knights": "N", "bishops": "B", "rooks": "R", "queens": "Q"}
COMPARED = ("bishops-as-knights", "queens-as-knights", "rooks-as-bishops", "knights-as-rooks")


@pytest.fixture(scope="module", autouse=True)
def fairy_stockfish() -> None:
    """Teach Fairy-Stockfish the changes: a custom piece takes the letter of the old one."""
    for key in COMPARED:
        piece, like = key.split("-as-")
        pyffish.load_variant_config(
            f"[{key}:chess]\n"
            f"{piece.removesuffix('s')} = -\n"
            f"customPiece1 = {LETTERS[piece]}:{MOVEMENTS[like]}\n"
            "promotionPieceTypes = nbrq\n"
            "castlingRookPieces = r\n"
        )


@pytest.mark.parametrize("key", COMPARED)
def test_legal_moves_equal_those_of_fairy_stockfish(key: str) -> None:
    for board in random_positions(rules_named(key), 2_000, seed=1):
        ours = sorted(move.uci() for move in rules_named(key).legal_moves(board))
        assert ours == sorted(pyffish.legal_moves(key, board.fen(), [])), board.fen()


@pytest.mark.parametrize("key", COMPARED)
def test_positions_of_standard_games_are_judged_alike(key: str) -> None:
    """The pool's positions come from standard games and are asked about under changed rules."""
    for board in random_positions(STANDARD, 1_000, seed=2):
        captures_king = [
            move
            for move in pyffish.legal_moves(key, board.fen(), [])
            if chess.parse_square(move[2:4]) == board.king(not board.turn)
        ]
        ours = {move.uci() for move in rules_named(key).legal_moves(board)}
        assert ours == set(pyffish.legal_moves(key, board.fen(), [])) - set(captures_king)


@pytest.mark.parametrize("key", CATALOGUE)
def test_is_legal_agrees_with_legal_moves(key: str) -> None:
    rules = rules_named(key)
    for board in random_positions(rules, 40, seed=3)[::10]:
        legal = set(rules.legal_moves(board))
        for start in chess.SQUARES:
            for target in chess.SQUARES:
                move = chess.Move(start, target)
                assert rules.is_legal(board, move) == (move in legal)


def perft(board: chess.Board, rules: Rules, depth: int) -> int:
    moves = list(rules.legal_moves(board))
    if depth == 1:
        return len(moves)
    count = 0
    for move in moves:
        board.push(move)
        count += perft(board, rules, depth - 1)
        board.pop()
    return count


def test_perft_of_standard_chess() -> None:
    """The well-known node counts of the initial position."""
    counts = [perft(chess.Board(), STANDARD, depth) for depth in (1, 2, 3, 4)]
    assert counts == [20, 400, 8_902, 197_281]


def test_perft_of_the_default_change() -> None:
    """The node counts of Fairy-Stockfish with ``bishop = -`` and ``customPiece1 = b:N``."""
    counts = [perft(chess.Board(), BISHOPS_AS_KNIGHTS, depth) for depth in (1, 2, 3, 4)]
    assert counts == [24, 576, 14_478, 363_197]


def test_forbids_what_is_legal_normally_and_illegal_now() -> None:
    board = board_after(["e2e4", "e7e5"])
    assert BISHOPS_AS_KNIGHTS.forbids(board, chess.Move.from_uci("f1c4"))
    assert not BISHOPS_AS_KNIGHTS.forbids(board, chess.Move.from_uci("f1g3"))  # legal now
    assert not BISHOPS_AS_KNIGHTS.forbids(board, chess.Move.from_uci("g1f3"))  # legal always
    assert not BISHOPS_AS_KNIGHTS.forbids(board, chess.Move.from_uci("f1a8"))  # legal never


def test_the_king_is_never_captured() -> None:
    """After 1. e4 e5 2. d4 Bb4+ the changed rules see no check, and a bishop on d6 attacks e8."""
    board = chess.Board("rnbqk1nr/pppp1ppp/3B4/8/8/8/PPPPPPPP/RN1QKBNR w KQkq - 0 1")
    assert not BISHOPS_AS_KNIGHTS.is_legal(board, chess.Move.from_uci("d6e8"))
    assert chess.Move.from_uci("d6e8") not in set(BISHOPS_AS_KNIGHTS.legal_moves(board))


def test_castling_stays_legal_when_rooks_move_like_bishops() -> None:
    board = chess.Board("r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 1")
    legal = {move.uci() for move in rules_named("rooks-as-bishops").legal_moves(board)}
    assert {"e1g1", "e1c1"} <= legal


def test_history_may_be_legal_under_either_rule_set_but_not_a_mixture() -> None:
    standard, changed = ["e2e4", "e7e5", "f1c4"], ["f1g3", "e7e5", "g3f5"]
    assert board_after(standard, STANDARD, BISHOPS_AS_KNIGHTS).piece_at(chess.C4)
    assert board_after(changed, STANDARD, BISHOPS_AS_KNIGHTS).piece_at(chess.F5)
    with pytest.raises(BadInput, match="move 3, 'f1c4', is not legal"):
        board_after(["f1g3", "e7e5", "f1c4"], STANDARD, BISHOPS_AS_KNIGHTS)


@pytest.mark.parametrize("moves", [["e2e9"], ["e7e5"], ["0000"], [""], ["e2e4", "e4e5"]])
def test_impossible_history_is_named(moves: list[str]) -> None:
    with pytest.raises(BadInput, match=f"move {len(moves)}"):
        board_after(moves)


def test_unknown_rules_name_the_nearest() -> None:
    with pytest.raises(BadInput, match=r"'bishop-as-knight' \(did you mean 'bishops-as-knights'"):
        rules_named("bishop-as-knight")


def test_every_pair_of_pieces_has_rules() -> None:
    assert len(CATALOGUE) == 1 + 4 * 3
    assert rules_named("queens-as-rooks").statement == (
        "All queens now move exactly as rooks do. "
        "Queens can no longer move diagonally: such a move is now illegal."
    )


def test_a_placebo_states_the_standard_rule_in_the_form_of_the_change() -> None:
    assert rules_named("queens-as-rooks").placebo == (
        "All queens move exactly as queens do. "
        "Queens can still move diagonally: such a move is legal as before."
    )


@pytest.mark.parametrize("rules", CHANGES, ids=lambda rules: rules.key)
def test_a_placebo_has_the_length_of_the_statement(rules: Rules) -> None:
    assert 0.8 < len(rules.placebo) / len(rules.statement) < 1.25


@pytest.mark.parametrize("rules", CATALOGUE.values(), ids=lambda rules: rules.key)
def test_rules_are_values_that_travel_to_other_processes(rules: Rules) -> None:
    travelled = pickle.loads(pickle.dumps(rules))
    assert travelled == rules
    assert {travelled: 1}[rules] == 1
    assert [other for other in CATALOGUE.values() if other == travelled] == [rules]


@pytest.mark.parametrize("rules", CATALOGUE.values(), ids=lambda rules: rules.key)
def test_a_view_is_a_new_board_that_may_be_changed(rules: Rules) -> None:
    board = board_after(["e2e4", "e7e5"])
    before = board.fen(), list(board.move_stack)
    view = rules.view(board)
    assert set(view.legal_moves) == set(rules.legal_moves(board))
    view.push(next(iter(view.legal_moves)))
    view.clear()
    assert (board.fen(), board.move_stack) == before


@pytest.mark.parametrize("rules", CATALOGUE.values(), ids=lambda rules: rules.key)
def test_what_may_not_be_forbidden_is_not_forbidden(rules: Rules) -> None:
    guesses = Counter(
        (rules.may_forbid(board, move), rules.forbids(board, move))
        for board in random_positions(STANDARD, 300, seed=4)
        for move in STANDARD.legal_moves(board)
    )
    assert guesses[False, True] == 0
    assert guesses[False, False] > guesses[True, True] + guesses[True, False]


def test_a_change_concerns_the_moves_of_the_changed_piece() -> None:
    board = board_after(["e2e4", "e7e5"])
    assert BISHOPS_AS_KNIGHTS.concerned == "moves of bishops"
    assert BISHOPS_AS_KNIGHTS.concerns(board, chess.Move.from_uci("f1c4"))
    assert not BISHOPS_AS_KNIGHTS.concerns(board, chess.Move.from_uci("g1f3"))
