"""What finding a dataset in waves costs in questions, against asking one by one.

python benchmarks/waves.py
"""

import numpy as np
from measuring import print_heading, print_row

from cant_do_that_anymore.datasets.search import batch_size

MODELS = 2_000
SEED = 20_220_722


def main() -> None:
    chance = np.random.default_rng(SEED)
    print_heading("wanted", "hit rate", "one by one", "in waves", "more", "waves")
    for wanted in (1000, 100):
        for rate in (0.05, 0.075, 0.16, 0.4):
            needed, asked, waves = np.mean(
                [_found(chance.random(80_000) < rate, wanted) for _ in range(MODELS)], axis=0
            )
            print_row(
                *(f"{wanted:,}", f"{100 * rate:g} %", f"{needed:,.0f}", f"{asked:,.0f}"),
                *(f"{100 * (asked / needed - 1):.0f} %", f"{waves:.2f}"),
            )


def _found(hits: "np.ndarray[tuple[int], np.dtype[np.bool_]]", wanted: int) -> tuple[int, int, int]:
    """How many questions it takes one by one and in waves, and how many waves."""
    found = hits.cumsum()
    asked = waves = 0
    while not asked or found[asked - 1] < wanted:
        seen = int(found[asked - 1]) if asked else 0
        asked += batch_size(wanted - seen, asked, seen)
        waves += 1
    return int(np.searchsorted(found, wanted)) + 1, asked, waves


if __name__ == "__main__":
    main()
