"""Simulates how often a run finds the interventions that help, and how often it names others.

    python benchmarks/interventions.py

The simulated runs have 200 samples and seven interventions, of which three or none help.
"""

import sys
from argparse import ArgumentParser
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

from markdown_tables import print_heading, print_row

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from simulated_interventions import HELPFUL, significant_interventions


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="simulated runs per row")
    seeds = range(parser.parse_args().runs)
    print_heading("samples per game", "interventions that help", "all found, %", "others named, %")
    with ProcessPoolExecutor() as pool:
        for per_game, none_helps in product((1, 3), (False, True)):
            helpful: set[str] = set() if none_helps else HELPFUL
            simulate = partial(significant_interventions, per_game=per_game, no_effect=none_helps)
            named = list(pool.map(simulate, seeds, chunksize=10))
            found = sum(names >= helpful for names in named) / len(seeds)
            others = sum(bool(names - helpful) for names in named) / len(seeds)
            found_cell = "–" if none_helps else f"{100 * found:.1f}"
            print_row(per_game, len(helpful), found_cell, f"{100 * others:.1f}")


if __name__ == "__main__":
    main()
