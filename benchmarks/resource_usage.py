"""Measures the resources that a command uses: time, CPU, memory, and requests to a server."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

CDTA = (sys.executable, "-m", "cant_do_that_anymore")


@dataclass(frozen=True)
class ResourceUsage:
    """Resources that a command used, and the requests that it sent.

    Attributes:
        seconds: wall-clock time from start to end.
        cpu_seconds: user and system time.
        peak_mb: peak resident memory.
        requests: requests that the server received.
        first_request_after: seconds until the first request.
        sending_seconds: seconds from the second request to the last answer. The first request
            reads the model's version, and the client waits for its answer.
        max_in_flight: highest number of concurrent requests.
    """

    seconds: float
    cpu_seconds: float
    peak_mb: float
    requests: int
    first_request_after: float
    sending_seconds: float
    max_in_flight: int

    @property
    def request_rate(self) -> float:
        """Requests per second while the command sends requests."""
        return (self.requests - 1) / self.sending_seconds

    @property
    def cpu_ms_per_request(self) -> float:
        """Milliseconds of CPU time per request."""
        return self.cpu_seconds / self.requests * 1000


def measure_command(
    command: Sequence[object], url: str, environment: Mapping[str, str]
) -> ResourceUsage:
    """Run a command that sends requests to the server at ``url``; exit if the command fails."""
    before = server_stats(url)
    started, started_at = time.monotonic(), time.time()
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
    after = server_stats(url)
    return ResourceUsage(
        seconds=seconds,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss / 1024,
        requests=int(after["requests"] - before["requests"]),
        first_request_after=after["first_at"] - started_at,
        sending_seconds=after["last_at"] - after["second_at"],
        max_in_flight=int(after["max_in_flight"]),
    )


def server_stats(url: str) -> dict[str, float]:
    """Return the statistics of an `instant_server`."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as response:
        return cast(dict[str, float], json.load(response))
