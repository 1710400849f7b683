"""Mining compared with python-chess, in every PGN style, with all kinds of damage, on a cluster."""

import bz2
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import chess
import chess.pgn
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore.habits.chess.mining import (
    NOT_STANDARD,
    MiningCriteria,
    MiningResult,
    inputs,
    mine,
    openings,
)
from cant_do_that_anymore.habits.chess.position import read_positions
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, CATALOG, board_after
from testing import POOL, cdta, needs_posix

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GAME_COUNT = 150
MinedLine = tuple[int, list[str], str]
"""The index of a game, the moves so far, and the usual move."""

TAGS = '[Event "Open"]\n[White "Müller, J."]\n[Black "N.N."]\n\n'
ANNOTATIONS = (
    *[""] * 8,
    *("{a comment (with 1. e4 1-0 in it) and a [%clk 0:01:00]}", "; up to here\n", "$142", "+-"),
    *("{a long\n\ncomment\n\n1. e4 is best by test}", "\n% escaped\n"),
    "(12. Nonsense {with a ) inside} (1. deeper (still) 0-1) 13. e9)",
)


def game_from_choices(choices: Sequence[int]) -> list[chess.Move]:
    """A legal game in which each number chooses one of the legal moves."""
    board = chess.Board()
    for choice in choices:
        legal = list(board.legal_moves)
        if not legal:
            break
        board.push(legal[choice % len(legal)])
    return board.move_stack


def pool_games() -> Iterator[list[chess.Move]]:
    """Real openings, continued with random moves."""
    random = Random(1)
    for position in POOL[:GAME_COUNT]:
        board = board_after(position.moves)
        board.push_uci(position.usual[0])
        while len(board.move_stack) < 24 and (legal := list(board.legal_moves)):
            board.push(random.choice(legal))
        yield board.move_stack


def usual(games: Iterable[list[chess.Move]], criteria: MiningCriteria) -> list[MinedLine]:
    """The usual moves in games, or only the first of each game."""
    lines = []
    for index, moves in enumerate(games):
        board = chess.Board()
        for move in moves:
            if criteria.rules.is_habit(board, move):
                lines.append((index, [m.uci() for m in board.move_stack], move.uci()))
                if not criteria.every:
                    break
            board.push(move)
    return lines


def plain_pgn(moves: Sequence[chess.Move]) -> str:
    """A game in the usual style."""
    return TAGS + chess.Board().variation_san(moves) + " *\n\n"


def styled_pgn(moves: Sequence[chess.Move], random: Random) -> str:
    """The same game in a random style."""
    board = chess.Board()
    tokens = []
    for move in moves:
        tokens += [_number(board, random) + _san(board, move, random), random.choice(ANNOTATIONS)]
        board.push(move)
    tokens.append(random.choice(["1-0", "0-1", "1/2-1/2", "*"]))
    text = "".join(token + random.choice([" ", " ", " ", "\n"]) for token in tokens)
    return random.choice([TAGS, TAGS + "{Before the first move.}\n\n"]) + text + "\n\n"


def _number(board: chess.Board, random: Random) -> str:
    number = board.fullmove_number
    if board.turn == chess.WHITE:
        return random.choice([f"{number}.", f"{number}. ", f"{number} ", f"{number}.\n", ""])
    return random.choice(["", "", f"{number}...", f"{number}... "])


def _san(board: chess.Board, move: chess.Move, random: Random) -> str:
    san = board.san(move)
    if board.is_en_passant(move):
        return random.choice([san, san + " e.p."])
    mark = random.choice(["!", "?!", " ?", " $14"])
    styles = [san, san.rstrip("+#"), san + mark, board.lan(move), move.uci()]
    return random.choice([*styles, san.replace("O", "0"), san.replace("=", "")])


GAMES = st.lists(st.integers(0, 2**16), max_size=60).map(game_from_choices)
CHANGES = [rules for rules in CATALOG.values() if rules.forbids_something]
CRITERIA_OF_ALL_RULES = st.builds(MiningCriteria, st.sampled_from(CHANGES), st.booleans())
CRITERIA = MiningCriteria(BISHOPS_AS_KNIGHTS)
ITALIAN = TAGS + "1. e4 e5 2. Nf3 Nc6 3. Bc4 *\n\n"
"""A game whose only usual move is its last."""


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "CHUNK_BYTES", 2**13)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PGN file of many games."""
    path = tmp_path_factory.mktemp("collection") / "games.pgn"
    path.write_text("".join(map(plain_pgn, pool_games())), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def expected(collection: Path) -> list[str]:
    """The lines that mining finds in these games."""
    return [position.line for position in mine_input(collection).found]


def mine_input(
    path: Path | str,
    criteria: MiningCriteria = CRITERIA,
    unique: bool = False,
    limit: int | None = None,
    jobs: int = 1,
) -> MiningResult:
    """Mine one input and join the results of its blocks."""
    wanted = replace(criteria, unique=unique)
    blocks = list(mine([str(path)], wanted, limit=limit, jobs=jobs))
    return MiningResult(
        games=sum(block.games for block in blocks),
        found=[position for block in blocks for position in block.found],
        skipped=sum((block.skipped for block in blocks), Counter()),
        damaged=[damage for block in blocks for damage in block.damaged],
        problem=next((block.problem for block in blocks if block.problem), None),
    )


def mine_text(text: str | bytes, criteria: MiningCriteria = CRITERIA) -> MiningResult:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.pgn"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return mine_input(path, criteria)


def positions_in(result: MiningResult) -> list[MinedLine]:
    fields = [json.loads(position.line) for position in result.found]
    return [(f["game_idx"], f["previous_moves"], *f["next_filtered_moves"]) for f in fields]


@pytest.mark.parametrize("every", [False, True])
def test_matches_python_chess(collection: Path, every: bool) -> None:
    with collection.open(encoding="utf-8") as file:
        games = [game.mainline_moves() for game in iter(lambda: chess.pgn.read_game(file), None)]
    criteria = MiningCriteria(BISHOPS_AS_KNIGHTS, every)
    without_tags = collection.read_text(encoding="utf-8").replace(TAGS, "")
    for result in (mine_input(collection, criteria), mine_text(without_tags, criteria)):
        assert result.games == len(games) == GAME_COUNT
        assert positions_in(result) == usual(map(list, games), criteria)


@settings(max_examples=60)
@given(st.lists(GAMES, max_size=4), CRITERIA_OF_ALL_RULES, st.randoms(use_true_random=False))
def test_any_pgn_style_is_read_under_any_rules(
    games: list[list[chess.Move]], criteria: MiningCriteria, random: Random
) -> None:
    text = "".join(styled_pgn(moves, random) for moves in games)
    text = text.replace("\n", random.choice(["\n", "\r\n"]))
    data = text.encode(random.choice(["utf-8", "utf-8-sig", "latin-1"]))
    result = mine_text(data, criteria)
    assert not result.damaged
    assert result.games == len(games)
    assert positions_in(result) == usual(games, criteria)


def test_a_full_tree_of_openings_changes_nothing(
    collection: Path, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openings, "_MAX_NODES", 7)
    assert [position.line for position in mine_input(collection).found] == expected


@given(st.binary(max_size=20), st.integers(0, 2**10), st.booleans())
def test_damage_never_loses_another_game(data: bytes, offset: int, every: bool) -> None:
    offset %= len(ITALIAN)
    broken = ITALIAN.encode()[:offset] + data + ITALIAN.encode()[offset:]
    text = ITALIAN.encode() + broken + b"\n\n" + ITALIAN.encode()
    positions = positions_in(mine_text(text, MiningCriteria(BISHOPS_AS_KNIGHTS, every)))
    (_, *first), (_, *last) = positions[0], positions[-1]
    assert first == last == [["e2e4", "e7e5", "g1f3", "b8c6"], "f1c4"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("1. e4 e5 2. Ke3 *", "illegal or ambiguous move 'Ke3'"),
        ("1. f3 e5 2. g4 Qh4+ 3. a3 *", "illegal or ambiguous move 'a3'"),
        ("1. e4 e5 2. hello *", "unexpected 'hello'"),
        ("1. e4 e5 2. \u0421c4 *", "unexpected '\u0421c4'"),  # a letter of another alphabet
        ("{" + "long " * 2**18 + "} *", "unexpected '{long long"),
    ],
)
def test_a_damaged_game_is_skipped_and_reported_with_its_line(damage: str, reason: str) -> None:
    result = mine_text(ITALIAN + TAGS + damage + "\n\n" + ITALIAN)
    assert result.games == 3
    assert [index for index, *_ in positions_in(result)] == [0, 2]
    assert len(result.damaged) == 1
    assert "x.pgn, line 7: " + reason in result.damaged[0]


def test_a_damaged_game_does_not_hide_its_positions_in_other_games(tmp_path: Path) -> None:
    (tmp_path / "x.pgn").write_text(ITALIAN.replace("*", "hello *") + ITALIAN + ITALIAN)
    every = MiningCriteria(BISHOPS_AS_KNIGHTS, every=True)
    result = mine_input(tmp_path / "x.pgn", every, unique=True)
    assert len(result.damaged) == 1
    assert [index for index, *_ in positions_in(result)] == [1]


def test_other_variants_are_skipped_and_counted() -> None:
    def tagged(tags: str) -> str:
        return ITALIAN.replace("\n", f"\n{tags}\n", 1)

    others = ('[Variant "Atomic"]', '[fen "8/8/8/8/8/8/8/8 w - - 0 1"]')
    standard = tagged(f'[SetUp "1"]\n[FEN "{chess.STARTING_FEN}"]')
    result = mine_text("".join([ITALIAN, *map(tagged, others), standard]))
    assert (result.games, result.skipped) == (4, Counter({NOT_STANDARD: 2}))
    assert [index for index, *_ in positions_in(result)] == [0, 3]


def test_duplicates_are_dropped_unless_wanted_and_games_numbered_across_inputs(
    tmp_path: Path,
) -> None:
    transposed = TAGS + "1. Nf3 Nc6 2. e4 e5 3. Bc4 *\n\n"
    other_move = TAGS + "1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n\n"
    first, second = tmp_path / "1.pgn", tmp_path / "2.pgn"
    first.write_text(ITALIAN + transposed, encoding="utf-8")
    second.write_text(ITALIAN + other_move, encoding="utf-8")
    for options, expected in (([], [0, 1]), (["--duplicates"], [0, 1, 2, 3])):
        lines = cdta("mine", first, second, *options).stdout.splitlines()
        assert [json.loads(line)["game_idx"] for line in lines] == expected


def test_processes_find_the_same_positions_in_the_same_order(collection: Path) -> None:
    local = mine_input(collection, unique=True, limit=100)
    assert len(local.found) == 100
    assert mine_input(collection, unique=True, limit=100, jobs=2) == local


@pytest.mark.filterwarnings("default")  # do not fail on Ray's own warnings
def test_a_cluster_finds_the_same_positions(
    collection: Path, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("TMPDIR", raising=False)  # its logs need not be in memory
    from ray.cluster_utils import Cluster

    machine = {"num_cpus": 2, "object_store_memory": 100 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=machine)
    try:
        found = cdta("mine", collection, "--cluster", cluster.address, code=0).stdout
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]
    assert found.splitlines() == expected


# Inputs


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": lambda data: bz2.compress(data, 1),
    "zst": zstd.compress,
    "zst in frames": lambda data: (
        b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip"
        + zstd.compress(data[: 2**15])
        + zstd.compress(data[2**15 :])
    ),
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_files_and_stdin_are_read_in_every_compression(
    collection: Path, expected: list[str], compression: str, tmp_path: Path
) -> None:
    data = COMPRESSIONS[compression](collection.read_bytes())
    (tmp_path / "games").write_bytes(data)
    for name, stdin in ((tmp_path / "games", b""), ("-", data)):
        assert cdta("mine", name, stdin=stdin).stdout.splitlines() == expected


def test_a_truncated_input_gives_its_readable_part_and_exit_code_1(
    collection: Path, expected: list[str], tmp_path: Path
) -> None:
    data = gzip.compress(collection.read_bytes()) * 2
    cut, after, output = tmp_path / "cut.pgn", tmp_path / "after.pgn", tmp_path / "pool.jsonl"
    cut.write_bytes(data[: len(data) * 3 // 4])
    after.write_text(ITALIAN)
    result = cdta("mine", cut, after, "--duplicates", "-o", output, code=1)
    assert f"cannot read {cut} to its end" in result.stderr
    *positions, last = read_positions(output, BISHOPS_AS_KNIGHTS)
    assert len(positions) > GAME_COUNT
    rows = [position.to_json() for position in positions[: len(expected)]]
    assert rows == [*map(json.loads, expected[: len(positions)])]
    assert last.moves == ("e2e4", "e7e5", "g1f3", "b8c6")


@pytest.mark.parametrize("text", ["x", "1 ", "( ", "\n\n1. N", '\n[a "x"]\n'])
def test_half_a_megabyte_of_anything_takes_linear_time(text: str) -> None:
    long = TAGS + "1. e4 " + text * (500_000 // len(text)) + "\n\n"
    started = time.process_time()
    positions = positions_in(mine_text(ITALIAN + long + ITALIAN))
    assert time.process_time() - started < 10  # quadratic time would take hours
    assert positions[0][1:] == positions[-1][1:] == (["e2e4", "e7e5", "g1f3", "b8c6"], "f1c4")


# The command


@needs_posix
def test_ctrl_c_saves_the_positions_found_so_far(
    collection: Path, expected: list[str], tmp_path: Path
) -> None:
    output = tmp_path / "pool.jsonl.gz"
    program = str(Path(sys.executable).with_name("cdta"))
    command = [program, "mine", "-", "--jobs", "2", "-o", str(output)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A shell that starts pytest in the background makes all its children ignore Ctrl-C.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin
    # More than the pipe and the blocks in flight can hold, so some blocks are mined by now.
    process.stdin.write(collection.read_bytes() * 66)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate()
    assert process.returncode == 1
    assert b"stopped by Ctrl-C" in stderr
    assert b"Traceback" not in stderr
    with gzip.open(output, "rt") as file:
        lines = file.read().splitlines()
    assert lines
    assert lines[: len(expected)] == expected[: len(lines)]
    assert all(map(json.loads, lines))
    assert [*tmp_path.glob("pool*")] == [output]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.pgn"], "no such file: missing.pgn"),
        (["games.pgn", "--rules", "standard"], "standard forbids no move"),
        (["games.pgn", "-o", "./games.pgn"], "is one of the inputs"),
        (["games.pgn", "-o", "games.pgn/pool.jsonl"], "cannot write"),
        (["damaged.pgn", "-o", "pool.jsonl"], "no readable game in damaged.pgn"),
        (["games.pgn", "--cluster", "127.0.0.1:1"], "no Ray cluster at '127.0.0.1:1'"),
    ],
)
def test_invalid_input_is_explained_and_leaves_the_old_file(
    arguments: Sequence[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("games.pgn").write_text(ITALIAN)
    Path("damaged.pgn").write_text(TAGS + "1. e4 e5 2. hello *")
    Path("pool.jsonl").write_text("the old one")
    *_, error = cdta("mine", *arguments, code=2).stderr.splitlines()
    assert error.startswith("cdta: ") and message in error
    assert Path("pool.jsonl").read_text() == "the old one"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"games.pgn", "damaged.pgn", "pool.jsonl"}
