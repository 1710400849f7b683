import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import cast

import chess
import pytest
from chess.engine import SimpleEngine
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.cli.commands import selfplay as command
from cant_do_that_anymore.errors import Incomplete, InvalidInput
from cant_do_that_anymore.game import selfplay
from cant_do_that_anymore.game.position import (
    DATA,
    Position,
    checked,
    earlier_moves,
    parse_positions,
    read_positions,
    shipped_pool,
)
from cant_do_that_anymore.game.rules import (
    BISHOPS_AS_KNIGHTS,
    CATALOG,
    PieceSwap,
    Rules,
    board_after,
)
from testing import cdta, needs_posix

POOL = list(shipped_pool("diagonal"))
QUICK = selfplay.Play(nodes=50)
RECORD = json.loads((DATA / "diagonal.json").read_text())
CHANGES = [
    PieceSwap(chess.BISHOP, chess.KNIGHT),
    PieceSwap(chess.ROOK, chess.BISHOP),
    PieceSwap(chess.QUEEN, chess.KNIGHT),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[SimpleEngine]:
    try:
        path = selfplay.find_engine()
    except InvalidInput as problem:
        pytest.skip(str(problem))
    with selfplay.open_engine(path) as engine:
        yield engine


def write_script(folder: Path, *lines: str) -> Path:
    path = folder / "engine"
    path.write_text("\n".join(("#!/bin/sh", *lines)))
    path.chmod(0o755)
    return path


def engine_board(fen: str, rules: Rules) -> chess.Board:
    return chess.Board(rules.view(chess.Board(fen)).fen())


@cache
def stratum(position: Position) -> int:
    return min(8, earlier_moves(position, BISHOPS_AS_KNIGHTS))


def are_spread_out(positions: Sequence[Position]) -> bool:
    games: dict[int, list[int]] = {}
    for position in positions:
        games.setdefault(position.game, []).append(stratum(position))
    return all(len(s) == 1 or (len(s) == 2 and abs(s[0] - s[1]) >= 3) for s in games.values())


# The shipped pool


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
    assert RECORD["play"] == asdict(selfplay.POOL_PLAY)
    assert RECORD["positions"] == len(POOL)
    assert RECORD["games"] == len({position.game for position in POOL})


def test_the_recorded_engine_reproduces_the_pool(engine: SimpleEngine) -> None:
    if engine.id["name"] != RECORD["engine"]:
        pytest.skip(f"needs {RECORD['engine']}, but this is {engine.id['name']}")
    fresh = selfplay.play_positions(engine, BISHOPS_AS_KNIGHTS, RECORD["positions"], RECORD["seed"])
    assert list(islice(fresh, 6)) == POOL[:6]


# Games


@pytest.mark.parametrize("rules", CHANGES, ids=lambda rules: rules.key)
def test_games_are_legal_and_end_properly(engine: SimpleEngine, rules: PieceSwap) -> None:
    to_the_end = selfplay.Play(nodes=50, max_plies=600)
    for seed in range(2):
        moves = selfplay.play_game(engine, rules, Random(seed), to_the_end)
        board = board_after([move.uci() for move in moves], rules)
        draw = board.is_repetition(3) or board.is_fifty_moves()
        draw = draw or rules.view(board).is_insufficient_material()
        assert draw or not any(rules.legal_moves(board))
        assert rules.piece not in {move.promotion for move in moves if move.promotion}


def test_the_seed_decides_the_games(engine: SimpleEngine) -> None:
    def play(seed: int) -> list[Position]:
        return list(selfplay.play_positions(engine, BISHOPS_AS_KNIGHTS, 5, seed, QUICK))

    assert play(1) == play(1) != play(2)


def test_positions_are_few_per_game_and_balanced(engine: SimpleEngine) -> None:
    positions = list(selfplay.play_positions(engine, BISHOPS_AS_KNIGHTS, 18, 3, QUICK))
    assert Counter(map(stratum, positions)) == dict.fromkeys(range(9), 2)
    assert are_spread_out(positions)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("standard", "standard forbids no move"),
        ("bishops-as-queens", "bishops-as-queens forbids no move"),
        ("rooks-as-queens", "rooks-as-queens forbids no move"),
        ("no-castling", "one piece moves like another, not no-castling"),
    ],
)
def test_rules_that_forbid_nothing_or_swap_nothing_are_refused(key: str, reason: str) -> None:
    unused = cast(SimpleEngine, None)
    with pytest.raises(InvalidInput, match=reason):
        next(selfplay.play_positions(unused, CATALOG[key], 1, seed=0))


def test_play_stops_after_idle_games(engine: SimpleEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfplay, "MAX_IDLE_GAMES", 3)
    too_short = selfplay.Play(max_plies=1)
    with pytest.raises(Incomplete, match="3 games in a row"):
        list(selfplay.play_positions(engine, BISHOPS_AS_KNIGHTS, 9, seed=0, play=too_short))


@pytest.mark.parametrize(
    ("fen", "key", "is_over"),
    [
        ("6rk/5Bpp/8/8/8/8/8/7K b - - 0 1", "bishops-as-knights", True),  # mate by a jump to h8
        ("6rk/5Bpp/8/8/8/8/8/7K b - - 0 1", "queens-as-knights", False),
        ("5B1k/5K2/8/8/8/8/P7/8 b - - 0 1", "bishops-as-knights", True),  # stalemate: h7 is covered
        ("5B1k/5K2/8/8/8/8/P7/8 b - - 0 1", "queens-as-knights", False),
        ("7k/8/8/8/8/8/8/Q6K w - - 0 1", "queens-as-bishops", True),  # too few pieces
        ("7k/8/8/8/8/8/8/B6K w - - 0 1", "bishops-as-rooks", False),
        ("7k/8/8/8/8/8/8/QQ5K w - - 0 1", "queens-as-bishops", False),
        ("7k/8/5K2/8/8/8/8/Q7 w - - 99 80", "bishops-as-knights", False),
        ("7k/8/5K2/8/8/8/8/Q7 w - - 100 80", "bishops-as-knights", True),  # 50 moves
    ],
)
def test_a_game_ends_by_the_changed_rules(fen: str, key: str, is_over: bool) -> None:
    assert selfplay.is_over(engine_board(fen, CATALOG[key])) is is_over


def test_a_game_ends_with_the_third_repetition() -> None:
    board = engine_board(chess.STARTING_FEN, BISHOPS_AS_KNIGHTS)
    for uci in 2 * ("f1g3", "f8g6", "g3f1", "g6f8"):
        assert not selfplay.is_over(board)
        board.push_uci(uci)
    assert selfplay.is_over(board)


# Special moves


@given(
    st.sampled_from([key for key in CATALOG if isinstance(CATALOG[key], PieceSwap)]),
    st.randoms(use_true_random=False),
)
def test_special_moves_are_all_moves_lost_or_none_if_in_doubt(key: str, random: Random) -> None:
    rules = CATALOG[key]
    assert isinstance(rules, PieceSwap)
    board = chess.Board()
    for _ in range(random.randrange(60)):
        moves = sorted(rules.legal_moves(board), key=chess.Move.uci)
        if not moves:
            break
        board.push(random.choice(moves))
    view = rules.view(board)
    lost = [
        chess.Move(start, end)
        for start in board.pieces(rules.piece, board.turn)
        for end in board.attacks(start)
        if board.color_at(end) != board.turn and end not in view.attacks(start)
    ]
    doubtful = [move for move in lost if is_doubtful(board, move, rules)]
    expected = () if doubtful else tuple(sorted(move.uci() for move in lost))
    assert selfplay.special_moves(board, rules) == expected


def is_doubtful(board: chess.Board, move: chess.Move, rules: Rules) -> bool:
    after = board.copy()
    after.push(move)
    after.turn = board.turn
    captures_king = board.piece_type_at(move.to_square) == chess.KING
    return captures_king or after.is_check() or rules.view(after).is_check()


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


# The command


def test_the_command_writes_a_pool_and_its_record(engine: SimpleEngine, tmp_path: Path) -> None:
    output = tmp_path / "new" / "pool.jsonl.gz"
    record = json.loads(cdta("selfplay", "--positions", 3, "-o", output, code=0).stdout)
    assert len(read_positions(output, BISHOPS_AS_KNIGHTS)) == record["positions"] == 3
    assert record["engine"] == engine.id["name"]


def test_ctrl_c_leaves_a_valid_file(
    engine: SimpleEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted_play(*args: object) -> Iterator[Position]:
        yield from POOL[:5]
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "play_positions", interrupted_play)
    output = tmp_path / "pool.jsonl"
    cdta("selfplay", "-o", output, code=1)
    assert read_positions(output, BISHOPS_AS_KNIGHTS) == POOL[:5]


def test_without_an_engine_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(InvalidInput, match="apt install stockfish"):
        selfplay.find_engine()


@needs_posix
def test_the_engine_may_be_off_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("on-path", "managed"):
        (tmp_path / name).mkdir()
        write_script(tmp_path / name, "exit 0").rename(tmp_path / name / "stockfish")
    monkeypatch.setattr(selfplay, "ENGINE_FOLDERS", (str(tmp_path / "managed"),))
    monkeypatch.setenv("PATH", str(tmp_path / "on-path"))
    assert selfplay.find_engine() == tmp_path / "on-path" / "stockfish"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert selfplay.find_engine() == tmp_path / "managed" / "stockfish"


ENGINE_SCRIPT = (
    "while read line; do case $line in",
    "  uci) echo option name MultiPV type spin default 1 min 1 max 9; echo uciok;;",
    "  isready) echo readyok;;",
    "  go*) {};;",
    "esac; done",
)


@needs_posix
@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        ("", 2, "engine is not a UCI engine"),
        ("exit 3", 1, "failed"),
        ("echo bestmove e2e4", 1, "failed"),
    ],
)
def test_a_bad_engine_is_reported(tmp_path: Path, reply: str, code: int, message: str) -> None:
    path = write_script(tmp_path, "\n".join(ENGINE_SCRIPT).format(reply) if reply else "exit 0")
    result = cdta("selfplay", "--engine", path, "-o", tmp_path / "pool.jsonl", code=code)
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "pool.jsonl").exists()


def test_an_unwritable_output_is_refused_before_any_play(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cdta("selfplay", "-o", tmp_path / "file" / "pool.jsonl", code=2)
