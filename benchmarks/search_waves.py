"""Compares the requests of a search for a dataset in waves with those of one by one.

python benchmarks/search_waves.py
"""

import numpy as np
from markdown_tables import print_heading, print_row
from numpy.typing import NDArray

from cant_do_that_anymore.datasets.search import batch_size

MODELS = 2_000
SEED = 20_220_722


def main() -> None:
    random = np.random.default_rng(SEED)
    print_heading("wanted", "hit rate", "one by one", "in waves", "more", "waves")
    for wanted in (1000, 100):
        for rate in (0.05, 0.075, 0.16, 0.4):
            one_by_one, in_waves, waves = np.mean(
                [count_requests(random.random(80_000) < rate, wanted) for _ in range(MODELS)],
                axis=0,
            )
            print_row(
                *(f"{wanted:,}", f"{100 * rate:g}%", f"{one_by_one:,.0f}", f"{in_waves:,.0f}"),
                *(f"{100 * (in_waves / one_by_one - 1):.0f}%", f"{waves:.2f}"),
            )


def count_requests(hits: NDArray[np.bool_], wanted: int) -> tuple[int, int, int]:
    """Return the requests one by one, the requests in waves, and the number of waves."""
    hits_so_far = hits.cumsum()
    requests = waves = 0
    while not requests or hits_so_far[requests - 1] < wanted:
        hit_count = int(hits_so_far[requests - 1]) if requests else 0
        requests += batch_size(wanted - hit_count, requests, hit_count)
        waves += 1
    return int(np.searchsorted(hits_so_far, wanted)) + 1, requests, waves


if __name__ == "__main__":
    main()
