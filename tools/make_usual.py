"""Make the shipped table of how usual the special moves of the shipped pools are among people.

python tools/make_usual.py
"""

from pathlib import Path

from cant_do_that_anymore.evaluation.usualness import KNOWN, POOLS, read_usualness
from cant_do_that_anymore.game.position import shipped_pool

DATA = Path(__file__).parents[1] / "src" / "cant_do_that_anymore" / "data"


def main() -> None:
    read = [percent for pool in POOLS for percent in read_usualness(shipped_pool(pool))]
    (DATA / KNOWN).write_bytes(bytes(read))
    print(f"{len(read):,} positions")


if __name__ == "__main__":
    main()
