"""Rules that are no swap of pieces: one class each, checked against Fairy-Stockfish and mined."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import chess
import pyffish
import pytest
from chess.engine import SimpleEngine

from cant_do_that_anymore.errors import BadInput
from cant_do_that_anymore.game.mining import Wanted, mine
from cant_do_that_anymore.game.position import Position, earlier_moves
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules, copy_as
from cant_do_that_anymore.game.selfplay import play_positions
from written_games import random_positions


class NoCastling(Rules):
    key, title = "no-castling", "No castling"
    statement = "Nobody may castle any more: such a move is now illegal."
    concerned = "castling moves"

    def view(self, board: chess.Board) -> chess.Board:
        view = board.copy(stack=False)
        view.castling_rights = chess.BB_EMPTY
        return view

    def concerns(self, board: chess.Board, move: chess.Move) -> bool:
        return board.is_castling(move)


class PawnsOneStep(Rules):
    key, title = "pawns-one-step", "Pawns never move two steps"
    statement = "Pawns now move one step only: two steps at once are illegal."
    concerned = "moves of pawns by two steps"

    class View(chess.Board):
        def generate_pseudo_legal_moves(
            self, from_mask: chess.Bitboard = chess.BB_ALL, to_mask: chess.Bitboard = chess.BB_ALL
        ) -> Iterator[chess.Move]:
            moves = super().generate_pseudo_legal_moves(from_mask, to_mask)
            return (move for move in moves if not PAWNS_ONE_STEP.concerns(self, move))

    def view(self, board: chess.Board) -> chess.Board:
        return copy_as(self.View, board)

    def concerns(self, board: chess.Board, move: chess.Move) -> bool:
        is_pawn = board.piece_type_at(move.from_square) == chess.PAWN
        return is_pawn and abs(move.to_square - move.from_square) == 16


class KnightsNeverJump(Rules):
    key, title = "knights-never-jump", "Knights cannot jump"
    statement = "Knights can no longer jump: the first, straight step of a move must be free."
    concerned = "moves of knights"

    class View(chess.Board):
        def attacks_mask(self, square: chess.Square) -> chess.Bitboard:
            mask = super().attacks_mask(square)
            if not self.knights & chess.BB_SQUARES[square]:
                return mask
            ends = [e for e in chess.scan_forward(mask) if not self.occupied & leg(square, e)]
            return sum(chess.BB_SQUARES[end] for end in ends)

        def attackers_mask(
            self, color: chess.Color, square: chess.Square, occupied: chess.Bitboard | None = None
        ) -> chess.Bitboard:
            found = super().attackers_mask(color, square, occupied)
            taken = self.occupied if occupied is None else occupied
            jumps = [k for k in chess.scan_forward(found & self.knights) if taken & leg(k, square)]
            return found & ~sum(chess.BB_SQUARES[knight] for knight in jumps)

        def is_into_check(self, move: chess.Move) -> bool:
            self.push(move)
            try:
                return self.was_into_check()
            finally:
                self.pop()

        def generate_legal_moves(
            self, from_mask: chess.Bitboard = chess.BB_ALL, to_mask: chess.Bitboard = chess.BB_ALL
        ) -> Iterator[chess.Move]:
            moves = list(self.generate_pseudo_legal_moves(from_mask, to_mask))
            return (move for move in moves if not self.is_into_check(move))

    def view(self, board: chess.Board) -> chess.Board:
        return copy_as(self.View, board)

    def concerns(self, board: chess.Board, move: chess.Move) -> bool:
        return board.piece_type_at(move.from_square) == chess.KNIGHT


def leg(start: chess.Square, end: chess.Square) -> chess.Bitboard:
    """The square that a knight steps on first."""
    across = chess.square_file(end) - chess.square_file(start)
    up = chess.square_rank(end) - chess.square_rank(start)
    return chess.BB_SQUARES[start + (across // 2 if abs(across) == 2 else 8 * (up // 2))]


NO_CASTLING, PAWNS_ONE_STEP, KNIGHTS_NEVER_JUMP = NoCastling(), PawnsOneStep(), KnightsNeverJump()
FAIRY = {
    NO_CASTLING: "castling = false",
    PAWNS_ONE_STEP: "doubleStep = false",
    KNIGHTS_NEVER_JUMP: "knight = -\ncustomPiece1 = n:nN\npromotionPieceTypes = nbrq",
}
GAMES = """
1. e4 e5 2. Nf3 Nf6 3. Be2 Be7 4. O-O O-O *

[Event "Nobody castles"]

1. e4 e5 2. Ke2 Ke7 *

[Event "Black castles"]

1. d4 d5 2. e4 Nc6 3. e5 Bf5 4. e6 Qd6 5. a3 O-O-O *
"""


@pytest.mark.parametrize("rules", FAIRY, ids=lambda rules: rules.key)
def test_legal_moves_equal_those_of_fairy_stockfish(rules: Rules) -> None:
    pyffish.load_variant_config(f"[{rules.key}:chess]\n{FAIRY[rules]}\n")
    for board in random_positions(rules, 800, seed=5):
        theirs = pyffish.legal_moves(rules.key, board.fen(), [])
        legal = set(rules.legal_moves(board))
        assert {move.uci() for move in legal} == set(theirs), board.fen()
        for move in STANDARD.legal_moves(board):
            assert rules.is_legal(board, move) == (move in legal)
            assert rules.forbids(board, move) == (move not in legal)


def mined(path: Path, rules: Rules) -> list[tuple[list[str], list[str]]]:
    found = [one for some in mine([str(path)], Wanted(rules, every=True)) for one in some.found]
    fields = [json.loads(one.line) for one in found]
    return [(line["previous_moves"], line["next_filtered_moves"]) for line in fields]


def test_games_are_mined_for_the_moves_that_no_castling_forbids(tmp_path: Path) -> None:
    (tmp_path / "games.pgn").write_text(GAMES)
    opening = ["e2e4", "e7e5", "g1f3", "g8f6", "f1e2", "f8e7"]
    other_side = ["d2d4", "d7d5", "e2e4", "b8c6", "e4e5", "c8f5", "e5e6", "d8d6", "a2a3"]
    assert mined(tmp_path / "games.pgn", NO_CASTLING) == [
        (opening, ["e1g1"]),
        ([*opening, "e1g1"], ["e8g8"]),
        (other_side, ["e8c8"]),
    ]


def test_earlier_moves_are_those_that_the_change_concerns() -> None:
    moves = ["e2e4", "e7e5", "g1f3", "g8f6", "f1e2", "f8e7", "e1g1", "e8g8", "d2d3", "d7d6"]
    position = Position(0, tuple(moves), ())
    assert earlier_moves(position, NO_CASTLING) == 2
    assert earlier_moves(position, PAWNS_ONE_STEP) == 2
    assert earlier_moves(position, KNIGHTS_NEVER_JUMP) == 2
    assert earlier_moves(position, BISHOPS_AS_KNIGHTS) == 2
    assert earlier_moves(position, STANDARD) == 0


def test_an_engine_plays_swaps_only_and_one_sentence_says_so() -> None:
    unused = cast(SimpleEngine, None)
    with pytest.raises(BadInput, match="one piece moves as another, not no-castling"):
        next(play_positions(unused, NO_CASTLING, 1, seed=0))
