"""Requests that a new model needs, dataset and 1,000 samples, by how often it plays the habit.

    python benchmarks/cost.py

The original asks the whole pool of 19,841 positions before it draws its samples, whatever the hit
rate; its own request to learn the version is not counted here and ours is.
"""

import tempfile

from instant import instant
from measuring import CDTA, measured, print_heading, print_row

SAMPLES = 1000
POOL = 19_841
HIT_RATES = (0.05, 0.10, 0.16, 0.25, 0.5, 0.8)


def main() -> None:
    print_heading("hit rate", "cdta", "original", "share", "seconds")
    for hits in HIT_RATES:
        with instant(hits=hits) as url, tempfile.TemporaryDirectory() as home:
            command = [*CDTA, "run", "--base-url", url, "--model", "new", "--quiet"]
            cost = measured([*command, "-n", SAMPLES], url, {"CDTA_HOME": home})
        theirs = POOL + 2 * min(SAMPLES, int(hits * POOL))
        share = f"{cost.requests / theirs:.0%}"
        print_row(f"{hits:.0%}", f"{cost.requests:,}", f"{theirs:,}", share, f"{cost.seconds:.0f}")


if __name__ == "__main__":
    main()
