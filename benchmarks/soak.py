"""A long run against a server that fails in one request of twenty, in seven ways.

    python benchmarks/soak.py

50,000 questions: 25,000 samples out of the 19,841 positions of the shipped pool, the first ones
twice. Memory is looked at as the run goes; afterwards nothing may be missing, and the numbers
must be those that the server's replies imply.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from instant import instant, stats_at
from measuring import CDTA, print_heading, print_row, size_of

from cant_do_that_anymore.game.position import shipped_pool, write_positions

LOOKS = 8


def memory_of(process: int) -> float:
    """What it holds now, in MB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=25_000)
    parser.add_argument("--faults", type=float, default=0.05)
    options = parser.parse_args()
    with instant(faults=options.faults) as url, tempfile.TemporaryDirectory() as folder:
        positions, out = Path(folder) / "positions.jsonl", Path(folder) / "run"
        pool = shipped_pool("pool")
        write_positions(positions, (pool + pool)[: options.samples])
        command = [*CDTA, "run", "--base-url", url, "--model", "m", "--quiet", "--dataset"]
        command += [str(positions), "-n", str(options.samples), "--max-connections", "64"]
        started = time.monotonic()
        process = subprocess.Popen(
            [*command, "--out", str(out)],
            env={**os.environ, "CDTA_HOME": f"{folder}/home"},
            stdout=subprocess.DEVNULL,
        )
        look(process, url, 2 * options.samples)
        if process.wait():
            raise SystemExit("the run failed")
        seconds = time.monotonic() - started
        report(out, stats_at(url), options.samples, seconds, size_of(Path(folder) / "home"))


def look(process: "subprocess.Popen[bytes]", url: str, questions: int) -> None:
    """Print the memory each time an eighth of the questions is answered."""
    print_heading("answered", "MB")
    due = questions // LOOKS
    while process.poll() is None:
        time.sleep(0.2)
        stats = stats_at(url)
        answered = stats["requests"] - stats["faults"]
        if answered >= due:
            print_row(f"{int(answered):,}", f"{memory_of(process.pid):.0f}")
            due += questions // LOOKS


def report(out: Path, stats: dict[str, float], samples: int, seconds: float, store: float) -> None:
    metrics = json.loads((out / "run.json").read_text())["metrics"]
    answered = int(stats["requests"] - stats["faults"])
    print(f"\n{samples:,} samples in {seconds:.0f} s; {int(stats['faults']):,} faults met; ")
    print(f"answers given {answered:,}, wanted {2 * samples:,}; without answer ", end="")
    print(f"{metrics['n_failed']}; the store takes {store:.0f} MB")
    print(f"play the special move: {metrics['predicted_move_proportion']:.4f}")
    if metrics["n_failed"] or answered != 2 * samples:
        raise SystemExit("something was lost or asked twice")


if __name__ == "__main__":
    main()
