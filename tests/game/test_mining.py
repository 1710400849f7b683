"""Mining against a plain python-chess walk, in every style, and against all kinds of damage."""

import bz2
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.game.mining import (
    LOW_RATING,
    NOT_STANDARD,
    MiningCriteria,
    MiningResult,
    inputs,
    mine,
    openings,
)
from cant_do_that_anymore.game.mining.openings import Openings
from cant_do_that_anymore.game.position import read_positions
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, CATALOG, STANDARD, Rules
from pgn_styles import (
    SET_UP,
    TAGS,
    VARIANT,
    Line,
    plain,
    played,
    pool_games,
    read_by_python_chess,
    special_moves,
    styled,
)
from testing import cdta, needs_linux, needs_posix, open_pipe

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GAMES = st.lists(st.integers(0, 2**16), max_size=60).map(played)
CHANGES = st.sampled_from([rules for rules in CATALOG.values() if rules is not STANDARD])
WANTED = MiningCriteria(BISHOPS_AS_KNIGHTS)
GAMES_IN_ALL = 300
ITALIAN = TAGS + "1. e4 e5 2. Nf3 Nc6 3. Bc4 *\n\n"
"""A game whose only special move is its last."""


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "CHUNK_BYTES", 2**14)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many games."""
    path = tmp_path_factory.mktemp("collection") / "games.pgn"
    path.write_text("".join(map(plain, pool_games(GAMES_IN_ALL, Random(1)))), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def walked(collection: Path) -> list[list[chess.Move]]:
    """The same games as python-chess reads them."""
    return read_by_python_chess(collection.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def expected(collection: Path) -> list[str]:
    """What is found in them, line by line."""
    return [found.line for found in mined(collection).found]


def mined(
    path: Path | str,
    wanted: MiningCriteria = WANTED,
    unique: bool = False,
    limit: int | None = None,
    jobs: int = 1,
) -> MiningResult:
    """All that is found in one input, as if it were one block."""
    blocks = list(mine([str(path)], wanted, unique=unique, limit=limit, jobs=jobs))
    return MiningResult(
        games=sum(block.games for block in blocks),
        found=[found for block in blocks for found in block.found],
        skipped=sum((block.skipped for block in blocks), Counter()),
        damaged=[damage for block in blocks for damage in block.damaged],
        problem=next((block.problem for block in blocks if block.problem), None),
    )


def mined_text(text: str | bytes, wanted: MiningCriteria = WANTED) -> MiningResult:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.pgn"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return mined(path, wanted)


def lines(mined: MiningResult) -> list[Line]:
    fields = [json.loads(found.line) for found in mined.found]
    return [(f["game_idx"], f["previous_moves"], *f["next_filtered_moves"]) for f in fields]


@pytest.mark.parametrize("every", [False, True])
def test_as_python_chess(collection: Path, walked: list[list[chess.Move]], every: bool) -> None:
    found = mined(collection, MiningCriteria(BISHOPS_AS_KNIGHTS, every))
    assert found.games == len(walked) == GAMES_IN_ALL
    assert lines(found) == special_moves(walked, BISHOPS_AS_KNIGHTS, every)


@given(st.lists(GAMES, max_size=4), st.booleans(), st.randoms(use_true_random=False))
def test_every_style_is_read(games: list[list[chess.Move]], every: bool, random: Random) -> None:
    text = "".join(styled(moves, random) for moves in games)
    text = random.choice([text, text.rstrip("\n"), "\n\n" + text, "% escaped\n; comment\n" + text])
    text = text.replace("\n", random.choice(["\n", "\r\n", "\r"]))
    encoding = random.choice(["utf-8", "utf-8-sig", "utf-16", "latin-1"])
    written = text.encode(encoding, errors="replace")
    found = mined_text(written, MiningCriteria(BISHOPS_AS_KNIGHTS, every))
    assert not found.damaged
    assert found.games == len(games)
    assert lines(found) == special_moves(games, BISHOPS_AS_KNIGHTS, every)


@given(st.lists(GAMES.filter(bool), min_size=1, max_size=4))
def test_games_without_tags_are_separated(games: list[list[chess.Move]]) -> None:
    text = "".join(plain(moves).removeprefix(TAGS) for moves in games)
    assert lines(mined_text(text)) == special_moves(games, BISHOPS_AS_KNIGHTS, every=False)


@given(GAMES, CHANGES)
def test_a_move_is_special_if_the_rules_say_so(moves: list[chess.Move], rules: Rules) -> None:
    expected, written = [], []
    board = chess.Board()
    for move in moves:
        expected.append((move.uci(), rules.is_special(board, move)))
        written.append(board.san(move).rstrip("+#").encode())
        board.push(move)
    tree = Openings(rules)
    for _ in range(3):  # from an empty tree, then from what it remembers
        assert list(tree.follow(iter(written))) == expected


def test_a_full_tree_of_openings_changes_nothing(
    collection: Path, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openings, "_MAX_NODES", 7)
    assert [found.line for found in mined(collection).found] == expected


@given(st.binary(max_size=400))
def test_random_bytes_never_crash(data: bytes) -> None:
    assert lines(mined_text(data)) == []


@given(st.binary(max_size=20), st.integers(0, 2**10), st.booleans())
def test_damage_anywhere_costs_no_other_game(data: bytes, where: int, every: bool) -> None:
    where %= len(ITALIAN)
    broken = ITALIAN.encode()[:where] + data + ITALIAN.encode()[where:]
    text = ITALIAN.encode() + broken + b"\n\n" + ITALIAN.encode()
    found = lines(mined_text(text, MiningCriteria(BISHOPS_AS_KNIGHTS, every)))
    (_, *first), (_, *last) = found[0], found[-1]
    assert first == last == [["e2e4", "e7e5", "g1f3", "b8c6"], "f1c4"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("1. e4 e5 2. Ke3 *", "illegal or ambiguous move 'Ke3'"),
        ("1. e4 e5 2. Nge2 Nc6 3. Nc3 *", "illegal or ambiguous move 'Nc3'"),
        ("1. f3 e5 2. g4 Qh4+ 3. a3 *", "illegal move 'a3'"),
        ("1. f3 e5 2. g4 Qh4+ 3. Nc3 *", "illegal move 'Nc3'"),
        ("1. e4 e5 2. hello *", "unexpected 'hello'"),
        ("1. e4 -- 2. d4 *", "unexpected '--'"),
        ("1. e4 {never closed", "unexpected '{never closed"),
        ("1. e4 (1. d4 never closed", "a variation that is never closed"),
        ("1. e4 e5) 2. d4 *", "a closing parenthesis without an opening one"),
        ("1. e4 e5 1-0 2. d4", "unexpected '2. d4'"),
        ("1. Nf3 Nf6 " + "Ng1 Ng8 Nf3 Nf6 " * 300 + "*", "more than 1,000 moves"),
        ("{" + "long " * 2**18 + "} *", "longer than 1,048,576 bytes"),
    ],
)
def test_a_damaged_game_is_skipped_and_reported_with_its_line(damage: str, reason: str) -> None:
    found = mined_text(ITALIAN + TAGS + damage + "\n\n" + ITALIAN)
    assert found.games == 3
    assert [index for index, *_ in lines(found)] == [0, 2]
    assert len(found.damaged) == 1
    assert "x.pgn, line 7: " + reason in found.damaged[0]


def test_games_from_a_set_up_position_or_of_another_variant_are_skipped_and_counted() -> None:
    standard = ITALIAN.replace("\n", f'\n[SetUp "1"]\n[FEN "{chess.STARTING_FEN}"]\n', 1)
    found = mined_text(SET_UP + ITALIAN + VARIANT + standard)
    assert found.games == 4
    assert found.skipped == Counter({NOT_STANDARD: 2})
    assert [index for index, *_ in lines(found)] == [1, 3]


@pytest.mark.parametrize(
    "tags",
    [
        '[variant "Atomic"]',
        '[fen "8/8/8/8/8/8/8/8 w - - 0 1"]',
        '  [Variant "Atomic"]\n[Result "*"]',
        '\t[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]\n[Result "*"]',
        '[Result "*"] [Variant "Atomic"]',
        '[Result "*"][SETUP "1"]',
    ],
)
def test_tags_are_seen_in_any_case_indented_and_two_on_a_line(tags: str) -> None:
    found = mined_text(ITALIAN.replace("\n", f"\n{tags}\n", 1) + ITALIAN)
    assert (found.games, found.skipped) == (2, Counter({NOT_STANDARD: 1}))
    assert [index for index, *_ in lines(found)] == [1]


def test_only_games_of_two_players_with_the_rating_are_taken() -> None:
    def rated(white: str, black: str) -> str:
        tags = f'[WhiteElo "{white}"]\n[BlackElo "{black}"]\n'
        return ITALIAN.replace("\n", "\n" + tags, 1)

    text = rated("2400", "2500") + rated("2400", "2399") + rated("2500", "?") + ITALIAN
    found = mined_text(text, MiningCriteria(BISHOPS_AS_KNIGHTS, min_elo=2400))
    assert [index for index, *_ in lines(found)] == [0]
    assert found.skipped == Counter({LOW_RATING: 3})


@pytest.mark.parametrize(
    ("tags", "source"),
    [
        ('[Site "https://lichess.org/abcd1234"]\n[White "a"]', "https://lichess.org/abcd1234"),
        ('[Site "Home"]\n[Link "https://www.chess.com/1"]', "https://www.chess.com/1"),
        (
            '[Event "Open"]\n[Site "?"]\n[Date "2020.01.01"]\n[White "A, \\"B\\""]\n[Black "C"]',
            'A, "B" - C; Open; 2020.01.01',
        ),
        ('[Event "?"]\n[Date "????.??.??"]', None),
    ],
)
def test_a_position_says_where_its_game_can_be_found(tags: str, source: str | None) -> None:
    (found,) = mined_text(f"{tags}\n\n1. e4 e5 2. Bc4 *").found
    assert json.loads(found.line).get("source") == source


def test_a_position_is_kept_once_or_as_often_as_it_was_played(tmp_path: Path) -> None:
    transposed = TAGS + "1. Nf3 Nc6 2. e4 e5 3. Bc4 *\n\n"
    other_move = TAGS + "1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n\n"
    games = tmp_path / "x.pgn"
    games.write_text(ITALIAN + transposed + ITALIAN + other_move, encoding="utf-8")
    for options, games_found in (([], [0, 1]), (["--duplicates"], [0, 1, 2, 3])):
        found = cdta("mine", games, *options).stdout.splitlines()
        assert [json.loads(line)["game_idx"] for line in found] == games_found


def test_castling_is_found_of_both_players_and_to_both_sides() -> None:
    long = "1. d4 d5 2. e4 Nc6 3. e5 Bf5 4. e6 Qd6 5. a3 O-O-O *"
    text = TAGS + "1. e4 e5 2. Nf3 Nf6 3. Be2 Be7 4. O-O O-O *\n\n" + TAGS + long
    found = lines(mined_text(text, MiningCriteria(CATALOG["no-castling"], every=True)))
    assert [(game, len(moves), special) for game, moves, special in found] == [
        (0, 6, "e1g1"),
        (0, 7, "e8g8"),
        (1, 9, "e8c8"),
    ]


def test_processes_find_the_same_positions_in_the_same_order(collection: Path) -> None:
    for unique, limit in ((False, None), (True, 200)):
        local = mined(collection, unique=unique, limit=limit)
        assert mined(collection, unique=unique, limit=limit, jobs=2) == local


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


@contextmanager
def served(data: bytes, promised: int | None = None) -> Iterator[str]:
    """The address of a server that promises so many bytes and sends these."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(promised or len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/games"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_files_addresses_and_standard_input_are_read_in_every_compression(
    collection: Path, expected: list[str], compression: str, tmp_path: Path
) -> None:
    data = COMPRESSIONS[compression](collection.read_bytes())
    (tmp_path / "games").write_bytes(data)
    with served(data) as address:
        for name, stdin in ((tmp_path / "games", b""), (address, b""), ("-", data)):
            assert cdta("mine", name, stdin=stdin).stdout.splitlines() == expected


def test_several_inputs_are_numbered_through(tmp_path: Path) -> None:
    first, second = tmp_path / "1.pgn", tmp_path / "2.pgn"
    first.write_text(ITALIAN * 3)
    second.write_text(ITALIAN * 2)
    found = cdta("mine", first, second, "--duplicates").stdout.splitlines()
    numbers = [json.loads(line)["game_idx"] for line in found]
    assert numbers == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("compression", ["gz", "bz2", "zst"])
def test_a_cut_off_input_gives_what_could_be_read_and_exit_code_1(
    collection: Path, expected: list[str], compression: str, tmp_path: Path
) -> None:
    data = COMPRESSIONS[compression](collection.read_bytes()) * 2
    cut, after, output = tmp_path / "cut.pgn", tmp_path / "after.pgn", tmp_path / "pool.jsonl"
    cut.write_bytes(data[: len(data) * 3 // 4])
    after.write_text(ITALIAN)
    result = cdta("mine", cut, after, "--duplicates", "-o", output, code=1)
    assert f"cannot read {cut} to its end" in result.stderr
    *found, last = read_positions(output, BISHOPS_AS_KNIGHTS)
    assert len(found) > (300 if compression == "gz" else 290)  # others are read in large blocks
    read = [position.to_json() for position in found[: len(expected)]]
    assert read == [*map(json.loads, expected[: len(found)])]
    assert last.moves == ("e2e4", "e7e5", "g1f3", "b8c6")


def test_a_lost_connection_is_noticed() -> None:
    with served(ITALIAN.encode() * 2, promised=10**6) as address:
        found = mined(address)
    assert len(found.found) == 1  # the second game could go on
    assert found.problem and "ended after" in found.problem


@pytest.mark.parametrize(
    "text",
    [
        *("\n", " ", "x", "1", "1 ", ". ", "e4 ", "{", "{ }", "( ", "; ", "\n% "),
        *("\n\n1. N", "\n\n{}1.", '[a "', '\n[a "x"]', '\n[a "x"]\n', '\n[a "x"]\n\n'),
    ],
)
def test_half_a_megabyte_of_anything_costs_no_more_time_than_other_games(text: str) -> None:
    long = TAGS + "1. e4 " + text * (500_000 // len(text)) + "\n\n"
    started = time.process_time()
    found = lines(mined_text(ITALIAN + long + ITALIAN))
    assert time.process_time() - started < 10  # quadratic time would be hours
    assert found[0][1:] == found[-1][1:] == (["e2e4", "e7e5", "g1f3", "b8c6"], "f1c4")


@needs_linux
@pytest.mark.parametrize(
    ("start", "more", "times"),
    [
        (TAGS + "1. e4 {", "x" * 2**20, 120),
        ("", TAGS + "1. e4 e5 " + "Be2 Be7 Bf1 Bf8 " * 249 + "*\n\n", 14),
    ],
    ids=["an endless line", "many positions"],
)
def test_memory_stays_bounded(start: str, more: str, times: int, tmp_path: Path) -> None:
    path, output = tmp_path / "bomb.pgn.zst", tmp_path / "pool.jsonl"
    with zstd.open(path, "wt") as file:
        file.write(start)
        for _ in range(times):
            file.write(more)
        file.write("\n\n" + ITALIAN)
    measure = (
        "import re, sys\n"
        "from cant_do_that_anymore.cli.main import cdta\n"
        "from cant_do_that_anymore.game.mining import inputs\n"
        "inputs.CHUNK_BYTES = 2**13  # two of these games\n"
        "cdta(['mine', sys.argv[1], '--every', '-o', sys.argv[2]], standalone_mode=False)\n"
        # Not ru_maxrss: that remembers the process it was forked from.
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
    )
    command = [sys.executable, "-c", measure, str(path), str(output)]
    kilobytes = subprocess.check_output(command, stderr=subprocess.DEVNULL)
    assert int(kilobytes) < 80_000
    with output.open() as found:
        (last,) = deque(found, maxlen=1)
    assert json.loads(last)["previous_moves"] == ["e2e4", "e7e5", "g1f3", "b8c6"]


# The command


@needs_posix
@pytest.mark.parametrize(("jobs", "name"), [(1, "pool.jsonl"), (2, "pool.jsonl.gz")])
def test_ctrl_c_leaves_a_valid_file_of_what_was_found(
    collection: Path, expected: list[str], tmp_path: Path, jobs: int, name: str
) -> None:
    output = tmp_path / name
    program = str(Path(sys.executable).with_name("cdta"))
    command = [program, "mine", "-", "--jobs", str(jobs), "-o", str(output)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin
    # More than fits into the pipe and the blocks in flight: some were mined when all is sent.
    process.stdin.write(collection.read_bytes() * 33)
    os.killpg(process.pid, signal.SIGINT)
    _, complaint = process.communicate()
    assert process.returncode == 1
    assert b"stopped by Ctrl-C" in complaint
    assert b"Traceback" not in complaint
    opener = gzip.open if name.endswith(".gz") else open
    with opener(output, "rt") as file:
        found = file.read().splitlines()
    assert found
    assert found[: len(expected)] == expected[: len(found)]
    assert all(map(json.loads, found))
    assert [path.name for path in tmp_path.glob("pool*")] == [name]


@pytest.mark.parametrize(("limit", "summary"), [(100, "100 positions in"), (1, "1 position in")])
def test_the_summary_counts(collection: Path, tmp_path: Path, limit: int, summary: str) -> None:
    output = tmp_path / "new" / "pool.jsonl"
    result = cdta("mine", collection, "--limit", limit, "-o", output, code=0)
    assert result.stderr.splitlines()[-1].startswith(summary)
    assert len(read_positions(output, BISHOPS_AS_KNIGHTS)) == limit


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["missing.pgn"], "no such file: missing.pgn"),
        (["."], "is a folder"),
        (["/dev/zero"], "/dev/zero is a device, which may have no end"),
        (["games.pgn", "--rules", "bishop-as-knight"], "unknown rules"),
        (["games.pgn", "--rules", "standard"], "standard forbids no move"),
        (["games.pgn", "-o", "./games.pgn"], "is one of the inputs"),
        (["games.pgn", "-o", "games.pgn/pool.jsonl"], "cannot write"),
        (["empty.pgn", "-o", "pool.jsonl"], "no readable game in empty.pgn"),
        (["noise.pgn", "-o", "pool.jsonl"], "no readable game in noise.pgn"),
        (["games.pgn", "--cluster", "127.0.0.1:1"], "no Ray cluster at '127.0.0.1:1'"),
    ],
)
def test_a_mistake_ends_in_one_sentence_and_leaves_the_old_file(
    arguments: Sequence[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("games.pgn").write_text(ITALIAN)
    Path("empty.pgn").touch()
    Path("noise.pgn").write_bytes(Random(1).randbytes(2**16))
    Path("pool.jsonl").write_text("the old one")
    result = cdta("mine", *arguments, code=2)
    assert complaint in result.stderr
    assert Path("pool.jsonl").read_text() == "the old one"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"games.pgn", "empty.pgn", "noise.pgn", "pool.jsonl"}


@needs_posix
def test_a_pipe_as_output_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "games.pgn").write_text(ITALIAN)
    with open_pipe(tmp_path / "pipe") as sent:
        cdta("mine", tmp_path / "games.pgn", "-o", tmp_path / "pipe", code=0)
        assert json.loads(sent())["next_filtered_moves"] == ["f1c4"]


def test_pieces_may_be_pictures_but_not_in_another_alphabet() -> None:
    for bishop in ("\u2657", "\u265d", "\u265d\ufe0e"):
        found = lines(mined_text(f"1. \u2658f3 d5 2. e3 e6 3. {bishop}b5+ c6 1-0\n"))
        assert found == [(0, ["g1f3", "d7d5", "e2e3", "e7e6"], "f1b5")]
    for letter in ("\u0421", "\u0391", "\u00c4"):
        result = mined_text(f"1. e4 e5 2. {letter}c4 Nf6 3. Bd3 1-0\n")
        assert (len(result.found), len(result.damaged)) == (0, 1)
    after_ellipsis = lines(mined_text("1. e4 e5 2. \u2658f3 2\u2026\u265ef6 3. Bc4 1-0\n"))
    assert after_ellipsis == [(0, ["e2e4", "e7e5", "g1f3", "g8f6"], "f1c4")]


PARENT = """
import sys, time
from cant_do_that_anymore.game.mining.miner import map_processes
if __name__ == "__main__":
    for _ in map_processes(time.sleep, [0, 0, 600, 600, 600], 2):
        print("ready", flush=True)
"""


def test_workers_end_with_their_parent_however_that_ends(tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    parent.stdout.readline()
    parent.kill()
    parent.wait()
    assert parent.stdout.read() in ("", "ready\n")  # nobody else has it open any more
