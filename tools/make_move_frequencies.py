"""Writes how common the special moves of the shipped pools are in human games.

python tools/make_move_frequencies.py
"""

from pathlib import Path

from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.metrics.groups import FREQUENCIES_FILE, compute_human_frequency, packed

DATA = Path(__file__).parents[1] / "src" / "cant_do_that_anymore" / "data"


def main() -> None:
    pools = (shipped_pool(name) for name in ("pool", "diagonal"))
    positions = {position.id: position for pool in pools for position in pool}
    frequencies = dict(zip(positions, compute_human_frequency(positions.values()), strict=True))
    (DATA / FREQUENCIES_FILE).write_bytes(packed(frequencies))
    print(f"{len(frequencies):,} positions")


if __name__ == "__main__":
    main()
