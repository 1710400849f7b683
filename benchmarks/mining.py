"""Games a second: this miner, plain python-chess and the original, in one run on one file.

    python benchmarks/mining.py games.pgn

Without a file one is made: openings of the shipped pool, played on at random to the length of
tournament games. No opening comes twice in it, so it is harder than a real collection. The
slow ones read only the first games of the file. The original is installed in a temporary
environment, without the dependencies that no longer build.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from random import Random

import chess
import chess.pgn
from measuring import print_heading, print_row

from cant_do_that_anymore.game.mining import Wanted, mine
from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS

ENOUGH_SECONDS = 20
GAMES_FOR_THE_ORIGINAL = 40
PLIES = 80
INSTALLS = (
    "--no-deps evals==3.0.1.post1",
    "backoff blobfile chess lz4 openai pytest pyyaml requests tiktoken tqdm zstandard",
)
THE_ORIGINAL = """
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="PGN, not compressed")
    given: Path | None = parser.parse_args().file
    with tempfile.TemporaryDirectory() as folder:
        file = given or made(Path(folder) / "games.pgn")
        original = rate_of_the_original(file, Path(folder))
        print_heading("", "games/s", "times the original")
        print_row("original", f"{original:.2f}", 1)
        for every, name in ((False, "--first"), (True, "--every")):
            rates = {f"python-chess, {name}": rate_of_python_chess(file, every)}
            for jobs in sorted({1, os.cpu_count() or 1}):
                rates[f"cdta mine {name} --jobs {jobs}"] = rate_of_mining(file, every, jobs)
            for what, rate in rates.items():
                print_row(what, f"{rate:,.0f}", f"{rate / original:,.0f}")


def made(file: Path) -> Path:
    random = Random(1)
    with file.open("w", encoding="utf-8") as pgn:
        for position in shipped_pool("pool"):
            pgn.write(f"{played_on(position, random)}\n\n")
    return file


def played_on(position: Position, random: Random) -> chess.pgn.Game:
    board = position.board()
    board.push_uci(position.special_moves[0])
    while len(board.move_stack) < PLIES and (legal := list(board.legal_moves)):
        board.push(random.choice(legal))
    return chess.pgn.Game.from_board(board)


def rate_of_mining(file: Path, every: bool, jobs: int) -> float:
    games, started = 0, time.perf_counter()
    with closing(mine([str(file)], Wanted(BISHOPS_AS_KNIGHTS, every), jobs=jobs)) as results:
        for mined in results:
            games += mined.games
            if time.perf_counter() - started > ENOUGH_SECONDS:
                break
    return games / (time.perf_counter() - started)


def rate_of_python_chess(file: Path, every: bool) -> float:
    games, started = 0, time.perf_counter()
    for game in games_of(file):
        board = chess.Board()
        for move in game.mainline_moves():
            if BISHOPS_AS_KNIGHTS.forbids(board, move) and not every:
                break
            board.push(move)
        games += 1
        if time.perf_counter() - started > ENOUGH_SECONDS:
            break
    return games / (time.perf_counter() - started)


def rate_of_the_original(file: Path, folder: Path) -> float:
    few = folder / "few.pgn"
    games = list(islice(games_of(file), GAMES_FOR_THE_ORIGINAL))
    few.write_text("".join(f"{game}\n\n" for game in games), encoding="utf-8")
    python = installed_original(folder)
    environment = {**os.environ, "OPENAI_API_KEY": "x", "PYTHONUTF8": "1"}
    command = [python, "-c", THE_ORIGINAL, str(few)]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return len(games) / float(printed.stdout.splitlines()[-1])


def installed_original(folder: Path) -> str:
    venv.create(folder / "original", with_pip=True)
    python = str(folder / "original" / "bin" / "python")
    for packages in INSTALLS:
        command = [python, "-m", "pip", "install", "--quiet", *packages.split()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"cannot install the original:\n{done.stderr}")
    return python


def games_of(file: Path) -> Iterator[chess.pgn.Game]:
    with file.open(encoding="utf-8", errors="replace") as pgn:
        while game := chess.pgn.read_game(pgn):
            yield game


if __name__ == "__main__":
    main()
