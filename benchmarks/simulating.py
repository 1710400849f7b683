"""The cells of a table, each simulated with random numbers of its own, in several processes."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from known_models import restart

Result = TypeVar("Result")
Cell = tuple[Any, ...]


class Simulator:
    """Simulates cells in as many processes; the results do not depend on their number."""

    def __init__(self, jobs: int) -> None:
        self._pool = ProcessPoolExecutor(jobs)

    def each(self, work: Callable[..., Result], cells: Iterable[Cell]) -> dict[Cell, Result]:
        """What the work makes of each cell, by cell."""
        started = time.monotonic()
        futures = {cell: self._pool.submit(_seeded, work, cell) for cell in cells}
        for done, _ in enumerate(as_completed(futures.values()), 1):
            if done % 50 == 0 or done == len(futures):
                seconds = time.monotonic() - started
                told = f"{work.__name__}: {done} of {len(futures)} cells, {seconds:.0f} s"
                print(told, file=sys.stderr, flush=True)
        return {cell: future.result() for cell, future in futures.items()}


def _seeded(work: Callable[..., Result], cell: Cell) -> Result:
    restart(f"{work.__name__} {cell!r}")
    return work(*cell)


def settled(coverage: Callable[[int], Sequence[float]], times: int, below: float) -> list[float]:
    """Shares, measured again and longer where one is low: the lowest of many is unlucky too."""
    found = coverage(times)
    return list(coverage(5 * times) if min(found) < below else found)


def print_below(lowest: float, shares: dict[str, float]) -> None:
    """Name what lies below an aim, and how many that are."""
    below = {name: share for name, share in shares.items() if share < lowest}
    least = f", the lowest at {100 * min(below.values()):.1f}%" if below else ""
    print(f"\nBelow {100 * lowest:.0f}%: {len(below)} of {len(shares):,} cells{least}.\n")
    for name, share in below.items():
        print(f"- {name}: {100 * share:.1f}%")
