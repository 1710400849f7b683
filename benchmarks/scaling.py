"""Measures how the cost of a run grows with its samples: time, CPU, memory, size of the cache.

python benchmarks/scaling.py
"""

import argparse
import tempfile
from pathlib import Path

from instant_server import instant_server
from markdown_tables import print_heading, print_row
from resource_usage import CDTA, folder_size, measure_command

from cant_do_that_anymore.game.position import shipped_pool, write_positions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[100, 1000, 10_000])
    print_heading(
        *("samples", "requests", "seconds", "CPU seconds", "CPU ms per request"),
        *("peak MB", "cache MB"),
    )
    for samples in parser.parse_args().sizes:
        with instant_server() as url, tempfile.TemporaryDirectory() as folder:
            positions, home = Path(folder) / "positions.jsonl", Path(folder) / "home"
            write_positions(positions, shipped_pool("pool")[:samples])
            command = [*CDTA, "run", "--base-url", url, "--model", "m", "--quiet", "-n", samples]
            options = ["--dataset", positions, "--max-connections", 64, "--out", f"{folder}/run"]
            usage = measure_command([*command, *options], url, {"CDTA_HOME": str(home)})
            print_row(
                *(f"{samples:,}", f"{usage.requests:,}", f"{usage.seconds:.1f}"),
                *(f"{usage.cpu_seconds:.1f}", f"{usage.cpu_ms_per_request:.2f}"),
                *(f"{usage.peak_mb:.0f}", f"{folder_size(home):.1f}"),
            )


if __name__ == "__main__":
    main()
