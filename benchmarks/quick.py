"""What should feel immediate: help, the legality of a move, the pool.

python benchmarks/quick.py
"""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import chess

from cant_do_that_anymore.game.position import parse_positions, shipped_pool, write_positions
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS

ROUNDS = 5


def best(action: Callable[[], object]) -> float:
    """Seconds of the fastest of a few rounds."""
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main() -> None:
    pool = shipped_pool("pool")[::20]
    questions = [(p.board(), chess.Move.from_uci(p.special_moves[0])) for p in pool]

    def ask_for_help() -> None:
        call = [sys.executable, "-m", "cant_do_that_anymore", "--help"]
        subprocess.run(call, check=True, capture_output=True)

    def judge_all() -> None:
        assert all(BISHOPS_AS_KNIGHTS.forbids(board, move) for board, move in questions)

    print(f"cdta --help: {best(ask_for_help):.2f} s (at most 0.5)")
    print(f"legality of a move: {1000 * best(judge_all) / len(questions):.3f} ms (at most 0.5)")
    load_the_pool = partial(shipped_pool.__wrapped__, "pool")  # not the one that is at hand
    print(f"loading the pool: {best(load_the_pool):.2f} s (at most 0.3)")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pool.jsonl"
        write_positions(path, shipped_pool("pool"))
        print(f"reading it from a file: {best(lambda: parse_positions(path)):.2f} s (at most 1)")


if __name__ == "__main__":
    main()
