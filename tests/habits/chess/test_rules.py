"""Legality under changed rules, checked against Fairy-Stockfish and by counting positions."""

from collections import Counter
from random import Random

import chess
import pyffish
import pytest

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.chess.position import shipped_pool
from cant_do_that_anymore.habits.chess.rules import (
    BISHOPS_AS_KNIGHTS,
    CATALOG,
    STANDARD,
    Rules,
    board_after,
    rules_named,
)

CHANGES = [rules for rules in CATALOG.values() if rules != STANDARD]
every_change = pytest.mark.parametrize("rules", CHANGES, ids=lambda rules: rules.key)
every_rule = pytest.mark.parametrize("rules", CATALOG.values(), ids=lambda rules: rules.key)
LETTERS = {"knights": "n", "bishops": "b", "rooks": "r", "queens": "q"}
RESTRICTIONS = {
    "no-castling": "castling = false",
    "pawns-one-step": "doubleStep = false",
    "knights-cannot-jump": "knight = -\ncustomPiece1 = n:nN\npromotionPieceTypes = nbrq",
}
POSITIONS = (
    chess.STARTING_FEN,
    "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "4k2r/2r1b3/4n3/1q2P3/1b5N/2NP1n2/4B1PP/R2QK2R w KQk - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
)
"""The starting position, and others with many promotions, castlings, pins and checks."""
WELL_TESTED = {"bishops-as-knights", *RESTRICTIONS}
"""Fairy-Stockfish takes 2 ms per position, so the other swaps, which share their code with the
first, are tested on fewer positions."""


def swap_config(key: str) -> str:
    """Fairy-Stockfish's settings: a custom piece takes the letter of the old one."""
    piece, like = key.split("-as-")
    return (
        f"{piece.removesuffix('s')} = -\n"
        f"customPiece1 = {LETTERS[piece]}:{LETTERS[like].upper()}\n"
        "promotionPieceTypes = nbrq\ncastlingRookPieces = r"
    )


@pytest.fixture(scope="module", autouse=True)
def fairy_stockfish() -> None:
    """Load all rule changes into Fairy-Stockfish."""
    for rules in CHANGES:
        changes = RESTRICTIONS.get(rules.key) or swap_config(rules.key)
        pyffish.load_variant_config(f"[{rules.key}:chess]\n{changes}\n")


@every_change
def test_legal_moves_match_fairy_stockfish(rules: Rules) -> None:
    """In random games from each position, with all their pins and checks."""
    random = Random(1)
    for start in POSITIONS:
        board = chess.Board(start)
        for _ in range(30 if rules.key in WELL_TESTED else 6):
            # Standard chess may forbid an en passant capture that these rules allow.
            fen = board.fen(en_passant="fen")
            moves = sorted(move.uci() for move in rules.legal_moves(board))
            assert moves == sorted(pyffish.legal_moves(rules.key, fen, [])), fen
            if not moves:
                board = chess.Board(start)
            else:
                board.push(chess.Move.from_uci(random.choice(moves)))


@every_change
def test_legal_moves_match_in_items_of_standard_games(rules: Rules) -> None:
    """The pool's positions come from standard games and are asked about under changed rules."""
    for position in shipped_pool("pool")[:: 300 if rules.key in WELL_TESTED else 900]:
        board = position.board()
        if rules.key == "pawns-one-step":
            board.ep_square = None  # otherwise Fairy-Stockfish still captures en passant
        expected = set(pyffish.legal_moves(rules.key, board.fen(), []))
        king = chess.square_name(chess.msb(board.kings & board.occupied_co[not board.turn]))
        moves = {move.uci() for move in rules.legal_moves(board)}
        assert moves == {move for move in expected if move[2:4] != king}, board.fen()


@every_rule
def test_is_legal_agrees_with_legal_moves(rules: Rules) -> None:
    for board in map(chess.Board, POSITIONS[1:4]):
        legal = set(rules.legal_moves(board))
        for start in chess.SQUARES:
            for target in chess.SQUARES:
                move = chess.Move(start, target)
                before, after = STANDARD.is_legal(board, move), move in legal
                assert rules.is_legal(board, move) == after
                assert rules.forbids(board, move) == (before and not after)


ROOKS_AT_HOME = "r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 1"


def test_without_double_steps_there_is_no_en_passant() -> None:
    board, move = chess.Board("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1"), chess.Move.from_uci("e5d6")
    rules = rules_named("pawns-one-step")
    assert STANDARD.is_legal(board, move) and rules.forbids(board, move)
    assert move not in rules.legal_moves(board)


def test_a_history_may_follow_either_rule_set_but_not_mix_them() -> None:
    standard, changed = ["e2e4", "e7e5", "f1c4"], ["f1g3", "e7e5", "g3f5"]
    assert board_after(standard, STANDARD, BISHOPS_AS_KNIGHTS).piece_at(chess.C4)
    assert board_after(changed, STANDARD, BISHOPS_AS_KNIGHTS).piece_at(chess.F5)
    with pytest.raises(InvalidInput, match="move 3, 'f1c4', does not move a piece of the side"):
        board_after(["f1g3", "e7e5", "f1c4"], STANDARD, BISHOPS_AS_KNIGHTS)


def test_every_pair_of_pieces_has_rules() -> None:
    assert len(CATALOG) == 1 + 4 * 3 + len(RESTRICTIONS)
    without_effect = [rules.key for rules in CHANGES if not rules.forbids_something]
    assert without_effect == ["bishops-as-queens", "rooks-as-queens"]
    assert rules_named("knights-as-queens").placebo_change == rules_named("rooks-as-bishops")


@every_change
def test_a_placebo_forbids_other_moves_in_a_statement_of_similar_length(rules: Rules) -> None:
    """The usual moves stay legal, except for checks and pins that only the placebo causes."""
    placebo = rules.placebo_change
    assert placebo.forbids_something and placebo != rules
    if rules.forbids_something:
        assert 0.75 < len(placebo.statement) / len(rules.statement) < 1.35
    still_legal = Counter(
        placebo.is_legal(board, move)
        for board in (chess.Board(ROOKS_AT_HOME), *(p.board() for p in shipped_pool("pool")[::200]))
        for move in STANDARD.legal_moves(board)
        if rules.affects(board, move) and rules.forbids(board, move)
    )
    assert bool(still_legal[True]) == rules.forbids_something
    assert still_legal[False] <= 0.02 * still_legal[True]


def test_only_moves_of_the_changed_kind_are_usual() -> None:
    """The bishop on c5 attacks e4 and d3 as a knight, so the king may not go there."""
    board = chess.Board("4k3/8/8/2b5/8/8/4K3/5B2 w - - 0 1")
    king, bishop = chess.Move.from_uci("e2d3"), chess.Move.from_uci("f1h3")
    assert BISHOPS_AS_KNIGHTS.forbids(board, king) and BISHOPS_AS_KNIGHTS.forbids(board, bishop)
    assert not BISHOPS_AS_KNIGHTS.is_habit(board, king)
    assert BISHOPS_AS_KNIGHTS.is_habit(board, bishop)
    assert BISHOPS_AS_KNIGHTS.affects(board, bishop)
    assert not BISHOPS_AS_KNIGHTS.affects(board, king)
