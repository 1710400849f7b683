"""Measures games per second of `cdta mine`, of plain python-chess and of the original, on one file.

    python benchmarks/mining.py games.pgn

Without a file, the benchmark writes one: openings of the shipped pool, continued at random to the
length of tournament games. No opening is repeated, so the file is harder than a real collection.
Slow programs read only the first games of the file. The benchmark installs the original in a
temporary environment, without the dependencies that no longer build.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from random import Random

import chess
import chess.pgn
from markdown_tables import print_heading, print_row

from cant_do_that_anymore.habits.chess.mining import MiningCriteria, mine
from cant_do_that_anymore.habits.chess.position import Position, shipped_pool
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, board_after

ROUNDS = 3
MAX_SECONDS = 10
ORIGINAL_GAMES = 30
ORIGINAL = "original"
MAX_PLIES = 80
ORIGINAL_PACKAGES = (
    "--no-deps evals==3.0.1.post1",
    "backoff blobfile chess lz4 openai pytest pyyaml requests tiktoken tqdm zstandard",
)
ORIGINAL_SCRIPT = """
import sys, time
from evals.elsuite.cant_do_that_anymore.scripts import dataset_creation
started = time.perf_counter()
dataset_creation.create_dataset_of_specific_moves(
    sys.argv[1], dataset_creation.SpecialMoveFilter(), target_num_examples=10**9,
    filter_if_found_previous=True, filter_for_unique_previous_moves=False,
    continuously_save=False, out_path="",
)
print(time.perf_counter() - started)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="PGN file, not compressed")
    given: Path | None = parser.parse_args().file
    with tempfile.TemporaryDirectory() as folder:
        file = given or write_games(Path(folder) / "games.pgn")
        first_games, python = Path(folder) / "first.pgn", install_original(Path(folder))
        texts = (f"{game}\n\n" for game in islice(read_games(file), ORIGINAL_GAMES))
        first_games.write_text("".join(texts), encoding="utf-8")
        measurements: dict[str, Callable[[], float]] = {
            ORIGINAL: partial(measure_original, first_games, python)
        }
        for every, option in ((False, ""), (True, "--every")):
            measurements[f"python-chess, {option}"] = partial(measure_python_chess, file, every)
            for jobs in sorted({1, os.cpu_count() or 1}):
                measure = partial(in_new_process, measure_mining, file, every, jobs)
                measurements[f"cdta mine {option} --jobs {jobs}"] = measure
        # The programs take turns, so that other load on the machine affects all of them.
        rounds = [
            {program: measure() for program, measure in measurements.items()} for _ in range(ROUNDS)
        ]
    print_heading("", f"games/s, best of {ROUNDS}", "times the original")
    best = {program: max(rates[program] for rates in rounds) for program in measurements}
    for program, rate in best.items():
        print_row(program, f"{rate:,.1f}", f"{rate / best[ORIGINAL]:,.0f}")


def write_games(file: Path) -> Path:
    random = Random(1)
    with file.open("w", encoding="utf-8") as pgn:
        for position in shipped_pool("pool"):
            pgn.write(f"{continue_at_random(position, random)}\n\n")
    return file


def continue_at_random(position: Position, random: Random) -> chess.pgn.Game:
    board = board_after(position.moves)
    board.push_uci(position.usual[0])
    while len(board.move_stack) < MAX_PLIES and (legal := list(board.legal_moves)):
        board.push(random.choice(legal))
    return chess.pgn.Game.from_board(board)


def measure_mining(file: Path, every: bool, jobs: int) -> float:
    games, started = 0, time.perf_counter()
    with closing(
        mine([str(file)], MiningCriteria(BISHOPS_AS_KNIGHTS, every), jobs=jobs)
    ) as results:
        for block in results:
            games += block.games
            if time.perf_counter() - started > MAX_SECONDS:
                break
    return games / (time.perf_counter() - started)


def measure_python_chess(file: Path, every: bool) -> float:
    games, started = 0, time.perf_counter()
    for game in read_games(file):
        board = chess.Board()
        for move in game.mainline_moves():
            if BISHOPS_AS_KNIGHTS.is_habit(board, move) and not every:
                break
            board.push(move)
        games += 1
        if time.perf_counter() - started > MAX_SECONDS:
            break
    return games / (time.perf_counter() - started)


def measure_original(first_games: Path, python: str) -> float:
    environment = {**os.environ, "OPENAI_API_KEY": "x", "PYTHONUTF8": "1"}
    command = [python, "-c", ORIGINAL_SCRIPT, str(first_games)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return ORIGINAL_GAMES / float(done.stdout.splitlines()[-1])


def in_new_process(measure: Callable[..., float], *arguments: object) -> float:
    """Measure in a new process, without cached games."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(measure, *arguments).result()


def install_original(folder: Path) -> str:
    """Install the original in a new environment, and return its Python."""
    venv.create(folder / "original", with_pip=True)
    python = str(folder / "original" / "bin" / "python")
    for packages in ORIGINAL_PACKAGES:
        command = [python, "-m", "pip", "install", "--quiet", *packages.split()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"installing the original failed:\n{done.stderr}")
    return python


def read_games(file: Path) -> Iterator[chess.pgn.Game]:
    with file.open(encoding="utf-8", errors="replace") as pgn:
        while game := chess.pgn.read_game(pgn):
            yield game


if __name__ == "__main__":
    main()
