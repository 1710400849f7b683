"""How fast the embedded model is at the pool's lengths, and how much memory it takes.

python benchmarks/pocket.py
"""

import asyncio
import os
import resource
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.providers.base import Question, Settings
from cant_do_that_anymore.providers.pocket import (
    BATCH,
    POCKET,
    POCKET_RULES,
    WORKERS,
    PocketModel,
    load_network,
)


def network_rate(positions: Sequence[Position]) -> float:
    """Positions a second in full batches, with nothing around the network."""
    network = load_network()
    by_length = defaultdict(list)
    for position in positions:
        by_length[len(position.moves)].append(network.tokens(position.moves))
    batches = [
        alike[start : start + BATCH]
        for alike in by_length.values()
        for start in range(0, len(alike), BATCH)
    ]
    begun = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as workers:
        list(workers.map(network.scores, batches))
    return len(positions) / (time.perf_counter() - begun)


async def model_rate(name: str, positions: Sequence[Position]) -> float:
    """Positions a second through the protocol, as many at once as suit the model."""
    model = PocketModel(name)
    at_once = asyncio.Semaphore(model.info.connections)

    async def asked(position: Position) -> None:
        async with at_once:
            question = Question(BISHOPS_AS_KNIGHTS, position.moves, ())
            await model.answer(question, Settings(0.0, model.info.max_tokens))

    begun = time.perf_counter()
    await asyncio.gather(*map(asked, positions))
    return len(positions) / (time.perf_counter() - begun)


def main() -> None:
    positions = shipped_pool("pool")
    load = os.getloadavg()[0]
    print(f"{len(positions):,} positions, {WORKERS} workers, load before: {load:.1f}")
    print(f"network: {network_rate(positions):,.0f} positions/s")
    for name in (POCKET, POCKET_RULES):
        print(f"{name}: {asyncio.run(model_rate(name, positions)):,.0f} positions/s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak resident memory: {peak:,.0f} MB")


if __name__ == "__main__":
    main()
