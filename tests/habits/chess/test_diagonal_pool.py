import json
from dataclasses import replace
from pathlib import Path

import chess

from cant_do_that_anymore.files import DATA
from cant_do_that_anymore.habits.chess.position import (
    checked,
    parse_positions,
    shipped_pool,
)
from cant_do_that_anymore.habits.chess.rules import (
    BISHOPS_AS_KNIGHTS,
)

POOL = list(shipped_pool("diagonal"))
RECORD = json.loads((DATA / "diagonal.json").read_text())


def test_the_pool_lists_all_diagonal_moves_and_leaves_a_legal_one() -> None:
    for position in POOL[1::6]:
        board = position.board()
        assert any(BISHOPS_AS_KNIGHTS.legal_moves(board))
        diagonal = {
            chess.Move(start, end)
            for start in board.pieces(chess.BISHOP, board.turn)
            for end in board.attacks(start)
            if board.color_at(end) != board.turn
        }
        assert position.usual == tuple(sorted(move.uci() for move in diagonal))
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
    assert RECORD["positions"] == len(POOL) == len({position.moves for position in POOL})
    assert RECORD["games"] == len({position.game for position in POOL})
