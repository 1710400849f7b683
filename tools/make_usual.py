"""Make the shipped table of how usual the special moves of the shipped pools are among people.

python tools/make_usual.py
"""

from pathlib import Path

from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.metrics.groups import FREQUENCIES_FILE, compute_human_frequency, packed

DATA = Path(__file__).parents[1] / "src" / "cant_do_that_anymore" / "data"


def main() -> None:
    positions = {each.id: each for pool in ("pool", "diagonal") for each in shipped_pool(pool)}
    known = dict(zip(positions, compute_human_frequency(positions.values()), strict=True))
    (DATA / FREQUENCIES_FILE).write_bytes(packed(known))
    print(f"{len(known):,} positions")


if __name__ == "__main__":
    main()
