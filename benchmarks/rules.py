"""Runs every rule of the catalog with an empty cache, with each of two bundled models.

    python benchmarks/rules.py

Prints the table of docs/rules.md. ``cdta/pocket`` ignores rules, so its impact factor should be
about 0. ``cdta/pocket-rules`` follows them, so its impact factor should be -1 and its adaptation
rate 1. Seconds are wall-clock and CPU time of the whole command, including mining. CPU time does
not depend on other load.
"""

import json
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from markdown_tables import print_heading, print_row
from resource_usage import CDTA

from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, CATALOG

SAMPLES = 200


@dataclass(frozen=True)
class RunResult:
    """Results of a run, the size of its pool, and its time."""

    results: dict[str, Any]
    pool_size: int
    seconds: float
    cpu_seconds: float

    @property
    def impact(self) -> str:
        """The impact factor with its interval."""
        interval = self.results["intervals"]["variant_impact_factor"]
        bounds = f"[{interval['low']:.2f}, {interval['high']:.2f}]"
        return f"{self.results['variant_impact_factor']:.2f} {bounds}"


def main() -> None:
    print_heading(
        *("options", "pool", "hit rate", "impact factor, `pocket`"),
        *("impact factor, `pocket-rules`", "adaptation, `pocket-rules`", "seconds", "CPU seconds"),
    )
    for options in option_sets():
        ignores = run(("--model", "cdta/pocket", *options))
        follows = run(("--model", "cdta/pocket-rules", *options))
        print_row(
            f"`{' '.join(options)}`",
            f"{ignores.pool_size:,}",
            f"{SAMPLES / ignores.results['dataset']['asked']:.0%}",
            ignores.impact,
            follows.impact,
            f"{follows.results['adaptation_rate']:.3f}",
            f"{ignores.seconds:.0f}, {follows.seconds:.0f}",
            f"{ignores.cpu_seconds:.0f}, {follows.cpu_seconds:.0f}",
        )


def option_sets() -> Iterator[tuple[str, ...]]:
    """Yield the options of each row."""
    yield ("--rules", BISHOPS_AS_KNIGHTS.key)
    for rules in CATALOG.values():
        if rules == BISHOPS_AS_KNIGHTS:
            yield ("--pool", "games")
        elif rules.forbids_something:
            yield ("--rules", rules.key)


def run(options: tuple[str, ...]) -> RunResult:
    """Run a command with an empty cache."""
    command = [*CDTA, "run", *options, "-n", str(SAMPLES), "--json", "--quiet"]
    with TemporaryDirectory() as home:
        started, cpu_before = time.monotonic(), _cpu_seconds_of_children()
        environment = os.environ | {"CDTA_HOME": home}
        done = subprocess.run(command, check=True, capture_output=True, env=environment)
        seconds = time.monotonic() - started
        cpu_seconds = _cpu_seconds_of_children() - cpu_before
        sizes = [len(file.read_bytes().splitlines()) for file in Path(home).glob("pools/*")]
        (pool_size,) = sizes or [len(shipped_pool("pool"))]
    return RunResult(json.loads(done.stdout), pool_size, seconds, cpu_seconds)


def _cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
