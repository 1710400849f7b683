"""Measures the speed and memory of the bundled models on positions of the pool.

    python benchmarks/bundled_models.py

Uses every fourth position of the pool. The rate per CPU second depends little on other load.
"""

import asyncio
import os
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from cant_do_that_anymore.habits.chess.forms import MOVES
from cant_do_that_anymore.habits.chess.position import Position, shipped_pool
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.providers.base import Question, Settings
from cant_do_that_anymore.providers.bundled import (
    BATCH,
    POCKET,
    POCKET_RULES,
    READER,
    WORKERS,
    PocketModel,
    load_network,
)
from cant_do_that_anymore.task.prompts import DEFAULT_WORDING, Prompt, shipped_wording


def print_rate(name: str, positions: Sequence[Position], work: Callable[[], object]) -> None:
    """Print how many positions per second the work handles."""
    started, cpu_started = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu_started
    n = len(positions)
    print(f"{name}: {n / wall:,.0f} positions/s, {n / cpu:,.0f} per CPU second", flush=True)


def evaluate_batches(positions: Sequence[Position]) -> None:
    """Evaluate positions in full batches with the network alone."""
    network = load_network()
    by_length = defaultdict(list)
    for position in positions:
        by_length[len(position.moves)].append(network.tokens(position.moves))
    batches = [
        same_length[start : start + BATCH]
        for same_length in by_length.values()
        for start in range(0, len(same_length), BATCH)
    ]
    with ThreadPoolExecutor(WORKERS) as workers:
        list(workers.map(network.scores, batches))


async def ask_about(name: str, positions: Sequence[Position]) -> None:
    """Ask a model about positions under a changed rule, with the concurrency of a run."""
    model = PocketModel(name)
    slots = asyncio.Semaphore(model.info.connections or 1)
    wording = shipped_wording(DEFAULT_WORDING, BISHOPS_AS_KNIGHTS)
    prompt = Prompt(wording.changed_prompt(BISHOPS_AS_KNIGHTS))

    async def ask(position: Position) -> None:
        async with slots:
            messages = prompt.messages(position, "", MOVES)
            question = Question(BISHOPS_AS_KNIGHTS, position, messages)
            await model.answer(question, Settings(0.0, model.info.max_tokens))

    await asyncio.gather(*map(ask, positions))


def main() -> None:
    positions = shipped_pool("pool")[::4]
    load = os.getloadavg()[0]
    print(f"{len(positions):,} positions, {WORKERS} workers, load before the benchmark: {load:.1f}")
    load_network()
    print_rate("network", positions, lambda: evaluate_batches(positions))
    for name in (READER, POCKET, POCKET_RULES):
        print_rate(name, positions, partial(asyncio.run, ask_about(name, positions)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak resident memory: {peak:,.0f} MB")


if __name__ == "__main__":
    main()
