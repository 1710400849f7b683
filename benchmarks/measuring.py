"""What a command costs: time, processor, memory, and what a server saw of it."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

CDTA = (sys.executable, "-m", "cant_do_that_anymore")


@dataclass(frozen=True)
class Cost:
    """What a command cost.

    Attributes:
        seconds: from start to end.
        processor: seconds of all its processor time.
        memory: the most memory it held, in MB.
        requests: how many the server saw.
        first: seconds until the first of them.
        asking: seconds from the second request to the last answer; before the second, the first
            must have told the model's version.
        in_flight: the most at once.
    """

    seconds: float
    processor: float
    memory: float
    requests: int
    first: float
    asking: float
    in_flight: int

    @property
    def rate(self) -> float:
        """Requests a second while it asks."""
        return (self.requests - 1) / self.asking


def measured(command: Sequence[object], url: str, environment: Mapping[str, str]) -> Cost:
    """Run a command that asks the server at ``url``; it must succeed."""
    before = stats_at(url)
    started, clock = time.monotonic(), time.time()
    process = subprocess.Popen(
        [str(part) for part in command],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    if status:
        sys.exit(f"{command} failed:\n{errors.decode()[-2000:]}")
    after = stats_at(url)
    return Cost(
        seconds=seconds,
        processor=usage.ru_utime + usage.ru_stime,
        memory=usage.ru_maxrss / 1024,
        requests=int(after["requests"] - before["requests"]),
        first=after["first_at"] - clock,
        asking=after["last_at"] - after["second_at"],
        in_flight=int(after["most_in_flight"]),
    )


def size_of(folder: Path) -> float:
    """The size of all files in it, in MB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def print_row(*cells: object) -> None:
    """One row of a Markdown table."""
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def print_heading(*cells: str) -> None:
    """The first two rows of a Markdown table."""
    print_row(*cells)
    print_row(*["---"] * len(cells))


def stats_at(url: str) -> dict[str, float]:
    """What a server of instant.py has seen so far."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as response:
        return cast(dict[str, float], json.load(response))
