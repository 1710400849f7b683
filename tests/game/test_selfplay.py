import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from random import Random

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
    earlier_moves,
    read_positions,
    shipped_pool,
)
from cant_do_that_anymore.game.rules import (
    BISHOPS_AS_KNIGHTS,
    CATALOGUE,
    PieceSwap,
    Rules,
    board_after,
)
from cant_do_that_anymore.game.selfplay import (
    POOL_PLAY,
    Play,
    find_engine,
    is_over,
    open_engine,
    play_game,
    play_positions,
    special_moves,
)
from machines import needs_posix
from processes import Done, cdta

POOL = list(shipped_pool("diagonal"))
RECORD = json.loads((DATA / "diagonal.json").read_text())
CHANGES = [
    PieceSwap(chess.BISHOP, chess.KNIGHT),
    PieceSwap(chess.ROOK, chess.BISHOP),
    PieceSwap(chess.QUEEN, chess.KNIGHT),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[SimpleEngine]:
    try:
        path = find_engine()
    except InvalidInput as problem:
        pytest.skip(str(problem))
    with open_engine(path) as engine:
        yield engine


def script(folder: Path, *lines: str) -> Path:
    path = folder / "engine"
    path.write_text("\n".join(("#!/bin/sh", *lines)))
    path.chmod(0o755)
    return path


def engine_board(fen: str, rules: Rules) -> chess.Board:
    return chess.Board(rules.view(chess.Board(fen)).fen())


def stratum(position: Position) -> int:
    return min(8, earlier_moves(position, BISHOPS_AS_KNIGHTS))


def few_and_apart(positions: Sequence[Position]) -> bool:
    games: dict[int, list[int]] = {}
    for position in positions:
        games.setdefault(position.game, []).append(stratum(position))
    return all(len(s) == 1 or (len(s) == 2 and abs(s[0] - s[1]) >= 3) for s in games.values())


# The shipped pool


def test_the_pool_has_2000_different_positions_from_1000_games() -> None:
    assert len({position.moves for position in POOL}) == len(POOL) >= 2000
    assert len({position.game for position in POOL}) >= 1000


def test_the_pool_takes_two_positions_a_game_at_most_and_clearly_different_ones() -> None:
    assert few_and_apart(POOL)


def test_the_pool_is_even_over_the_number_of_earlier_bishop_moves() -> None:
    strata = Counter(map(stratum, POOL))
    assert set(strata) == set(range(9))
    for size in strata.values():
        assert size == pytest.approx(len(POOL) / 9, rel=0.1)


def test_the_pool_replays_legally_under_the_changed_rules_and_no_game_is_over() -> None:
    for position in POOL:
        board = board_after(position.moves, BISHOPS_AS_KNIGHTS)
        assert any(BISHOPS_AS_KNIGHTS.legal_moves(board))


def test_the_pool_lists_every_diagonal_move_and_all_are_otherwise_possible() -> None:
    for position in POOL:
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


def test_the_pool_is_a_valid_file_that_its_record_describes(tmp_path: Path) -> None:
    copy = tmp_path / "diagonal.jsonl.gz"
    copy.write_bytes((DATA / "diagonal.jsonl.gz").read_bytes())
    assert read_positions(copy, BISHOPS_AS_KNIGHTS) == POOL
    assert RECORD["play"] == asdict(POOL_PLAY)
    assert RECORD["positions"] == len(POOL)
    assert RECORD["games"] == len({position.game for position in POOL})


def test_the_recorded_engine_plays_the_pool_again(engine: SimpleEngine) -> None:
    if engine.id["name"] != RECORD["engine"]:
        pytest.skip(f"made with {RECORD['engine']}, here is {engine.id['name']}")
    again = play_positions(engine, BISHOPS_AS_KNIGHTS, RECORD["positions"], RECORD["seed"])
    assert list(islice(again, 12)) == POOL[:12]


# Games


@pytest.mark.parametrize("rules", CHANGES, ids=lambda rules: rules.key)
def test_games_are_legal_and_end_properly_under_changed_rules(
    engine: SimpleEngine, rules: PieceSwap
) -> None:
    to_the_end = Play(nodes=200, max_plies=600)
    for seed in range(2):
        moves = play_game(engine, rules, Random(seed), to_the_end)
        board = board_after([move.uci() for move in moves], rules)
        draw = board.is_repetition(3) or board.is_fifty_moves()
        draw = draw or rules.view(board).is_insufficient_material()
        assert draw or not any(rules.legal_moves(board))
        assert rules.piece not in {move.promotion for move in moves if move.promotion}


def test_the_same_seed_plays_the_same_games_and_another_seed_others(engine: SimpleEngine) -> None:
    def positions(seed: int) -> list[Position]:
        return list(play_positions(engine, BISHOPS_AS_KNIGHTS, 5, seed))

    assert positions(1) == positions(1) != positions(2)


def test_positions_are_few_a_game_and_even_over_the_strata(engine: SimpleEngine) -> None:
    found = list(play_positions(engine, BISHOPS_AS_KNIGHTS, 18, seed=3, play=Play(nodes=200)))
    assert Counter(map(stratum, found)) == dict.fromkeys(range(9), 2)
    assert few_and_apart(found)


@pytest.mark.parametrize("key", ["standard", "bishops-as-queens", "rooks-as-queens"])
def test_rules_that_forbid_nothing_are_refused(engine: SimpleEngine, key: str) -> None:
    with pytest.raises(InvalidInput, match=f"{key} forbids no move"):
        next(play_positions(engine, CATALOGUE[key], 1, seed=0))


def test_play_gives_up_when_no_game_brings_a_position(
    engine: SimpleEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selfplay, "MAX_IDLE_GAMES", 3)
    too_short = Play(max_plies=1)
    with pytest.raises(Incomplete, match="3 games in a row"):
        list(play_positions(engine, BISHOPS_AS_KNIGHTS, 9, seed=0, play=too_short))


@pytest.mark.parametrize(
    ("fen", "changed", "over"),
    [
        ("6rk/5Bpp/8/8/8/8/8/7K b - - 0 1", "bishops-as-knights", True),  # mate by a jump to h8
        ("6rk/5Bpp/8/8/8/8/8/7K b - - 0 1", "queens-as-knights", False),
        ("5B1k/5K2/8/8/8/8/P7/8 b - - 0 1", "bishops-as-knights", True),  # stalemate: h7 is covered
        ("5B1k/5K2/8/8/8/8/P7/8 b - - 0 1", "queens-as-knights", False),
        ("7k/8/8/8/8/8/8/Q6K w - - 0 1", "queens-as-bishops", True),  # too few pieces
        ("7k/8/8/8/8/8/8/B6K w - - 0 1", "bishops-as-rooks", False),
        ("7k/8/8/8/8/8/8/QQ5K w - - 0 1", "queens-as-bishops", False),
    ],
)
def test_a_game_ends_as_the_changed_rules_say(fen: str, changed: str, over: bool) -> None:
    assert is_over(engine_board(fen, CATALOGUE[changed])) is over


def test_a_game_ends_after_50_moves_without_progress_or_a_third_repetition() -> None:
    board = engine_board(chess.STARTING_FEN, BISHOPS_AS_KNIGHTS)
    for _ in range(2):
        for uci in ("f1g3", "f8g6", "g3f1", "g6f8"):
            assert not is_over(board)
            board.push_uci(uci)
    assert is_over(board)
    board = chess.Board("7k/8/5K2/8/8/8/8/Q7 w - - 99 80")
    assert not is_over(board)
    board.push_uci("a1a2")
    assert is_over(board)


# Special moves


@given(
    st.sampled_from([key for key in CATALOGUE if isinstance(CATALOGUE[key], PieceSwap)]),
    st.randoms(use_true_random=False),
)
def test_special_moves_are_all_lost_moves_or_none_where_one_is_doubtful(
    key: str, random: Random
) -> None:
    rules = CATALOGUE[key]
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
    doubtful = [move for move in lost if leaves_doubt(board, move, rules)]
    expected = () if doubtful else tuple(sorted(move.uci() for move in lost))
    assert special_moves(board, rules) == expected


def leaves_doubt(board: chess.Board, move: chess.Move, rules: Rules) -> bool:
    after = board.copy()
    after.push(move)
    after.turn = board.turn
    captures_king = board.piece_type_at(move.to_square) == chess.KING
    return captures_king or after.is_check() or rules.view(after).is_check()


def test_earlier_moves_count_one_kind_of_piece_of_both_sides() -> None:
    moves = ("e2e4", "e7e5", "f1c4", "f8c5", "g1f3", "g8f6", "e1g1", "c5b6")
    position = Position(0, moves, ("c4f7",))
    assert earlier_moves(position, BISHOPS_AS_KNIGHTS) == 3
    assert earlier_moves(position, CATALOGUE["knights-as-bishops"]) == 2
    assert earlier_moves(position, CATALOGUE["rooks-as-bishops"]) == 0  # castling is a king's move


# The command


def test_the_command_writes_a_pool_and_prints_what_made_it(
    engine: SimpleEngine, tmp_path: Path
) -> None:
    output = tmp_path / "new" / "pool.jsonl.gz"
    result = cdta("selfplay", "--positions", 9, "-o", output)
    assert result.returncode == 0, result.stderr
    positions = read_positions(output, BISHOPS_AS_KNIGHTS)
    assert len(positions) == 9
    record = json.loads(result.stdout)
    assert record["engine"] == engine.id["name"]
    assert record["positions"] == 9


def test_ctrl_c_leaves_a_valid_file(
    engine: SimpleEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object) -> Iterator[Position]:
        yield from POOL[:5]
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "play_positions", interrupted)
    output = tmp_path / "pool.jsonl"
    result = cdta("selfplay", "-o", output)
    assert result.returncode == 1
    assert read_positions(output, BISHOPS_AS_KNIGHTS) == POOL[:5]


def problem_with(engine: Path, folder: Path) -> Done:
    result = cdta("selfplay", "--engine", engine, "-o", folder / "pool.jsonl")
    assert not (folder / "pool.jsonl").exists()
    return result


def test_without_an_engine_one_sentence_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(InvalidInput, match="apt install stockfish"):
        find_engine()


@needs_posix
def test_an_engine_is_found_on_path_and_where_package_managers_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("on-path", "managed"):
        (tmp_path / name).mkdir()
        script(tmp_path / name, "exit 0").rename(tmp_path / name / "stockfish")
    monkeypatch.setattr(selfplay, "ENGINE_FOLDERS", (str(tmp_path / "managed"),))
    monkeypatch.setenv("PATH", str(tmp_path / "on-path"))
    assert find_engine() == tmp_path / "on-path" / "stockfish"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_engine() == tmp_path / "managed" / "stockfish"


@needs_posix
def test_a_program_that_is_no_engine_is_named(tmp_path: Path) -> None:
    problem = problem_with(script(tmp_path, "exit 0"), tmp_path)
    assert problem.returncode == 2
    assert f"{tmp_path / 'engine'} is no UCI engine" in problem.stderr


@needs_posix
@pytest.mark.parametrize("reply", ["exit 3", "echo bestmove e2e4"])
def test_an_engine_that_breaks_down_ends_in_one_sentence(tmp_path: Path, reply: str) -> None:
    path = script(
        tmp_path,
        "while read line; do case $line in",
        "  uci) echo option name MultiPV type spin default 1 min 1 max 9; echo uciok;;",
        "  isready) echo readyok;;",
        f"  go*) {reply};;",
        "esac; done",
    )
    problem = problem_with(path, tmp_path)
    assert problem.returncode == 1
    assert "broke down" in problem.stderr


def test_a_place_that_cannot_be_written_is_refused_before_any_play(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = cdta("selfplay", "-o", tmp_path / "file" / "pool.jsonl")
    assert result.returncode == 2
