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
from measuring import print_heading, print_row

from cant_do_that_anymore.game.mining import MiningCriteria, mine
from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, board_after

ROUNDS = 3
ENOUGH_SECONDS = 10
GAMES_FOR_THE_ORIGINAL = 30
ORIGINAL = "original"
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
        few, python = Path(folder) / "few.pgn", installed_original(Path(folder))
        few.write_text("".join(f"{game}\n\n" for game in first_games(file)), encoding="utf-8")
        contestants: dict[str, Callable[[], float]] = {
            ORIGINAL: partial(rate_of_the_original, few, python)
        }
        for every, name in ((False, "--first"), (True, "--every")):
            contestants[f"python-chess, {name}"] = partial(rate_of_python_chess, file, every)
            for jobs in sorted({1, os.cpu_count() or 1}):
                mining = partial(fresh, rate_of_mining, file, every, jobs)
                contestants[f"cdta mine {name} --jobs {jobs}"] = mining
        # In turns, so that whatever else the machine is doing hits all of them.
        rounds = [{name: rate() for name, rate in contestants.items()} for _ in range(ROUNDS)]
    print_heading("", f"games/s, best of {ROUNDS}", "times the original")
    for name in contestants:
        best, original = (max(rates[who] for rates in rounds) for who in (name, ORIGINAL))
        print_row(name, f"{best:,.1f}", f"{best / original:,.0f}")


def made(file: Path) -> Path:
    random = Random(1)
    with file.open("w", encoding="utf-8") as pgn:
        for position in shipped_pool("pool"):
            pgn.write(f"{played_on(position, random)}\n\n")
    return file


def played_on(position: Position, random: Random) -> chess.pgn.Game:
    board = board_after(position.moves)
    board.push_uci(position.special_moves[0])
    while len(board.move_stack) < PLIES and (legal := list(board.legal_moves)):
        board.push(random.choice(legal))
    return chess.pgn.Game.from_board(board)


def rate_of_mining(file: Path, every: bool, jobs: int) -> float:
    games, started = 0, time.perf_counter()
    with closing(
        mine([str(file)], MiningCriteria(BISHOPS_AS_KNIGHTS, every), jobs=jobs)
    ) as results:
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
            if BISHOPS_AS_KNIGHTS.is_special(board, move) and not every:
                break
            board.push(move)
        games += 1
        if time.perf_counter() - started > ENOUGH_SECONDS:
            break
    return games / (time.perf_counter() - started)


def rate_of_the_original(few: Path, python: str) -> float:
    environment = {**os.environ, "OPENAI_API_KEY": "x", "PYTHONUTF8": "1"}
    command = [python, "-c", THE_ORIGINAL, str(few)]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return GAMES_FOR_THE_ORIGINAL / float(printed.stdout.splitlines()[-1])


def fresh(rate: Callable[..., float], *arguments: object) -> float:
    """Measured in a process of its own, which remembers nothing of the games."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(rate, *arguments).result()


def installed_original(folder: Path) -> str:
    venv.create(folder / "original", with_pip=True)
    python = str(folder / "original" / "bin" / "python")
    for packages in INSTALLS:
        command = [python, "-m", "pip", "install", "--quiet", *packages.split()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"cannot install the original:\n{done.stderr}")
    return python


def first_games(file: Path) -> Iterator[chess.pgn.Game]:
    return islice(games_of(file), GAMES_FOR_THE_ORIGINAL)


def games_of(file: Path) -> Iterator[chess.pgn.Game]:
    with file.open(encoding="utf-8", errors="replace") as pgn:
        while game := chess.pgn.read_game(pgn):
            yield game


if __name__ == "__main__":
    main()
