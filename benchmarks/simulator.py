"""Simulates the cells of a table in several processes, with a separate seed for each cell."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from simulated_models import reseed

Result = TypeVar("Result")
Cell = tuple[Any, ...]
MIN_COVERAGE, MAX_COVERAGE = 0.93, 0.99
REPEAT_FACTOR = 5


class Simulator:
    """Runs simulations in a pool of processes; results do not depend on their number."""

    def __init__(self, jobs: int) -> None:
        self._pool = ProcessPoolExecutor(jobs)

    def run(
        self, name: str, simulate: Callable[..., Result], cells: Iterable[Cell]
    ) -> dict[Cell, Result]:
        """Simulate each cell, and return the results by cell.

        The name and the cell seed the random numbers: under another name, results differ.
        """
        started = time.monotonic()
        futures = {cell: self._pool.submit(_run_cell, name, simulate, cell) for cell in cells}
        for done, _ in enumerate(as_completed(futures.values()), 1):
            if done % 50 == 0 or done == len(futures):
                seconds = time.monotonic() - started
                line = f"{name}: {done} of {len(futures)} cells, {seconds:.0f} s"
                print(line, file=sys.stderr, flush=True)
        return {cell: future.result() for cell, future in futures.items()}


def _run_cell(name: str, simulate: Callable[..., Result], cell: Cell) -> Result:
    reseed(f"{name} {cell!r}")
    return simulate(*cell)


def repeat_if_low(
    coverage: Callable[[int], Sequence[float]], count: int, threshold: float
) -> list[float]:
    """Measure coverage, and again with more experiments if any share is below a threshold.

    The lowest of many cells is partly bad luck; the longer measurement replaces the first.
    """
    shares = coverage(count)
    return list(coverage(REPEAT_FACTOR * count) if min(shares) < threshold else shares)


def print_cells_below(target: float, shares: dict[str, float]) -> None:
    """Print the number of cells with a coverage below the target, and list them."""
    below = {name: share for name, share in shares.items() if share < target}
    lowest = f", the lowest at {100 * min(below.values()):.1f}%" if below else ""
    print(f"\nBelow {100 * target:.0f}%: {len(below)} of {len(shares):,} cells{lowest}.\n")
    for name, share in below.items():
        print(f"- {name}: {100 * share:.1f}%")
