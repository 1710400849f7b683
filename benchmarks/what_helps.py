"""How often interventions are said to help, where it is known which do.

python benchmarks/what_helps.py

Simulates runs of 200 samples with seven interventions, by outcomes alone: three of them help, or
none does. Prints how often all three are found, and how often any other one is named.
"""

import sys
from argparse import ArgumentParser
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from measuring import print_heading, print_row

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reacting import HELPFUL, named_in

if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = range(parser.parse_args().runs)
    print_heading("samples per game", "interventions that help", "all found, %", "others named, %")
    with ProcessPoolExecutor() as pool:
        for per_game in (1, 3):
            for harmless in (False, True):
                helpful: set[str] = set() if harmless else HELPFUL
                work = partial(named_in, per_game=per_game, harmless=harmless)
                named = list(pool.map(work, runs, chunksize=10))
                found = sum(names >= helpful for names in named) / len(runs)
                others = sum(bool(names - helpful) for names in named) / len(runs)
                shown = "–" if harmless else f"{100 * found:.1f}"
                print_row(per_game, len(helpful), shown, f"{100 * others:.1f}")
