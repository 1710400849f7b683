import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import chess
import pytest

from cant_do_that_anymore.game.position import (
    DATA,
    Position,
    checked,
    earlier_moves,
    parse_positions,
    shipped_pool,
)
from cant_do_that_anymore.game.rules import (
    BISHOPS_AS_KNIGHTS,
    CATALOG,
    board_after,
)

POOL = list(shipped_pool("diagonal"))
RECORD = json.loads((DATA / "diagonal.json").read_text())


@cache
def stratum(position: Position) -> int:
    return min(8, earlier_moves(position, BISHOPS_AS_KNIGHTS))


def are_spread_out(positions: Sequence[Position]) -> bool:
    games: dict[int, list[int]] = {}
    for position in positions:
        games.setdefault(position.game, []).append(stratum(position))
    return all(len(s) == 1 or (len(s) == 2 and abs(s[0] - s[1]) >= 3) for s in games.values())


def test_the_pool_is_large_balanced_and_legal() -> None:
    assert len({position.moves for position in POOL}) == len(POOL) >= 2000
    assert len({position.game for position in POOL}) >= 1000
    assert are_spread_out(POOL)
    strata = Counter(map(stratum, POOL))
    assert set(strata) == set(range(9))
    for size in strata.values():
        assert size == pytest.approx(len(POOL) / 9, rel=0.1)
    for position in POOL[::6]:
        board = board_after(position.moves, BISHOPS_AS_KNIGHTS)
        assert any(BISHOPS_AS_KNIGHTS.legal_moves(board))


def test_the_pool_lists_all_diagonal_moves_that_are_otherwise_legal() -> None:
    for position in POOL[1::6]:
        board = position.board()
        diagonal = {
            chess.Move(start, end)
            for start in board.pieces(chess.BISHOP, board.turn)
            for end in board.attacks(start)
            if board.color_at(end) != board.turn
        }
        assert position.special_moves == tuple(sorted(move.uci() for move in diagonal))
        for move in diagonal:
            assert BISHOPS_AS_KNIGHTS.forbids(board, move)
            after = position.board()
            after.push(move)
            after.turn = board.turn
            assert not BISHOPS_AS_KNIGHTS.view(after).is_check()


def test_the_pool_file_is_valid_and_matches_its_record(tmp_path: Path) -> None:
    copy = tmp_path / "diagonal.jsonl.gz"
    copy.write_bytes((DATA / "diagonal.jsonl.gz").read_bytes())
    positions = parse_positions(copy)
    assert [replace(position, where="") for position in positions] == POOL
    assert [checked(position, BISHOPS_AS_KNIGHTS) for position in positions[2::6]] == POOL[2::6]
    assert RECORD["positions"] == len(POOL)
    assert RECORD["games"] == len({position.game for position in POOL})


@pytest.mark.parametrize(
    ("key", "count"),
    [
        ("standard", 0),
        ("bishops-as-knights", 3),
        ("knights-as-bishops", 2),
        ("rooks-as-bishops", 0),  # castling is a king move
        ("no-castling", 1),
        ("pawns-one-step", 2),
        ("knights-cannot-jump", 2),
    ],
)
def test_earlier_moves_are_those_the_change_affects(key: str, count: int) -> None:
    moves = ("e2e4", "e7e5", "f1c4", "f8c5", "g1f3", "g8f6", "e1g1", "c5b6")
    assert earlier_moves(Position(0, moves, ("c4f7",)), CATALOG[key]) == count
