"""Measures the latency of what should be instant: help, legality of a move, loading of the pool.

python benchmarks/latency.py
"""

import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import chess
from resource_usage import CDTA

from cant_do_that_anymore.habits.chess.position import (
    parse_positions,
    shipped_pool,
    write_positions,
)
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS

ROUNDS = 5


def fastest(action: Callable[[], object]) -> float:
    """Return the seconds of the fastest round."""
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def print_help() -> None:
    subprocess.run([*CDTA, "--help"], check=True, capture_output=True)


def main() -> None:
    pool = shipped_pool("pool")[::20]
    moves = [(p.board(), chess.Move.from_uci(p.usual[0])) for p in pool]

    def check_all_moves() -> None:
        assert all(BISHOPS_AS_KNIGHTS.forbids(board, move) for board, move in moves)

    print(f"cdta --help: {fastest(print_help):.2f} s (at most 0.5)")
    print(
        f"legality of a move: {1000 * fastest(check_all_moves) / len(moves):.3f} ms (at most 0.5)"
    )
    load_pool = partial(shipped_pool.__wrapped__, "pool")  # without its cache
    print(f"loading the pool: {fastest(load_pool):.2f} s (at most 0.3)")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pool.jsonl"
        write_positions(path, shipped_pool("pool"))
        parse = partial(parse_positions, path)
        print(f"reading the pool from a file: {fastest(parse):.2f} s (at most 1)")


if __name__ == "__main__":
    main()
