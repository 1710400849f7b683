"""A long diagnosis of a model that thinks, through a proxy that fails in one request of twenty.

    python benchmarks/soak.py

50,004 questions: 8,334 positions of the shipped pool under six conditions, with some thousand
letters of thoughts before every answer. They are asked twice, without faults and with those of
`tests/fault_proxy.py`, and memory is looked at as the runs go. Afterwards nothing may be missing or
asked twice, and every sample and every number must be the same.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from instant import instant
from measuring import CDTA, print_heading, print_row, size_of, stats_at

from cant_do_that_anymore.game.position import shipped_pool, write_positions

PROXY = Path(__file__).parents[1] / "tests" / "fault_proxy.py"
CONDITIONS = 6
LOOKS = 8


@dataclass(frozen=True)
class Soaked:
    """What a run came to.

    Attributes:
        answered: how many requests the server answered.
        looks: the answers so far and the memory then, in MB, at every eighth of them.
        most: the most memory that it ever held, when the folder and the page were written as well.
        store: the size of what it keeps, in MB.
    """

    folder: Path
    seconds: float
    answered: int
    looks: list[tuple[int, float]]
    most: float
    store: float

    @property
    def growth(self) -> float:
        """Bytes an answer, between the first look and the last."""
        (early, less), (late, more) = self.looks[0], self.looks[-1]
        return (more - less) * 2**20 / (late - early)


@contextmanager
def failing(before: str, share: float, seed: int) -> Iterator[str]:
    """The proxy in a process of its own; yields its address."""
    options = ["--before", before, "--faults", str(share), "--seed", str(seed), "--patience", "2"]
    proxy = subprocess.Popen([sys.executable, PROXY, *options], stdout=subprocess.PIPE)
    assert proxy.stdout
    try:
        yield proxy.stdout.readline().decode().strip()
    finally:
        proxy.terminate()
        proxy.wait()


def soaked(url: str, server: str, positions: Path, folder: Path, questions: int) -> Soaked:
    """Measure the model at an address, behind which is the server."""
    before, started = stats_at(server)["requests"], time.monotonic()
    command = [*CDTA, "run", "--base-url", url, "--model", "m", "--quiet", "--diagnose"]
    command += ["--dataset", str(positions), "-n", str(questions // CONDITIONS)]
    command += ["--reasoning-tokens", "16000"]  # so that none is asked before that is learnt
    process = subprocess.Popen(
        [*command, "--max-connections", "64", "--out", str(folder / "run")],
        env={**os.environ, "CDTA_HOME": str(folder / "home")},
        stdout=subprocess.DEVNULL,
    )
    looks: list[tuple[int, float]] = []
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        answered = int(stats_at(server)["requests"] - before)
        if answered >= questions * (len(looks) + 1) // LOOKS:
            looks.append((answered, memory_of(process.pid)))
        time.sleep(0.2)
    if ended[1]:
        raise SystemExit("the run failed")
    return Soaked(
        folder / "run",
        time.monotonic() - started,
        int(stats_at(server)["requests"] - before),
        looks,
        ended[2].ru_maxrss / 1024,
        size_of(folder / "home"),
    )


def memory_of(process: int) -> float:
    """What it holds now, in MB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def faults_at(url: str) -> dict[str, int]:
    """What the proxy has done."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/faults") as response:
        return dict(json.load(response))


def report(runs: list[Soaked]) -> None:
    print_heading("answers", "MB, without faults", "MB, with faults")
    for looks in zip(*(run.looks for run in runs), strict=False):  # a short run ends between them
        print_row(f"{looks[-1][0]:,}", *(f"{memory:.0f}" for _, memory in looks))
    print_row("at most, until the page is written", *(f"{run.most:.0f}" for run in runs))
    print_row("bytes an answer", *(f"{run.growth:.0f}" for run in runs))
    print_row("seconds", *(f"{run.seconds:.0f}" for run in runs))
    print_row("MB of the store", *(f"{run.store:.0f}" for run in runs))
    for name in ("samples.jsonl", "report.html"):
        sizes = ((run.folder / name).stat().st_size / 2**20 for run in runs)
        print_row(f"MB of {name}", *(f"{size:.0f}" for size in sizes))


def check(runs: list[Soaked], questions: int) -> None:
    """Nothing missing, nothing asked twice, and everything the same."""
    without, with_faults = (json.loads((run.folder / "run.json").read_text()) for run in runs)
    samples, again = ((run.folder / "samples.jsonl").read_bytes() for run in runs)
    if [run.answered for run in runs] != [questions] * 2:
        raise SystemExit(f"answered {[run.answered for run in runs]} and not {questions} questions")
    if with_faults["metrics"]["n_failed"]:
        raise SystemExit(f"{with_faults['metrics']['n_failed']} samples have no answer")
    if samples != again or without["metrics"] != with_faults["metrics"]:
        raise SystemExit("faults have changed the samples or the numbers")
    print(f"\n{questions:,} questions answered once each, twice over; every sample is the same")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=8_334)
    parser.add_argument("--thoughts", type=int, default=4_000, help="letters, in the mean")
    parser.add_argument("--faults", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    questions = CONDITIONS * told.samples
    with (
        instant(thoughts=told.thoughts, keeps=0.5) as server,
        failing(server, told.faults, told.seed) as proxy,
        tempfile.TemporaryDirectory() as folder,
    ):
        positions = Path(folder) / "positions.jsonl"
        write_positions(positions, shipped_pool("pool")[: told.samples])
        runs = [
            soaked(url, server, positions, Path(folder) / name, questions)
            for name, url in {"without": server, "with": proxy}.items()
        ]
        report(runs)
        check(runs, questions)
        met = faults_at(proxy)
        met.pop("passed on")
        least = min(met.values())
        print(f"{sum(met.values()):,} faults of {len(met)} kinds, each met {least} times or more")


if __name__ == "__main__":
    main()
