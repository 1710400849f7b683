"""How the cost of a run grows with its samples: time, processor, memory, size of the store.

python benchmarks/growth.py
"""

import argparse
import tempfile
from pathlib import Path

from instant import instant
from measuring import CDTA, measured, print_heading, print_row, size_of

from cant_do_that_anymore.game.position import shipped_pool, write_positions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[100, 1000, 10_000])
    print_heading(
        "samples", "requests", "seconds", "CPU seconds", "CPU ms a request", "peak MB", "store MB"
    )
    for samples in parser.parse_args().sizes:
        with instant() as url, tempfile.TemporaryDirectory() as folder:
            positions, home = Path(folder) / "positions.jsonl", Path(folder) / "home"
            write_positions(positions, shipped_pool("pool")[:samples])
            command = [*CDTA, "run", "--base-url", url, "--model", "m", "--quiet", "-n", samples]
            limits = ["--dataset", positions, "--max-connections", 64, "--out", f"{folder}/run"]
            cost = measured([*command, *limits], url, {"CDTA_HOME": str(home)})
            print_row(
                *(f"{samples:,}", f"{cost.requests:,}", f"{cost.seconds:.1f}"),
                *(f"{cost.processor:.1f}", f"{cost.processor / cost.requests * 1000:.2f}"),
                *(f"{cost.memory:.0f}", f"{size_of(home):.1f}"),
            )


if __name__ == "__main__":
    main()
