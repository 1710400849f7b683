"""Position files in the original's formats and ours, and the pools that are shipped or drawn."""

import json
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from statistics import mean, pstdev

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.datasets.storage import shipped_datasets
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.files import DATA
from cant_do_that_anymore.habits.chess import rule_pool
from cant_do_that_anymore.habits.chess.notation import notate
from cant_do_that_anymore.habits.chess.position import (
    Position,
    parse_positions,
    read_positions,
    shipped_pool,
    write_positions,
)
from cant_do_that_anymore.habits.chess.rule_pool import character_of, positions_in_games
from cant_do_that_anymore.habits.chess.rules import (
    BISHOPS_AS_KNIGHTS,
    CATALOG,
    STANDARD,
    rules_named,
)
from testing import POOL

GOOD = {"game_idx": 4, "previous_moves": ["e2e4", "b7b6", "d2d4"], "next_filtered_moves": ["c8b7"]}
POSITION = Position(4, ("e2e4", "b7b6", "d2d4"), ("c8b7",))
KING_INTO_CHECK = {
    "game_idx": 4,
    "previous_moves": ["e2e4", "e7e5", "e1e2", "d7d6", "a2a3", "c8g4"],
    "next_filtered_moves": ["e2e3"],
}


def write_lines(folder: Path, *lines: object) -> Path:
    path = folder / "positions.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "extra",
    [
        {"next_filtered_moves": ["c8b7"]},
        {"next_filtered_moves": ["c8b7"], "any_previous_move_usual": False},
        {"special_move": "c8b7", "any_previous_move_found": False},
    ],
)
def test_all_formats_of_the_original_are_read(tmp_path: Path, extra: dict[str, object]) -> None:
    line = {"game_idx": 4, "previous_moves": ["e2e4", "b7b6", "d2d4"], **extra}
    assert read_positions(write_lines(tmp_path, line), BISHOPS_AS_KNIGHTS) == [POSITION]


@pytest.mark.parametrize("name", ["positions.jsonl", "positions.jsonl.gz"])
def test_written_items_are_read_back(tmp_path: Path, name: str) -> None:
    other = Position(5, ("e2e4", "e7e5"), ("f1b5", "f1c4"), "https://lichess.org/x")
    write_positions(tmp_path / name, [POSITION, other])
    assert read_positions(tmp_path / name, BISHOPS_AS_KNIGHTS) == [POSITION, other]
    assert POSITION.to_json() == GOOD  # the original's keys


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a dictionary"),
        ({"game_idx": 1, "next_filtered_moves": ["c8b7"]}, "missing the key 'previous_moves'"),
        ({**GOOD, "game_idx": "four"}, "must be a valid integer"),
        ({**GOOD, "next_filtered_moves": [3]}, "'next_filtered_moves[0]' in"),
        ({**GOOD, "next_filtered_moves": []}, "has no usual move"),
        ({**GOOD, "previous_moves": ["e2e5"]}, "move 1, 'e2e5', is not legal"),
        ({**GOOD, "previous_moves": ["e2e4", "zz"]}, "move 2 is not a UCI move"),
        ({**GOOD, "previous_moves": ["e2e4", 7]}, "must be a valid string, not 7"),
        ({**GOOD, "next_filtered_moves": ["c8h3"]}, "'c8h3' is not a usual move"),
        (KING_INTO_CHECK, "'e2e3' is not a usual move that bishops-as-knights forbids"),
    ],
)
def test_a_bad_line_is_reported_with_its_reason(tmp_path: Path, line: object, reason: str) -> None:
    path = write_lines(tmp_path, GOOD, line)
    with pytest.raises(InvalidInput) as problem:
        read_positions(path, BISHOPS_AS_KNIGHTS)
    assert f"{path}, line 2" in str(problem.value)
    assert reason in str(problem.value)


def test_a_usual_move_may_leave_the_king_in_check(tmp_path: Path) -> None:
    """After 1. d4 e6 2. Bf4 Bb4+ a bishop moves, and the king stays in check."""
    moves = ["d2d4", "e7e6", "c1f4", "f8b4"]
    line = {"game_idx": 4, "previous_moves": moves, "next_filtered_moves": ["f4d2", "f4g5"]}
    (position,) = read_positions(write_lines(tmp_path, line), BISHOPS_AS_KNIGHTS)
    assert position.usual == ("f4d2", "f4g5")
    assert not STANDARD.is_legal(position.board(), chess.Move.from_uci("f4g5"))


def test_the_id_depends_only_on_the_moves() -> None:
    assert POSITION.id == Position(99, POSITION.moves, POSITION.usual, "x").id
    assert POSITION.id != Position(4, POSITION.moves[:2], POSITION.usual).id
    assert POSITION.id == "280c6254fd4e"


def test_the_shipped_pool_is_the_original_and_has_usual_moves() -> None:
    lengths = [len(position.moves) for position in POOL]
    assert len(POOL) == len({position.id for position in POOL}) == 19_841
    assert (round(mean(lengths), 2), round(pstdev(lengths), 2), max(lengths)) == (9.09, 3.61, 37)
    for position in POOL[::20]:
        board = position.board()
        (usual,) = position.usual
        assert BISHOPS_AS_KNIGHTS.is_habit(board, board.parse_uci(usual))


def test_the_shipped_datasets_come_from_the_pool() -> None:
    datasets = shipped_datasets()
    assert {version: len(dataset.items) for version, dataset in datasets.items()} == {
        "gpt-3.5-turbo-0125": 1_000,
        "gpt-3.5-turbo-instruct": 1_320,
        "gpt-4-0125-preview": 1_666,
        "gpt-4-0314": 3_114,
    }
    assert datasets["gpt-4-0314"].items[0].subject == ("b2b3", "e7e5")


def test_the_diagonal_pool_is_valid_and_matches_its_record(tmp_path: Path) -> None:
    copy, pool = tmp_path / "diagonal.jsonl.gz", list(shipped_pool("diagonal"))
    copy.write_bytes((DATA / "diagonal.jsonl.gz").read_bytes())
    positions = parse_positions(copy)
    assert [replace(position, where="") for position in positions] == pool
    assert [BISHOPS_AS_KNIGHTS.checked(position) for position in positions[2::6]] == pool[2::6]
    record = json.loads((DATA / "diagonal.json").read_text())
    assert record["positions"] == len(pool) == len({position.moves for position in pool})
    assert record["games"] == len({position.game for position in pool})


POOL_DIGESTS = {
    "knights-as-bishops": "83ee8ac43287",
    "knights-as-rooks": "83ee8ac43287",
    "knights-as-queens": "83ee8ac43287",
    "bishops-as-knights": "58c2ea70453b",
    "bishops-as-rooks": "58c2ea70453b",
    "rooks-as-knights": "e73f26cbd096",
    "rooks-as-bishops": "e73f26cbd096",
    "queens-as-knights": "872f826803e9",
    "queens-as-bishops": "1a2604a72a62",
    "queens-as-rooks": "e751d32353f0",
    "no-castling": "a1a65b483c65",
    "pawns-one-step": "6f911ec53c87",
    "knights-cannot-jump": "b8fde099b3f7",
}
"""Digests of the first 100 positions of every pool: other positions need a new POOL_VERSION."""


@pytest.mark.parametrize("key", POOL_DIGESTS)
def test_the_first_positions_of_a_pool_are_fixed(key: str) -> None:
    rules = rules_named(key)
    positions = list(islice(positions_in_games(rules), 100))
    ids = " ".join(position.id for position in positions)
    assert sha256(ids.encode()).hexdigest()[:12] == POOL_DIGESTS[key]
    for position in positions:
        (usual,) = position.usual
        assert rules.is_habit(position.board(), chess.Move.from_uci(usual))


def test_positions_without_a_legal_move_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Knights that move like queens give mate with Nxf7, so Black has no legal move to adapt to."""
    moves = "e2e4 e7e5 g1f3 b8c6 d2d4 e5d4 f1c4 f8c5 f3g5 g8h6 g5f7 h6f7"
    game = "".join(character_of(chess.Move.from_uci(uci)) for uci in moves.split())
    monkeypatch.setattr(rule_pool, "shipped_games", lambda: [game] * 10)
    positions = positions_in_games(rules_named("knights-as-queens"))
    assert sorted(len(position.moves) for position in positions) == [2, 3, 8, 9, 10]


def test_the_docs_show_every_rule() -> None:
    """As ``tools/rule_pictures.py`` writes them."""
    docs = Path(__file__).parents[3] / "docs"
    text = (docs / "rules.md").read_text(encoding="utf-8")
    for rules in CATALOG.values():
        row, picture = f"| `{rules.key}` | {rules.statement} |", f"images/rules/{rules.key}.png"
        assert (row in text) == (docs / picture).exists() == rules.forbids_something


SQUARES = st.sampled_from(chess.SQUARE_NAMES)


@given(st.sampled_from(POOL[:200]), SQUARES, SQUARES, st.sampled_from(["", "q", "n", "b", "r"]))
def test_any_move_can_be_written(position: Position, start: str, end: str, promotion: str) -> None:
    board = position.board()
    before = board.fen()
    if start != end:
        assert notate(board, start + end + promotion)
        assert board.fen() == before
