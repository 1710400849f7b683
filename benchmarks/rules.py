"""Every rule of the catalog out of the box: a run from an empty home with each of two models.

    python benchmarks/rules.py

Prints the table of docs/rules.md. ``cdta/pocket`` is deaf to rules, so its impact factor should be
about 0; ``cdta/pocket-rules`` keeps them, so it should have -1 and an adaptation rate of 1. Times
are of the whole command, mining included: by the clock, and of the processor, which other work on
the machine does not change.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, CATALOG

SAMPLES = 200
HEADINGS = (
    *("options", "pool", "hit rate", "impact factor, deaf", "impact factor, perfect"),
    *("adaptation, perfect", "seconds", "processor"),
)


@dataclass(frozen=True)
class Done:
    """What a run came to and took."""

    facts: dict[str, Any]
    pool: int
    seconds: float
    processor: float

    @property
    def impact(self) -> str:
        interval = self.facts["intervals"]["variant_impact_factor"]
        bounds = f"[{interval['low']:.2f}, {interval['high']:.2f}]"
        return f"{self.facts['variant_impact_factor']:.2f} {bounds}"


def main() -> None:
    print(f"| {' | '.join(HEADINGS)} |")
    print("| --- " * len(HEADINGS) + "|")
    for options in cases():
        deaf, perfect = (run(model, options) for model in ("cdta/pocket", "cdta/pocket-rules"))
        cells = (
            f"`{' '.join(options)}`",
            f"{deaf.pool:,}",
            f"{SAMPLES / deaf.facts['dataset']['asked']:.0%}".replace("%", " %"),
            deaf.impact,
            perfect.impact,
            f"{perfect.facts['adaptation_rate']:.3f}",
            f"{deaf.seconds:.0f}, {perfect.seconds:.0f}",
            f"{deaf.processor:.0f}, {perfect.processor:.0f}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def cases() -> Iterator[tuple[str, ...]]:
    """The options of each line."""
    yield ("--rules", BISHOPS_AS_KNIGHTS.key)
    for rules in CATALOG.values():
        if rules == BISHOPS_AS_KNIGHTS:
            yield ("--pool", "games")
        elif rules.forbids_something:
            yield ("--rules", rules.key)


def run(model: str, options: tuple[str, ...]) -> Done:
    command = [sys.executable, "-m", "cant_do_that_anymore", "run", "--model", model, *options]
    command += ["-n", str(SAMPLES), "--json", "--quiet"]
    with TemporaryDirectory() as home:
        started, before = time.monotonic(), _processor()
        environment = os.environ | {"CDTA_HOME": home}
        told = subprocess.run(command, check=True, capture_output=True, env=environment).stdout
        seconds, processor = time.monotonic() - started, _processor() - before
        kept = [len(file.read_bytes().splitlines()) for file in Path(home).glob("pools/*")]
        (pool,) = kept or [len(shipped_pool("pool"))]
    return Done(json.loads(told), pool, seconds, processor)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
