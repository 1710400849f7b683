"""Runs a long diagnosis of a reasoning model through a proxy that fails one request in twenty.

    python benchmarks/soak.py

There are 50,004 requests: 8,334 positions of the shipped pool under six conditions. Answers contain
4,000 characters of reasoning on average. The diagnosis runs twice, without faults and with those of
`tests/fault_proxy.py`. The benchmark samples the memory of both runs. It fails if a request is
missing or sent twice, or if a sample or a number differs.
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

from instant_server import instant_server
from markdown_tables import print_heading, print_row
from resource_usage import CDTA, folder_size, server_stats

from cant_do_that_anymore.game.position import shipped_pool, write_positions

PROXY = Path(__file__).parents[1] / "tests" / "fault_proxy.py"
CONDITIONS = 6
MEMORY_SAMPLES = 8


@dataclass(frozen=True)
class SoakResult:
    """Results of a run.

    Attributes:
        folder: the run folder.
        seconds: wall-clock time.
        answered: requests that the server answered.
        memory_samples: answers so far and resident MB, at every eighth of the run.
        peak_mb: peak memory, including the time when the folder and the report are written.
        cache_mb: size of the cache.
    """

    folder: Path
    seconds: float
    answered: int
    memory_samples: list[tuple[int, float]]
    peak_mb: float
    cache_mb: float

    @property
    def bytes_per_answer(self) -> float:
        """Growth of memory per answer, from the first memory sample to the last."""
        (early, early_mb), (late, late_mb) = self.memory_samples[0], self.memory_samples[-1]
        return (late_mb - early_mb) * 2**20 / (late - early)


@contextmanager
def fault_proxy(server: str, share: float, seed: int) -> Iterator[str]:
    """Run the proxy in another process and yield its address."""
    options = ["--before", server, "--faults", str(share), "--seed", str(seed), "--patience", "2"]
    proxy = subprocess.Popen([sys.executable, PROXY, *options], stdout=subprocess.PIPE)
    assert proxy.stdout
    try:
        yield proxy.stdout.readline().decode().strip()
    finally:
        proxy.terminate()
        proxy.wait()


def run_diagnosis(
    url: str, server: str, positions: Path, folder: Path, requests: int
) -> SoakResult:
    """Run a diagnosis at ``url``, which is the server or a proxy for it."""
    before, started = server_stats(server)["requests"], time.monotonic()
    command = [*CDTA, "run", "--base-url", url, "--model", "m", "--quiet", "--diagnose"]
    command += ["--dataset", str(positions), "-n", str(requests // CONDITIONS)]
    command += ["--reasoning-tokens", "16000"]  # so that no request tests for reasoning
    process = subprocess.Popen(
        [*command, "--max-connections", "64", "--out", str(folder / "run")],
        env={**os.environ, "CDTA_HOME": str(folder / "home")},
        stdout=subprocess.DEVNULL,
    )
    memory_samples: list[tuple[int, float]] = []
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        answered = int(server_stats(server)["requests"] - before)
        if answered >= requests * (len(memory_samples) + 1) // MEMORY_SAMPLES:
            memory_samples.append((answered, resident_mb(process.pid)))
        time.sleep(0.2)
    if ended[1]:
        raise SystemExit("the run failed")
    return SoakResult(
        folder / "run",
        time.monotonic() - started,
        int(server_stats(server)["requests"] - before),
        memory_samples,
        ended[2].ru_maxrss / 1024,
        folder_size(folder / "home"),
    )


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def count_faults(proxy: str) -> dict[str, int]:
    """Return the faults of the proxy so far, by kind."""
    with urllib.request.urlopen(proxy.removesuffix("/v1") + "/faults") as response:
        return dict(json.load(response))


def print_table(runs: list[SoakResult]) -> None:
    print_heading("answers", "MB, without faults", "MB, with faults")
    for samples in zip(*(run.memory_samples for run in runs), strict=False):  # some runs have fewer
        print_row(f"{samples[-1][0]:,}", *(f"{memory:.0f}" for _, memory in samples))
    print_row("peak, including the report", *(f"{run.peak_mb:.0f}" for run in runs))
    print_row("bytes per answer", *(f"{run.bytes_per_answer:.0f}" for run in runs))
    print_row("seconds", *(f"{run.seconds:.0f}" for run in runs))
    print_row("cache MB", *(f"{run.cache_mb:.0f}" for run in runs))
    for name in ("samples.jsonl", "report.html"):
        sizes = ((run.folder / name).stat().st_size / 2**20 for run in runs)
        print_row(f"{name} MB", *(f"{size:.0f}" for size in sizes))


def check(runs: list[SoakResult], requests: int) -> None:
    """Exit if a request is missing or was sent twice, or if the two runs differ."""
    without, with_faults = (json.loads((run.folder / "run.json").read_text()) for run in runs)
    samples, with_faults_samples = ((run.folder / "samples.jsonl").read_bytes() for run in runs)
    answered = [run.answered for run in runs]
    if answered != [requests] * 2:
        raise SystemExit(f"the server answered {answered} requests instead of {requests}")
    if with_faults["metrics"]["n_failed"]:
        raise SystemExit(f"{with_faults['metrics']['n_failed']} samples have no answer")
    if samples != with_faults_samples or without["metrics"] != with_faults["metrics"]:
        raise SystemExit("the faults changed the samples or the numbers")
    print(f"\n{requests:,} requests answered once in each run; all samples are equal")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=8_334)
    parser.add_argument(
        "--reasoning-chars", type=int, default=4_000, help="mean length of the reasoning"
    )
    parser.add_argument("--faults", type=float, default=0.05, help="share of requests that fail")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    requests = CONDITIONS * options.samples
    with (
        instant_server(reasoning_chars=options.reasoning_chars, kept_share=0.5) as server,
        fault_proxy(server, options.faults, options.seed) as proxy,
        tempfile.TemporaryDirectory() as folder,
    ):
        positions = Path(folder) / "positions.jsonl"
        write_positions(positions, shipped_pool("pool")[: options.samples])
        runs = [
            run_diagnosis(url, server, positions, Path(folder) / name, requests)
            for name, url in {"without": server, "with": proxy}.items()
        ]
        print_table(runs)
        check(runs, requests)
        faults = count_faults(proxy)
        faults.pop("passed on")
        fewest = min(faults.values())
        print(
            f"{sum(faults.values()):,} faults of {len(faults)} kinds, each at least {fewest} times"
        )


if __name__ == "__main__":
    main()
